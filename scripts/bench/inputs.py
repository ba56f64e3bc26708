"""The inputs: checkpoints of made-up bytes, and archives that hold the same files."""
import functools
import json
import os
import struct
import subprocess
import zipfile
from dataclasses import dataclass

from bench import MiB

ITEM = {"U8": 1, "BF16": 2, "F32": 4}


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str
    elements: int

    @property
    def nbytes(self):
        return self.elements * ITEM[self.dtype]

    @property
    def path(self):
        """Where it stands below raw/, without the extension."""
        *directories, a, b = self.name.split(".")
        return "/".join([*directories, f"{a}.{b}"])


@functools.cache
def noise():
    return memoryview(os.urandom(32 * MiB))


SMALL, LARGE = 4096, 32 * MiB  # steps of writing


def fill(f, n, step=SMALL):
    """Writes n bytes. tmpfs keeps what is written in small steps in pages, and what is written in large ones in large folios,
    from which a plain pread is twice as fast: the pages of a mount are small."""
    for at in range(0, n, step):
        f.write(noise()[at % len(noise()) :][: min(n - at, step)])


def safetensors(path, tensors, step=SMALL):
    header, at = {}, 0
    for t in tensors:
        header[t.name] = {"dtype": t.dtype, "shape": [t.elements], "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > 100_000_000:
        raise ValueError(f"{path}: a header of {len(text)} bytes is over the format's limit")
    with open(path, "wb", buffering=0) as f:
        f.write(struct.pack("<Q", len(text)) + text)
        fill(f, at, step)
    return path


def sharded(directory, tensors, shards):
    """A set with an index; gives the index."""
    directory.mkdir(parents=True)
    weight_map, per = {}, -(-len(tensors) // shards)
    for i in range(shards):
        part, name = tensors[i * per : (i + 1) * per], f"model-{i + 1:05}-of-{shards:05}.safetensors"
        safetensors(directory / name, part)
        weight_map |= dict.fromkeys((t.name for t in part), name)
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": sum(t.nbytes for t in tensors)}, "weight_map": weight_map}))
    return index


def experts(count, dtype="F32", elements=16):
    """Small tensors with the names of a mixture of experts, 64 bytes each."""
    for i in range(count):
        name = f"decoder.model.layers.{i // 3072:03}.block_sparse_moe.experts.{i // 3 % 1024:04}.w{i % 3 + 1}.weight"
        yield Tensor(name, dtype, elements)


def short_names(count):
    """A million of them fit into the largest header that the format allows."""
    for i in range(count):
        yield Tensor(f"layers.{i // 3072:03}.experts.{i // 3 % 1024:04}.w{i % 3}", "U8", 1)


def layers(total, count, dtype="BF16"):
    """Matrices of one size, as many a layer as in a dense model."""
    for i in range(count):
        yield Tensor(f"model.layers.{i // 9}.proj{i % 9}.weight", dtype, total // count // ITEM[dtype])


def tree(directory, tensors):
    """The tensors as files, as raw/ shows them; gives the directory."""
    made = set()
    for t in tensors:
        file = directory / f"{t.path}.raw"
        if file.parent not in made:
            file.parent.mkdir(parents=True, exist_ok=True)
            made.add(file.parent)
        with open(file, "wb") as f:
            fill(f, t.nbytes)
    return directory


def squashfs(path, directory):
    """Uncompressed, in blocks of 1 MiB."""
    flags = "-noI -noD -noF -noX -b 1M -no-progress -quiet -no-xattrs".split()
    subprocess.run(["mksquashfs", directory, path, *flags], check=True, capture_output=True)
    return path


def tar(path, directory):
    subprocess.run(["tar", "-cf", path, "-C", directory, "."], check=True)
    return path


def stored_zip(path, directory):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        for root, _, names in os.walk(directory):
            for name in names:
                file = os.path.join(root, name)
                z.write(file, os.path.relpath(file, directory))
    return path


def gguf(path, types, elements):
    """A tensor of each type, made of random blocks with small scales: what a NaN costs is not what is measured."""
    import numpy
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter
    scales = {"Q4_K": (0, 2), "Q6_K": (208,), "Q8_0": (0,), "BF16": ()}  # offsets of the half floats in a block
    w = GGUFWriter(path, "llama")
    for name in types:
        kind = GGMLQuantizationType[name]
        per, size = GGML_QUANT_SIZES[kind]
        blocks = numpy.frombuffer(os.urandom(elements // per * size), numpy.uint8).reshape(-1, size).copy()
        for at in scales[name]:
            blocks[:, at : at + 2] = numpy.frombuffer(numpy.float16(0.01).tobytes(), numpy.uint8)
        if name == "BF16":
            blocks[:, 1] = blocks[:, 1] & 0x80 | 0x3F
        w.add_tensor(gguf_name(name), blocks.reshape(-1, size * 1024 // per), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


def gguf_name(kind):
    return f"blk.0.{kind.lower()}.weight"


def npz(path, arrays, nbytes):
    import numpy
    numpy.savez(path, **{f"array_{i}": numpy.frombuffer(noise()[: nbytes], numpy.float32) for i in range(arrays)})
    return path


def torch_zip(path, count):
    """What torch.save makes of a state dict with so many small tensors, each with a storage of its own."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        z.writestr("model/data.pkl", state_dict(count))
        z.writestr("model/byteorder", "little")
        for i in range(count):
            z.writestr(f"model/data/{i}", b"\0" * 64)
        z.writestr("model/version", "3\n")
    return path


def state_dict(count):
    """The pickle, opcode by opcode, since the classes that it names are not here."""
    text = lambda s: b"X" + struct.pack("<I", len(s)) + s.encode()  # BINUNICODE
    number = lambda n: b"J" + struct.pack("<i", n)  # BININT
    out = [b"\x80\x02ccollections\nOrderedDict\n)R("]
    for i, t in enumerate(experts(count)):
        storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(str(i)) + text("cpu") + number(16) + b"tQ"
        tensor = b"(" + storage + number(0) + number(16) + b"\x85" + number(1) + b"\x85\x89ccollections\nOrderedDict\n)Rt"
        out += [text(t.name), b"ctorch._utils\n_rebuild_tensor_v2\n", tensor, b"R"]
    return b"".join([*out, b"u."])
