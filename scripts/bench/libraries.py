"""What the formats' own libraries do with a file, timed in a process of its own: libraries.py TASK ARGUMENTS...

Prints a JSON object. The clock starts when all that is needed has been imported."""
import json
import mmap
import random
import sys
import time
from time import perf_counter


def safe_open(file, name):
    import numpy  # noqa: F401: the library imports it when a file is opened
    from safetensors import safe_open
    began = perf_counter()
    with safe_open(file, "np") as f:
        f.keys()
        opened = perf_counter()
        f.get_slice(name)[:1]
        first = perf_counter()
        a = f.get_tensor(name)
        return {"open": opened - began, "first": first - began, "array": a.nbytes / (perf_counter() - first)}


def open_all(*files):
    import numpy  # noqa: F401
    from safetensors import safe_open
    began = perf_counter()
    kept = [safe_open(f, "np") for f in files]
    return {"seconds": perf_counter() - began, "files": len(kept)}


def fromfile(file):
    import numpy
    began = perf_counter()
    a = numpy.fromfile(file, numpy.uint8)
    seconds = perf_counter() - began
    return {"seconds": seconds, "array": a.nbytes / seconds}


def memmap(file, count=1000):
    import numpy
    began = perf_counter()
    a = numpy.memmap(file, numpy.uint8, "r")
    opened = perf_counter()
    a[0]
    first = perf_counter()
    words = a[: len(a) // 8 * 8].view(numpy.uint64)
    words.sum()
    summed = perf_counter()
    pages = [random.randrange(len(a) // mmap.PAGESIZE) * mmap.PAGESIZE for _ in range(count)]
    then = perf_counter()
    for p in pages:
        a[p : p + mmap.PAGESIZE].copy()
    return {"open": opened - began, "first": first - began, "sum": words.nbytes / (summed - first),
            "random": count / (perf_counter() - then)}


def load_lazily(weightfs, source, directory, total):
    """Mounts the checkpoint and opens each of its tensors as a numpy.memmap."""
    import pathlib
    import subprocess

    import numpy
    began = perf_counter()
    subprocess.run([weightfs, "mount", "--quiet", "--no-index", source, directory], check=True, stdin=subprocess.DEVNULL)
    arrays = [numpy.load(f, mmap_mode="r") for f in pathlib.Path(directory, "npy").rglob("*.npy")]
    seconds = perf_counter() - began
    assert sum(a.nbytes for a in arrays) == int(total), sum(a.nbytes for a in arrays)
    return {"seconds": seconds, "tensors": len(arrays)}


def gguf_reader(file):
    from gguf import GGUFReader
    began = perf_counter()
    tensors = len(GGUFReader(file).tensors)
    return {"seconds": perf_counter() - began, "tensors": tensors}


def dequantize(file, name):
    """The library's own conversion to float32 of bytes that are in memory."""
    import ml_dtypes
    import numpy
    from gguf import GGMLQuantizationType, GGUFReader
    from gguf.quants import dequantize
    t = next(t for t in GGUFReader(file).tensors if t.name == name)
    data = numpy.array(t.data)
    began = perf_counter()
    if t.tensor_type == GGMLQuantizationType.BF16:
        out = data.view(ml_dtypes.bfloat16).astype(numpy.float32)
    else:
        out = dequantize(data, t.tensor_type)
    return {"rate": out.nbytes / (perf_counter() - began)}


def main():
    task, *args = sys.argv[1:]
    print(json.dumps(globals()[task](*args)))


if __name__ == "__main__":
    main()
