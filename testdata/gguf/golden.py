#!/usr/bin/env python3
"""Write golden-le.gguf and golden-be.gguf with gguf-py, and beside them what its reader says of them.

    python3 testdata/gguf/golden.py

Every type that both know is in them but Q8_1, which gguf-py 0.19 takes for 40 bytes (it is 36)."""
import json, math, os
import gguf, numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(7)


def metadata(w):
    w.add_key_value("u8", 255, gguf.GGUFValueType.UINT8)
    w.add_key_value("i8", -128, gguf.GGUFValueType.INT8)
    w.add_key_value("u16", 65535, gguf.GGUFValueType.UINT16)
    w.add_key_value("i16", -32768, gguf.GGUFValueType.INT16)
    w.add_key_value("u32", 2**32 - 1, gguf.GGUFValueType.UINT32)
    w.add_key_value("i32", -(2**31), gguf.GGUFValueType.INT32)
    w.add_key_value("f32", 1e-6, gguf.GGUFValueType.FLOAT32)
    w.add_key_value("f32.nan", math.nan, gguf.GGUFValueType.FLOAT32)
    w.add_key_value("bool", True, gguf.GGUFValueType.BOOL)
    w.add_key_value("u64", 2**64 - 1, gguf.GGUFValueType.UINT64)
    w.add_key_value("i64", -(2**63), gguf.GGUFValueType.INT64)
    w.add_key_value("f64", 0.1, gguf.GGUFValueType.FLOAT64)
    w.add_key_value("f64.inf", -math.inf, gguf.GGUFValueType.FLOAT64)
    w.add_string("string", "a\"\\\n\u00e9\U0001f600")
    w.add_string("string.long", "long " * 200)
    w.add_array("array.i32", list(range(64)))
    w.add_array("array.i32.long", list(range(-40, 60)))
    w.add_array("array.f32.long", [x / 7 for x in range(100)])
    w.add_array("array.bool", [True, False])
    w.add_array("array.string", ["", "x"])
    w.add_array("array.string.long", ["token %d" % i for i in range(100)] + ["w" * 300])
    w.add_custom_alignment(64)


def tensors(w):
    for t, (elems, size) in gguf.GGML_QUANT_SIZES.items():
        if t == gguf.GGMLQuantizationType.Q8_1:
            continue
        data = rng.integers(0, 256, (3, 2, 2 * size), dtype=np.uint8)
        w.add_tensor("t.%s" % t.name, data, raw_dtype=t)
    w.add_tensor("scalar", np.float32(2).reshape(()))
    w.add_tensor("vector", np.arange(5, dtype=np.int64))


def plain(v):
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, float) and not math.isfinite(v):
        return "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity"
    return v


def read(path):
    r = gguf.GGUFReader(path)
    meta = {}
    for k, f in r.fields.items():
        if not k.startswith("GGUF."):
            meta[k] = plain(f.contents())
    return {"metadata": meta,
            "tensors": [{"name": t.name, "id": int(t.tensor_type), "type": t.tensor_type.name, "ne": [int(x) for x in t.shape],
                         "offset": int(t.data_offset), "nbytes": int(t.n_bytes)} for t in r.tensors]}


if __name__ == "__main__":
    for end, name in ((gguf.GGUFEndian.LITTLE, "golden-le"), (gguf.GGUFEndian.BIG, "golden-be")):
        path = os.path.join(HERE, name + ".gguf")
        w = gguf.GGUFWriter(path, "test", endianess=end)
        metadata(w)
        tensors(w)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        with open(os.path.join(HERE, name + ".json"), "w") as f:
            json.dump(read(path), f)
