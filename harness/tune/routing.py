"""Share and CPU: whether two engines split a batch, and which points are too light for the heavy side.

The published report's stages, in its order: kernel threshold, then share, then the heavy-or-CPU boundary with both in
force. Arrays throughout: a rule is a boolean mask over points.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.tune.grid import Point
from harness.tune.timings import Array

NEAR = 1.005


def choose_share(curve: Sequence[tuple[int, float, float]]) -> int:
    """c of (c, G, worst): among those within 0.5 % of the least G the smallest worst; ties to never (0), then to the
    largest c."""
    least = min(g for _, g, _ in curve)
    near = [(w, c != 0, -c, c) for c, g, w in curve if g <= NEAR * least]
    return min(near)[3]


def share_curve(points: Sequence[Point], kernel_lt: Array, share_lt: Array, gpu_best: Array) -> list[list[float]]:
    """(c, G, worst) of "share iff batch >= c" on the points where share was timed, O being GPU kernels and share."""
    timed = np.isfinite(share_lt)
    batch = np.array([p.batch for p in points])[timed]
    rows = []
    for c in [0, *sorted(set(batch.tolist()))]:
        picks = np.where((batch >= c) if c else np.zeros(len(batch), bool), share_lt[timed], kernel_lt[timed])
        r = picks - np.minimum(gpu_best[timed], share_lt[timed])
        rows.append([c, math.exp(r.mean()), math.exp(r.max())])
    return rows


@dataclass(frozen=True)
class Boundary:
    """HEAVY iff the large clause (L > 0 and m k >= L^2 and (C = 0 or b <= C)) or the window clause holds."""

    s_min: float = 0
    s_max: float = math.inf
    work: float = 0  # P: least b s
    b_min: int = 1
    large: int = 0  # L
    large_batch: int = 0  # C
    size: str = "k"  # the report's s; w = floor(sqrt(m k)) later
    window: bool = True

    def heavy(self, points: Sequence[Point]) -> Array:
        b = np.array([p.batch for p in points])
        s = np.array([getattr(p, self.size) for p in points], float)
        inside = (self.s_min <= s) & (s <= self.s_max) & (b * s >= self.work) & (b >= self.b_min) & self.window
        return inside | self.clause(points)

    def clause(self, points: Sequence[Point]) -> Array:
        b = np.array([p.batch for p in points])
        mk = np.array([p.m * p.k for p in points], float)
        return (self.large > 0) & (mk >= self.large ** 2) & ((self.large_batch == 0) | (b <= self.large_batch))

    def to_json(self) -> dict[str, Any]:
        return {"s_min": self.s_min, "s_max": None if math.isinf(self.s_max) else self.s_max, "P": self.work,
                "b_min": self.b_min, "L": self.large, "C": self.large_batch}


CPU_ONLY = Boundary(window=False)


class Routing:
    """The fit of the boundary on the points with a CPU timing; O is everything timed."""

    def __init__(self, points: Sequence[Point], heavy_lt: Array, cpu_lt: Array, best_lt: Array, size: str = "w"):
        self.points, self.size = list(points), size
        self.x = heavy_lt - cpu_lt
        self.base = cpu_lt - best_lt  # ln regret of the CPU
        self.b = np.array([p.batch for p in points])
        self.s = np.array([getattr(p, size) for p in points], float)

    def score(self, masks: Array) -> tuple[Array, Array]:
        """G and worst of each mask [K, P]."""
        r = self.base + masks * self.x
        return np.exp(r.mean(-1)), np.exp(r.max(-1))

    def of(self, boundary: Boundary) -> dict[str, Any]:
        r = self.base + boundary.heavy(self.points) * self.x
        return {"geomean": math.exp(math.fsum(r) / len(r)), "worst": math.exp(r.max()),
                "over10": int((r > math.log(1.10)).sum()), "n": len(r)}

    def windows(self) -> Iterator[tuple[list[tuple[float, float, float, int]], Array]]:
        """Candidates from measured values, with their masks: a window spans two measured sizes, and its upper limit
        is no largest size (that fits as well as none but claims more than the data)."""
        sizes = sorted(set(self.s))
        works = [0.0, *sorted(set(self.b * self.s))]
        batches = [1, *sorted({int(b) for b in self.b if 1 < b <= 16})]
        enough = np.stack([(self.b * self.s >= w) & (self.b >= b) for w in works for b in batches])
        names = [(w, b) for w in works for b in batches]
        for low in [0.0, *(s for s in sizes if s <= 256)]:
            for high in [*sizes[:-1], math.inf]:
                if high <= low or sum(low <= s <= high for s in sizes) < 2:
                    continue
                yield [(low, high, w, b) for w, b in names], enough & (low <= self.s) & (self.s <= high)

    def best_window(self, fixed: Array) -> Boundary:
        """Given the large clause's mask: near the least G, the smallest worst, then G, then the smallest tuple."""
        rows: list[tuple[float, float, tuple[float, float, float, int]]] = []
        least = math.inf
        for names, masks in self.windows():
            G, W = self.score(masks | fixed)
            least = min(least, float(G.min()))
            keep = np.flatnonzero(least * NEAR >= G)
            rows += [(float(G[i]), float(W[i]), names[i]) for i in keep]
        low, high, work, batch = min((round(w, 12), round(g, 12), name) for g, w, name in rows if g <= NEAR * least)[2]
        return Boundary(low, high, work, batch, size=self.size)

    def best_clause(self, fixed: Array) -> tuple[int, int]:
        """(L, C) given the window's mask: near the least G, the smallest worst, then G, larger L, smaller C."""
        options = [(0, 0), *((int(L), int(C)) for L in sorted(set(self.s)) for C in [0, *sorted(set(self.b))] if L > 0)]
        masks = np.stack([Boundary(large=L, large_batch=C, window=False).clause(self.points) for L, C in options])
        G, W = self.score(masks | fixed)
        near = np.flatnonzero(NEAR * G.min() >= G)
        i = min(near, key=lambda i: (round(float(W[i]), 12), round(float(G[i]), 12), -options[i][0], options[i][1]))
        return options[int(i)]

    def fit(self) -> Boundary:
        """Order A: window, clause given it, window given the clause. Order B: clause first. The better by (G, W)."""
        nothing = np.zeros(len(self.points), bool)

        def with_clause(window: Boundary, clause: tuple[int, int]) -> Boundary:
            return replace(window, large=clause[0], large_batch=clause[1])

        def mask(clause: tuple[int, int]) -> Array:
            return with_clause(CPU_ONLY, clause).clause(self.points)
        first = self.best_clause(self.best_window(nothing).heavy(self.points))
        second = self.best_clause(nothing)
        found = [with_clause(self.best_window(mask(c)), c) for c in (first, second)]
        return min(found, key=lambda x: (self.of(x)["geomean"], self.of(x)["worst"]))

    def fit_without_large(self) -> Boundary:
        """Refitted: keeping the window that was fitted beside the clause would overstate what the clause gives."""
        return self.best_window(np.zeros(len(self.points), bool))
