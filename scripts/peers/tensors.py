"""What a library says of a tensor, and the comparison of a mount with it, view by view."""
import dataclasses
import math
import os
import pathlib
import typing

import ml_dtypes
import numpy as np
import safetensors
from safetensors.numpy import load_file

from mounted import listing

FLOATS = {  # what f32/ decodes, as NumPy types
    "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
NUMPY = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8",
    "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8", "C128": "<c16", "BF16": "<V2",
    "F8_E4M3": "|V1", "F8_E5M2": "|V1", "F8_E4M3FNUZ": "|V1", "F8_E5M2FNUZ": "|V1", "F8_E8M0": "|V1",
}  # fmt: skip
SAFETENSORS = set(NUMPY) - {"C128"} | {"F4", "F6_E2M3", "F6_E3M2"}
WHOLE_FILE = 64 << 20  # deserialize takes a file as one bytes object


@dataclasses.dataclass
class Tensor:
    """A tensor as its own library sees it. data is the elements, row-major and little-endian."""

    dtype: str
    shape: tuple
    data: typing.Any
    float32: typing.Any = None  # () -> array, or nothing where f32/ leaves it out

    def __post_init__(self):
        self.data = np.frombuffer(self.data, np.uint8)
        self.shape = tuple(map(int, self.shape))
        if self.dtype in FLOATS and self.float32 is None:
            self.float32 = lambda: self.data.view(FLOATS[self.dtype]).reshape(self.shape).astype(np.float32)


def of_array(a, dtype=None):
    """The Tensor of a NumPy array in any order and endianness."""
    a = np.asarray(a)
    a = a.astype(a.dtype.newbyteorder("<"), order="C", copy=False)
    if dtype is None:
        dtype = next(name for name, descr in NUMPY.items() if np.dtype(descr) == a.dtype)
    return Tensor(dtype, a.shape, a.tobytes())


def equal(got, want, what):
    """Bit for bit, NaNs too."""
    got = np.ascontiguousarray(got).reshape(-1).view(np.uint8)
    if not np.array_equal(got, want):
        at = "" if got.size != want.size else f" from byte {int(np.argmax(got != want))} on"
        raise AssertionError(f"{what}: other bytes{at} ({got.size} of {want.size} bytes)")


def equal_numbers(got, want, what, dtype):
    """As equal; of a block that computes with NaN the sign of the result is the processor's choice."""
    if dtype not in FLOATS:
        check(np.array_equal(np.isnan(got), np.isnan(want)), f"{what}: NaN elsewhere")
        got, want = np.nan_to_num(got, nan=0.0, posinf=np.inf, neginf=-np.inf), np.nan_to_num(want, nan=0.0, posinf=np.inf, neginf=-np.inf)
    equal(got, np.ascontiguousarray(want).reshape(-1).view(np.uint8), what)


def check(cond, what):
    if not cond:
        raise AssertionError(what)


def compare(mount, want, source_dir=None):
    """Compare every view with want, a dict of Tensors by name. Returns how many comparisons were made."""
    entries = {t["name"]: t for t in listing(mount)["tensors"]}
    check(set(entries) == set(want), f"names differ: {sorted(set(entries) ^ set(want))[:5]}")
    made = 0
    for name, tensor in want.items():
        made += compare_one(mount, name, entries[name], tensor, source_dir)
    made += compare_decoded(mount, want, entries)
    made += compare_container(only(mount / "assembled", "*.safetensors"), want)
    return made + compare_parts(mount, want, entries)


def compare_one(mount, name, entry, want, source_dir):
    where = lambda view, ext=None: mount / view / f"{entry['path']}.{ext or view}"  # noqa: E731
    check((entry["dtype"], tuple(entry["shape"]), entry["nbytes"]) == (want.dtype, want.shape, want.data.size),
          f"{name}: tensors.json says {entry}, the library {want.dtype} {want.shape}")  # fmt: skip
    check(where("raw").stat().st_size == want.data.size, f"{name}: size of raw")
    equal(np.memmap(where("raw"), np.uint8, "r") if want.data.size else np.zeros(0, np.uint8), want.data, f"raw of {name}")
    equal(np.fromfile(link_of(mount, name), np.uint8), want.data, f"by-name of {name}")
    a = load(where("npy"))
    if want.dtype in NUMPY:
        check((a.dtype, a.shape) == (np.dtype(NUMPY[want.dtype]), want.shape), f"{name}: npy is {a.dtype} {a.shape}")
    equal(a, want.data, f"npy of {name}")
    made = 4 + compare_place(entry, want, source_dir)
    if want.float32:
        a, f = load(where("f32", "npy")), want.float32()
        check((a.dtype, a.shape) == (f.dtype, f.shape), f"{name}: f32 is {a.dtype} {a.shape}")
        equal_numbers(a, f, f"f32 of {name}", want.dtype)
        made += 1
    return made + compare_rows(where("rows", "x").with_suffix(""), name, want)


