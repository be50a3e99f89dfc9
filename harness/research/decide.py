"""Kept or not: a pure function of log time ratios by round. Needs no torch, reads nothing.

The unit is the round, one (candidate, incumbent) pair of timings over all shapes on the same inputs. For shape s and
round r, d[r][s] = ln(candidate / incumbent) and g[r] = mean over s of d[r][s], exactly the change of the geometric
mean's logarithm. The spread over shapes is never taken for noise: a change of one shape alone would drown in it.
"""
from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness import stats
from harness.results import Run, geomean

CLOCK_MOVED = 1.05  # the two files of a round ran at clocks further apart than this: the round says nothing


@dataclass(frozen=True)
class Rule:
    """Fractions of a time. margin: the least change of the geometric mean that counts, at least min_gain and what an
    A/A run shows; aa: the same by shape."""

    margin: float = 0.003
    aa: dict[str, float] = field(default_factory=dict)
    shape_loss: float = 0.03
    allow_shape_loss: bool = False
    shrink_lines: int = 20  # a file that is shorter by so many is kept where it is no slower
    price_lines: int = 100  # more added lines than this must buy price_gain
    price_gain: float = 0.01


@dataclass
class Rounds:
    """d: one dictionary of log ratios by shape for each round; pair: which pair of processes each round ran in."""

    d: list[dict[str, float]]
    pair: list[int]
    dropped: int = 0

    @property
    def g(self) -> list[float]:
        return [statistics.fmean(x.values()) for x in self.d]

    def shape_means(self) -> dict[str, float]:
        return {s: statistics.fmean(x[s] for x in self.d) for s in self.d[0]} if self.d else {}


@dataclass
class Decision:
    verdict: str  # kept, same, slower
    reason: str
    gain: float  # median of g
    ci_hi: float  # upper end of the one-sided 95 % interval of the mean of g
    wins: int
    worst: tuple[str, float]  # the shape with the largest log ratio
    extend: bool = False  # close enough to kept that four more rounds are worth their time


def rounds_of(runs: Sequence[Run], candidate: str, incumbent: str, per_pair: int) -> Rounds:
    """The rounds in which both files (by name) passed every shape; those with a moved clock are dropped and counted."""
    found: dict[int, dict[str, dict[str, Run]]] = {}
    for r in runs:
        if r.ok and r.samples_ns and r.file in (candidate, incumbent):
            found.setdefault(r.round, {}).setdefault(r.case, {})[r.file] = r
    shapes = {r.case for r in runs}
    result = Rounds([], [])
    for number in sorted(found):
        pairs = {c: x for c, x in found[number].items() if len(x) == 2}
        if pairs.keys() != shapes:
            continue
        clocks = [(x[candidate].clock_mhz, x[incumbent].clock_mhz) for x in pairs.values()]
        if any(a and b and max(a[-1], b[-1]) > CLOCK_MOVED * min(a[-1], b[-1]) for a, b in clocks):
            result.dropped += 1
            continue
        result.d.append({c: math.log(x[candidate].mean_ns / x[incumbent].mean_ns) for c, x in pairs.items()})
        result.pair.append(number // per_pair)
    return result


def percent(log: float) -> str:
    return f"{100 * math.expm1(log):+.2f} %"


def decide(rounds: Rounds, rule: Rule, more_lines: int = 0) -> Decision:
    """Judge the confirm rounds (never the screen's: they were selected). more_lines: file length, candidate less
    incumbent. Needs at least two rounds."""
    g = rounds.g
    e, median = stats.paired(g), statistics.median(g)
    upper = e.mean + e.half_width(0.10)  # two-sided 10 % is one-sided 5 %
    lower = e.mean - e.half_width(0.10)
    wins = sum(x < 0 for x in g)
    means = rounds.shape_means()
    worst = max(means.items(), key=lambda x: x[1])
    m = math.log1p(rule.margin)
    lost = {s: x for s, x in means.items() if x > math.log1p(max(rule.shape_loss, rule.aa.get(s, 0.0)))}
    signs = [statistics.fmean(x for x, p in zip(g, rounds.pair, strict=True) if p == k) for k in set(rounds.pair)]
    said = f"{percent(median)} (CI to {percent(upper)}, {wins} of {len(g)} rounds), margin {100 * rule.margin:.2f} %"

    def result(verdict: str, reason: str, extend: bool = False) -> Decision:
        return Decision(verdict, reason, median, upper, wins, worst, extend)

    if upper < 0 and median < -m and all(x < 0 for x in signs):
        if lost and not rule.allow_shape_loss:
            s, x = max(lost.items(), key=lambda x: x[1])
            return result("same", f"{said}; but {s} is slower by {percent(x)}")
        if more_lines > rule.price_lines and median > -rule.price_gain:
            return result("same", f"{said}; too little for {more_lines} more lines")
        return result("kept", said)
    if more_lines <= -rule.shrink_lines and abs(median) < m and max(abs(upper), abs(lower)) < 0.01 and not lost:
        return result("kept", f"simpler: {-more_lines} lines fewer, {said}")
    near = wins >= math.ceil(0.75 * len(g)) and median < -m / 2
    if e.mean > m and lower > 0:
        return result("slower", said)
    return result("same", said, near)


def calibration(rounds: Rounds, min_gain: float) -> tuple[float, dict[str, float], str]:
    """From an A/A run: what nine in ten runs of as many rounds stay below (geometric mean; by shape), in fractions,
    with what rounds do not average out included; and "ok", or what it calls two equal files."""
    def bound(logs: Sequence[float]) -> float:
        e = stats.paired(logs)
        return math.expm1(abs(e.mean) + e.half_width(0.10))

    geo = bound(rounds.g)
    shapes = {s: bound([x[s] for x in rounds.d]) for s in rounds.d[0]}
    verdict = "ok"
    for name, sign in (("faster", 1), ("slower", -1)):
        turned = Rounds([{s: sign * x for s, x in d.items()} for d in rounds.d], rounds.pair)
        if decide(turned, Rule(margin=min_gain, allow_shape_loss=True)).verdict == "kept":
            verdict = name
    return geo, shapes, verdict


def score_ns(runs: Sequence[Run], file: str) -> tuple[float, dict[str, float]]:
    """(geometric mean over shapes, times by shape) of one file: geometric means over the rounds."""
    times: dict[str, list[float]] = {}
    for r in runs:
        if r.file == file and r.ok and r.samples_ns:
            times.setdefault(r.case, []).append(r.mean_ns)
    shapes = {c: geomean(x) for c, x in times.items()}
    return geomean(shapes.values()), shapes
