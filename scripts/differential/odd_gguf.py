"""GGUF: written by hand, in all versions and both byte orders."""
import math
import struct

import gguf
import numpy as np

import damage
from judge import Answer, Tensor

PLAIN = {"F16": 2, "F32": 4, "F64": 8, "BF16": 2, "I8": 1, "I16": 2, "I32": 4, "I64": 8}
gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q8_1] = (32, 36)  # 0.19 has 40, which is wrong and was mended after it
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9

REFUSED = [
    (r"overlaps tensor", "ggml refuses it, and no writer means it; --lenient reads it, and the bytes are compared"),
    (r"key .*: (string|array) of \d+ bytes, but only", "the library's slices end where the file does"),
    (r"is not a multiple of the alignment", "against the specification, and ggml refuses it (gg-016)"),
    (r"offset \d+ is past the end of the file", "the library's sum wraps, and it gives bytes of the header as weights (gg-019)"),
]
ACCEPTED = [
    (r"IndexError: tuple index out of range", "the library has no scalars of types that NumPy lacks"),
    (r"ValueError: array is too big", "a tensor without elements, whose other dimensions NumPy multiplies too"),
    (r"version 1 which we cannot handle", "version 1 is read (gg-004)"),
    (r"is not a valid GGMLQuantizationType", "the library lacks a type, or weightfs leaves the tensor out with a warning (gg-002, gg-034)"),
    (r"UnicodeDecodeError", "names and values are bytes; what is not UTF-8 is escaped (gg-046)"),
]


def read(path):
    reader = gguf.GGUFReader(path)
    return Answer(tensors={t.name: tensor(t, reader.byte_order == "S") for t in reader.tensors})


def tensor(t, swapped):
    kind = t.tensor_type.name
    data = np.ascontiguousarray(t.data).view(np.uint8).reshape(-1)
    if swapped and PLAIN.get(kind, 1) > 1:
        data = data.reshape(-1, PLAIN[kind])[:, ::-1]
    return Tensor(kind, t.shape[::-1], data.tobytes())


class Writer:
    def __init__(self, rng):
        self.rng, self.order = rng, rng.choice("<<<<<>")
        self.version = rng.choice([2, 2, 2] + [3] * 9 + [1, 0, 4])
        self.length = "I" if self.version == 1 else "Q"

    def pack(self, kinds, *values):
        return struct.pack(self.order + kinds, *values)

    def text(self, s):
        raw = s if isinstance(s, bytes) else s.encode()
        return self.pack(self.length, len(raw)) + raw

    def value(self, kind, depth=0):
        rng = self.rng
        if kind == STRING:
            return self.text(damage.name(rng) * rng.choice([1, 1, 1, 300]))
        if kind == ARRAY:
            element, n = rng.choice([*SCALARS, STRING, ARRAY]) if depth < 2 else 4, rng.choice([0, 1, 2, 3, 65])
            n = min(n, 3) if element == ARRAY else n
            return self.pack("I", element) + self.pack(self.length, n) + b"".join(self.value(element, depth + 1) for _ in range(n))
        return rng.randbytes(struct.calcsize("<" + SCALARS[kind])) if kind != 7 else bytes([rng.choice([0, 1, 1, 2])])

    def key(self, name, kind, value=None):
        return self.text(name) + self.pack("I", kind) + (self.value(kind) if value is None else value)


def make(rng):
    w = Writer(rng)
    align, keys = 32, [w.key("general.architecture", STRING, w.text("llama"))] * rng.choice([0, 1, 1])
    if rng.random() < 0.3:
        align = rng.choice([1, 2, 8, 16, 32, 64, 128, 4096, 4096, 0, 3, 24])
        keys.append(w.key("general.alignment", 4, w.pack("I", align)) if rng.random() < 0.9 else w.key("general.alignment", rng.choice([*SCALARS, STRING, ARRAY])))
        align = align or 32
    keys += [w.key(name, rng.choice([*SCALARS, STRING, ARRAY])) for name in damage.names(rng, rng.choice([0, 0, 1, 2, 4]))]
    rng.shuffle(keys)
    infos, at, last = [], 0, 0
    for name in damage.names(rng, rng.choice([0, 1, 1, 2, 3, 5])):
        kind, ne = rng.choice(list(gguf.GGMLQuantizationType)), list(damage.shape(rng))
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        if ne and ne[0] % elements and rng.random() < 0.9:
            ne[0] *= elements
        count = math.prod(ne)
        at += align * rng.choice([0, 0, 0, 1, 5])
        infos.append([name, ne, int(kind), at])
        last = at + count // elements * size
        at = -(-last // align) * align
    if infos and rng.random() < 0.15:
        odd(rng, rng.choice(infos), infos)
    if rng.random() < 0.2:
        rng.shuffle(infos)
    head = b"GGUF" + w.pack("I", w.version) + w.pack(w.length * 2, len(infos), len(keys)) + b"".join(keys)
    for name, ne, kind, off in infos:
        limit = 1 << (32 if w.version == 1 else 64)
        head += w.text(name) + w.pack("I" + w.length * len(ne) + "IQ", len(ne), *[n % limit for n in ne], kind % (1 << 32), off % (1 << 64))
    data = bytes(-len(head) % align) + rng.randbytes(last if rng.random() < 0.5 else at)
    return {"model.gguf": damage.damaged(rng, head + data, head=len(head), chance=0.3)}


def odd(rng, info, infos):
    match rng.randrange(5):
        case 0:
            info[1] = [damage.number(rng) for _ in range(rng.randrange(1, 5))]
        case 1:
            info[1] = info[1] + [0, damage.number(rng)]
        case 2:
            info[2] = rng.randrange(50)
        case 3:
            info[3] = damage.number(rng)
        case 4:
            info[3] = rng.choice(infos)[3]
