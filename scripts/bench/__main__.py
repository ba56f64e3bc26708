"""Measures weightfs beside what else shows the bytes of a checkpoint, and prints Markdown. Started by scripts/bench.sh.

sections: size, count, lazy, shards, formats, index, user, walk, growth"""
import argparse
import json
import pathlib
import signal
import sys
import traceback

import claims
import endurance
import opening
import read_path
import report
import views
from bench import Bench

SECTIONS = {
    "size": read_path.size, "count": read_path.count, "lazy": opening.lazy, "shards": opening.shards, "formats": views.formats,
    "index": opening.index, "user": endurance.user, "walk": endurance.walk, "growth": opening.growth,
}
QUICK = ("size", "count", "lazy", "shards", "formats", "user")


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, leave)
    if args.write and not report.has_marks(args.write):
        sys.exit(f"{args.write}: the marks {report.BEGIN} and {report.END} are not there")
    bench, host = Bench(args), report.host()
    for name in args.only or (QUICK if args.quick else SECTIONS):
        measure(bench, name)
    text = report.markdown(bench, host)
    print(text)
    if args.json:
        args.json.write_text(json.dumps({"host": host, "notes": bench.notes, "samples": bench.samples.dump()}, indent=1))
    if args.write:
        report.write(args.write, text)
    broken = claims.broken(bench)
    for b in broken:
        print("FAIL: below 60 % of the claim:", b, file=sys.stderr)
    sys.exit(bool(broken or bench.failed))


def leave(*_):
    """Unmounts on the way out, for which one signal is enough."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def measure(bench, section):
    """A section that fails spoils neither the others nor the figures."""
    try:
        SECTIONS[section](bench)
    except Exception as e:
        traceback.print_exc()
        bench.failed.append(section)
        bench.note(f"section {section} ended early: {type(e).__name__}: {e}")


def arguments():
    parser = argparse.ArgumentParser(prog="bench.sh", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--quick", action="store_true", help="what the README claims alone, in two minutes")
    parser.add_argument("--only", action="append", choices=SECTIONS, metavar="SECTION", help="this section (may be given again)")
    parser.add_argument("--write", nargs="?", const="README.md", type=pathlib.Path, metavar="FILE",
                        help="also put the tables between the marks <!-- bench --> and <!-- /bench --> of README.md")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write every sample to this file")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of everything (7 of what is claimed, else 5)")
    parser.add_argument("--scale", type=float, default=1, metavar="X", help="inputs so many times as large: to try the script out")
    for name in ("weightfs", "reader", "work"):
        parser.add_argument("--" + name, required=True, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--gemma", type=pathlib.Path, help=argparse.SUPPRESS)
    return parser.parse_args()


main()
