"""What was measured, and what is made of it: medians, and ratios of what ran in the same round."""
import json
import math
import statistics
from dataclasses import asdict, dataclass

GAVE_UP = math.inf  # a time: no answer within bench.PATIENCE
BETTER_SMALL = {"s", "B"}  # units; of "B/s" and "1/s" more is better


@dataclass(frozen=True)
class Sample:
    table: str
    system: str
    measure: str
    round: int
    value: float
    unit: str


class Samples:
    def __init__(self):
        self.all = []

    def add(self, table, system, measure, round, value, unit):
        self.all.append(Sample(table, system, measure, round, float(value), unit))

    def of(self, table, system, measure):
        """The samples by round."""
        return {s.round: s for s in self.all if (s.table, s.system, s.measure) == (table, system, measure)}

    def median(self, table, system, measure):
        values = [s.value for s in self.of(table, system, measure).values()]
        return statistics.median(values) if values else None

    def ratios(self, table, ours, theirs):
        """How many times as good ours was as theirs, round by round; each is (system, measure)."""
        a, b = self.of(table, *ours), self.of(table, *theirs)
        return [better(a[r], b[r]) for r in sorted(a.keys() & b.keys())]

    def tables(self):
        return list(dict.fromkeys(s.table for s in self.all))

    def dump(self):
        return [asdict(s) | {"value": None if s.value == GAVE_UP else s.value} for s in self.all]

    def load(self, file):
        for row in json.loads(file.read_text())["samples"]:
            self.all.append(Sample(**row | {"value": GAVE_UP if row["value"] is None else row["value"]}))


def better(ours, theirs):
    if ours.unit in BETTER_SMALL:
        return theirs.value / ours.value if ours.value else math.inf
    return ours.value / theirs.value if theirs.value else math.inf


def line(points):
    """The straight line through (x, y) by least squares of relative errors, since x spans decades: its height at 0, its
    slope, and how far the farthest point is from it, as a part of the line."""
    w = [(x, y, 1 / y**2) for x, y in points if y]
    n, sx, sy = (sum(f(x, y) * k for x, y, k in w) for f in (lambda x, y: 1, lambda x, y: x, lambda x, y: y))
    sxx, sxy = (sum(f(x, y) * k for x, y, k in w) for f in (lambda x, y: x * x, lambda x, y: x * y))
    slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
    base = (sy - slope * sx) / n
    return base, slope, max(abs(y / (base + slope * x) - 1) for x, y, _ in w)
