"""Load a checkpoint once, in a process of its own, and print what it took as JSON:
python once.py SUITE own|mounted|unmeasured WAY PATH"""
import json
import pathlib
import sys
import time
import zlib

from ways import SUITES

PAGE = 4096


def memory():
    """Kilobytes of this process: the most that were resident since reset_peak, those that are its own."""
    fields = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return [int(fields[key].split()[0]) for key in ("VmHWM", "RssAnon")]


def reset_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def measure(suite, way, path):
    suite.prepare()
    reset_peak()
    peak_before, own_before = memory()
    begin = time.perf_counter()
    tensors = way(path)
    loaded = time.perf_counter()
    for tensor in tensors.values():
        suite.bytes_of(tensor)[::PAGE].sum()
    touched = time.perf_counter()
    peak, own = memory()
    sums = {name: zlib.crc32(suite.bytes_of(tensor)) for name, tensor in tensors.items()}
    return {"load": loaded - begin, "read": touched - begin, "peak": (peak - peak_before) >> 10, "own": max(0, own - own_before) >> 10, "sums": sums}


def main(suite, kind, way, path):
    suite = SUITES[suite]
    print(json.dumps(measure(suite, getattr(suite, kind)[way], pathlib.Path(path))))


if __name__ == "__main__":
    main(*sys.argv[1:])
