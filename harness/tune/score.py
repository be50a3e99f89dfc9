"""What a rule costs: regret, its geometric mean, worst, over-10 % count, intervals; regret without the oracle's luck.

A rule is a vector of picks, a backend's index for each point. Regret is its time over the quickest of the oracle set O.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness.tune import grid
from harness.tune.timings import Array, Noise, Table, beaten, interval

RESAMPLES = 2000
PENALTY = 10.0  # least regret of a pick that failed
OVER = 1.10


def ideal_split(t1: float, t2: float) -> float:
    """Time of two engines that share a batch and finish together."""
    return 1 / (1 / t1 + 1 / t2)


def log_regret(lt: Array, oracle: Sequence[int] | None = None) -> Array:
    """ln r [P, X] of picking each backend, O being these columns (all). A failed one gets max(10, the worst
    measured); so does a point at which nothing of O has a time."""
    best = (lt if oracle is None else lt[:, list(oracle)]).min(1)
    with np.errstate(invalid="ignore"):
        r = lt - best[:, None]
    finite = np.isfinite(r)
    worst = float(r[finite].max()) if finite.any() else 0.0
    return np.where(finite, r, max(math.log(PENALTY), worst))


@dataclass
class Study:
    """A table with what every score needs: log regrets, weights, classes, ties and bootstrap draws."""

    table: Table
    units: int
    seed: int = 0
    resamples: int = RESAMPLES
    oracle: tuple[int, ...] = ()  # columns; empty for all

    @property
    def points(self) -> list[grid.Point]:
        return self.table.points

    @property
    def stats(self) -> str:
        return self.table.stats

    def numbers(self, name: str) -> Array:
        """batch, m or n of every point [P]."""
        return self._numbers[name]

    @cached_property
    def _numbers(self) -> dict[str, Array]:
        return {k: np.array([getattr(p, k) for p in self.points], float) for k in ("batch", "m", "n")}

    def among(self, mask: Array, oracle: tuple[int, ...]) -> Study:
        """The same table and draws of blocks on some points, with another oracle set."""
        part = Study(self.table.take(mask), self.units, self.seed, self.resamples, oracle)
        part.times_drawn = self.times_drawn[:, mask]
        if mask.all():
            part.draws = self.draws
        return part

    @cached_property
    def columns(self) -> list[int]:
        return list(self.oracle) or list(range(len(self.table.backends)))

    @cached_property
    def lr(self) -> Array:
        return log_regret(self.table.lt, self.columns)

    @cached_property
    def noise(self) -> Noise:
        return Noise.of(self.table)

    @cached_property
    def beaten(self) -> Array:
        return beaten(self.table, self.noise)

    @cached_property
    def classes(self) -> dict[str, Array]:
        return {k: np.array(v) for k, v in grid.classes(self.points, self.units).items()}

    @cached_property
    def draws(self) -> Array:
        """How often each point is drawn [B, P]: resampled with replacement within its stratum, so that a resample
        keeps the grid's composition."""
        rng = np.random.default_rng(self.seed)
        counts = np.zeros((self.resamples, len(self.points)))
        strata = np.array(grid.strata(self.points))
        for s in sorted(set(strata)):
            index = np.flatnonzero(strata == s)
            counts[:, index] = rng.multinomial(len(index), np.full(len(index), 1 / len(index)), self.resamples)
        return counts

    @cached_property
    def times_drawn(self) -> Array:
        """Combined log times with each pass's blocks resampled [B, P, X]: the same blocks for all backends of a point,
        since a block is what is paired. A backend that was cut short keeps its own median."""
        L = self.table.L
        filled = np.where(np.isnan(L), self.table.passes[..., None], L)
        counts = (~np.isnan(L)).any(1).sum(-1)  # blocks of each point and pass
        rng = np.random.default_rng(self.seed + 1)
        depth = L.shape[-1]
        if depth == 1 or self.stats == "compat":
            return np.broadcast_to(self.table.lt, (self.resamples, *self.table.lt.shape))
        P, X, passes, _ = L.shape
        combined = np.zeros((self.resamples, P, X), np.float32)
        weight = np.zeros((P, X), np.float32)
        for i in range(passes):
            for c in sorted(set(counts[:, i]) - {0}):
                rows = np.flatnonzero(counts[:, i] == c)
                pick = rng.integers(0, c, (self.resamples, len(rows), c))
                x = filled[rows, :, i, :c].astype(np.float32)  # [rows, X, c]
                drawn = x[np.arange(len(rows))[None, :, None], :, pick]  # [B, rows, c, X]
                drawn.sort(2)
                middle = (drawn[:, :, (c - 1) // 2] + drawn[:, :, c // 2]) / 2
                combined[:, rows] += np.nan_to_num(middle)
                weight[rows] += ~np.isnan(x[:, :, 0])
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(weight > 0, combined / weight, np.inf)

    @cached_property
    def lr_drawn(self) -> Array:
        """Log regrets of each resample [B, P, X]."""
        t = self.times_drawn
        best = t[:, :, self.columns].min(2, keepdims=True)
        with np.errstate(invalid="ignore"):
            r = t - best
        return np.where(np.isfinite(r), r, self.lr)

    def means_drawn(self, picks: Array) -> Array:
        """Mean log regret of a rule in each resample [B]."""
        r = self.lr_drawn[:, np.arange(len(picks)), picks]
        return (self.draws * r).sum(1) / self.draws.sum(1)

    def of(self, picks: Array) -> Array:
        return self.lr[np.arange(len(picks)), picks]

    def geomean(self, picks: Array, mask: Array | None = None) -> float:
        r = self.of(picks)
        r = r if mask is None else r[mask]
        return math.exp(math.fsum(r) / len(r)) if len(r) else 1.0

    def crossfit_points(self, picks: Array) -> Array:
        """Per point: ln regret with the oracle chosen on one pass and timed on the other, mean over ordered pairs of
        passes of one run [P]; NaN where there is no such pair."""
        t = self.table.passes[:, self.columns]
        own = self.table.passes[np.arange(len(picks)), picks]
        terms = []
        for i, run_i in enumerate(self.table.run_of):
            for j, run_j in enumerate(self.table.run_of):
                if i == j or run_i != run_j:
                    continue
                chosen = np.where(np.isnan(t[:, :, i]), np.inf, t[:, :, i]).argmin(1)
                terms.append(own[:, j] - t[np.arange(len(picks)), chosen, j])
        if not terms:
            return np.full(len(picks), np.nan)
        stacked = np.stack(terms)
        counts = (~np.isnan(stacked)).sum(0)
        return np.where(counts > 0, np.nansum(stacked, 0) / np.maximum(counts, 1), np.nan)

    def crossfit(self, picks: Array) -> tuple[float, float, float] | None:
        """(G_cf, low, high): not biased by an oracle that takes a minimum of noisy numbers."""
        c = self.crossfit_points(picks)
        known = ~np.isnan(c)
        if not known.any():
            return None
        draws = self.draws[:, known]
        low, high = interval(np.exp((draws @ c[known]) / np.maximum(draws.sum(1), 1)))
        return math.exp(math.fsum(c[known]) / int(known.sum())), low, high

    def score(self, picks: Array, intervals: bool = True) -> dict[str, Any]:
        """geomean, worst and its point, over10, over10_real (beyond noise), total, n, failed; per class; CI; G_cf."""
        r = self.of(picks)
        at = np.arange(len(picks))
        lt = self.table.lt
        failed = ~np.isfinite(lt[at, picks])
        over = r > math.log(OVER)
        timed = ~failed & np.isfinite(lt[:, self.columns].min(1))
        top = int(r.argmax())
        result: dict[str, Any] = {
            "geomean": self.geomean(picks), "worst": math.exp(r[top]), "worst_shape": self.points[top].key,
            "over10": int(over.sum()), "n": len(picks), "failed": int(failed.sum()),
            "over10_real": int((over & self.beaten[at, picks]).sum()),
            "total": math.fsum(np.exp(lt[at, picks])[timed])
            / max(1e-300, math.fsum(np.exp(lt[:, self.columns].min(1))[timed])),
            "per_class": {c: self.geomean(picks, m) for c, m in self.classes.items() if m.any()}}
        if intervals and self.stats == "robust":
            result["ci"] = list(interval(np.exp(self.means_drawn(picks))))
            if (cf := self.crossfit(picks)) is not None:
                result["crossfit"] = list(cf)
        return result


def contest_score(table: Table) -> dict[str, Any]:
    """Per backend: the geometric mean of its ms over the ranked points present (not of regret)."""
    ranked = [i for i, p in enumerate(table.points) if grid.is_ranked(p)]
    if not ranked:
        return {"n": 0, "geomean_ms": {}}
    x = table.lt[ranked]
    means = {b: math.exp(math.fsum(x[:, j]) / len(ranked)) if np.isfinite(x[:, j]).all() else None
             for j, b in enumerate(table.backends)}
    return {"n": len(ranked), "geomean_ms": means, "oracle_ms": math.exp(math.fsum(x.min(1)) / len(ranked))}
