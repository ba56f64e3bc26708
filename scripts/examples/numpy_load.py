"""Map every tensor of a mounted checkpoint into NumPy: python numpy_load.py MOUNT

Nothing is read before an element is looked at, and what is read is the kernel's page cache, shared
by all processes. bfloat16 and 8-bit floats, which NumPy lacks, come from ml_dtypes when it is there.
"""
import json
import pathlib

import numpy as np

try:
    import ml_dtypes

    NOT_IN_NUMPY = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}
except ImportError:
    NOT_IN_NUMPY = {}


def load(mount):
    mount = pathlib.Path(mount)
    arrays = {}
    for tensor in json.loads((mount / "tensors.json").read_text())["tensors"]:
        array = np.load(mount / "npy" / (tensor["path"] + ".npy"), mmap_mode="r")
        dtype = NOT_IN_NUMPY.get(tensor["dtype"])
        arrays[tensor["name"]] = array if dtype is None else array.view(dtype)
    return arrays


if __name__ == "__main__":
    from arguments import mount

    for name, array in load(mount()).items():
        print(name, array.dtype, array.shape)
