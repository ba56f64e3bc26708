#!/usr/bin/env python3
"""Write small checkpoints with the installed PyTorch, and what is in them.

    gen_torch_testdata.py testdata/torch

makes testdata/torch/VERSION/*.pt and VERSION/expected.json: for every file the tensors by name with
element type, shape and the SHA-256 of the elements, as PyTorch itself gives them. Works with
PyTorch 1.13 and later; a file whose features a version lacks is left out."""
import collections
import hashlib
import io
import json
import os
import sys
import warnings

import torch

warnings.simplefilter("ignore")

DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex32": "C32", "complex64": "C64", "complex128": "C128", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn_x2": "F4", "quint8": "U8", "qint8": "I8", "qint32": "I32",
    "bits8": "U8", "bits16": "U16", "bits1x8": "U8", "bits2x4": "U8", "bits4x2": "U8",
    "quint4x2": "U4", "quint2x4": "U2",
}
SPARSE = {
    torch.sparse_coo: ("indices", "values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"), torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"), torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def elements(t):
    """The elements of a dense tensor as bytes, row-major."""
    if t.is_quantized:
        t = t.int_repr()
    if t.dtype.is_complex:
        t = t.resolve_conj()
    t = t.resolve_neg().detach()
    if t.numel() == 0:
        return b""
    if not t.is_contiguous():
        t = torch.empty(t.shape, dtype=t.dtype).copy_(t)
    return bytes(t.as_subclass(torch.Tensor).reshape(-1).view(torch.uint8).tolist())


def entry(t):
    name = str(t.dtype).removeprefix("torch.")
    shape = list(t.shape)
    if name == "float4_e2m1fn_x2":
        shape = shape[:-1] + [shape[-1] * 2] if shape else [2]
    data = elements(t)
    return {"dtype": DTYPES[name], "shape": shape, "sha256": hashlib.sha256(data).hexdigest(), "nbytes": len(data)}


class Listing:
    """The names that weightfs gives to what lies below an object."""

    def __init__(self):
        self.tensors, self.without = {}, []

    def add(self, obj, path=()):
        name = ".".join(map(str, path))
        if isinstance(obj, torch.Tensor):
            self.tensor(obj, name, path)
        elif hasattr(obj, "_untyped_storage") or hasattr(obj, "nbytes") and torch.is_storage(obj):
            data = bytes(getattr(obj, "_untyped_storage", obj).tolist())
            self.tensors[name] = {"dtype": "U8", "shape": [len(data)], "sha256": hashlib.sha256(data).hexdigest(), "nbytes": len(data)}
        elif isinstance(obj, torch.nn.Module):
            for part in (obj._parameters, obj._buffers, obj._modules):
                self.add(part, path)
            own = {k: v for k, v in obj.__dict__.items() if k not in ("_parameters", "_buffers", "_modules")}
            self.add(own, path)
        elif isinstance(obj, Config):
            self.add(obj.__dict__, path)
        elif isinstance(obj, dict):
            for key, value in obj.items():
                self.add(value, path + (key,))
        elif isinstance(obj, (list, tuple)):
            for i, value in enumerate(obj):
                self.add(value, path + (i,))

    def tensor(self, t, name, path):
        if t.layout in SPARSE:
            for part in SPARSE[t.layout]:
                value = getattr(t, "_" + part)() if t.layout == torch.sparse_coo else getattr(t, part)()
                self.add(value, path + (part,))
        elif t.is_nested:
            parts = (t.values(), t._nested_tensor_size(), t._nested_tensor_strides(), t._nested_tensor_storage_offsets())
            for part, value in zip(("buffer", "sizes", "strides", "storage_offsets"), parts):
                self.add(value, path + (part,))
        elif t.device.type == "meta" or str(t.dtype) == "torch.bcomplex32":
            self.without.append(name)
        else:
            self.tensors[name] = entry(t)
        if t.is_quantized and t.qscheme() != torch.per_tensor_affine:
            self.add(t.q_per_channel_scales(), path + ("scales",))
            self.add(t.q_per_channel_zero_points(), path + ("zero_points",))
        for key, value in t.__dict__.items():
            self.add(value, path + (key,))


class Net(torch.nn.Module):
    """A module that is saved whole: parameters, buffers, a tied weight, a plain attribute."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(5, 4)
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])
        self.norm = torch.nn.BatchNorm1d(4)
        self.head = torch.nn.Linear(4, 5, bias=False)
        self.head.weight = self.embed.weight
        self.scale = torch.nn.Parameter(torch.tensor(0.5))
        self.cache = [torch.arange(3)]


class Scale(torch.nn.Module):
    """A module of no class of PyTorch's, since the legacy format keeps the source of every class."""

    def __init__(self, inner=None):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).t())
        self.register_buffer("steps", torch.tensor(3))
        self.register_parameter("bias", None)
        self.inner = inner


