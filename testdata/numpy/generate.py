#!/usr/bin/env python3
"""Write the arrays of this directory with NumPy and ml_dtypes, and golden.json with what they hold.

golden.json: file -> {"tensors": {name: {dtype, shape, sha256 of the elements, row-major and
little-endian}}, "warn": words} or {"error": words that the message must have}. The entries and files
under hand/ are written by hand (hand.json): what no library writes. descr.json: descr -> what np.dtype
makes of it, or null. headers.json: [version, header, what NumPy reads from it, or null]."""
import hashlib, io, json, os, random, struct, warnings, zipfile
import ml_dtypes, numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = {"|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<u2": "U16", "<i2": "I16", "<u4": "U32", "<i4": "I32",
        "<u8": "U64", "<i8": "I64", "<f2": "F16", "<f4": "F32", "<f8": "F64", "<c8": "C64", "<c16": "C128"}
golden = {}


def tensor(a, dtype=None, shape=None):
    a = np.asarray(a)
    le = a.astype(a.dtype.newbyteorder("<"))
    return {"dtype": dtype or OURS[le.dtype.str], "shape": list(a.shape if shape is None else shape),
            "sha256": hashlib.sha256(le.tobytes("C")).hexdigest()}


def npy(file, a, **kw):
    with open(os.path.join(HERE, file), "wb") as f:
        np.lib.format.write_array(f, np.asanyarray(a), kw.pop("version", None))
    golden[file] = {"tensors": {"": tensor(a, **kw)}}


def member(z, name, data, method=zipfile.ZIP_STORED):
    z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, compress_type=method)


def npy_bytes(a):
    b = io.BytesIO()
    np.lib.format.write_array(b, a, allow_pickle=True)
    return b.getvalue()


def archives(a):
    wide = np.arange(3000, dtype=np.int32).reshape(3, 10, 100)
    many = {"a": a, "x/y": wide, "fortran": np.asfortranarray(wide), "big": wide.astype(">i4"),
            "both": np.asfortranarray(wide.astype(">i4")), "scalar": np.float64(2.5), "none": np.zeros((0, 2), np.int8)}
    for file, save in ("savez.npz", np.savez), ("compressed.npz", np.savez_compressed):
        save(os.path.join(HERE, file), **many)
        golden[file] = {"tensors": {k: tensor(v) for k, v in many.items()}}
    with zipfile.ZipFile(os.path.join(HERE, "mixed.npz"), "w") as z:
        member(z, "a.npy", npy_bytes(a))
        member(z, "no extension", npy_bytes(wide), zipfile.ZIP_DEFLATED)
        member(z, "text.npy", npy_bytes(np.array(["x", "yz"])))
        member(z, "object.npy", npy_bytes(np.array([{}], object)), zipfile.ZIP_DEFLATED)
        member(z, "bz.npy", npy_bytes(a), zipfile.ZIP_BZIP2)
        member(z, "lz.npy", npy_bytes(a), zipfile.ZIP_LZMA)
        member(z, "notes.txt", b"no array at all")
        member(z, "noarray.npy", b"no array either", zipfile.ZIP_DEFLATED)
        member(z, "wide.npy", npy_bytes(np.zeros(2, [("f%d" % i, "<f4") for i in range(900)])))
        member(z, "dir/", b"")
    golden["mixed.npz"] = {"tensors": {"a": tensor(a), "no extension": tensor(wide)},
                           "warn": ["text.npy", "<U2", "object.npy", "pickled", "bz.npy", "bzip2", "lz.npy", "lzma", "noarray.npy",
                                    "wide.npy", "10000"]}
    old = bytes(range(128, 256))  # a name that is not said to be UTF-8, as zip writers of old write it
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        member(z, "x" * len(old) + ".npy", npy_bytes(a))
        member(z, "é.npy", npy_bytes(wide[0]))
    with open(os.path.join(HERE, "codepage.npz"), "wb") as f:
        f.write(out.getvalue().replace(b"x" * len(old), old))
    with np.load(os.path.join(HERE, "codepage.npz")) as loaded:
        golden["codepage.npz"] = {"tensors": {k: tensor(v) for k, v in loaded.items()}}


