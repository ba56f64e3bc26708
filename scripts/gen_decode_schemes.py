#!/usr/bin/env python3
"""Golden vectors of format/decode for tensors that are decoded with companions.

Integers and codes are drawn first and packed as the libraries pack them, so that what is wanted
comes from the numbers that went in, not from an unpacking of ours. Each case is one JSON object in
testdata/decode/schemes.json.gz.
"""

import base64
import gzip
import json
import pathlib

import ml_dtypes
import numpy as np

rng = np.random.default_rng(1)
NAMES = {
    np.dtype(np.uint8): "U8", np.dtype(np.int32): "I32", np.dtype(np.float16): "F16", np.dtype(np.float32): "F32",
    np.dtype(ml_dtypes.bfloat16): "BF16", np.dtype(ml_dtypes.float8_e4m3fn): "F8_E4M3",
    np.dtype(ml_dtypes.float8_e5m2): "F8_E5M2", np.dtype(ml_dtypes.float8_e8m0fnu): "F8_E8M0",
}  # fmt: skip
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def b64(a):
    return base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()


def case(kind, primary, tensors, want, config=None, companions=None):
    return {
        "kind": kind,
        "primary": primary,
        "companions": companions or [n for n in tensors if n != primary],
        "tensors": {n: {"dtype": NAMES[a.dtype], "shape": a.shape, "data": b64(a)} for n, a in tensors.items()},
        "config": json.dumps(config or {}),
        "shape": want.shape,
        "want": b64(want.astype("<f4")),
    }


def usual(*shape):
    return (rng.standard_normal(shape) * 0.01).astype(np.float32)


def fp8(shape, scale, repeat, name="m.weight", scale_name="m.weight_scale_inv", dtype=ml_dtypes.float8_e4m3fn, config=None):
    w = rng.standard_normal(shape).astype(dtype)
    full = scale.astype(np.float32)
    if scale.dtype == np.uint8:
        full = scale.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    for axis, n in repeat.items():
        full = np.repeat(full, n, axis=axis)
    if full.ndim == len(shape):
        full = full[tuple(slice(0, n) for n in shape)]
    return case("fp8", name, {name: w, scale_name: scale}, w.astype(np.float32) * full, config)


def codes_packed(codes):  # the first in the low nibble
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


def mxfp4():
    codes = rng.integers(0, 16, (2, 5, 3, 32), dtype=np.uint8)
    scales = rng.integers(0, 256, (2, 5, 3), dtype=np.uint8)
    scales[0, 0] = [0, 1, 255]
    wide = E2M1[codes].astype(np.float64) * 2.0 ** (scales.astype(np.float64)[..., None] - 127)
    with np.errstate(over="ignore"):
        want = wide.astype(np.float32).reshape(2, 5, 96)
    yield case("mxfp4", "e.down_proj_blocks", {"e.down_proj_blocks": codes_packed(codes), "e.down_proj_scales": scales}, want)
    flat = codes_packed(codes.reshape(10, 96))
    scales = scales.reshape(10, 3)
    yield case("mxfp4", "m.weight_packed", {"m.weight_packed": flat, "m.weight_scale": scales}, want.reshape(10, 96))


def nvfp4():
    codes = rng.integers(0, 16, (6, 4, 16), dtype=np.uint8)
    scale = np.abs(rng.standard_normal((6, 4))).astype(ml_dtypes.float8_e4m3fn)
    packed = codes_packed(codes.reshape(6, 64))
    one = np.array(0.037, np.float32)
    want = E2M1[codes] * (scale.astype(np.float32) * one)[..., None]
    tensors = {"m.weight": packed, "m.weight_scale": scale, "m.weight_scale_2": one}
    yield case("nvfp4", "m.weight", tensors, want.reshape(6, 64))
    one = np.array([412.5], np.float32)
    want = E2M1[codes] * (scale.astype(np.float32) / one)[..., None]
    tensors = {"m.weight_packed": packed, "m.weight_scale": scale, "m.weight_global_scale": one}
    yield case("nvfp4", "m.weight_packed", tensors, want.reshape(6, 64))


def words(values, bits, axis):
    """Packs integers into 32-bit words along an axis, the first lowest."""
    per = 32 // bits
    v = np.moveaxis(values.astype(np.uint32), axis, -1)
    v = v.reshape(*v.shape[:-1], -1, per)
    w = np.bitwise_or.reduce(v << (np.arange(per, dtype=np.uint32) * np.uint32(bits)), axis=-1)
    return np.moveaxis(w, -1, axis).astype(np.uint32).view(np.int32)


