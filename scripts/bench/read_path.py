"""By the size of one tensor, and by the number of tensors: every way of reading, every peer."""
import os
import pathlib
from dataclasses import dataclass

import inputs
import mounts
from bench import SECONDS_A_LARGE_READ, GiB, MiB
from inputs import Tensor
from rounds import READS, beside_peers, find, memory, memory_before, play, read_step, reads, repeat

SIZES = {"16 MiB": 16 * MiB, "256 MiB": 256 * MiB, "1 GiB": GiB, "4 GiB": 4 * GiB}
COUNTS = {"100": 100, "20,000": 20_000, "200,000": 200_000}
HEADLINES = ("1 GiB", "200,000")
BESIDE_MANY = 64 * MiB  # the tensor that is read where there are many

# The peers, with the archive that suits each best.
PEERS = [(inputs.stored_zip, [mounts.fuse_zip]), (inputs.tar, [mounts.ratarmount, mounts.archivemount])]


@dataclass
class Subject:
    """A checkpoint, its tensors as files, which the peers serve, and the tensor that is read."""
    table: str
    shard: pathlib.Path
    tree: pathlib.Path
    tensor: Tensor
    rounds: int
    limit: float = None  # seconds a read

    @property
    def file(self):
        return f"{self.tensor.path}.raw"


def wanted(bench, labels):
    """The labels of this run, each with the number of rounds."""
    return [(n, bench.headline if n in HEADLINES else bench.others) for n in labels if n in HEADLINES or not bench.quick]


def size(bench):
    for label, rounds in wanted(bench, SIZES):
        d = bench.directory("size")
        tensor = Tensor("model.weight", "F32", bench.bytes(SIZES[label]) // 4)
        shard = inputs.safetensors(d / "model.safetensors", [tensor])
        (d / "tree").mkdir()
        os.link(shard, d / "tree" / f"{tensor.path}.raw")  # longer by the header, and needs no memory
        limit = SECONDS_A_LARGE_READ if SIZES[label] > GiB else None
        subject = Subject(f"one tensor of {label}", shard, d / "tree", tensor, rounds, limit)
        large = []
        if label in HEADLINES:
            folios = inputs.safetensors(d / "folios.safetensors", [tensor], inputs.LARGE)
            large.append(mounts.Plain(folios, name="pread, large folios"))
        compare(bench, subject, mounts.Plain(shard), lambda limit: [*reads(limit), memory], large)
        if not bench.quick:
            libraries(bench, subject)
        bench.remove(d)


def count(bench):
    for label, rounds in wanted(bench, COUNTS):
        if label in HEADLINES:
            rounds = min(rounds, 1 if bench.quick else 3)  # a round walks the tree four times, a minute in all
        d = bench.directory("count")
        tensor = Tensor("lm_head.weight", "F32", bench.bytes(BESIDE_MANY) // 4)
        tensors = [*inputs.experts(bench.count(COUNTS[label]) - 1), tensor]
        shard, tree = inputs.safetensors(d / "model.safetensors", tensors), inputs.tree(d / "tree", tensors)
        subject = Subject(f"{label} tensors", shard, tree, tensor, rounds)
        walk = [memory_before, find(len(tensors))]
        compare(bench, subject, mounts.Plain(shard, tree), lambda limit: walk if bench.quick else [*walk, *reads(limit), memory],
                beside=[lambda round: safe_open(bench, subject, round)])
        bench.remove(d)


def compare(bench, subject, plain, steps, also=(), beside=()):
    """The headline pair in rounds of its own; then each slow peer beside the plain pread."""
    archive = subject.tree.with_suffix(".archive")
    headline = [plain, *also, ours(bench, subject)]
    if not bench.lacks("mksquashfs", "squashfuse_ll"):
        headline.append(mounts.squashfuse(inputs.squashfs(archive, subject.tree), subject.file))
    bench.say(f"{subject.table}: {', '.join(s.name for s in headline)}")
    for round in repeat(subject.rounds):
        play(bench, subject.table, headline, round, steps(subject.limit), beside)
    bench.remove(archive)
    for pack, makers in [] if bench.quick else PEERS:
        pack(archive, subject.tree)
        for peer in (make(archive, subject.file) for make in makers):
            if not bench.lacks(str(peer.command[0])):
                beside_peers(bench, subject.table, plain, peer, steps)
        bench.remove(archive)


def ours(bench, subject):
    return mounts.weightfs(bench, subject.shard, subject.file, "--no-index")


def libraries(bench, subject):
    """The ways to a NumPy array, beside the plain pread; through the mount too."""
    bench.say(f"{subject.table}: libraries")
    once = [read_step(label, job, flags | {"passes": 1}) for label, job, flags in READS if label in ("1 MiB", "random 4 KiB")]
    for round in repeat(bench.others):
        play(bench, subject.table, [mounts.Plain(subject.shard)], round, once)
        for library in (memmap, safe_open, fromfile, through_mount):
            library(bench, subject, round)


def memmap(bench, subject, round):
    found = bench.python("memmap", subject.shard)
    add(bench, subject, "numpy.memmap", round, found, open="mount", first="first byte", sum="mmap sum cold", random="random 4 KiB cold")


def safe_open(bench, subject, round):
    found = bench.python("safe_open", subject.shard, subject.tensor.name)
    add(bench, subject, "safetensors.safe_open", round, found, open="mount", first="first byte", array="array")


def fromfile(bench, subject, round):
    add(bench, subject, "numpy.fromfile", round, bench.python("fromfile", subject.shard), array="array")


def through_mount(bench, subject, round):
    with ours(bench, subject).open(bench) as place:
        add(bench, subject, "weightfs", round, bench.python("fromfile", place.file), array="array")


UNITS = {"open": "s", "first": "s", "sum": "B/s", "random": "1/s", "array": "B/s"}


def add(bench, subject, system, round, found, **measures):
    for key, measure in measures.items():
        bench.samples.add(subject.table, system, measure, round, found[key], UNITS[key])
