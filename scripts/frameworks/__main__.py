"""Load checkpoints by each framework's own loader and through a mount of the same file, compare the
bytes, and print times and memory as a Markdown table."""
import argparse
import pathlib
import sys
import tempfile

from bench import Bench, compare, run
from table import markdown
from ways import SUITES

HERE = pathlib.Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(prog="python scripts/frameworks", description=__doc__)
    parser.add_argument("--weightfs", default="weightfs", help="the program")
    parser.add_argument("--venvs", type=pathlib.Path, required=True, help="directory of the environments torch, tensorflow and jax")
    parser.add_argument("--directory", default="/dev/shm", help="where the checkpoints are written for the time of the run")
    parser.add_argument("--mib", type=int, default=512, help="size of each checkpoint")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("suites", nargs="*", default=list(SUITES), help="which of " + " ".join(SUITES))
    options = parser.parse_args()
    if unknown := set(options.suites) - SUITES.keys():
        parser.error(f"no such suite: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="weightfs-frameworks-", dir=options.directory) as directory:
        run(options.venvs / "torch" / "bin" / "python", HERE / "make.py", directory, options.mib)
        bench = Bench(options.weightfs, options.venvs, pathlib.Path(directory))
        for suite in options.suites:
            bench.example(suite)
            if suite in ("safetensors", "tensorflow", "jax"):
                bench.odd(suite)
        for number in range(options.rounds):
            for suite in options.suites:
                bench.round(suite, number)
        for suite in options.suites:
            compare(suite, bench.results[suite])
    print(markdown(bench, options))


if __name__ == "__main__":
    main()
