#!/usr/bin/env python3
"""Give odd and damaged files to the formats' own libraries and to weightfs, and compare the answers.

    python3 scripts/differential --weightfs PROGRAM [--seed N] [--inputs N] [--seconds N] [--keep DIRECTORY] FORMAT...

FORMAT is safetensors, gguf, numpy, onnx or torch, which runs where PyTorch is installed. Where both read a
file, names, shapes, types and bytes are equal. Where one alone reads it, the tables of the format's module
say why; whatever they do not have is a failure, whose input is kept. Input N of a seed is always the same:
--first N --inputs 1 makes it again."""
import argparse
import collections
import importlib
import os
import pathlib
import random
import sys
import tempfile
import time

import libraries
import weightfs
from judge import Failure, judge

BATCH = 50


def made(module, seed, n, directory):
    """Writes input n into the directory and gives the path that is to be read."""
    rng = random.Random(f"{module.__name__} {seed} {n}")
    directory.mkdir(parents=True)
    files = module.make(rng)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return directory / next(iter(files))


def batch(module, seed, numbers, verdicts, keep):
    failed = 0
    with tempfile.TemporaryDirectory(prefix="weightfs-differential-") as scratch:
        scratch = pathlib.Path(scratch)
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        paths = [made(module, seed, n, scratch / str(n)) for n in numbers]
        for n, path, library in zip(numbers, paths, libraries.answers(module.read, paths)):
            try:
                verdicts[judge(module, library, weightfs.answer(path, scratch / f"out-{n}"))] += 1
            except Failure as e:
                failed += 1
                kept = keep / f"{module.__name__}-{seed}-{n}"
                if not kept.exists():
                    path.parent.rename(kept)
                print(f"FAIL {module.__name__} seed {seed} input {n}: {e}\n     kept in {kept}", flush=True)
    return failed


def run(name, args):
    module, verdicts, began = importlib.import_module("odd_" + name), collections.Counter(), time.monotonic()
    failed, first, last = 0, args.first, args.first + args.inputs
    while first < last and (not args.seconds or time.monotonic() - began < args.seconds):
        numbers = range(first, min(first + BATCH, last))
        failed += batch(module, args.seed, numbers, verdicts, args.keep)
        first = numbers.stop
    told = ", ".join(f"{verdicts[v]} {v}" for v in sorted(verdicts))
    print(f"{'FAIL' if failed else 'ok  '} {name}.damaged: {first - args.first} inputs of seed {args.seed} ({told}), {failed} failures, {time.monotonic() - began:.1f} s")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weightfs", default="weightfs")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=0, help="of each format; without --seconds 1000")
    parser.add_argument("--seconds", type=float, default=0, help="for each format")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "weightfs-differential")
    parser.add_argument("formats", nargs="+")
    args = parser.parse_args()
    args.inputs = args.inputs or (sys.maxsize if args.seconds else 1000)
    args.keep.mkdir(parents=True, exist_ok=True)
    weightfs.PROGRAM = args.weightfs
    sys.exit(sum([run(name, args) for name in args.formats]) > 0)


main()
