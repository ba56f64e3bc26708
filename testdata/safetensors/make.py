#!/usr/bin/env python3
"""Make the test data of format/safetensors with the reference library (safetensors 0.8, numpy).

    make.py                    the files beside this script
    make.py verdicts N SEED    N generated headers with the reference's verdict, to standard output

A golden file is what the reference lists; verdicts.json holds headers, the number of data bytes
behind each, and null or the reference's words of refusal."""
import json, os, random, struct, sys

import numpy as np
import safetensors
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
        "C64": 64, "F64": 64, "I64": 64, "U64": 64}


def verdict(header, data):
    try:
        safetensors.deserialize(struct.pack("<Q", len(header)) + header + bytes(data))
        return None
    except Exception as e:
        return str(e).split("`")[0][:120]  # of two tensors at fault it names either


def duplicates(header):
    try:
        pairs = json.loads(header, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return False
    keys = [p[0] for p in pairs if len(p) == 2 and p[0] != "__metadata__"] if isinstance(pairs, list) else []
    return len(set(map(str, keys))) < len(keys)


def case(header, data):
    if isinstance(header, str):
        header = header.encode()
    c = {"data": data, "reference": verdict(header, data)}
    if duplicates(header):
        c["duplicate"] = True
    try:
        c["header"] = header.decode()
    except UnicodeDecodeError:
        c["hex"] = header.hex()
    return c


U = '"dtype":"U8","shape":[2],"data_offsets":[0,2]'


def extra(value, data=2):
    return ('{"a":{%s,"x":%s}}' % (U, value), data)


def record(text, data=2):
    return ('{"a":%s}' % text, data)


def fields(dtype='"U8"', shape="[2]", offsets="[0,2]", data=2):
    return record('{"dtype":%s,"shape":%s,"data_offsets":%s}' % (dtype, shape, offsets), data)


BY_HAND = [
    ("", 0), ("{}", 0), ("{}", 1), (" \n\r\t{} \n\r\t", 0), ("[]", 0), ("null", 0), ("{}{}", 0), ("{} x", 0), ("{,}", 0),
    ("{}\x00", 0), ("{}\x0b", 0), ("{}\x0c", 0), ("\ufeff{}", 0), ("{}\u00a0", 0), ("{", 0), ("{\"", 0), ("{\"a\"", 0), ("{\"a\":", 0),
    ("{'a':1}", 0), ("{a:1}", 0), ("{1:1}", 0), ('{"a":{%s},}' % U, 2), ('{"a":{%s,}}' % U, 2), ('{"a" : {%s}}' % U, 2), ('{"a"{%s}}' % U, 2),
    record("null"), record("true"), record("1"), record('"x"'), record("{}"), record("[]"), record("{%s}" % U), record("{%s}" % U, 3),
    record("{%s}" % U, 1), record("{%s}" % U, 0), record("{%s" % U), record('{%s,"shape":[2]}' % U), record('{%s,"dtype":"U8"}' % U),
    record('{%s,"data_offsets":[0,2]}' % U), record('["U8",[2],[0,2]]'), record('["U8",[2],[0,2],1]'), record('["U8",[2]]'),
    record('["U8"]'), record('[[2],"U8",[0,2]]'), record('[ "U8" , [ 2 ] , [ 0 , 2 ] ]'), record('["U8",[2],[0,2],]'),
    record('{"dtype":"U\\u0038","sh\\u0061pe":[2],"data_offsets":[0,2]}'), record('{"DType":"U8","Shape":[2],"Data_Offsets":[0,2]}'),
    record('{"shape":[2],"data_offsets":[0,2]}'), record('{"dtype":"U8","data_offsets":[0,2]}'), record('{"dtype":"U8","shape":[2]}'),
    extra("1"), extra("-1"), extra("-0"), extra("01"), extra("-01"), extra("-"), extra("+1"), extra("1."), extra(".5"), extra("1.5"),
    extra("1e5"), extra("1E+5"), extra("1e-5"), extra("1e"), extra("1e+"), extra("1e400"), extra("-1e400"), extra("1e-400"), extra("0e400"),
    extra("0.0e99999999999"), extra("1e99999999999"), extra("1e-99999999999"), extra("1" + "0" * 308), extra("1" + "0" * 309),
    extra("2" + "0" * 308), extra("18446744073709551616"), extra("0x1"), extra("NaN"), extra("Infinity"), extra("tru"), extra("truex"),
    extra("nul"), extra("true"), extra("false"), extra("null"), extra("[]"), extra("[1,]"), extra("[,1]"), extra("[1 2]"), extra("{}"),
    extra('{"k":1,"k":2}'), extra('{"k":1,}'), extra('{"k"}'), extra("{k:1}"), extra('1,"x":2'), extra('"\\ud800\\udc00"'), extra('"\\ud800"'),
    extra('"\\udc00"'), extra('"\\ud800\\u0041"'), extra('"\\ud800\\ud800"'), extra('"\\ud800x"'), extra('"\x7f"'), extra('"\t"'), extra('"\n"'),
    extra('"\\u0000"'), extra('"\\x"'), extra('"\\u12G4"'), extra('"\\u12"'), extra('"\\'), extra('"\\"\\\\\\/\\b\\f\\n\\r\\t"'), extra('"\u00e9\u6743\U0001f600"'),
    *[extra("[" * d + "]" * d) for d in (124, 125, 126, 200)], *[extra('{"k":' * d + "1" + "}" * d) for d in (124, 125, 126, 200)],
    fields(dtype="3"), fields(dtype='{"U8":null}'), fields(dtype="null"), fields(dtype='"u8"'), fields(dtype='"F8_E3M4"'), fields(dtype='"I4"'), fields(dtype='"F8_E4M3FN"'),
    fields(dtype='"C128"'), fields(dtype='["U8"]'), fields(shape="null"), fields(shape='"ab"'), fields(shape="{}"), fields(shape="[2.0]"),
    fields(shape="[2e0]"), fields(shape="[-2]"), fields(shape="[null]"), fields(shape='["2"]'), fields(shape="[[2]]"), fields(shape="[true]"),
    fields(shape="[02]"), fields(shape="[2,]"), fields(shape="[1,2]"), fields(shape="[2,1,1]"), fields(shape="[3]"), fields(shape="[]"),
    fields(shape="[]", offsets="[0,1]", data=1), fields(shape="[0]", offsets="[0,0]", data=0), fields(shape="[-0]", offsets="[0,0]", data=0),
    fields(shape="[0,9223372036854775808,4]", offsets="[0,0]", data=0), fields(shape="[9223372036854775808,4,0]", offsets="[0,0]", data=0),
    fields(shape="[18446744073709551615,0]", offsets="[0,0]", data=0), fields(shape="[18446744073709551616,0]", offsets="[0,0]", data=0),
    fields(shape="[4294967296,4294967296]", offsets="[0,0]", data=0), fields(shape="[2305843009213693952]", offsets="[0,2305843009213693952]"),
    fields(dtype='"F32"', shape="[4611686018427387908]", offsets="[0,16]", data=16), fields(shape="[0]", offsets="[2,2]", data=0),
    fields(shape="[%s]" % ",".join(["1"] * 500), offsets="[0,1]", data=1),
    fields(offsets="[0,2,3]"), fields(offsets="[0]"), fields(offsets="[]"), fields(offsets="null"), fields(offsets='{"0":0}'), fields(offsets="[2,0]"),
    fields(offsets="[0,2.0]"), fields(offsets="[-2,0]"), fields(offsets="[1,3]", data=3), fields(offsets="[18446744073709551614,18446744073709551616]"),
    fields(offsets="[18446744073709551613,18446744073709551615]"), fields(dtype='"F4"', shape="[3]"), fields(dtype='"F4"', shape="[4]"),
    fields(dtype='"F6_E2M3"', shape="[4]", offsets="[0,3]", data=3), fields(dtype='"F6_E3M2"', shape="[2]"),
    ('{"\\u005f_metadata__":{"a":"b"}}', 0), ('{"\\u005f_metadata__":{"a":"b"},"__metadata__":null}', 0), ('{"__metadata__":null,"__metadata__":null}', 0),
    ('{"__metadata__":null}', 0), ('{"__metadata__":{}}', 0), ('{"__metadata__":{"a":"b","a":"c"}}', 0), ('{"__metadata__":{"a":null}}', 0),
    ('{"__metadata__":{"a":1}}', 0), ('{"__metadata__":{"a":{"b":"c"}}}', 0), ('{"__metadata__":{"a":"b",}}', 0), ('{"__metadata__":[]}', 0),
    ('{"__metadata__":"x"}', 0), ('{"__metadata__":{%s}}' % U, 2), ('{"__metadata__":nul}', 0), ('{"__metadata":{}}', 0),
    ('{"a":{%s},"a":{%s}}' % (U, U), 2), ('{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}', 2),
    ('{"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}', 4),
    ('{"z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"F32","shape":[0,3],"data_offsets":[2,2]}}', 2),
    ('{"a":{%s},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}' % U, 2), ('{"a":{%s},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}' % U, 3),
    ('{"a":{%s},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}' % U, 5), ('{"":{%s}}' % U, 2), ('{"\\u0000/..":{%s}}' % U, 2),
    (b'{"\xff\xfe":{%s}}' % U.encode(), 2), (b'{"a":{%s}}\xff' % U.encode(), 2), (b'{"\xed\xa0\x80":{%s}}' % U.encode(), 2), (b'{"\xc0\xaf":{%s}}' % U.encode(), 2),
]

TOKENS = list('{}[],:"\\0123 \t\n\x00\x01-.eE') + [
    '"a"', '"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', '"F32"', '"U8"', '"F4"', "null", "true", "false", "-1", "-0", "4.0", "4e0",
    "1e400", "18446744073709551615", "18446744073709551616", "9223372036854775808", "\\u0041", "\\ud800", "\\udc00", "\\ud83d\\ude00", "\u00e9",
    "{}", "[]", '"":', '"x":1,', "[[", "]]", ",,", "\\n", "\\/", "\x7f", "\ufeff"]


def spaced(rnd, parts):
    return "".join(p + rnd.choice(["", "", "", " ", "\n", "\t "]) for p in parts)


def generated(rnd):
    """A header that is right, in one of many spellings, or one fault away from that."""
    end, members = 0, []
    for i in range(rnd.randrange(4)):
        dtype = rnd.choice(list(BITS))
        shape = [rnd.choice([0, 1, 2, 4, 8]) for _ in range(rnd.randrange(4))]
        size = BITS[dtype] * int(np.prod(shape, dtype=np.int64)) // 8
        values = [json.dumps(dtype), json.dumps(shape), "[%d,%d]" % (end, end + size)]
        end += size
        if rnd.random() < 0.1:
            body = "[" + ",".join(values) + "]"
        else:
            named = ['"%s":%s' % kv for kv in zip(["dtype", "shape", "data_offsets"], values)]
            if rnd.random() < 0.2:
                named.append('"extra":' + rnd.choice(["1", "-2.5e3", "null", '{"k":[1,{"k":"\\u00e9"}]}', "[]", '"x"']))
            rnd.shuffle(named)
            body = "{" + spaced(rnd, ",".join(named).split(" ")) + "}"
        members.append('"%s":%s' % (rnd.choice(["a", "b", "m.%d" % i, "\\u0061", "a\\/b", "\u00e9", ""]), body))
    if rnd.random() < 0.3:
        members.append('"__metadata__":' + rnd.choice(["null", "{}", '{"format":"pt"}', '{"a":"b","a":"\\t"}']))
    rnd.shuffle(members)
    header = spaced(rnd, ["", "{", ",".join(members), "}"])
    for _ in range(rnd.choice([0, 0, 1, 1, 1, 2])):
        i = rnd.randrange(len(header) + 1)
        j = min(len(header), i + rnd.choice([0, 0, 1, 1, 2, 5]))
        header = header[:i] + rnd.choice(TOKENS + ["", ""]) + header[j:]
    return header, max(0, end + rnd.choice([0] * 8 + [1, -1]))


def verdicts(cases):
    return "[\n" + ",\n".join(json.dumps(case(*c)) for c in cases) + "\n]\n"


def make_golden(name):
    path = os.path.join(HERE, name)
    with open(path, "rb") as f:
        start = 8 + struct.unpack("<Q", f.read(8))[0]
    with safetensors.safe_open(path, "np") as f:
        tensors = {}
        for key in f.keys():
            s = f.get_slice(key)
            tensors[key] = {"dtype": s.get_dtype(), "shape": s.get_shape()}
        golden = {"start": start, "metadata": f.metadata(), "tensors": tensors}
    for key, d in safetensors.deserialize(open(path, "rb").read()):
        golden["tensors"][key]["bytes"] = bytes(d["data"]).hex()
    with open(path + ".golden.json", "w") as out:
        json.dump(golden, out, indent=1, sort_keys=True)
        out.write("\n")


def make():
    rng = np.random.default_rng(1)
    header, end = {"__metadata__": {"format": "pt", "note": "all 22 types"}}, 0
    for dtype, bits in BITS.items():
        header["t." + dtype] = {"dtype": dtype, "shape": [2, 4], "data_offsets": [end, end + bits]}
        end += bits
    text = json.dumps(header).encode()
    with open(os.path.join(HERE, "all-dtypes.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + rng.bytes(end))
    by_reference = os.path.join(HERE, "written-by-reference.safetensors")
    metadata = {"format": "np", "lm_head.weight": "model.embed.weight"}
    tensors = {"model.embed.weight": np.arange(6, dtype=np.float16).reshape(2, 3), "model.empty": np.zeros((0, 5), np.int64),
               "model.scalar": np.array(7, np.int32), "model.été/\0": np.array([True, False])}
    save_file(tensors, by_reference, metadata)
    while b'{"lm_head' not in open(by_reference, "rb").read():  # which of them stands first is left to chance
        save_file(tensors, by_reference, metadata)
    for name in ("all-dtypes.safetensors", "written-by-reference.safetensors"):
        make_golden(name)
    rnd = random.Random(1)
    with open(os.path.join(HERE, "verdicts.json"), "w") as f:
        f.write(verdicts(BY_HAND + [generated(rnd) for _ in range(300)]))


if sys.argv[1:2] == ["verdicts"]:
    rnd = random.Random(int(sys.argv[3]))
    sys.stdout.write(verdicts(generated(rnd) for _ in range(int(sys.argv[2]))))
else:
    make()