def gptq(bits, less, config):
    rows, out, groups = 64, 32, 4
    top = 2**bits
    q = rng.integers(0, top, (rows, out))
    zero = rng.integers(0, top, (groups, out))
    scales = usual(groups, out).astype(np.float16)
    g_idx = rng.permutation(np.arange(rows, dtype=np.int32) // (rows // groups)).astype(np.int32)
    want = (q - zero[g_idx]).astype(np.float32) * scales.astype(np.float32)[g_idx]
    tensors = {
        "m.qweight": words(q, bits, 0),
        "m.qzeros": words((zero - less) % top, bits, 1),
        "m.scales": scales,
        "m.g_idx": g_idx,
    }
    return case("gptq", "m.qweight", tensors, want, config)


def awq():
    rows, out, groups = 48, 40, 3
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    q = rng.integers(0, 16, (rows, out))
    zero = rng.integers(0, 16, (groups, out))
    scales = usual(groups, out).astype(np.float16)

    def pack(v):
        return words(v.reshape(v.shape[0], -1, 8)[..., order].reshape(v.shape), 4, 1)

    group = np.arange(rows) // (rows // groups)
    want = (q - zero[group]).astype(np.float32) * scales.astype(np.float32)[group]
    return case("awq", "m.qweight", {"m.qweight": pack(q), "m.qzeros": pack(zero), "m.scales": scales}, want)


def bnb(shape, block, nested, kind):
    n = int(np.prod(shape))
    codes = rng.integers(0, 16, n, dtype=np.uint8)
    pairs = np.append(codes, 0)[: n + n % 2].reshape(-1, 2)
    packed = (pairs[:, :1] << 4 | pairs[:, 1:]).astype(np.uint8)
    table = np.sort(rng.uniform(-1, 1, 16)).astype(np.float32)
    blocks = -(-n // block)
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": shape}
    tensors = {"m.weight": packed, "m.weight.quant_map": table}
    if nested:
        state |= {"nested_blocksize": 4, "nested_dtype": "float32", "nested_offset": 0.03693051263689995}
        scale_codes = rng.integers(0, 256, blocks, dtype=np.uint8)
        scale_table = np.sort(rng.uniform(-1, 1, 256)).astype(np.float32)
        scale_max = np.abs(usual(-(-blocks // 4)))
        absmax = scale_table[scale_codes] * np.repeat(scale_max, 4)[:blocks] + np.float32(state["nested_offset"])
        tensors |= {
            "m.weight.absmax": scale_codes,
            "m.weight.nested_quant_map": scale_table,
            "m.weight.nested_absmax": scale_max,
        }
    else:
        absmax = np.abs(usual(blocks))
        tensors["m.weight.absmax"] = absmax
    companions = [name for name in tensors if name != "m.weight"]
    tensors[f"m.weight.quant_state.bitsandbytes__{kind}"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    want = (table[codes] * np.repeat(absmax, block)[:n]).reshape(shape)
    return case("bnb-4bit", "m.weight", tensors, want, companions=companions)


def cases():
    yield fp8((130, 140), usual(2, 2), {0: 128, 1: 128})
    yield fp8((2, 130, 20), usual(2, 2, 1), {1: 128, 2: 128}, "e.up", "e.up_scale_inv")
    yield fp8((70, 90), usual(3, 2), {0: 32, 1: 64}, config={"quantization_config": {"weight_block_size": [32, 64]}})
    yield fp8((20, 30), usual(20, 1).astype(ml_dtypes.bfloat16), {}, scale_name="m.weight_scale")
    yield fp8((20, 30), usual(1, 30), {}, scale_name="m.weight_scale", dtype=ml_dtypes.float8_e5m2)
    yield fp8((20, 30), np.array([0.0123], np.float32), {}, scale_name="m.scale_weight")
    yield fp8((33,), np.array(0.0123, np.float32), {}, scale_name="m.weight_scale")
    yield fp8((10, 96), rng.integers(100, 140, (10, 3), dtype=np.uint8), {1: 32})
    yield fp8((130, 132), np.abs(usual(2, 2)).astype(ml_dtypes.float8_e8m0fnu), {0: 128, 1: 128}, scale_name="m.scale")
    yield from mxfp4()
    yield from nvfp4()
    yield gptq(4, 1, {"quantization_config": {"quant_method": "gptq", "bits": 4}})
    yield gptq(4, 0, {"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}})
    yield gptq(8, 1, {"bits": 8, "group_size": 16})
    yield gptq(2, 1, {"text_config": {"quantization_config": {"quant_method": "gptq"}}})
    yield awq()
    yield bnb([24, 32], 64, False, "nf4")
    yield bnb([25, 67], 64, True, "nf4")
    yield bnb([3, 5], 64, False, "fp4")


out = pathlib.Path(__file__).parent.parent / "testdata" / "decode" / "schemes.json.gz"
out.write_bytes(gzip.compress(json.dumps(list(cases())).encode(), mtime=0))
