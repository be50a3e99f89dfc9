"""The statistics of compare, apart from the tool: logarithms of time ratios in, p-values and half-widths out.

The unit is the round. Samples of one process share its memory layout, clock and moment, so a thousand of them are
one observation of the file; a round is a fresh process for each file, and the ratio of the two files in a round is
free of whatever drifts from round to round.

Needs nothing but the standard library.
"""
from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

ALPHA = 0.05  # chance that a comparison of two equal files calls any case, or the total, faster or slower
LOOKS = (3, 5, 8, 12, 20)  # rounds after which bench may stop early
_LOOK_ALPHA = ALPHA / (len(LOOKS) + 1)  # each look, and the end that was asked for, gets an equal part (Bonferroni)


def t_two_sided(t: float, df: int) -> float:
    """P(|T| > t) of Student's t with integer df >= 1: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    if math.isinf(t):
        return 0.0
    theta = math.atan2(abs(t), math.sqrt(df))
    sin, cos = math.sin(theta), math.cos(theta)
    term = total = 1.0 if df % 2 == 0 else cos
    for k in range(2 + df % 2, df - 1, 2):  # the next term is cos^2 (k - 1) / k times the last
        term *= cos * cos * (k - 1) / k
        total += term
    inside = sin * total if df % 2 == 0 else 2 / math.pi * (theta + (sin * total if df > 1 else 0))
    return min(1.0, max(0.0, 1 - inside))


@cache
def t_quantile(level: float, df: int) -> float:
    """The t with P(|T| > t) = level, by bisection (level above 1e-12)."""
    low, high = 0.0, 1.0
    while t_two_sided(high, df) > level:
        high *= 2
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if t_two_sided(mid, df) > level else (low, mid)
    return high


@dataclass(frozen=True)
class Estimate:
    """A mean log ratio with its standard error; df < 1 where one observation gives no spread."""

    mean: float
    error: float
    df: int

    @property
    def p(self) -> float:
        """Two-sided p-value of "no change"; 1 where there is no spread to test against."""
        if self.df < 1 or self.mean == 0:
            return 1.0
        return t_two_sided(abs(self.mean) / self.error if self.error else math.inf, self.df)

    def half_width(self, level: float) -> float:
        """Half of the confidence interval at `level`, in log units; infinite where there is no spread."""
        return t_quantile(level, self.df) * self.error if self.df >= 1 else math.inf


def paired(logs: Sequence[float]) -> Estimate:
    """From one log ratio a round: the paired t-test (Student, 1908)."""
    n = len(logs)
    return Estimate(statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(n) if n > 1 else math.inf, n - 1)


def apart(new: Sequence[float], base: Sequence[float]) -> Estimate:
    """From log times that share no round: Welch's test (1947), its degrees of freedom rounded down."""
    mean = statistics.fmean(new) - statistics.fmean(base)
    if min(len(new), len(base)) < 2:
        return Estimate(mean, math.inf, 0)
    a, b = statistics.variance(new) / len(new), statistics.variance(base) / len(base)
    if a + b == 0:
        return Estimate(mean, 0.0, len(new) + len(base) - 2)
    df = (a + b) ** 2 / (a * a / (len(new) - 1) + b * b / (len(base) - 1))
    return Estimate(mean, math.sqrt(a + b), max(1, int(df)))


def holm(estimates: Sequence[Estimate]) -> list[tuple[bool, float]]:
    """(significant, the level that it was tested at) for each: Holm's step-down procedure (1979).

    All tests together are wrong about an unchanged case with probability at most ALPHA, early stops included: the
    k-th smallest of m p-values is tested at (ALPHA / looks) / (m - k + 1), up to the first that fails; the rest
    share that one's level.
    """
    result = [(False, _LOOK_ALPHA)] * len(estimates)
    level, failed = _LOOK_ALPHA, False
    for k, i in enumerate(sorted(range(len(estimates)), key=lambda i: estimates[i].p)):
        if not failed:
            level = _LOOK_ALPHA / (len(estimates) - k)
            failed = not estimates[i].p <= level
        result[i] = (not failed, level)
    return result


def rounds_to_add(estimate: Estimate, rounds: int, level: float, target: float, most: int = 200) -> int:
    """How many more rounds bring the half-width to `target` (log units), the spread staying what it is.

    Where there is no spread yet: what is left to the first look. `most` stands for "more than is practical".
    """
    if estimate.df < 1:
        return max(1, LOOKS[0] - rounds)
    spread = estimate.error * math.sqrt(rounds)

    def settles(more: int) -> bool:
        n = rounds + more
        return t_quantile(level, n - 1) * spread / math.sqrt(n) <= target

    return 1 + bisect.bisect_left(range(1, most), True, key=settles)


def first_level(tests: int) -> float:
    """The level of the strictest of so many tests, for planning."""
    return _LOOK_ALPHA / max(1, tests)


def geometric(logs: Iterable[float]) -> float:
    """exp of the mean: the geometric mean of what the logarithms were taken of."""
    return math.exp(statistics.fmean(logs))
