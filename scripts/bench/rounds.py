"""Rounds: what is compared is mounted at once and measured in turn, each step of one beside the same step of the others,
so that a ratio is taken of two moments that lie side by side."""
import contextlib
import itertools
import subprocess
import time

from bench import SECONDS_A_PEER, SECONDS_A_READ
from mounts import TimedOut
from samples import GAVE_UP

KIB = 1 << 10
OURS = ("weightfs", "pread")  # a fault of these ends the run; one of a peer is noted

# label, job of the reader, its flags; each is made cold, and again warm where it has two passes
READS = [
    ("128 KiB", "read", dict(block=128 * KIB, passes=2)),
    ("1 MiB", "read", dict(block=1024 * KIB, passes=2)),
    ("mmap sum", "map", {}),
    ("random 4 KiB", "random", dict(count=1000, passes=2)),
    ("20 touches", "touch", dict(count=20)),
]

numbers = itertools.count()


def repeat(times, budget=None):
    """Numbers of rounds: so many, or as many as begin within the budget of seconds, but always one."""
    began = time.monotonic()
    for done in range(times):
        if done and budget and time.monotonic() - began > budget:
            return
        yield next(numbers)


def play(bench, table, systems, round, steps, beside=()):
    """One round. What is beside measures something that is no file system, in the same round."""
    with contextlib.ExitStack() as stack:
        places = {}
        for s in systems:
            with guard(bench, table, s.name, round, places, "mount", "s"):
                places[s.name] = place = stack.enter_context(s.open(bench))
                if place.server:
                    bench.samples.add(table, s.name, "mount", round, place.mount, "s")
                bench.samples.add(table, s.name, "first byte", round, place.first, "s")
        for step, name in itertools.product(steps, list(places)):
            if name in places:
                with guard(bench, table, name, round, places, *step.gives):
                    for measure, value, unit in step(bench, places[name]):
                        bench.samples.add(table, name, measure, round, value, unit)
        for measure in beside:
            measure(round)


@contextlib.contextmanager
def guard(bench, table, name, round, places, measure, unit):
    """A peer that gives no answer is out of the round."""
    try:
        yield
    except (TimedOut, subprocess.TimeoutExpired):
        if name.startswith(OURS):
            raise
        bench.samples.add(table, name, measure, round, GAVE_UP if unit == "s" else 0, unit)
        bench.say(f"{table}: {name}: {measure}: no answer")
        places.pop(name, None)
    except (RuntimeError, OSError) as e:
        if name.startswith(OURS):
            raise
        bench.note(f"{table}: {name} failed: {e}")
        places.pop(name, None)


def step(measure, unit):
    """Marks a step with what it is called when it gives no answer."""
    def mark(f):
        f.gives = (measure, unit)
        return f
    return mark


def reads(limit=None):
    return [read_step(*r, limit) for r in READS]


def read_step(label, job, flags, limit=None):
    streams = job in ("read", "map")
    unit = "B/s" if streams else "1/s"

    @step(label + " cold", unit)
    def run(bench, place):
        passes = bench.read(job, place.file, drop=bool(place.server), limit=limit, **flags)
        for state, p in zip(("cold", "warm"), passes):
            yield f"{label} {state}", p["bytes" if streams else "ops"] / p["seconds"], unit
    return run


def find(expected):
    """Walks the tree twice: for its names, and for its sizes."""
    @step("find", "s")
    def run(bench, place):
        if not place.tree:
            return
        for measure, tests in (("find", []), ("find -size", ["-size", "+0"])):
            seconds, out = bench.timed("sh", "-c", 'find "$@" | wc -l', "sh", place.tree, *tests, "-type", "f")
            if seconds != GAVE_UP and int(out) != expected:
                raise RuntimeError(f"{measure} found {int(out)} files of {expected}")
            yield measure, seconds, "s"
            if seconds == GAVE_UP:
                return
    return run


@step("anon before", "B")
def memory_before(bench, place):
    if place.server:
        yield "anon before", place.memory()[0], "B"


@step("anon", "B")
def memory(bench, place):
    if place.server:
        anon, rss = place.memory()
        yield "anon", anon, "B"
        yield "RSS", rss, "B"


def beside_peers(bench, table, plain, peer, steps):
    """A slow peer beside the plain pread: fewer rounds when they are long."""
    bench.say(f"{table}: {peer.name}")
    for round in repeat(bench.others, budget=SECONDS_A_PEER):
        play(bench, table, [plain, peer], round, steps(SECONDS_A_READ))
