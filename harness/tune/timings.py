"""raw.csv and the table of times that every analysis starts from; run-to-run noise, and who beats whom beyond it.

A table holds logs of milliseconds: per block and pass (L), combined per point and backend (lt), +inf where a backend
failed or was not measured. All analysis is numpy and deterministic.
"""
from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import UserError
from harness.stats import t_two_sided
from harness.tune.grid import Point
from harness.tune.journal import valid_blocks

Array = np.ndarray[Any, Any]
PUBLISHED = ["pass", "batch", "M", "N", "backend", "ok", "ms", "p25", "p75", "reps"]
COLUMNS = [*PUBLISHED, "case", "cond", "seed", "wall_ms", "min_ms", "resid_factor", "resid_orth", "status",
           "source_hash", "t_start", "sm_mhz", "temp_c", "throttle", "order"]
BUCKETS = {"compat": (1.0, 3.0, 10.0, 30.0, 100.0),  # ms, half-open: 1.0 belongs to 1-3
           "robust": (0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)}
FEW = 50  # below so many pairs the upper confidence limit of p90 is the gate
FDR = 0.10  # Benjamini-Hochberg


# ---- files ---------------------------------------------------------------------------------------------------------

def rows_of(lines: list[dict[str, Any]], points: dict[str, Point], shas: dict[str, str]) -> list[dict[str, Any]]:
    """raw.csv's rows from the journal: one for each (pass, point, backend), in the order of the keys."""
    merged: dict[tuple[int, Point, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    latest: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for line in valid_blocks(lines):
        for visit in line["visits"].values():
            latest[visit["key"]] = line, visit  # a visit tried again replaces the failed one
    for line, visit in latest.values():
        name = next(n for n, v in line["visits"].items() if v is visit)
        merged.setdefault((line["pass"], points[line["point"]], name), []).append((line, visit))
    rows = []
    for (pass_, p, name), seen in sorted(merged.items(), key=lambda x: x[0]):
        good = [v for _, v in seen if v["status"] == "ok"]
        bad = next((v["status"] for _, v in seen if v["status"] != "ok"), "")
        ms = sorted(x for v in good for x in v["ms"]) if not bad else []
        line = seen[0][0]
        rows.append({
            "pass": pass_, "batch": p.batch, "M": p.m, "N": p.n, "backend": name, "ok": int(bool(ms)),
            "ms": statistics.median(ms) if ms else 0, "p25": quantile(ms, 0.25) if ms else 0,
            "p75": quantile(ms, 0.75) if ms else 0, "reps": len(ms), "case": p.case, "cond": p.cond, "seed": p.seed,
            "wall_ms": statistics.median(v["wall_ms"] for v in good) if ms else 0, "min_ms": ms[0] if ms else 0,
            "resid_factor": max((v.get("factor", 0) for v in good), default=0),
            "resid_orth": max((v.get("orth", 0) for v in good), default=0), "status": bad or "ok",
            "source_hash": shas.get(name, ""), "t_start": line["t"], "sm_mhz": line.get("sm_mhz", ""),
            "temp_c": line.get("temp_c", ""), "throttle": line.get("throttle", ""),
            "order": line["order"].index(name)})
    return rows


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as f:
        writer = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.12g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows)


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Rows of a raw.csv, ours or one with the published ten columns. Raises UserError with the line at fault."""
    try:
        with open(path, encoding="utf-8", newline="") as f:
            reader = csv.DictReader(f)
            missing = [c for c in PUBLISHED if c not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"{path}: no column {missing[0]!r}", "name a raw.csv that ./kit tune wrote")
            rows = []
            for i, r in enumerate(reader, 2):
                try:
                    rows.append(r | {k: int(r[k]) for k in ("pass", "batch", "M", "N", "ok")} | {
                        "cond": int(r.get("cond") or 0), "seed": int(r.get("seed") or 0), "ms": float(r["ms"])})
                except (ValueError, TypeError):
                    raise UserError(f"{path}:{i}: not a timing: {r}", "remove the line, or measure again") from None
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "name a raw.csv that ./kit tune wrote") from None
    if not rows:
        raise UserError(f"{path}: holds no timing", "./kit tune measures")
    return rows


def _point(row: dict[str, Any]) -> Point:
    return Point(row["batch"], row["M"], row["N"], row.get("case") or "dense", row["cond"], row["seed"])


# ---- the table -----------------------------------------------------------------------------------------------------

@dataclass
class Table:
    """L: ln ms [point, backend, pass, block], NaN where nothing was timed; run_of: the run of each pass."""

    points: list[Point]
    backends: list[str]
    L: Array
    run_of: list[int]
    stats: str = "robust"
    status: dict[tuple[str, str], str] = field(default_factory=dict)  # (point, backend) -> why it has no time
    ms_spread: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)  # p25, p75 of the last pass
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)  # backend -> n from, to, where it is limited

    @cached_property
    def passes(self) -> Array:
        """ln of the pass's median [P, X, I]."""
        return _nanmedian(self.L)

    @cached_property
    def lt(self) -> Array:
        """ln of the combined time [P, X]; +inf where there is none.

        compat: the least of a run's pass medians, since other load can only slow a call; robust: their geometric
        mean, which a minimum of noisy numbers does not bias. Then the median over runs.
        """
        with np.errstate(all="ignore"):
            runs = []
            for run in sorted(set(self.run_of)):
                x = self.passes[:, :, [i for i, r in enumerate(self.run_of) if r == run]]
                runs.append(_nanmin(x) if self.stats == "compat" else _nanmean(x))
            combined = _nanmedian(np.stack(runs, -1))
        return np.where(np.isnan(combined), np.inf, combined)

    def take(self, points: Array) -> Table:
        """The rows that a mask or index chooses."""
        index = np.flatnonzero(points) if points.dtype == bool else points
        chosen = [self.points[i] for i in index]
        return replace(self, points=chosen, L=self.L[index])

    def of_pass(self, i: int) -> Table:
        return replace(self, L=self.L[:, :, [i]], run_of=[0])

    def column(self, name: str) -> int:
        return self.backends.index(name)

    @cached_property
    def usable(self) -> Array:
        """Points at which at least one backend has a time."""
        return np.asarray(np.isfinite(self.lt).any(1))


def _quiet(f: Any, x: Array) -> Array:
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an all-NaN slice is NaN: that is what is wanted
        return f(x, axis=-1)


def _nanmedian(x: Array) -> Array:
    return x[..., 0] if x.shape[-1] == 1 else _quiet(np.nanmedian, x)


def _nanmin(x: Array) -> Array:
    return x[..., 0] if x.shape[-1] == 1 else _quiet(np.nanmin, x)


def _nanmean(x: Array) -> Array:
    return x[..., 0] if x.shape[-1] == 1 else _quiet(np.nanmean, x)



def build(runs: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]], stats: str) -> Table:
    """The table of several runs of one device: each (rows of raw.csv, lines of the journal or [])."""
    points = sorted({_point(r) for rows, _ in runs for r in rows})
    where = {p.key: i for i, p in enumerate(points)}
    backends = list(dict.fromkeys(r["backend"] for rows, _ in runs for r in rows))
    backends.sort(key=lambda x: (x.partition(":")[2] != "geqrf" and x != "geqrf", x))
    column = {x: i for i, x in enumerate(backends)}
    passes = [sorted({r["pass"] for r in rows}) for rows, _ in runs]
    slot = {(run, p): i for i, (run, p) in enumerate((run, p) for run, ps in enumerate(passes) for p in ps)}
    depth = max([1, *(line["block"] + 1 for _, lines in runs for line in valid_blocks(lines))])
    L = np.full((len(points), len(backends), len(slot), depth), np.nan)
    table = Table(points, backends, L, [run for run, ps in enumerate(passes) for _ in ps], stats)
    for run, (rows, lines) in enumerate(runs):
        for r in rows:
            i, x = where[_point(r).key], column[r["backend"]]
            if r["ok"] and r["ms"] > 0:
                L[i, x, slot[run, r["pass"]], 0] = math.log(r["ms"])
                if r.get("p25"):
                    table.ms_spread[points[i].key, r["backend"]] = float(r["p25"]), float(r["p75"])
            else:
                table.status[points[i].key, r["backend"]] = r.get("status") or "crash"
        for line in valid_blocks(lines):
            for name, v in line["visits"].items():
                i, x, s = where[line["point"]], column[name], slot[run, line["pass"]]
                if v["status"] == "ok" and not np.isnan(L[i, x, s, 0]):
                    L[i, x, s, line["block"]] = math.log(statistics.median(v["ms"]))
    for (key, name), _ in table.status.items():  # right once and wrong once is wrong
        L[where[key], column[name]] = np.nan
    return table


