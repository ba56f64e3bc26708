"""The Markdown."""
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib import metadata

import claims
import growing
from bench import GB, MB
from samples import GAVE_UP

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"

# The columns of a table; and of each the measure of the plain pread that its ratio is taken with.
COLUMNS = {
    "mount": None, "first byte": None, "find": "find", "find -size": "find -size",
    "128 KiB cold": "128 KiB cold", "128 KiB warm": "128 KiB warm", "1 MiB cold": "1 MiB cold", "1 MiB warm": "1 MiB warm",
    "mmap sum cold": "1 MiB cold", "array": "1 MiB cold", "random 4 KiB cold": "random 4 KiB cold", "random 4 KiB warm": "random 4 KiB warm",
    "20 touches cold": "20 touches cold", "anon before": None, "anon": None, "RSS": None, "most anon": None, "anon growth": None,
    "opening": None, "cold": None, "all tensors": None, "seconds": None, "Q4_K": None, "Q6_K": None, "Q8_0": None, "BF16": None,
}
TITLES = {"array": "NumPy array", "anon before": "RssAnon, not walked", "anon": "RssAnon", "20 touches cold": "20 mmap touches",
          "mmap sum cold": "mmap sum"}

NOTES = """\
Reading in GB/s or operations a second; in parentheses the ratio to the plain pread(2) of the shard in the same round, and for `find` to the same
tree as files on tmpfs. Cold: the pages of the mount dropped from the kernel's cache, the shard on tmpfs in pages of 4 KiB (a
row says what large folios would give, which tmpfs keeps of what is written in large steps); warm: the same read again. A file of 4 GiB is
read for a second at most, one through a slow peer for 0.3 s. A mount lasts until `stat` of the last tensor answers, and for a library the
opening of the file; the first byte counts from the same moment. weightfs runs with `--no-index` where nothing else is said."""


def host():
    """Where and with what this was measured."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    return (f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} × {model}, {memory / GB:.0f} GB, Linux {platform.release()}, as {who}; "
            f"load average at the start {os.getloadavg()[0]:.1f}; {', '.join(versions())}")


def versions():
    for package in ("squashfuse", "fuse-zip", "archivemount"):
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout:
            yield f"{package} {done.stdout.partition('-')[0]}"
    for package in ("ratarmount", "numpy", "safetensors", "gguf", "ml_dtypes"):
        try:
            yield f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            pass
    yield f"Python {sys.version.split()[0]}"


def markdown(bench, host):
    samples = bench.samples
    growth = [t for t in samples.tables() if t.startswith(growing.PREFIX)]
    parts = [f"By `scripts/bench.sh` on {host}. Medians; a ratio is the median over rounds of what ran side by side, and more is better."]
    if claims.measured(samples):
        parts.append(claims.markdown(samples))
    parts += ["<details><summary>Every figure</summary>", NOTES]
    parts += [f"#### {t[0].upper()}{t[1:]}\n\n{table(samples, t)}" for t in samples.tables() if t not in growth]
    parts += ["\n".join(f"- {n}" for n in bench.notes), "</details>"]
    parts += [growing.markdown(samples, growth)] if growth else []
    return "\n\n".join(p for p in parts if p)


def table(samples, name):
    found = [s for s in samples.all if s.table == name]
    systems = dict.fromkeys(s.system for s in found)
    columns = [c for c in COLUMNS if any(s.measure == c for s in found)]
    rows = ["| | " + " | ".join(TITLES.get(c, c) for c in columns) + " | rounds |",
            "|---" * (len(columns) + 2) + "|"]
    for s in systems:
        rounds = max(len(samples.of(name, s, c)) for c in columns)
        rows.append(f"| {s} | " + " | ".join(cell(samples, name, s, c) for c in columns) + f" | {rounds} |")
    return "\n".join(rows)


def cell(samples, table, system, measure):
    found = list(samples.of(table, system, measure).values())
    if not found:
        return "–"
    text = quantity(samples.median(table, system, measure), found[0].unit)
    base = COLUMNS[measure]
    if text[0] == ">" or not base or (system, measure) == ("pread", base):
        return text
    return text + median_of(samples.ratios(table, (system, measure), ("pread", base)))


def median_of(ratios):
    return f" ({claims.number(statistics.median(ratios))})" if ratios else ""


def quantity(x, unit):
    if x == GAVE_UP or x == 0 and unit != "B":
        return "> 60 s"
    if unit == "s":
        return f"{x:.1f} s" if x >= 10 else f"{x:.2f} s" if x >= 1 else f"{x * 1e3:.0f} ms" if x >= 0.01 else f"{x * 1e3:.2g} ms"
    if unit == "B/s":
        return f"{x / GB:.2f}"
    if unit == "B":
        return f"{x / MB:.0f} MB"
    return f"{x:,.0f}" if x < 10_000 else f"{x / 1000:,.0f} k"


def write(file, text):
    """Puts the text between the marks."""
    before, _, rest = file.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    file.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def has_marks(file):
    text = file.read_text()
    return BEGIN in text and END in text.partition(BEGIN)[2]