KINDS = ("b1 ? b B i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16 h H i I l L q Q p P n N e f d g F D G c S U V O S5 U3 V1 V2 V3 V16 V0 f1 "
         "f16 c32 c4 i3 i16 b2 u0 M8 m8 M8[ns] m8[s] O8 a5 T f04 i04 V02 V2147483647 V2147483648 x 1f4 3f4 (2,)f4 f4,f4 f8, b01 ?1 h2 bool bool_ bool8 int "
         "int_ int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 float float_ float16 float32 float64 float96 float128 "
         "complex complex_ complex64 complex128 complex256 half single double longdouble byte ubyte short ushort intc uintc long "
         "ulong longlong ulonglong intp uintp csingle cdouble clongdouble str bytes object void datetime64 float8_e3m4 int4 "
         "Float32 FLOAT32 cfloat unicode string int0 uint0 longfloat Int8 Bool f-4 f+4").split() + ["", "f4 ", " f4"]


def descrs():
    out = {}
    for descr in (o + k for k in KINDS for o in ("", "<", ">", "|", "=", "!", "<<")):
        try:
            t = np.dtype(descr)
            out[descr] = t.str if t.fields is None and t.subdtype is None else "structured"
        except (TypeError, ValueError, SyntaxError):
            out[descr] = None
    return out


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
HEADERS = [
    GOOD, " \t" + GOOD + "   \n", "(" + GOOD + ")", "((" + GOOD + "),)", GOOD + ",", GOOD + "\n\n# end\n", GOOD + "x", GOOD + GOOD,
    '{"shape":(2,3),"descr":"<f4","fortran_order":True}', "{u'descr': u'<f4', U'fortran_order': False, r'shape': (2, 3)}",
    "{'descr': '<' 'f4', 'for' u'tran' \"_order\": False, 'shape': (2, 3)}", "{'descr': b'<f4', 'fortran_order': False, 'shape': (2, 3)}",
    "{'descr': '''<f4''', 'fortran_order': False, 'shape': (2, 3)}", "{'descr': '\\x3cf\\64', 'fortran_order': False, 'shape': (2, 3)}",
    "{'descr': '\\u003cf4', 'fortran_order': False, 'shape': (2, 3)}", "{'descr': '<f\\\n4', 'fortran_order': False, 'shape': (2, 3)}",
    "{'descr': '<f\n4', 'fortran_order': False, 'shape': (2, 3)}", "{'descr': r'\\x3cf4', 'fortran_order': False, 'shape': (2, 3)}",
    "{'descr': f'<f4', 'fortran_order': False, 'shape': (2, 3)}", "{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3)}",
    "{ # a comment\n'descr': '<f4', # another\n'fortran_order': False,\n\n 'shape': (2,\n3)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (9,), 'shape': (2, 3)}", "{'descr': '<f4', 'fortran_order': False}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),, }",
    "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}", "{}", "", "()", "[" + GOOD + "]", "{**{}}", "dict()",
    "{'descr': [('a', '<f4'), ('b', '<i2', (2,))], 'fortran_order': False, 'shape': (2, 3)}",
    "{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (2, 3)}", "{'descr': None, 'fortran_order': False, 'shape': (2, 3)}",
] + ["{'descr': '<f4', 'fortran_order': %s, 'shape': (2, 3)}" % f for f in ("0", "None", "false", "not True", "(True)", "Truex", "'False'")
] + ["{'descr': '<f4', 'fortran_order': False, 'shape': %s}" % s for s in (
    "()", "(,)", "(6,)", "(6)", "[6]", "6", "(2L, 3L)", "(2l, 3)", "(2 L, 3)", "(0x2, 0X0_3)", "(0b10, 0o3)", "(1_000, 3)", "(1__0, 3)", "(_2, 3)",
    "(2_, 3)", "(02, 3)", "(00, 3)", "(+2, 3)", "(- 0, 3)", "(--2, 3)", "(-(2), 3)", "(-2, 3)", "(2.0, 3)", "(2e0, 3)", "(2j, 3)", "(2., 3)",
    "(1+1, 3)", "(1+2j, 3)", "(True, 3)", "(None, 3)", "('2', 3)", "((2), 3)", "((2, 3))", "(((2, 3)))", "((2, 3),)", "(2, 3,)", "(2, 3,,)",
    "(2 3)", "(2, 3", "2, 3", "(2, 3))", "(18446744073709551616, 3)", "(9223372036854775808, 0)", "(9223372036854775807, 0)", "{2, 3}",
    "(2,\\\n3)", "(2,\\ 3)", "(2,\0 3)", "(2,\f3)", "(2,\v3)", "(2,\u00a03)", "(0xFFL, 3)", "(2LL, 3)", "(L, 3)", "(2L3, 3)",
    "(" * 40 + "2" + ",)" * 40, "(" + "1, " * 64 + ")", "(" + "1, " * 65 + ")")
] + [GOOD + "\\\n", GOOD + "\n\\\n", GOOD + "\\\n\n", "\\\n" + GOOD]


