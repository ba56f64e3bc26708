#!/usr/bin/env python3
"""Writes testdata/digest/golden.json.gz: tensors of every decoded type with the statistics that NumPy
computes of them in float64, and their SHA-256."""

import base64
import gzip
import hashlib
import json
import pathlib
import warnings

import gguf
import ml_dtypes
import numpy as np

PLAIN = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32,
    "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64, "C64": np.complex64, "C128": np.complex128,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
PACKED = {
    "F4": (4, ml_dtypes.float4_e2m1fn), "F6_E2M3": (6, ml_dtypes.float6_e2m3fn),
    "F6_E3M2": (6, ml_dtypes.float6_e3m2fn), "I4": (4, ml_dtypes.int4), "U4": (4, ml_dtypes.uint4),
    "I2": (2, ml_dtypes.int2), "U2": (2, ml_dtypes.uint2),
}  # fmt: skip
BLOCKS = ["Q4_0", "Q8_0", "Q4_K", "Q6_K", "MXFP4"]
FLOATS = ["F16", "BF16", "F32", "F64", "C64", "C128"]

rng = np.random.default_rng(5)


def values(name, raw):
    """The values of stored bytes as float64; of complex types both parts."""
    if name in PLAIN:
        v = raw.view(PLAIN[name])
        if v.dtype.kind == "c":
            v = v.view(np.float32 if name == "C64" else np.float64)
        return v.astype(np.float64)
    if name in PACKED:
        bits, dtype = PACKED[name]
        fields = np.unpackbits(raw, bitorder="little").reshape(-1, bits)
        return np.packbits(fields, axis=1, bitorder="little").view(dtype).astype(np.float64)
    kind = gguf.GGMLQuantizationType[name]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    return gguf.quants.dequantize(raw.reshape(-1, size), kind).astype(np.float64)


def case(name, raw, elements, title):
    raw = np.ascontiguousarray(raw).view(np.uint8).reshape(-1)
    v = values(name, raw) if raw.size else np.zeros(0)
    v = v.reshape(-1)[: elements * (2 if name in ("C64", "C128") else 1)]
    finite = v[np.isfinite(v)]
    golden = {
        "title": title, "dtype": name, "elements": elements, "data": base64.b64encode(raw.tobytes()).decode(),
        "nan": int(np.isnan(v).sum()), "pos_inf": int(np.isposinf(v).sum()), "neg_inf": int(np.isneginf(v).sum()),
        "zeros": int((v == 0).sum()), "finite": int(finite.size), "sha256": hashlib.sha256(raw.tobytes()).hexdigest(),
    }  # fmt: skip
    if finite.size:
        golden |= {
            "min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean()),
            "std": float(finite.std()),
        }  # fmt: skip
    return golden


def plain(name, n):
    dtype = np.dtype(PLAIN[name])
    if name == "BOOL":
        return rng.integers(0, 2, n).astype(np.uint8)
    if dtype.kind in "iu":
        return rng.integers(0, 256, n * dtype.itemsize, dtype=np.uint8)
    if name == "F8_E8M0":
        return rng.integers(100, 150, n).astype(np.uint8)
    if dtype.kind == "c":
        return (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype)
    return (rng.standard_normal(n) * 0.5 + 0.1).astype(dtype)


def cases():
    for name in PLAIN:
        yield case(name, np.zeros(0, np.uint8), 0, "empty")
        yield case(name, plain(name, 1), 1, "scalar")
        yield case(name, plain(name, 4099), 4099, "values")
        yield case(name, np.zeros(7 * np.dtype(PLAIN[name]).itemsize, np.uint8), 7, "zeros")
    for name in FLOATS:
        v = plain(name, 4200)
        parts = v.view({"C64": np.float32, "C128": np.float64}.get(name, v.dtype))
        parts[[3, 100, 4097]] = np.nan
        parts[[5, 4098]] = np.inf
        parts[[6]] = -np.inf
        parts[[7, 8, 9, 4099]] = -0.0
        yield case(name, v, 4200, "special")
        parts[:] = np.nan
        yield case(name, v[:5], 5, "all nan")
    for name in ["F32", "F64", "BF16"]:
        yield case(name, (plain(name, 4100).astype(np.float64) * 1e-3 + 1e4).astype(PLAIN[name]), 4100, "far from zero")
        yield case(name, np.full(4100, 0.1, PLAIN[name]), 4100, "constant")
        v = plain(name, 4100)
        v[17] = np.finfo(np.float32).min
        yield case(name, v, 4100, "mask")
    for name in ["F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0", "F4", "I4", "U4", "I2", "U2"]:
        per = 8 // PACKED[name][0] if name in PACKED else 1
        yield case(name, np.arange(256, dtype=np.uint8), 256 * per, "every byte")
    for name, (bits, _) in PACKED.items():
        yield case(name, rng.integers(0, 256, 1026, dtype=np.uint8), 1026 * 8 // bits, "values")
    for name in ["I4", "U4", "I2", "U2"]:
        yield case(name, np.array([0x21, 0x43, 0xF1], np.uint8), 3 * 8 // PACKED[name][0] - 1, "filled up")
    for name in BLOCKS:
        elems, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
        count = 4608 // elems
        v = rng.standard_normal((1, count * elems)).astype(np.float32)
        try:
            raw = gguf.quants.quantize(v, gguf.GGMLQuantizationType[name])
        except NotImplementedError:
            raw = rng.integers(0, 256, (count, size), dtype=np.uint8)
            for at in {"Q4_K": [0, 2], "Q6_K": [208]}[name]:
                half = (rng.standard_normal((count, 1)) * 0.01).astype("<f2").view(np.uint8)
                raw[:, at : at + 2] = half
        yield case(name, raw, count * elems, "values")


def main():
    warnings.simplefilter("ignore")
    out = pathlib.Path(__file__).parent.parent / "testdata" / "digest" / "golden.json.gz"
    out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(list(cases()), indent=0).encode()
    out.write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main()
