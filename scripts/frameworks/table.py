"""The results as a Markdown table."""
import statistics

from ways import SUITES

HEAD = ["", "way", "call returns", "every page read", "÷ own loader", "peak resident", "of it own memory"]


def markdown(bench, options):
    lines = [line(HEAD), line(["---", "---"] + ["---:"] * (len(HEAD) - 2))]
    for name in options.suites:
        lines += rows(name, bench.results[name])
    return "\n".join(lines + ["", notes(bench, options)])


def rows(name, results):
    own = [result["read"] for result in results[next(iter(SUITES[name].own))]]
    title = SUITES[name].title
    for way in order(name):
        runs = results[way]
        ratio = statistics.median(result["read"] / base for result, base in zip(runs, own))
        yield line([title, way, seconds(runs, "load"), seconds(runs, "read"), f"{ratio:.2f}", mebibytes(runs, "peak"), mebibytes(runs, "own")])
        title = ""


def order(name):
    return list(SUITES[name].own) + [f"{way}, {state}" for way in SUITES[name].mounted for state in ("first", "again")]


def line(cells):
    return "| " + " | ".join(cells) + " |"


def seconds(runs, key):
    return f"{statistics.median(run[key] for run in runs):.3f} s"


def mebibytes(runs, key):
    return f"{statistics.median(run[key] for run in runs):.0f} MiB"


def notes(bench, options):
    versions = ", ".join(sorted({version for name in options.suites for version in bench.versions(name)}))
    return (
        f"{versions}. About {options.mib} MiB each, in {options.directory}; medians of {options.rounds} rounds, every way a process of its own and all ways in turn in "
        "each round; the ratio is the median of the rounds' ratios. \"first\": just mounted, nothing in the kernel's cache; \"again\": the next process. "
        "Memory is what loading added after the imports: own memory is anonymous, the rest of the peak is shared with the page cache. "
        f"The server's own memory stayed below {bench.server // 1024 + 1} MiB.")