def read(version, text):
    b = text.encode("utf-8" if version == 3 else "latin1")
    b = struct.pack("<H" if version == 1 else "<I", len(b)) + b
    try:
        shape, fortran, dtype = np.lib._format_impl._read_array_header(io.BytesIO(b), (version, 0))
        np.zeros(0).reshape(tuple(0 for _ in shape) or (0,))
        if not all(0 <= n < 1 << 63 for n in shape) or any(type(n) is bool for n in shape):
            return None
        return [list(map(int, shape)), fortran, dtype.str if dtype.fields is None and dtype.subdtype is None else "structured"]
    except Exception:
        return None


def headers():
    rng = random.Random(1)
    out = [[v, h, read(v, h)] for h in HEADERS for v in (1, 3)]
    for _ in range(600):
        h = list(rng.choice(HEADERS[:14]))
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(len(h) or 1)
            h[i:i + rng.randint(0, 2)] = rng.choice(["", "'", '"', ",", "(", ")", " ", "\n", "#", "1", "L", "\\", "-", "u", ":", "{", "}", "_", "0"])
        h = "".join(h)
        out.append([1, h, read(1, h)])
    return out


def write(file, data):
    with open(os.path.join(HERE, file), "w") as f:
        json.dump(data, f, indent=0, sort_keys=True)
        f.write("\n")


def main():
    warnings.simplefilter("ignore")
    a = np.arange(24).reshape(2, 3, 4)
    for code in OURS:
        x = a.astype(code)
        npy("le_%s.npy" % code[1:], x)
        npy("be_fortran_%s.npy" % code[1:], np.asfortranarray(x.astype(x.dtype.newbyteorder(">"))))
    npy("be_v2.npy", a.astype(">f4"), version=(2, 0))
    npy("le_v3.npy", a.astype("<f4"), version=(3, 0))
    npy("bfloat16.npy", a.astype(ml_dtypes.bfloat16).view("V2"), dtype="BF16")
    npy("float8_e4m3.npy", a.astype(ml_dtypes.float8_e4m3fn).view("V1"), dtype="U8")
    npy("float8_e5m2.npy", a.astype(ml_dtypes.float8_e5m2), dtype="F8_E5M2")
    npy("void3.npy", np.asfortranarray(np.arange(72, dtype=np.uint8).view("V3").reshape(2, 3, 4)), dtype="U8", shape=(2, 3, 4, 3))
    npy("fortran_vector.npy", np.asfortranarray(a.astype("<i2").reshape(1, 24, 1)))
    npy("fortran_empty.npy", np.zeros((0, 5, 7), "<f4", "F"))
    npy("scalar.npy", np.float32(3))
    archives(a.astype("<f4"))
    with open(os.path.join(HERE, "hand.json")) as f:
        golden.update(json.load(f))
    write("golden.json", golden)
    write("descr.json", descrs())
    write("headers.json", headers())


main()
