"""Random numbers, names and shapes that have something about them, and damage to bytes."""
import re

NUMBERS = [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256, 1 << 15, (1 << 16) - 1, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
           1 << 32, (1 << 53) + 1, 1 << 61, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 32, (1 << 64) - 16, (1 << 64) - 1, 1 << 64]  # fmt: skip
NAMES = ["", ".", "..", "a", "a.b", "a/b", "/a", "a/", "a//b", "weight", "model.layers.0.weight", "model.layers.10.weight", "é", "e\u0301", "名前", "a b", " ", "%", "%2F", "%%",
         "__metadata__", "A", "a.npy", "a.raw", "x" * 64, "y" * 256, "\U0001f600", "-", "~", "a~2", "\n", "\t", "\x7f", '"', "\\", "'", "CON", "a:0", "\x01", "\0", "a\0b", "\u202e", "\ufeff"]  # fmt: skip
SHAPES = [(), (0,), (1,), (2,), (3,), (8,), (5, 0), (0, 0), (2, 3), (4, 8), (1, 1), (2, 3, 4), (3, 0, 2), (16,), (1, 2, 1, 2), (32,), (2, 32), (256,), (1,) * 10]


def number(rng):
    n = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.randrange(1 << rng.randrange(1, 65))
    return n + (rng.choice([-1, 0, 1]) if n and rng.random() < 0.1 else 0)


def name(rng):
    return rng.choice(NAMES) if rng.random() < 0.3 else f"layer.{rng.randrange(100)}.{rng.choice(['weight', 'bias'])}"


def names(rng, n):
    """n names, seldom one of them twice."""
    found = []
    while len(found) < n:
        new = name(rng)
        if new not in found or rng.random() < 0.02:
            found.append(new)
    return found


def shape(rng):
    return rng.choice(SHAPES) if rng.random() < 0.8 else tuple(rng.randrange(5) for _ in range(rng.randrange(6)))


def damaged(rng, data, head=None, chance=0.6):
    """The bytes, with a fault or some: most of them in the first head bytes."""
    if rng.random() > chance or not data:
        return data
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        end = min(len(data), head or len(data)) if rng.random() < 0.9 else len(data)
        rng.choice(KINDS)(rng, data, rng.randrange(end) if end else 0)
    return bytes(data)


def flip(rng, data, at):
    if data:
        data[at] ^= 1 << rng.randrange(8)


def byte(rng, data, at):
    if data:
        data[at] = rng.choice([0, 1, 0x20, 0x22, 0x2C, 0x30, 0x5B, 0x7B, 0x7D, 0x7F, 0x80, 0xFF, rng.randrange(256)])


def word(rng, data, at):
    size = rng.choice([2, 4, 8])
    data[at : at + size] = (number(rng) % (1 << 8 * size)).to_bytes(size, rng.choice(["little", "little", "little", "big"]))


def digits(rng, data, at):
    found = list(re.finditer(rb"\d+", data))
    if found:
        m = rng.choice(found[:40])
        data[m.start() : m.end()] = rng.choice([str(number(rng)).encode(), str(number(rng)).encode(), b"-" + m[0], m[0] + b".0", b"0" + m[0], m[0] + b"e1", b"", b"true", b'"1"', b"1L", b"1_0", b"0x4"])


def cut(rng, data, at):
    del data[rng.choice([at, max(len(data) - rng.randrange(1, 9), 0), rng.randrange(len(data) + 1)]) :]


def extend(rng, data, at):
    data.extend(rng.choice([b"\0", b" ", b"\0" * 32, rng.randbytes(rng.randrange(1, 70)), bytes(data[: rng.randrange(1, 100)])]))


def remove(rng, data, at):
    del data[at : at + rng.choice([1, 1, 2, 4, 8, 16])]


def insert(rng, data, at):
    data[at:at] = rng.choice([b"\0", b" ", b"\n", b"\t", b",", b"\xef\xbb\xbf", b"\0" * 8, rng.randbytes(rng.randrange(1, 9))])


def repeat(rng, data, at):
    data[at:at] = data[at : at + rng.choice([1, 2, 4, 8, 16, 40])]


def swap(rng, data, at):
    size, other = rng.choice([1, 2, 4, 8]), rng.randrange(len(data) + 1)
    a, b = sorted([at, other])
    if a + size <= b and b + size <= len(data):
        data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


KINDS = [flip, flip, byte, byte, word, word, digits, digits, digits, cut, extend, remove, insert, repeat, swap]
