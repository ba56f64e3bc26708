#!/usr/bin/env python3
"""Golden vectors of format/decode: what NumPy with ml_dtypes and gguf-py make of stored elements.

gen_decode.py           writes testdata/decode/TYPE.gz: the stored bytes, then their float32 values
gen_decode.py TYPE=N…   decodes N bytes of standard input for each TYPE to standard output, for tests
                        against a live peer
"""

import gzip
import pathlib
import sys
import warnings

import gguf
import ml_dtypes
import numpy as np

PLAIN = {
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}
PACKED = {  # bits and type of an element
    "F4": (4, ml_dtypes.float4_e2m1fn),
    "F6_E2M3": (6, ml_dtypes.float6_e2m3fn),
    "F6_E3M2": (6, ml_dtypes.float6_e3m2fn),
    "I4": (4, ml_dtypes.int4),
    "U4": (4, ml_dtypes.uint4),
    "I2": (2, ml_dtypes.int2),
    "U2": (2, ml_dtypes.uint2),
}
BLOCKS = """Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ1_S IQ1_M
IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4""".split()

# Types of ggml that gguf-py does not decode: a scale, then 16 bytes of elements of so many bits, and
# what they stand for.
SUCCESSIVE = {"Q1_0": (1, lambda q: 2 * q - 1), "Q2_0": (2, lambda q: q - 1)}

# Where a block keeps its halves, so that most golden blocks have scales of a usual size.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "TQ1_0": [52], "TQ2_0": [64],
}  # fmt: skip


def decode(name, raw):
    if name in PLAIN:
        return raw.view(PLAIN[name]).astype(np.float32)
    if name in PACKED:
        bits, dtype = PACKED[name]
        fields = np.unpackbits(raw, bitorder="little").reshape(-1, bits)
        return np.packbits(fields, axis=1, bitorder="little").view(dtype).astype(np.float32)
    if name in SUCCESSIVE:
        bits, value = SUCCESSIVE[name]
        blocks = raw.reshape(-1, 18)
        fields = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").reshape(len(blocks), -1, bits)
        q = np.packbits(fields, axis=2, bitorder="little")[..., 0].astype(np.float32)
        return blocks[:, :2].copy().view(np.float16).astype(np.float32) * value(q)
    kind = gguf.GGMLQuantizationType[name]
    return gguf.quants.dequantize(raw.reshape(-1, gguf.GGML_QUANT_SIZES[kind][1]), kind)


def stored(name, rng):
    if name in PLAIN:
        width = np.dtype(PLAIN[name]).itemsize
        return np.arange(256**width, dtype=f"<u{width}").view(np.uint8)
    if name in SUCCESSIVE:
        raw = rng.integers(0, 256, (32, 18), dtype=np.uint8)
        raw[8:, 1] &= 0x3F
        return raw.reshape(-1)
    if name in PACKED:
        return rng.integers(0, 256, 384, dtype=np.uint8)
    elems, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    count = 4096 // elems
    raw = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES.get(name, [] if name in ("IQ1_M", "MXFP4", "NVFP4") else [0]):
        usual = (rng.standard_normal((count, 1)) * 0.01).astype("<f2").view(np.uint8)
        raw[count // 4 :, at : at + 2] = usual[count // 4 :]
    return raw.reshape(-1)


def main():
    warnings.simplefilter("ignore")
    for arg in sys.argv[1:]:
        name, n = arg.split("=")
        raw = np.frombuffer(sys.stdin.buffer.read(int(n)), np.uint8)
        sys.stdout.buffer.write(decode(name, raw).astype("<f4").tobytes())
    if len(sys.argv) > 1:
        return
    out = pathlib.Path(__file__).parent.parent / "testdata" / "decode"
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for name in [*(p for p in PLAIN if p != "F32"), *BLOCKS, *PACKED, *SUCCESSIVE]:
        raw = stored(name, rng)
        golden = raw.tobytes() + decode(name, raw).astype("<f4").tobytes()
        (out / f"{name}.gz").write_bytes(gzip.compress(golden, mtime=0))


if __name__ == "__main__":
    main()