def load(path):
    """Mapped, not read: the size must be exact and the mapping work."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def link_of(mount, name):
    link = mount / "by-name" / name.replace("/", "%2F")
    return link if link.is_symlink() else next(p for p in (mount / "by-name").iterdir() if unescaped(p.name) == (name or "%").encode())


def unescaped(name):
    raw = os.fsencode(name)
    if raw == b"%":
        return raw
    parts = raw.split(b"%")
    return parts[0] + b"".join(bytes([int(p[:2], 16)]) + p[2:] for p in parts[1:])


def compare_place(entry, want, source_dir):
    """The bytes at the offset that tensors.json gives, read from the checkpoint's own file."""
    if source_dir is None or entry["offset"] is None:
        return 0
    with open(pathlib.Path(source_dir) / entry["file"], "rb") as f:
        f.seek(entry["offset"])
        equal(np.frombuffer(f.read(entry["nbytes"]), np.uint8), want.data, f"offset of {entry['name']}")
    return 1


def compare_rows(directory, name, want):
    if len(want.shape) < 3 or want.dtype not in NUMPY:
        return 0
    files = sorted(directory.iterdir(), key=lambda p: int(p.stem)) if want.shape[0] else []
    check(len(files) == want.shape[0], f"{name}: {len(files)} rows")
    size = want.data.size // max(1, want.shape[0])
    for i, path in enumerate(files):
        a = load(path)
        check(a.shape == want.shape[1:], f"{path}: shape {a.shape}")
        equal(a, want.data[i * size : (i + 1) * size], str(path))
    return len(files)


def compare_decoded(mount, want, entries):
    """f32/ holds what the library decodes, and nothing else but blocks that the library cannot decode."""
    got = {os.fspath(p.relative_to(mount / "f32").with_suffix("")) for p in (mount / "f32").rglob("*.npy")}
    wanted = {entries[n]["path"] for n, t in want.items() if t.float32}
    free = {entries[n]["path"] for n, t in want.items() if t.dtype not in NUMPY}
    check(wanted <= got <= wanted | free, f"f32/ differs: {sorted(got ^ wanted)[:5]}")
    return 1


def only(directory, pattern):
    found = list(directory.glob(pattern))
    check(len(found) == 1, f"{directory} holds {found}")
    return found[0]


def compare_container(path, want):
    """safetensors opens the file, and finds these tensors and no others."""
    exotic = set()
    with safetensors.safe_open(path, "np") as f:
        check(set(f.keys()) == set(want), f"{path}: names differ")
        for name, t in want.items():
            s = f.get_slice(name)
            dtype, shape = (t.dtype, t.shape) if t.dtype in SAFETENSORS else ("U8", byte_shape(t))
            check((s.get_dtype(), tuple(s.get_shape())) == (dtype, shape), f"{path}: {name} is {s.get_dtype()} {s.get_shape()}, not {dtype} {shape}")
            if dtype.startswith(("F8", "F6", "F4")):  # which its NumPy side does not know
                exotic.add(name)
            else:
                equal(f.get_tensor(name), t.data, f"{path}: {name}")
    if not exotic:
        check(set(load_file(path)) == set(want), f"{path}: load_file")
    elif path.stat().st_size <= WHOLE_FILE:
        for name, t in safetensors.deserialize(path.read_bytes()):
            if name in exotic:
                equal(np.frombuffer(t["data"], np.uint8), want[name].data, f"{path}: {name}")
    return len(want)


def byte_shape(t):
    """The shape in bytes: rows of blocks; complex numbers safetensors lacks; packed integers have none but their length."""
    if t.dtype in ("C32", "C128"):
        return (*t.shape, int(t.dtype[1:]) // 8)
    if t.dtype in ("I4", "U4", "I2", "U2"):
        return (t.data.size,)
    rows = math.prod(t.shape[:-1])
    return (*t.shape[:-1], t.data.size // rows) if rows else t.shape


def compare_parts(mount, want, entries):
    made = 0
    directories = {os.path.dirname(e["path"]) for e in entries.values()} - {""}
    wanted = {"/".join(d.split("/")[:n]) for d in directories for n in range(1, d.count("/") + 2)}
    root = mount / "parts"
    got = {os.fspath(p.relative_to(root).with_suffix("")) for p in root.rglob("*.safetensors")}
    check(got == wanted, f"parts/ differs: {sorted(got ^ wanted)[:5]}")
    for d in wanted:
        below = {n: t for n, t in want.items() if entries[n]["path"].startswith(d + "/")}
        made += compare_container(root / (d + ".safetensors"), below)
    return made
