"""Write the checkpoints that the frameworks load: python make.py DIRECTORY MIB

encoder.pt is a Transformer encoder as torch.save writes it, llama/ a model of transformers in shards
with its configuration, arrays.npz a few matrices; all values are random, each has about MIB.
odd/ holds small tensors of every type, a scalar and an empty one.
"""
import pathlib
import sys

import numpy as np
import safetensors.torch
import torch
import transformers

import models


def write_encoder(file, bytes):
    torch.save(models.encoder(bytes).to(torch.bfloat16).state_dict(), file)


def write_llama(directory, bytes):
    hidden, layers = models.shape(bytes, parameters_per_square=16)  # 4 projections, and 3 of four times the width
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=hidden, intermediate_size=4 * hidden, num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=8)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(directory, max_shard_size=bytes // 5)


def write_arrays(file, bytes):
    rows = bytes // 8 // (4 * 1024)
    random = np.random.default_rng(1)
    np.savez(file, **{f"layer{i}/weight": random.standard_normal((rows, 1024), dtype=np.float32) for i in range(8)})


def write_odd(directory):
    directory.mkdir()
    dtypes = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
              torch.uint16, torch.uint32, torch.uint64]
    tensors = {f"of.{dtype}": torch.arange(6).reshape(2, 3).to(dtype) for dtype in dtypes}
    tensors |= {"scalar": torch.tensor(7), "empty": torch.zeros(0, 3), "one/row": torch.ones(1, 5)}
    safetensors.torch.save_file(tensors, directory / "model.safetensors")


def main(directory, mib):
    directory, bytes = pathlib.Path(directory), int(mib) << 20
    torch.manual_seed(1)
    write_encoder(directory / "encoder.pt", bytes)
    write_llama(directory / "llama", bytes)
    write_arrays(directory / "arrays.npz", bytes)
    write_odd(directory / "odd")


if __name__ == "__main__":
    main(*sys.argv[1:])
