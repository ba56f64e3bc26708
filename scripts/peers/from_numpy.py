"""Arrays that NumPy saved."""
import pathlib

import ml_dtypes
import numpy as np

from mounted import mounted
from tensors import compare, of_array

KINDS = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"]


def arrays():
    """Every element type, both byte orders, both memory orders, and views that are neither."""
    rng = np.random.default_rng(4)
    for kind in KINDS:
        for order in "<>":
            a = np.frombuffer(rng.bytes(2 * 3 * 4 * np.dtype(kind).itemsize), kind).reshape(2, 3, 4)
            a = (a.view(np.uint8) % 2).view(bool) if kind == "?" else a
            a = a.astype(a.dtype.newbyteorder(order))
            yield f"{kind.replace('?', 'b')}_{'le' if order == '<' else 'be'}", a
            yield f"{kind.replace('?', 'b')}_{'le' if order == '<' else 'be'}_fortran", np.asfortranarray(a)
    yield "scalar", np.float32(2.5)
    yield "empty", np.zeros((0, 3), np.int16)
    yield "strided", np.arange(40.0)[::3]
    yield "wide", np.asfortranarray(rng.standard_normal((300, 700)))


def npy(models, scratch):
    made = 0
    for name, a in arrays():
        path = scratch / (name + ".npy")
        np.save(path, a)
        with mounted(path) as mount:
            made += compare(mount, {name: of_array(np.load(path))}, scratch)
    return made


def npz(path):
    with np.load(path) as z:
        want = {name: of_array(z[name]) for name in z.files}
    with mounted(path) as mount:
        return compare(mount, want, path.parent)


def npz_stored(models, scratch):
    np.savez(scratch / "a.npz", **{n.replace("_", "."): a for n, a in arrays()})
    return npz(scratch / "a.npz")


def npz_deflated(models, scratch):
    np.savez_compressed(scratch / "a.npz", **dict(arrays()))
    return npz(scratch / "a.npz")


def bfloat16(models, scratch):
    """What np.save makes of an array of ml_dtypes: two bytes of no type."""
    a = np.arange(24, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(4, 6)
    np.save(scratch / "b.npy", a)
    with mounted(scratch / "b.npy") as mount:
        return compare(mount, {"b": of_array(a, "BF16")}, scratch)


PEERS = [npy, npz_stored, npz_deflated, bfloat16]