def from_times(points: list[Point], times: dict[str, Sequence[Any]], stats: str = "robust") -> Table:
    """A table of given times in ms: one number, or a list of one a pass, for each point; None where it failed."""
    runs = max(len(t) if isinstance(t, list | tuple) else 1 for ts in times.values() for t in ts)
    L = np.full((len(points), len(times), runs, 1), np.nan)
    for x, ts in enumerate(times.values()):
        for i, t in enumerate(ts):
            for j, ms in enumerate(t if isinstance(t, list | tuple) else [t]):
                L[i, x, j, 0] = math.nan if ms is None else math.log(ms)
    return Table(list(points), list(times), L, [0] * runs, stats)


# ---- noise ---------------------------------------------------------------------------------------------------------

def quantile(values: Sequence[float], f: float, stats: str = "robust") -> float:
    """compat: sorted[floor(f (N - 1))]; robust: linear between neighbours."""
    a = sorted(values)
    at = f * (len(a) - 1)
    low = math.floor(at + 1e-12)
    if stats == "compat" or low + 1 >= len(a):
        return a[low]
    return a[low] + (at - low) * (a[low + 1] - a[low])


def upper_p90(values: Sequence[float], confidence: float = 0.90) -> float:
    """Upper confidence limit of the 90 % quantile: the least order statistic that exceeds it with that probability
    (binomial); the maximum where so few values (N < 22) allow no such statement."""
    a = sorted(values)
    below, k = 0.0, 0
    for k in range(len(a)):
        below += math.comb(len(a), k) * 0.9 ** k * 0.1 ** (len(a) - k)
        if below >= confidence:
            return a[k]
    return a[-1]