class Config:
    """An object of a class that no reader knows."""

    def __init__(self, **kw):
        self.__dict__.update(kw)


class Sub(torch.Tensor):
    """A subclass of Tensor."""


def numbers(*shape):
    n = 1
    for d in shape:
        n *= d
    return torch.arange(1, n + 1, dtype=torch.float32).reshape(shape)


def make_dtypes():
    bits = torch.arange(24, dtype=torch.uint8) * 37 % 251
    out = {}
    for name in DTYPES:
        dtype = getattr(torch, name, None)
        if dtype is None or name.startswith(("q", "bits")):
            continue
        if name == "bool":
            out[name] = torch.tensor([True, False, True])
        else:
            try:
                out[name] = bits.view(dtype).clone()
                torch.save(out[name], io.BytesIO())
            except (RuntimeError, KeyError):  # not in this version, or not in files
                out.pop(name, None)
    return out


def make_views():
    base = numbers(4, 6)
    odd = torch.arange(48, dtype=torch.int16)[1::3]
    return collections.OrderedDict(
        whole=base, tied=base, t=base.t(), slice=base[1:3, 2:], col=base[:, 2], step=base[::2, ::2],
        expand=base[0, 3].expand(3, 2), row=base[1:2], scalar=base[3, 5], none=base[4:], odd=odd,
        permuted=numbers(2, 3, 4).permute(2, 0, 1), channels=numbers(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        window=base.as_strided((3, 3), (2, 1), 1), one=base.as_strided((1, 6), (100, 1), 0),
        diagonal=numbers(5, 5).diagonal(), broadcast=numbers(1, 4).expand(3, 4),
        i64=torch.arange(12).reshape(3, 4).t(), u8=torch.arange(12, dtype=torch.uint8).reshape(3, 4)[:, 1:3])


def make_lazy():
    z, y = (torch.tensor([[1 + 2j, 3 - 4j], [0.5 + 0j, -1 - 1j]]) for _ in range(2))
    return {"conj": z.conj(), "h": z.t().conj(), "z": z, "imag": y.conj().imag, "neg": torch._neg_view(numbers(3)),
            "none": torch.zeros(0, dtype=torch.complex64).conj()}


def make_training():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    net(torch.ones(4, 3)).sum().backward()
    opt.step()
    return {"epoch": 3, "lr": 1e-05, "best": float("inf"), "name": "lauf \u00fc", "big": 1 << 70, "negative": -(1 << 40), "flags": (True, None),
            "state_dict": net.state_dict(), "optimizer": opt.state_dict(), "rng": torch.get_rng_state()[:16],
            "hyper_parameters": Config(width=4, dtype=torch.float16, device=torch.device("cuda", 1), inner=Config(t=numbers(2))),
            "counts": collections.Counter("aab"), "default": collections.defaultdict(list, {"x": [numbers(1)]}),
            "data": b"\x00\xff", "bytes": bytearray(b"ab"), "complex": 1 + 2j, "set": {1, 2}, "size": torch.Size([2, 3])}


def make_module():
    torch.manual_seed(1)
    return Net()


def make_keys():
    return {0: numbers(1), "0x": numbers(2), "a.b": numbers(1), "a": {"c": numbers(2), True: numbers(1)}, None: numbers(3),
            (1, "x"): numbers(1), 1.5: numbers(1), "": numbers(2), "x/y": numbers(1), "\u00e9\u4e2d": numbers(1), b"raw": numbers(1),
            -3: numbers(1), "'q'": numbers(1), torch.float16: numbers(1), 1e-07: numbers(1), (("n", (2,)), None): numbers(1)}


def make_sparse():
    dense = torch.tensor([[0, 0, 3.0, 0], [4, 0, 0, 0], [0, 0, 0, 5], [6, 0, 0, 0]])
    out = {"coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "dense": dense}
    for name, args in (("csc", ()), ("bsr", ((2, 2),)), ("bsc", ((2, 2),))):
        out[name] = getattr(dense, "to_sparse_" + name)(*args)
    return out


def make_quantized():
    x = numbers(3, 4) / 5
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1.0, 2, 3])
    return {"u8": torch.quantize_per_tensor(x, 0.1, 3, torch.quint8), "i8": torch.quantize_per_tensor(x, 0.05, 0, torch.qint8),
            "i32": torch.quantize_per_tensor(x, 0.01, 1, torch.qint32),
            "channel": torch.quantize_per_channel(x, scales, zeros.long(), 0, torch.qint8),
            "u4": torch.quantize_per_channel(x[:, :3], scales, zeros, 0, torch.quint4x2),
            "u2": torch.quantize_per_channel(x[:, :3], scales, zeros, 0, torch.quint2x4),
            "t": torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).t()}


