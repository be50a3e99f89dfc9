"""Rules over (batch, n) with any number of backends: segments of n by dynamic programming, and richer forms.

A rule is what a submission's ROUTES holds: rows (n_max, batch_max, multiple_of, backend), the first that holds decides.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.tune.grid import Point, n_bin, tags
from harness.tune.score import Study
from harness.tune.timings import Array

MAX_SEGMENTS = 4
SIMPLER = 0.005  # the fewest segments whose cross-validated regret is within this of the best
VARIANT_GAIN = 0.01  # what a variant must gain on its segment to replace its file's default
ALIGNED = 64
PENALTY_PER_CONSTANT = 0.002
ANY = None  # no limit


@dataclass(frozen=True)
class Row:
    n_max: int | None
    batch_max: int | None
    multiple_of: int
    backend: str

    def holds(self, p: Point, feature: str) -> bool:
        n = getattr(p, feature)
        return ((self.n_max is None or n <= self.n_max) and (self.batch_max is None or p.batch <= self.batch_max)
                and n % self.multiple_of == 0)

    def to_json(self) -> list[Any]:
        return [self.n_max, self.batch_max, self.multiple_of, self.backend]


@dataclass(frozen=True)
class Rule:
    rows: tuple[Row, ...]
    feature: str = "n"  # m on a grid with rectangles

    def backend(self, p: Point) -> str:
        return next(r.backend for r in self.rows if r.holds(p, self.feature))

    def picks(self, study: Study) -> Array:
        """Column of the table that each point is sent to [P]."""
        n, batch = study.numbers(self.feature), study.numbers("batch")
        picks = np.full(len(n), -1)
        for r in reversed(self.rows):  # the first row that holds has the last word
            n_max, batch_max = (np.inf if x is None else x for x in (r.n_max, r.batch_max))
            holds = (n <= n_max) & (batch <= batch_max) & (n % r.multiple_of == 0)
            picks[holds] = study.table.column(r.backend)
        return picks

    @property
    def constants(self) -> int:
        """Numbers that a fit chose: limits, not backends."""
        return sum((r.n_max is not None) + (r.batch_max is not None) + (r.multiple_of > 1) for r in self.rows)

    def describe(self) -> list[str]:
        lines = []
        for r in self.rows:
            when = [f"{self.feature} <= {r.n_max}"] * (r.n_max is not None)
            when += [f"batch <= {r.batch_max}"] * (r.batch_max is not None)
            when += [f"{self.feature} a multiple of {r.multiple_of}"] * (r.multiple_of > 1)
            lines.append(f"{' and '.join(when) or 'otherwise'}: {r.backend}")
        return lines

    @classmethod
    def from_json(cls, rows: Sequence[Sequence[Any]], feature: str = "n") -> Rule:
        return cls(tuple(Row(*r) for r in rows), feature)

    @classmethod
    def always(cls, backend: str, feature: str = "n") -> Rule:
        return cls((Row(ANY, ANY, 1, backend),), feature)


def feature_of(points: Sequence[Point]) -> str:
    return "n" if all(p.m == p.n for p in points) else "m"


# ---- segments -------------------------------------------------------------------------------------------------------

def segment(values: Array, cost: Array, max_segments: int = MAX_SEGMENTS) -> dict[int, list[tuple[float, int]]]:
    """For S = 1..max: the assignment of S segments of the sorted distinct values to columns of cost [P, X] with the
    least total: a list of (last value of the segment, column). O(S N^2 + N^2 X), by dynamic programming."""
    distinct = np.unique(values)
    N = len(distinct)
    sums = np.zeros((N + 1, cost.shape[1]))
    np.add.at(sums, np.searchsorted(distinct, values) + 1, cost)
    sums = sums.cumsum(0)
    between = sums[None, :, :] - sums[:, None, :]  # [i, j, X]: the values i..j-1
    least = np.where(np.tri(N + 1, N + 1, 0, bool), np.inf, between.min(2))
    which = between.argmin(2)
    total = least[0].copy()  # [j]: best of the first j values
    came = [np.zeros(N + 1, int)]
    found: dict[int, list[tuple[float, int]]] = {}
    for s in range(1, max_segments + 1):
        if s > 1:
            options = total[:, None] + least
            came.append(options.argmin(0))
            total = options.min(0)
        if s > N:
            break
        cuts, j = [], N
        for level in range(s - 1, -1, -1):
            i = int(came[level][j])
            cuts.append((float(distinct[j - 1]), int(which[i, j])))
            j = i
        cuts.reverse()
        found[s] = [c for k, c in enumerate(cuts) if k + 1 == len(cuts) or cuts[k + 1][1] != c[1]]  # equal ones merge
    return found


def limit_between(last: float, following: float) -> int:
    """n_max of a row: the geometric midpoint to a multiple of 16, but not below the last value that was measured in
    the segment and below the first of the next."""
    middle = round(math.sqrt(last * following) / 16) * 16
    return int(middle if last <= middle < following else last)


def fit_segments(study: Study, train: Array, count: int, columns: Sequence[int]) -> list[Row]:
    """The best rule of at most `count` segments on the training points; a variant replaces its file's default only
    for a gain above 1 % and twice its standard error on the segment."""
    feature = feature_of(study.points)
    values = study.numbers(feature)
    cost = study.lr[:, list(columns)]
    found = segment(values[train], cost[train], count)
    cuts = found[max(found)]
    distinct = sorted(set(values[train]))
    rows, start = [], -math.inf
    for k, (last, x) in enumerate(cuts):
        inside = train & (values > start) & (values <= last)
        name = _default_unless_better(study, [study.table.backends[c] for c in columns], x, cost[inside])
        following = next((v for v in distinct if v > last), None)
        limit = None if k + 1 == len(cuts) or following is None else limit_between(last, following)
        rows.append(Row(limit, ANY, 1, name))
        start = last
    return within(merged(rows), study.table.spans, next((b for b in study.table.backends if b.endswith("geqrf")), ""))


def within(rows: list[Row], spans: dict[str, tuple[int, int]], fallback: str) -> list[Row]:
    """The rows with no limit beyond what its backend was said to take (`--backends v12/257-512`); the fallback, geqrf,
    takes the n that this leaves to nobody."""
    found: list[Row] = []
    for r in rows:
        least, most = spans.get(r.backend, (1, r.n_max))
        before = (found[-1].n_max or 0) if found else 0
        if fallback and least > before + 1:
            found.append(Row(least - 1, ANY, 1, fallback))
        found.append(replace(r, n_max=most) if most and (r.n_max is None or r.n_max > most) else r)
    if fallback and found[-1].n_max is not None:
        found.append(Row(ANY, ANY, 1, fallback))
    return found


def merged(rows: list[Row]) -> list[Row]:
    return [r for i, r in enumerate(rows) if i + 1 == len(rows) or rows[i + 1].backend != r.backend]


def _default_unless_better(study: Study, names: list[str], x: int, cost: Array) -> str:
    default = names[x].partition("@")[0]
    if default == names[x] or default not in names:
        return names[x]
    gain = cost[:, names.index(default)] - cost[:, x]
    error = gain.std(ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else math.inf
    return names[x] if gain.mean() > max(math.log1p(VARIANT_GAIN), 2 * error) else default


# ---- folds ----------------------------------------------------------------------------------------------------------

Fold = tuple[Array, Array]  # train, test masks


def group_folds(keys: Sequence[Any]) -> list[Fold]:
    """Leave one group out."""
    a = np.array(keys)
    return [(a != k, a == k) for k in sorted(set(keys))] if len(set(keys)) > 1 else []


def stratified_folds(study: Study, repeats: int = 5) -> list[Fold]:
    """Two halves, `repeats` times, each with half of every class and n bin."""
    rng = np.random.default_rng(study.seed + 2)
    cells: dict[Any, list[int]] = {}
    for i, p in enumerate(study.points):
        cells.setdefault((n_bin(p.n), *sorted(tags(p, study.units) - {"one wave"})), []).append(i)
    folds = []
    for _ in range(repeats):
        half = np.zeros(len(study.points), bool)
        odd = False
        for members in cells.values():
            shuffled = rng.permutation(members)
            half[shuffled[odd::2]] = True
            odd ^= len(members) % 2 == 1  # the odd one goes to each half in turn
        folds += [(half, ~half), (~half, half)]
    return folds


def halves(points: Sequence[Point]) -> Fold:
    """The published split: even positions of the sorted keys train, odd ones test."""
    even = np.zeros(len(points), bool)
    even[sorted(range(len(points)), key=lambda i: points[i].shape)[::2]] = True
    return even, ~even


Fit = Callable[[Study, Array], Rule]


def held_out(study: Study, folds: Sequence[Fold], fit: Fit) -> Array:
    """Mean log regret of each point over the folds that held it out [P]; NaN where none did."""
    total, count = np.zeros(len(study.points)), np.zeros(len(study.points))
    for train, test in folds:
        r = study.of(fit(study, train).picks(study))
        total[test] += r[test]
        count[test] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def choose_count(study: Study, train: Array, columns: Sequence[int], repeats: int = 5) -> tuple[int, dict[int, float]]:
    """The number of segments, and the cross-validated G of each number."""
    folds = [(a & train, b & train) for a, b in stratified_folds(study, repeats)]
    G = {}
    for s in range(1, MAX_SEGMENTS + 1):
        r = held_out(study, [f for f in folds if f[0].any()],
                     lambda st, mask, s=s: Rule(tuple(fit_segments(st, mask, s, columns)),  # type: ignore[misc]
                                                feature_of(st.points)))
        r = r[~np.isnan(r)]
        G[s] = math.exp(math.fsum(r) / max(1, len(r)))
    best = min(G.values())
    return min(s for s, g in G.items() if g <= best * (1 + SIMPLER)), G


# ---- richer forms ---------------------------------------------------------------------------------------------------

def batch_split(study: Study, train: Array, count: int, columns: Sequence[int]) -> list[Row] | None:
    """Segments of their own for batches below b0, which is the best of the measured ones."""
    batches = np.array([p.batch for p in study.points])
    best: tuple[float, list[Row]] | None = None
    for b0 in sorted(set(batches[train]))[1:]:
        low, high = train & (batches < b0), train & (batches >= b0)
        if min(low.sum(), high.sum()) < 4:
            continue
        rows = [Row(r.n_max, int(b0) - 1, 1, r.backend) for r in fit_segments(study, low, count, columns)]
        rows += fit_segments(study, high, count, columns)
        g = float(study.of(_rule(study, rows).picks(study))[train].sum())
        if best is None or g < best[0] - 1e-12:
            best = g, rows
    return best[1] if best else None


def tiny(study: Study, train: Array, count: int, columns: Sequence[int]) -> list[Row] | None:
    """A backend of its own for n <= 64."""
    n = np.array([p.n for p in study.points])
    low, high = train & (n <= 64), train & (n > 64)
    if not (low.any() and high.any()):
        return None
    first = fit_segments(study, low, 1, columns)[0]
    return merged([Row(64, ANY, 1, first.backend), *fit_segments(study, high, count, columns)])


def unaligned(study: Study, train: Array, count: int, columns: Sequence[int]) -> list[Row] | None:
    """Segments of their own for n that are no multiple of 64 (n <= 64 counts as aligned)."""
    n = np.array([p.n for p in study.points])
    odd = (n > 64) & (n % ALIGNED != 0)
    if not ((train & odd).any() and (train & ~odd).any()):
        return None
    even = fit_segments(study, train & ~odd, count, columns)
    first = next(r for r in even if r.n_max is None or r.n_max >= 1)
    rows = [Row(64, ANY, 1, first.backend)]
    rows += [Row(r.n_max, ANY, ALIGNED, r.backend) for r in even]
    return rows + fit_segments(study, train & odd, count, columns)


def _rule(study: Study, rows: Sequence[Row]) -> Rule:
    return Rule(tuple(rows), feature_of(study.points))


FORMS: dict[str, Callable[[Study, Array, int, Sequence[int]], list[Row] | None]] = {
    "batch split": batch_split, "n <= 64 apart": tiny, "unaligned n apart": unaligned}
