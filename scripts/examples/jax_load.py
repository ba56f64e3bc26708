"""Load a mounted checkpoint in JAX: python jax_load.py MOUNT

device_put takes mapped memory as it is on a CPU, if it begins at a multiple of 64 bytes, as a file in
raw/ does; jax.numpy.asarray copies. To an accelerator it copies from the mapped memory.
"""
import json
import pathlib

import jax
import numpy as np

# JAX has no 64-bit types unless told so.
jax.config.update("jax_enable_x64", True)


def dtype(name):
    """The type behind a name of tensors.json."""
    special = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "BOOL": "bool", "C64": "complex64"}
    kinds = {"F": "float", "I": "int", "U": "uint"}
    return jax.numpy.dtype(special.get(name) or kinds[name[0]] + name[1:])


def mapped(file, tensor):
    if tensor["nbytes"] == 0:  # mmap(2) has no empty maps
        return np.empty(tensor["shape"], dtype(tensor["dtype"]))
    return np.memmap(file, dtype(tensor["dtype"]), mode="r", shape=tuple(tensor["shape"]))


def load(mount):
    mount = pathlib.Path(mount)
    listing = json.loads((mount / "tensors.json").read_text())["tensors"]
    return {t["name"]: jax.device_put(mapped(mount / "raw" / (t["path"] + ".raw"), t)) for t in listing}


if __name__ == "__main__":
    from arguments import mount

    for name, array in load(mount()).items():
        print(name, array.dtype, array.shape)