def make_subclass():
    plain, sub, param = numbers(2), numbers(2, 2).as_subclass(Sub), torch.nn.Parameter(numbers(3))
    plain.note, plain.mask = "attribute", torch.tensor([True, False])
    sub.scale = numbers(1)
    tagged = torch.nn.Parameter(numbers(2), requires_grad=False)
    tagged.shared, tagged.extra = True, numbers(4)
    return {"plain": plain, "sub": sub, "param": param, "tagged": tagged, "buffer": torch.nn.Parameter(numbers(2).t(), requires_grad=False)}


def make_storages():
    t = numbers(4)
    return {"tensor": t, "untyped": numbers(3).untyped_storage(), "list": [torch.arange(2, dtype=torch.int16)]}


def make_meta():
    out = {"w": numbers(2), "m": torch.empty(3, 4, device="meta"), "e": torch.empty(0), "z": torch.zeros(0, 3), "s": torch.tensor(7)}
    if hasattr(torch, "bcomplex32"):
        out["b"] = torch.zeros(2, dtype=torch.int32).view(torch.bcomplex32)
    return out


def make_nested():
    return {"n": torch.nested.nested_tensor([numbers(2, 3), numbers(1, 3)])}


def make_bare():
    return numbers(2, 3)


def make_list():
    return [numbers(1), (numbers(2), [numbers(3)])]


def make_bits():
    raw = torch.arange(4, dtype=torch.uint8)
    return {name: raw.clone().view(getattr(torch, name)) for name in ("bits8", "bits1x8", "bits2x4", "bits4x2", "bits16")}


SAVES = {
    "dtypes": make_dtypes, "views": make_views, "lazy": make_lazy, "training": make_training, "module": make_module,
    "keys": make_keys, "sparse": make_sparse, "quantized": make_quantized, "subclass": make_subclass,
    "storages": make_storages, "meta": make_meta, "nested": make_nested, "bare": make_bare, "list": make_list,
}
VARIANTS = {
    "legacy-views": (make_views, {"_use_new_zipfile_serialization": False}),
    "legacy-training": (make_training, {"_use_new_zipfile_serialization": False}),
    "legacy-module": (lambda: Scale(Scale()), {"_use_new_zipfile_serialization": False}),
    "legacy-dtypes": (make_dtypes, {"_use_new_zipfile_serialization": False}),
    "legacy-protocol-4": (make_training, {"_use_new_zipfile_serialization": False, "pickle_protocol": 4}),
    "protocol-3": (make_training, {"pickle_protocol": 3}),
    "protocol-4": (make_keys, {"pickle_protocol": 4}),
    "protocol-5": (make_training, {"pickle_protocol": 5}),
}


def loaded(path, saved):
    """What is in the file, which is less than was saved where a version forgets something. The newest
    cannot read its own legacy files with types that have no class of storages."""
    try:
        return torch.load(path, weights_only=False)
    except AttributeError:
        return saved


def main():
    version = ".".join(torch.__version__.split(".")[:2])
    directory = os.path.join(sys.argv[1], version)
    os.makedirs(directory, exist_ok=True)
    expected = {}
    for name, (make, options) in {**{k: (v, {}) for k, v in SAVES.items()}, **VARIANTS}.items():
        path = os.path.join(directory, name + ".pt")
        try:
            obj = make()
            torch.save(obj, path, **options)
            listing = Listing()
            listing.add(loaded(path, obj))
        except (RuntimeError, AttributeError, NotImplementedError, TypeError, KeyError) as e:
            print("%s: left out: %s" % (name, str(e).splitlines()[0]))
            if os.path.exists(path):
                os.remove(path)
            continue
        expected[name + ".pt"] = {"tensors": listing.tensors, "without": listing.without}
    with open(os.path.join(directory, "expected.json"), "w") as f:
        json.dump(expected, f, indent=1, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main()
