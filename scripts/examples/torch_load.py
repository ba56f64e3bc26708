"""Map every tensor of a mounted checkpoint into PyTorch: python torch_load.py MOUNT

The tensors are views of the kernel's page cache: nothing is read before it is used, and processes
that load the same checkpoint share the memory. The mapping is private, so writing to a tensor copies
the page that is written to, and never reaches the checkpoint.
"""
import json
import mmap
import pathlib

import torch

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "BOOL": torch.bool, "C64": torch.complex64,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U64": torch.uint64, "U32": torch.uint32, "U16": torch.uint16, "U8": torch.uint8,
}


def state_dict(mount):
    """The tensors by name, each a mapping of its file in raw/."""
    mount = pathlib.Path(mount)
    tensors = {}
    for t in json.loads((mount / "tensors.json").read_text())["tensors"]:
        dtype = DTYPES[t["dtype"]]
        file = str(mount / "raw" / (t["path"] + ".raw"))
        # shared=True would ask for a mapping that writes to the file, which no read-only mount gives.
        flat = torch.from_file(file, shared=False, size=t["nbytes"] // dtype.itemsize, dtype=dtype)
        tensors[t["name"]] = flat.reshape(t["shape"])
    return tensors


def from_buffer(file, dtype, shape):
    """One tensor over a map of Python's own. mmap(2) has no empty maps."""
    with open(file, "rb") as f:
        # ACCESS_COPY is private and writable; of ACCESS_READ PyTorch warns that it is not writable.
        view = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
    return torch.frombuffer(view, dtype=dtype).reshape(shape)


def assign(model, mount):
    """Give a model its weights without a copy. Make the model on the meta device, or its own random
    weights take memory and time first:

        with torch.device("meta"):
            model = Model()
        assign(model, "mnt")
    """
    model.load_state_dict(state_dict(mount), assign=True)
    return model


if __name__ == "__main__":
    from arguments import mount

    for name, tensor in state_dict(mount()).items():
        print(name, tensor.dtype, list(tensor.shape))
