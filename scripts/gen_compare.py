#!/usr/bin/env python3
"""Writes testdata/compare/: a small Llama as safetensors, and GGUF files that were made of it as llama.cpp
makes them: other names, and the rows of query and key matrices interleaved."""

import pathlib

import gguf
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

HEADS, DIM = 4, 256
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.layers.0.self_attn.q_proj.weight": "blk.0.attn_q.weight",
    "model.layers.0.self_attn.v_proj.weight": "blk.0.attn_v.weight",
    "model.layers.0.input_layernorm.weight": "blk.0.attn_norm.weight",
    "model.norm.weight": "output_norm.weight",
}


def permute(w):
    return w.reshape(HEADS, 2, w.shape[0] // HEADS // 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def main():
    out = pathlib.Path(__file__).parent.parent / "testdata" / "compare"
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(6)

    def matrix(rows):
        return (rng.standard_normal((rows, DIM)) * 0.02).astype(ml_dtypes.bfloat16)

    def norm():
        return (1 + rng.standard_normal(DIM) * 0.1).astype(ml_dtypes.bfloat16)

    model = {
        "model.embed_tokens.weight": matrix(32),
        "model.layers.0.self_attn.q_proj.weight": matrix(64),
        "model.layers.0.self_attn.v_proj.weight": matrix(64),
        "model.layers.0.input_layernorm.weight": norm(),
        "model.norm.weight": norm(),
    }
    save_file(model, out / "model.safetensors")
    for kind in ["F32", "F16", "Q8_0", "Q4_0"]:
        w = gguf.GGUFWriter(out / f"model-{kind.lower()}.gguf", "llama")
        w.add_block_count(1)
        w.add_head_count(HEADS)
        for name, value in model.items():
            value = value.astype(np.float32)
            if "q_proj" in name:
                value = permute(value)
            type = gguf.GGMLQuantizationType["F32" if value.ndim == 1 else kind]
            w.add_tensor(NAMES[name], gguf.quants.quantize(value, type), raw_dtype=type)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()


if __name__ == "__main__":
    main()
