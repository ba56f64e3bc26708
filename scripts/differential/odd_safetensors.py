"""safetensors: headers are written by hand, since the library writes only sound ones."""
import json
import math
import struct

import safetensors

import damage
from judge import Answer, Tensor

BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
        "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}  # fmt: skip

REFUSED = [
    (r"duplicate tensor name", "the specification forbids it; the library keeps the last without a word (st-013)"),
    (r"dtype is an object, expected a string", "a quirk of serde, which no writer makes"),
]
ACCEPTED = [
    (r"unknown variant `.*`, expected one of `BOOL`", "the tensor is left out with a warning, the others are shown (st-029)"),
]


def read(path):
    return Answer(tensors={name: Tensor(t["dtype"], t["shape"], bytes(t["data"])) for name, t in safetensors.deserialize(path.read_bytes())})


def make(rng):
    records, at = [], 0
    for name in damage.names(rng, rng.choice([0, 1, 1, 2, 3, 5])):
        dtype, shape = rng.choice(list(BITS)), damage.shape(rng)
        if rng.random() < 0.02:
            at += rng.choice([1, 8])  # a hole
        end = at + (math.prod(shape) * BITS[dtype] + 7) // 8
        records.append([name, dtype, list(shape), [at, end]])
        at = end
    data = rng.randbytes(at)
    if records and rng.random() < 0.1:
        odd(rng, rng.choice(records), records)
    rng.shuffle(records)
    members = [string(rng, r[0]) + space(rng) + ":" + space(rng) + record(rng, *r[1:]) for r in records]
    if rng.random() < 0.4:
        members.insert(rng.randrange(len(members) + 1), '"__metadata__":' + metadata(rng))
    text = space(rng) + "{" + ("," + space(rng)).join(members) + "}"
    text += rng.choice(["", " " * (-len(text.encode(errors="surrogatepass")) % 8), " " * rng.randrange(20), "\n", "\t\r\n "]) if rng.random() < 0.98 else "\0"
    header = damage.damaged(rng, text.encode(errors="surrogatepass"), chance=0.2)
    length = len(header) if rng.random() < 0.95 else rng.choice([len(header) + rng.choice([-1, 1, 8]), damage.number(rng)]) % (1 << 64)
    return {"model.safetensors": damage.damaged(rng, struct.pack("<Q", length) + header + data, head=8 + len(header), chance=0.2)}


def odd(rng, r, records):
    match rng.randrange(7):
        case 0:
            r[2] = [damage.number(rng) for _ in range(rng.randrange(1, 4))]
        case 1:
            r[3] = [r[3][1], r[3][0]]
        case 2:
            r[3] = [r[3][0] + rng.choice([-1, 1]), r[3][1] + rng.choice([-1, 0, 1])]
        case 3:
            records.append(list(r))
        case 4:
            r[2] = [*r[2], 0, damage.number(rng)]
            r[3] = [r[3][0]] * 2
        case 5:
            r[1] = rng.choice(["F8_E3M4", "I4", "f32", "", "C128", "F32 ", "é"])
        case 6:
            r[3] = rng.choice(records)[3]


def record(rng, dtype, shape, offsets):
    if rng.random() < 0.02:
        return json.dumps([dtype, shape, offsets])
    fields = [f'"dtype":{space(rng)}{string(rng, dtype)}', f'"shape":{json.dumps(shape)}', f'"data_offsets":{space(rng)}{json.dumps(offsets)}']
    if rng.random() < 0.05:
        fields.append(rng.choice(['"more":[1,{"a":null}]', '"dtype":"F32"', '"Shape":[1]', '"x":1e400', '"x":-0', '"":""', '"x":01', '"x":"\\ud800"', '"x":' + "[" * 130 + "]" * 130]))
    rng.shuffle(fields)
    return rng.choice(["null", "[]", "{}", "1"]) if rng.random() < 0.01 else "{" + ",".join(fields) + space(rng) + "}"


def metadata(rng):
    if rng.random() < 0.3:
        return rng.choice(["null", "{}", "[]", '""', '{"a":1}', '{"a":"1","a":"2"}', '{"a":null}', '{"a":{}}', '{"":""}', '{"\\u0000":"\\n"}', "[[]]", "nul"])
    return json.dumps({damage.name(rng): damage.name(rng) for _ in range(rng.randrange(4))}, ensure_ascii=rng.random() < 0.5)


def string(rng, s):
    return json.dumps(s, ensure_ascii=rng.random() < 0.5)


def space(rng):
    return rng.choice(["", " ", "\n", "\t", "\r\n", "  "]) if rng.random() < 0.05 else ""
