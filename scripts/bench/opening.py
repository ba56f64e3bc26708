"""How long a checkpoint takes to open: against the libraries, lazily, with an index kept, and as it grows."""
import re
import time

import growing
import inputs
import mounts
from bench import GiB
from rounds import memory_before, play, repeat, step

GROWING_TENSORS = (1_000, 10_000, 100_000, 1_000_000)
GROWING_SHARDS = (1, 10, 100, 1_000)


def lazy(bench):
    """All tensors of a checkpoint as numpy.memmap, mounting included, against reading the file into memory."""
    table = "1 GiB in 300 tensors, opened lazily"
    shard = inputs.safetensors(bench.directory("lazy") / "model.safetensors", list(inputs.layers(bench.bytes(GiB), 300, "F32")))
    total = sum(t.nbytes for t in inputs.layers(bench.bytes(GiB), 300, "F32"))
    bench.say(table)
    for round in repeat(bench.headline):
        bench.samples.add(table, "weightfs", "all tensors", round, load_lazily(bench, shard, total), "s")
        bench.samples.add(table, "numpy.fromfile", "all tensors", round, bench.python("fromfile", shard)["seconds"], "s")
    bench.remove(shard.parent)


def load_lazily(bench, shard, total):
    dir = bench.directory("lazily")
    try:
        return bench.python("load_lazily", bench.weightfs, shard, dir, total)["seconds"]
    finally:
        mounts.unmount(dir)


def shards(bench):
    table = "92,000 tensors in 163 shards"
    tensors = list(inputs.experts(bench.count(92_000)))
    index = inputs.sharded(bench.directory("shards") / "model", tensors, 163)
    parts = sorted(index.parent.glob("*.safetensors"))
    bench.say(table)
    for round in repeat(bench.others):
        play(bench, table, [ours(bench, index, tensors)], round, [memory_before])
        bench.samples.add(table, "safetensors.safe_open", "mount", round, bench.python("open_all", *parts)["seconds"], "s")
    bench.remove(index.parent.parent)


def ours(bench, source, tensors, *flags):
    return mounts.weightfs(bench, source, f"{tensors[-1].path}.raw", *flags or ["--no-index"])


def index(bench):
    """Opening, and mounting as a whole, with an index that an earlier mount kept."""
    d = bench.directory("index")
    million, many = list(inputs.short_names(bench.count(1_000_000))), list(inputs.experts(bench.count(200_000)))
    torch = list(inputs.experts(bench.count(100_000)))
    with_index(bench, "1,000,000 tensors, safetensors", lambda: inputs.safetensors(d / "million.safetensors", million), million)
    with_index(bench, "100,000 tensors, PyTorch", lambda: inputs.torch_zip(d / "torch.pt", len(torch)), torch)
    with_index(bench, "200,000 tensors, safetensors", lambda: inputs.safetensors(d / "many.safetensors", many), many)
    bench.remove(d)


def with_index(bench, table, make, tensors):
    source = make()
    without, kept = ours(bench, source, tensors, "--no-index", "-v"), ours(bench, source, tensors, "-v")
    kept.name = "weightfs, index kept"
    bench.say(table)
    if keep(bench, kept):
        for round in repeat(bench.others):
            play(bench, table, [without], round, [opening])
            play(bench, table, [kept], round, [opening_kept])
    else:
        bench.note(f"{table}: no index was kept")
    source.unlink()


def keep(bench, system):
    """Mounts once, until the index lies in the cache and grows no more."""
    before = seen = cached(bench)
    with system.open(bench):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and (seen == before or seen != cached(bench)):
            seen = cached(bench)
            time.sleep(0.5)
    return seen != before


def cached(bench):
    return {(f, f.stat().st_size) for f in (bench.work / "cache").rglob("*") if f.is_file()}


TOOK = re.compile(r"\bopened\b.*\btook=((?:[\d.]+(?:h|ms|µs|ns|m|s))+)")


@step("opening", "s")
def opening(bench, place):
    """What the server says of itself: detect, parse and tree alone."""
    log = (bench.work / "server.log").read_text()
    yield "opening", seconds(TOOK.search(log)[1]), "s"


@step("opening", "s")
def opening_kept(bench, place):
    if "from_index=true" not in (bench.work / "server.log").read_text():
        raise RuntimeError("the index that was kept is not used")
    yield from opening(bench, place)


def seconds(duration):
    """Of a duration as Go writes it: 1m2.5s, 310ms, 80µs."""
    unit = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
    return sum(float(n) * unit[u] for n, u in re.findall(r"([\d.]+)(h|ms|µs|ns|m|s)", duration))


def growth(bench):
    d = bench.directory("growth")
    for n in GROWING_TENSORS:
        tensors = list(inputs.short_names(bench.count(n)))
        grow(bench, growing.TENSORS, n, inputs.safetensors(d / "model.safetensors", tensors), tensors)
    for n in GROWING_SHARDS:
        tensors = list(inputs.short_names(n * growing.TENSORS_A_SHARD))
        made = inputs.sharded(d / "set", tensors, n)
        grow(bench, growing.SHARDS, n, made, tensors)
        bench.remove(d / "set")
    bench.remove(d)


def grow(bench, table, n, source, tensors):
    """The system is named for the number."""
    bench.say(f"{table}: {n:,}")
    for round in repeat(bench.others):
        with ours(bench, source, tensors).open(bench) as place:
            bench.samples.add(table, f"{n:,}", "mount", round, place.mount, "s")
            bench.samples.add(table, f"{n:,}", "anon before", round, place.memory()[0], "B")
