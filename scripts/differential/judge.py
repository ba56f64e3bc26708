"""The comparison of what a library and weightfs say of one file."""
import dataclasses
import re


@dataclasses.dataclass
class Tensor:
    dtype: str
    shape: tuple
    data: bytes | None  # row-major, little-endian; nothing where they are too many
    spare: int = 0  # bits at the end of the last byte that hold nothing

    def __post_init__(self):
        self.shape = tuple(map(int, self.shape))


@dataclasses.dataclass
class Answer:
    refused: str = ""  # why the file is, as a whole
    tensors: dict = dataclasses.field(default_factory=dict)
    without: dict = dataclasses.field(default_factory=dict)  # of names that the file has, why there is no tensor
    warnings: list = dataclasses.field(default_factory=list)


class Failure(Exception):
    pass


def judge(module, library, ours):
    """The verdict on a file, in two words. ours.tensors are those of --lenient where that makes the difference."""
    if ours.refused and library.refused:
        return "refused"
    if ours.refused and library.without:
        return "refused"  # as a whole, for what the library refuses as a part
    if ours.refused:
        known(module.REFUSED, ours.refused, "weightfs refuses what the library reads")
        if ours.tensors:
            compare(module, library, ours)
        return "by the library alone"
    if library.refused and not ours.tensors and ours.warnings:
        return "by weightfs alone"  # which shows nothing, and says why
    if library.refused:
        known(module.ACCEPTED, library.refused, "weightfs reads what the library refuses")
        return "by weightfs alone"
    compare(module, library, ours)
    return "by both"


def known(table, reason, what):
    reason = " ".join(reason.split())
    for pattern, _why in table:
        if re.search(pattern, reason):
            return
    raise Failure(f"{what}: {reason}")


def compare(module, library, ours):
    for name in library.tensors.keys() - ours.tensors.keys():
        about = [w for w in ours.warnings if quoted(name) in w]
        known(module.REFUSED, "; ".join(about) or "without a word", f"weightfs lacks {name!r}")
    for name in ours.tensors.keys() - library.tensors.keys():
        known(module.ACCEPTED, library.without.get(name, "without a word"), f"the library lacks {name!r}")
    for name in library.tensors.keys() & ours.tensors.keys():
        same(name, library.tensors[name], ours.tensors[name])


def same(name, library, ours):
    if (library.dtype, library.shape) != (ours.dtype, ours.shape):
        raise Failure(f"{name!r} is {library.dtype} {library.shape} to the library, {ours.dtype} {ours.shape} to weightfs")
    theirs, mine = [t.data and t.data[:-1] + bytes([t.data[-1] & 0xFF >> library.spare]) for t in (library, ours)]
    if theirs is not None and mine is not None and theirs != mine:
        at = next((i for i, (a, b) in enumerate(zip(theirs, mine)) if a != b), "the end")
        raise Failure(f"{name!r}: {len(theirs)} bytes of the library, {len(mine)} of weightfs, which differ at {at}")


def quoted(name):
    """A name as weightfs has it in a warning: Go's %q, or cut short."""
    escapes = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    return '"' + "".join(escapes.get(c) or (c if c.isprintable() or c == "\ufffd" else f"\\x{ord(c):02x}" if c < "\x80" else f"\\u{ord(c):04x}") for c in name[:30])