def bucket_name(ms: float, stats: str) -> str:
    edges = BUCKETS[stats]
    i = sum(ms >= e for e in edges)
    return f"<{edges[0]:g}" if i == 0 else f">{edges[-1]:g}" if i == len(edges) else f"{edges[i - 1]:g}-{edges[i]:g}"


def bucket_order(stats: str) -> list[str]:
    edges = BUCKETS[stats]
    return [bucket_name(x, stats) for x in (edges[0] / 2, *edges)]


@dataclass
class Noise:
    """Ratios of the slowest to the quickest pass of one run, by the quickest pass's time."""

    ratios: dict[str, list[float]]  # bucket -> ratios; empty ones are left out
    stats: str

    @classmethod
    def of(cls, table: Table) -> Noise:
        found: dict[str, list[float]] = {}
        for run in sorted(set(table.run_of)):
            x = table.passes[:, :, [i for i, r in enumerate(table.run_of) if r == run]]
            low, high = _quiet(np.nanmin, x), _quiet(np.nanmax, x)
            twice = (~np.isnan(x)).sum(-1) >= 2
            for a, b in zip(low[twice], high[twice], strict=True):
                found.setdefault(bucket_name(math.exp(a), table.stats), []).append(math.exp(b - a))
        return cls({b: found[b] for b in bucket_order(table.stats) if b in found}, table.stats)

    @property
    def all(self) -> list[float]:
        return [q for qs in self.ratios.values() for q in qs]

    def gate(self, ms: float) -> float:
        """The ratio below which two times of this size are tied: p90 of their bucket (of all pairs where it is empty),
        or its upper limit where pairs are few. Infinite where nothing was repeated."""
        qs = self.ratios.get(bucket_name(ms, self.stats)) or self.all
        if not qs:
            return math.inf
        if self.stats == "robust" and len(qs) < FEW:
            return upper_p90(qs)
        return quantile(qs, 0.9, self.stats)

    def summary(self) -> dict[str, Any]:
        def row(qs: list[float]) -> dict[str, Any]:
            return {"n": len(qs), "median": quantile(qs, 0.5, self.stats), "p90": quantile(qs, 0.9, self.stats),
                    "max": max(qs)} | ({"p90_upper": upper_p90(qs)} if self.stats == "robust" and len(qs) < FEW else {})
        if not self.all:
            return {"overall": {"n": 0}, "by_runtime": []}
        return {"overall": row(self.all),
                "by_runtime": [{"bucket": b} | row(qs) for b, qs in self.ratios.items()]}


