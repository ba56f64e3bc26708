"""NumPy: .npy headers in all spellings, and archives of them."""
import io
import math
import struct
import warnings
import zipfile

import ml_dtypes
import numpy as np

import damage
from judge import Answer, Tensor

KINDS = {"b1": "BOOL", "u1": "U8", "i1": "I8", "u2": "U16", "i2": "I16", "u4": "U32", "i4": "I32", "u8": "U64", "i8": "I64", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64", "c16": "C128",
         "V1": "U8", "V2": "BF16"}  # fmt: skip
SMALL = {"bfloat16": "BF16", "float8_e5m2": "F8_E5M2", "float8_e4m3fn": "F8_E4M3", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0"}
DESCRS = ["<f4", "<f4", ">f4", "|u1", "<i8", "<f2", ">c16", "|b1", "<V2", "|V1", "|V3", "f4", "=f8", "float32", "i", "?", "<f8", ">i2", "<u4", "<c8", "bfloat16", "float8_e4m3fn"]
STRANGE = ["|O", "<U3", "|S5", "<M8[ns]", "<f16", "<f1", "<f3", "f", "F", "<f04", ">V2", "|V0", "int4", "x", "", "<", "<<f4", "S", "<m8", "<f4 ", "l", "p", "a", "<b1", ">?", "<i4,<i4", "3f4", "(2,)f4", "b1", "float", "|i2", "V", "2f4", "|f4", "U", "void", "object", "str", "e", "g", "<f4\0"]

REFUSED = [
    (r"has no element type here|descr is a structured type", "strings, times, structures: no tensors (np-023)"),
    (r"a zip archive of neither PyTorch nor NumPy", "told by its names, which np.savez ends in .npy"),
    (r"two members are named", "readers disagree which one counts; NumPy takes the last (np-033)"),
    (r"has the same name without \.npy", "two members would be one array"),
    (r"no sound central directory|no central directory at its end|central directory is damaged", "the end record counts more members, or a longer comment, than there are"),
    (r"is truncated: it has \d+ bytes|claims \d+ bytes, more than \d+ deflated", "NumPy reads no further than its array, and misses that the member ends behind the file"),
    (r"has compression method \d+, but \d+ in its local header|bytes, but \d+ by its local header", "readers that believe one or the other would see two files (np-044)"),
    (r"is stored, but has two sizes|is encrypted", "flags and a second size that Python does not look at; what is meant cannot be told"),
    (r"unexpected 'L' where", "Python 2 wrote no space in front of it (\"2 L\")"),
    (r"value of \"\w+\": \S+ is no integer", "of a key that stands twice NumPy looks at the last value alone"),
    (r"packed with (bzip2|lzma|deflate64|zstd|xz)", "weightfs does not unpack these; the others are shown"),
]
ACCEPTED = [
    (r"^no member is an array", "it is mounted empty, with a warning for each"),
    (r"not a valid dtype descriptor: '[<>|=]?f1'", "what np.save writes of float8_e5m2 (np-020)"),
    (r"zip file version \d", "that a reader should have is not looked at; what matters are method and flags"),
    (r"Bad magic number for central directory", "the directory is read where the end record says that it begins, whatever size it says"),
    (r"Bad CRC-32", "stored members are mapped and not read; that of deflated ones is checked"),
    (r"""Cannot parse header: ["'](\\n|\\r|\\x0c|\\\\\\n|#.*?\\n| )+\{""", "an indented line is an error to Python"),
    (r"""Cannot parse header: .*(\\n|\\r|\\x0c)[ \\tx0c]+["']$""", "so is a last line of white space alone"),
]


def read(path):
    loaded = np.load(path, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        return Answer(tensors={path.stem: tensor(loaded)})
    with loaded:
        answer = Answer()
        for name in loaded.files:
            try:
                a = loaded[name]
            except Exception as e:
                answer.without[name] = f"{type(e).__name__}: {e}"
                continue
            if isinstance(a, np.ndarray):
                answer.tensors[name] = tensor(a)
        if loaded.files and not answer.tensors and not answer.without:
            answer.refused = "no member is an array"
        return answer


def tensor(a):
    if a.dtype.names or a.dtype.subdtype:
        return Tensor(str(a.dtype), a.shape, None)
    a = np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<"), order="C", copy=False)).reshape(a.shape)
    code = a.dtype.str.lstrip("<>|=")
    if a.dtype.name in SMALL:
        return Tensor(SMALL[a.dtype.name], a.shape, a.tobytes())
    if code[0] == "V" and code not in KINDS:
        return Tensor("U8", (*a.shape, a.dtype.itemsize), a.tobytes())
    return Tensor(KINDS.get(code, code), a.shape, a.tobytes())


def make(rng):
    if rng.random() < 0.5:
        return {"a.npy": damage.damaged(rng, npy(rng), head=128, chance=0.3)}
    return {"a.npz": damage.damaged(rng, npz(rng), chance=0.3)}


def npy(rng):
    descr, shape = rng.choice(STRANGE if rng.random() < 0.1 else DESCRS), damage.shape(rng)
    try:
        size = np.dtype(descr).itemsize
    except (TypeError, ValueError, SyntaxError):
        size = 4
    data = rng.randbytes(size * math.prod(shape))
    if rng.random() < 0.1:
        shape = odd_shape(rng, shape)
    text = header(rng, literal(rng, descr), rng.choice(["False", "True"]) if rng.random() < 0.97 else rng.choice(["0", "None", '"False"', "false", "1"]), dims(rng, shape))
    text = damage.damaged(rng, text.encode("latin1" if rng.random() < 0.5 else "utf8", errors="replace"), chance=0.2)
    version = rng.choice([1, 1, 1, 2, 3])
    length = struct.pack("<H" if version == 1 else "<I", len(text) if rng.random() < 0.95 else len(text) + rng.choice([-1, 1]))
    return b"\x93NUMPY" + (bytes([version, 0]) if rng.random() < 0.97 else rng.randbytes(2)) + length + text + data


def header(rng, descr, order, shape):
    fields = [f"'descr'{space(rng)}:{space(rng)}{descr}", f"'fortran_order': {order}", f"'shape'{space(rng)}: {shape}"]
    if rng.random() < 0.05:
        fields += [rng.choice(["'more': 1", "'shape': (1,)", "'descr': '<f4'", "b'a': 1", "'fortran_order': True", "'sh' 'ape': (2,)", "# comment", "**{}"])]
    if rng.random() < 0.1:
        rng.shuffle(fields)
    if rng.random() < 0.05:
        fields = [f.replace("'", '"') for f in fields]
    text = space(rng) + "{" + f",{space(rng) or ' '}".join(fields) + rng.choice([", }", "}", ",}", ",\n}", " }"])
    return text + rng.choice([" " * (-len(text) % 64) + "\n"] * 6 + ["", "\n\n", " ", "\t\n", "\0", "\\\n", ";", "#", "\r\n", "\f\n", " # x\n", "\n\n  ", "\n \n"])


def literal(rng, descr):
    if rng.random() < 0.03:
        return rng.choice(["[('a', '<f4')]", "('<f4', (2,))", "['<f4']", "None", "1", "[]", "[('a', '<f4', (2,))]", "('<f4',)", "b'<f4'", "{'names': ['a'], 'formats': ['<f4']}", "'''<f4'''", "r'<f4'", "u'<f4'", "'<' 'f4'", "'\\x3cf4'", "('<f4', 2)", "[('', '|V4')]"])
    return repr(descr)


def dims(rng, shape):
    parts = [f"{d}{'L' if rng.random() < 0.03 else ''}{space(rng)}" for d in shape]
    text = "(" + space(rng) + f",{space(rng)}".join(parts) + ("," if len(parts) == 1 or rng.random() < 0.1 else "") + ")"
    if rng.random() < 0.03:
        text = rng.choice(["[2]", "(2)", "2", "(True,)", "(2.0,)", "(-1,)", "(0x2,)", "(0b10,)", "(1_0,)", "(+2,)", "(02,)", "(00,)", "(2,)*2", "((2,),)", "(2,,)", "()", "(  )", "(2L,)", "(--2,)", "(0_0,)", "(~1,)", "(2j,)", "(-0,)", "( 2 , 3 )", "(2,3,)", "('2',)", "(2 L,)", "(2l,)"])
    return text


def odd_shape(rng, shape):
    return rng.choice([(*shape, damage.number(rng)), (damage.number(rng),), shape[1:], (*shape, 0, damage.number(rng)), (1,) * rng.choice([32, 33, 64, 65]), shape[::-1]])


def space(rng):
    return rng.choice([" ", "  ", "\n", "\t", "\\\n", " \n ", "\r", "\f", "\v", "\xa0", "#x\n"]) if rng.random() < 0.03 else ""


def npz(rng):
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(out, "w") as z:
            for name in damage.names(rng, rng.choice([0, 1, 1, 2, 3])):
                add(rng, z, name)
            z.comment = b"" if rng.random() < 0.95 else rng.choice([b"comment", b"PK\5\6" + bytes(18), bytes(rng.randrange(30))])
    return out.getvalue()


def add(rng, z, name):
    info = zipfile.ZipInfo(name.replace("\0", "") + rng.choice([".npy"] * 20 + ["", ".npy.npy", ".NPY", ".txt"]), (1980, 1, 1, 0, 0, 0))
    if rng.random() < 0.05:
        info.filename = rng.choice(["/abs.npy", "../up.npy", "a\\b.npy", "dir/", ".npy", "./a.npy"])
    info.compress_type = rng.choice([zipfile.ZIP_STORED] * 9 + [zipfile.ZIP_DEFLATED] * 9 + [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA] * info.filename.endswith(".npy"))
    if rng.random() < 0.05:
        info.extra = rng.choice([b"\0\0\0\0", struct.pack("<HHQQ", 1, 16, 1, 1), b"abc", b"\x01\x00\x04\x00aaaa"])
    data = npy(rng) if rng.random() < 0.95 else rng.choice([b"", b"text", b"\x93NUMPY", b"\x93NUMP", rng.randbytes(20)])
    with z.open(info, "w", force_zip64=rng.random() < 0.7) as f:
        f.write(data)
