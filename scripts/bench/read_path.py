"""By the size of one tensor, and by the number of tensors: every way of reading, every peer."""
import os

import inputs
import mounts
from bench import GiB, MiB
from inputs import Tensor
from rounds import beside_peers, find, memory, memory_before, numbers, play, reads, repeat

SIZES = {"16 MiB": 16 * MiB, "256 MiB": 256 * MiB, "1 GiB": GiB, "4 GiB": 4 * GiB}
COUNTS = {"100": 100, "20,000": 20_000, "200,000": 200_000}
HEADLINE = ("1 GiB", "200,000")
BESIDE_MANY = 64 * MiB  # the tensor that is read where there are many


def size(bench):
    for label, n in SIZES.items():
        if label in HEADLINE or not bench.quick:
            one_tensor(bench, f"one tensor of {label}", bench.bytes(n), bench.headline if label in HEADLINE else bench.others)


def one_tensor(bench, table, n, rounds):
    d = bench.directory("size")
    shard = inputs.safetensors(d / "model.safetensors", [Tensor("model.weight", "F32", n // 4)])
    tree = d / "tree"
    tree.mkdir()
    os.link(shard, tree / "model.weight.raw")  # for the archives; longer by the header, and no more memory
    compare(bench, table, mounts.Plain(shard), shard, tree, "model.weight.raw", rounds, lambda limit: [*reads(limit), memory])
    if not bench.quick:
        libraries(bench, table, shard, "model.weight.raw", "model.weight")
    bench.remove(d)


def count(bench):
    for label, n in COUNTS.items():
        if label in HEADLINE or not bench.quick:
            many_tensors(bench, f"{label} tensors", bench.count(n), bench.headline if label in HEADLINE else bench.others)


def many_tensors(bench, table, n, rounds):
    d = bench.directory("count")
    tensors = [*inputs.experts(n - 1), Tensor("lm_head.weight", "F32", bench.bytes(BESIDE_MANY) // 4)]
    shard = inputs.safetensors(d / "model.safetensors", tensors)
    tree = inputs.tree(d / "tree", tensors)
    steps = lambda limit: [memory_before, find(n), *reads(limit), memory]
    compare(bench, table, mounts.Plain(shard, tree), shard, tree, "lm_head.weight.raw", rounds, steps,
            beside=[lambda *a: safe_open(*a, shard, "lm_head.weight")])
    bench.remove(d)


def compare(bench, table, plain, shard, tree, file, rounds, steps, beside=()):
    """The headline pair in rounds of its own, with an archive of the same files; then each slow peer beside the plain pread."""
    ours = mounts.weightfs(bench, shard, file, "--no-index")
    archive = tree.with_suffix(".archive")
    headline = [plain, ours]
    if not bench.lacks("mksquashfs", "squashfuse_ll"):
        headline.append(mounts.squashfuse(inputs.squashfs(archive, tree), file))
    bench.say(f"{table}: {', '.join(s.name for s in headline)}")
    for round in repeat(rounds):
        play(bench, table, headline, round, steps(None), beside)
    bench.remove(archive)
    if bench.quick:
        return
    for make, pack in PEERS:
        peer = make(archive, file)
        if not bench.lacks(str(peer.command[0])):
            pack(archive, tree)
            beside_peers(bench, table, plain, peer, steps)
            bench.remove(archive)


# Each with the archive that suits it best.
PEERS = [(mounts.fuse_zip, inputs.stored_zip), (mounts.ratarmount, inputs.tar), (mounts.archivemount, inputs.tar)]


def libraries(bench, table, shard, file, name):
    """The ways to a NumPy array, beside the plain pread; through the mount too."""
    bench.say(f"{table}: libraries")
    for round in repeat(bench.others):
        play(bench, table, [mounts.Plain(shard)], round, reads()[:2])
        for library in (memmap, safe_open, fromfile):
            library(bench, table, round, shard, name)
        through_mount(bench, table, round, mounts.weightfs(bench, shard, file, "--no-index"))


def memmap(bench, table, round, shard, _):
    found = bench.python("memmap", shard)
    add(bench, table, "numpy.memmap", round, found, open="mount", first="first byte", sum="mmap sum cold", random="random 4 KiB cold")


def safe_open(bench, table, round, shard, name):
    found = bench.python("safe_open", shard, name)
    add(bench, table, "safetensors.safe_open", round, found, open="mount", first="first byte", array="array")


def fromfile(bench, table, round, shard, _):
    add(bench, table, "numpy.fromfile", round, bench.python("fromfile", shard), array="array")


def through_mount(bench, table, round, ours):
    with ours.open(bench) as place:
        add(bench, table, "weightfs", round, bench.python("fromfile", place.file), array="array")


UNITS = {"open": "s", "first": "s", "sum": "B/s", "random": "1/s", "array": "B/s"}


def add(bench, table, system, round, found, **measures):
    for key, measure in measures.items():
        bench.samples.add(table, system, measure, round, found[key], UNITS[key])