def beaten(table: Table, noise: Noise) -> Array:
    """[P, X] bool: the quickest backend of the point beats this one.

    Three conditions: the ratio is above both buckets' p90; the 95 % interval of the paired log ratios (by block; by
    pass against the pooled spread, where there are fewer than four) excludes 0; and the p-value survives
    Benjamini-Hochberg at 0.10 over all comparisons made. A backend that failed is beaten.
    """
    lt, points, width = table.lt, len(table.points), len(table.backends)
    best = lt.argmin(1)
    flat = table.L.reshape(points, width, -1)
    d = flat - flat[np.arange(points), best][:, None, :]  # paired by pass and block
    result = np.isinf(lt) & np.isfinite(lt[np.arange(points), best])[:, None]
    pairs = [(p, x) for p in range(points) for x in range(width) if x != best[p] and np.isfinite(lt[p, x])]
    gates: dict[str, float] = {}
    values, passed = [], []
    spread = _pooled_spread(table)
    for p, x in pairs:
        logs = d[p, x][~np.isnan(d[p, x])]
        mean = float(logs.mean()) if len(logs) else float(lt[p, x] - lt[p, best[p]])
        if len(logs) >= 4:
            error, df = float(logs.std(ddof=1)) / len(logs) ** 0.5, len(logs) - 1
        else:
            error, df = spread / max(1, len(logs)) ** 0.5, max(1, points - 1)
        value = t_two_sided(abs(mean) / error, df) if error > 0 else float(mean == 0)
        ms = [math.exp(t) for t in (lt[p, best[p]], lt[p, x])]
        for t in ms:
            gates.setdefault(bucket_name(t, table.stats), noise.gate(t))
        gate = max(gates[bucket_name(t, table.stats)] for t in ms)
        values.append(value)
        passed.append(lt[p, x] - lt[p, best[p]] > math.log(gate) and value < 0.05)
    for (p, x), gated, survives in zip(pairs, passed, benjamini_hochberg(values), strict=True):
        result[p, x] = gated and survives
    return result


def _pooled_spread(table: Table) -> float:
    """sd of one pass's log ratio between two backends, from all pairs of passes of a run: sqrt(2) times a backend's
    own."""
    squares = []
    for run in sorted(set(table.run_of)):
        x = table.passes[:, :, [i for i, r in enumerate(table.run_of) if r == run]]
        twice = (~np.isnan(x)).sum(-1) > 1
        squares.append(np.nanvar(x[twice], axis=-1, ddof=1))
    every = np.concatenate(squares)
    return math.sqrt(2 * float(every.mean())) if len(every) else 0.0


def benjamini_hochberg(values: Sequence[float], rate: float = FDR) -> list[bool]:
    """Which hypotheses are rejected with the false discovery rate held (Benjamini and Hochberg, 1995)."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    last = max((k for k, i in enumerate(order, 1) if values[i] <= rate * k / len(values)), default=0)
    rejected = set(order[:last])
    return [i in rejected for i in range(len(values))]


def disagreement(table: Table) -> dict[str, Any]:
    """Between-run variance on log times (DerSimonian and Laird, 1986): the share of points at which I^2, over all
    backends, exceeds 75 %. The variance within a run is pooled over the table, since a run has few passes. A device
    whose runs disagree at more than 20 % of its points is flagged."""
    runs = [[i for i, r in enumerate(table.run_of) if r == run] for run in sorted(set(table.run_of))]
    within = _pooled_spread(table) ** 2 / 2
    high = counted = 0
    for row in table.passes:
        q = df = 0.0
        for x in row:
            groups = [g for g in (x[run][~np.isnan(x[run])] for run in runs) if len(g)]
            if len(groups) > 1 and within > 0:
                w, means = np.array([len(g) / within for g in groups]), np.array([g.mean() for g in groups])
                q += float((w * (means - (w * means).sum() / w.sum()) ** 2).sum())
                df += len(groups) - 1
        counted += df > 0
        high += q > 4 * df > 0  # I^2 = 1 - df / Q
    share = high / counted if counted else 0.0
    return {"runs": len(runs), "points": counted, "share_high_i2": share, "flagged": share > 0.20}


def interval(values: Iterable[float]) -> tuple[float, float]:
    """2.5 and 97.5 % points of bootstrap values."""
    low, high = np.quantile(np.asarray(list(values)), [0.025, 0.975])
    return float(low), float(high)
