"""What the README claims, and whether it holds. claims.json is the only place where the numbers stand."""
import json
import statistics
from dataclasses import dataclass

from bench import MB, SCRIPTS

ENOUGH = 0.6  # of what is claimed: below it something is broken, above it the machine may be loaded


@dataclass
class Claim:
    says: str
    table: str
    ours: list
    theirs: list = None
    at_least: float = None  # how many times as good as theirs
    at_most: float = None  # bytes

    def values(self, samples):
        """Ratios by round, or ours itself where there is a limit and no one to compare with."""
        if self.theirs:
            return samples.ratios(self.table, self.ours, self.theirs)
        return [s.value for s in samples.of(self.table, *self.ours).values()]

    def text(self, value):
        return number(value) if self.theirs else f"{value / MB:.1f}"

    def bound(self):
        return f"≥ {self.at_least:g}" if self.theirs else f"≤ {self.at_most / MB:g}"

    def part(self, values):
        """How much of the claim is reached; 1 and more is all."""
        found = statistics.median(values)
        if self.theirs:
            return found / self.at_least
        return self.at_most / found if found > 0 else 1


def load():
    return [Claim(**c) for c in json.loads((SCRIPTS / "claims.json").read_text())]


def measured(samples):
    """The claims about which this run knows something, with the values."""
    return [(c, v) for c in load() if (v := c.values(samples))]


def markdown(samples):
    rows = ["| what | target | measured | range | rounds | |", "|---|---|---|---|---|---|"]
    for claim, values in measured(samples):
        reached = "" if claim.part(values) >= 1 else "not reached"
        low, median, high = (claim.text(v) for v in (min(values), statistics.median(values), max(values)))
        rows.append(f"| {claim.says} | {claim.bound()} | **{median}** | {low} to {high} | {len(values)} | {reached} |")
    return "\n".join(rows)


def number(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def broken(bench):
    """The claims of which this run reached too little."""
    found = measured(bench.samples)
    if not found:
        return ["no claim was measured"]
    return [f"{c.says}: {c.text(statistics.median(v))}, claimed {c.bound()}" for c, v in found if c.part(v) < ENOUGH]
