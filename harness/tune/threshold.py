"""One constant between two backends: A below, Z from T on. Curves, the band, and whether the constant matters at all.

Only thresholds that a measured value separates are different rules; T stands for the interval (previous measured, T].
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.tune.grid import Point
from harness.tune.score import Study
from harness.tune.timings import Array

PUBLISHED = (128, 192, 256, 288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 768, 1024)
TOLERANCE = 0.003  # compat: absolute, on regret
EQUIVALENT = 0.005  # robust: 90 % interval of the excess lies below this ...
LOCAL = 0.03  # ... and the mean gap on the points that differ is at most this
NEVER = math.inf


# ---- the published arithmetic ---------------------------------------------------------------------------------------

def excess(pooled: Sequence[float]) -> list[float]:
    """Per cent above the least of the (rounded) pooled regrets."""
    return [round((g / min(pooled) - 1) * 100, 2) for g in pooled]


def band(thresholds: Sequence[float], pooled: Sequence[float], tolerance: float = TOLERANCE) -> dict[str, Any]:
    """The thresholds within an absolute tolerance of the best, and the middle one (the upper of two middles)."""
    best = min(pooled)
    inside = [t for t, g in zip(thresholds, pooled, strict=True) if round(g - best, 6) <= tolerance]
    return {"lo": inside[0], "hi": inside[-1], "chosen": inside[len(inside) // 2], "best_geomean": best,
            "tolerance": tolerance, "inside": inside}


def equivalent(thresholds: Sequence[float], measured: Sequence[float]) -> list[list[float]]:
    """Thresholds grouped into distinct rules: those that no measured value separates."""
    groups: dict[int, list[float]] = {}
    for t in sorted(thresholds):
        groups.setdefault(sum(v < t for v in measured), []).append(t)
    return list(groups.values())


def y_limit(values: Sequence[float]) -> float:
    """Upper end of the chart's axis."""
    return math.ceil(round(100 * max(values), 6)) / 100 + 0.01


# ---- curves ---------------------------------------------------------------------------------------------------------

def picks_at(f: Array, threshold: float, a: int, z: int) -> Array:
    return np.where(f >= threshold, z, a)


def curves(study: Study, f: Array, thresholds: Sequence[float], a: int, z: int, compat: bool = False) -> dict[str, Any]:
    """Pooled and per-class geometric mean, worst and over-10 % count at each threshold (compat: rounded to 4, 4, 3)."""
    def rounded(x: float, digits: int) -> float:
        return round(x, digits) if compat else x
    result: dict[str, Any] = {"thresholds": list(thresholds), "pooled": [], "pooled_worst": [], "over10": [],
                              "classes": {c: [] for c, m in study.classes.items() if m.any()}}
    for t in thresholds:
        picks = picks_at(f, t, a, z)
        r = study.of(picks)
        result["pooled"].append(rounded(study.geomean(picks), 4))
        result["pooled_worst"].append(rounded(math.exp(r.max()), 3))
        result["over10"].append(int((r > math.log(1.10)).sum()))
        for c, rows in result["classes"].items():
            rows.append(rounded(study.geomean(picks, study.classes[c]), 4))
    return result


def candidates(f: Array) -> list[float]:
    """Every measured value, and never."""
    return [*sorted({float(x) for x in f}), NEVER]


def fit(study: Study, f: Array, a: int, z: int, incumbent: float | None = None) -> dict[str, Any]:
    """Robust fit over the measured values: the distinct rules, each compared with the best on the points D where they
    differ; the union of the intervals in band; the value to ship.

    In band: the gap on D is at most 3 %, and either the 90 % interval of the overall excess lies below 0.5 %
    (equivalent) or that of the gap on D contains 0 (indistinguishable). An incumbent in band stays.
    """
    ts = candidates(f)
    gap = study.lr[:, z] - study.lr[:, a]  # ln Z / A
    masks = np.stack([f >= t for t in ts])  # [T, P]
    means = (masks * gap).sum(1) / len(f)
    best = int(means.argmin())
    drawn = study.lr_drawn[:, :, z] - study.lr_drawn[:, :, a]
    total = study.draws.sum(1)
    rows: list[dict[str, Any]] = []
    for i, t in enumerate(ts):
        d = masks[i] != masks[best]
        sign = np.where(masks[i], 1.0, -1.0)
        differs = int(d.sum())
        excess_drawn = (study.draws[:, d] * (drawn[:, d] * sign[d])).sum(1) / total if differs else np.zeros(1)
        on_d = excess_drawn * total / np.maximum(study.draws[:, d].sum(1), 1) if differs else np.zeros(1)
        mean_gap = float((gap[d] * sign[d]).mean()) if differs else 0.0
        low, high = (float(x) for x in np.quantile(on_d, [0.05, 0.95]))
        equal = float(np.quantile(np.expm1(excess_drawn), 0.95)) < EQUIVALENT
        why = "best" if i == best else "equivalent" if equal else "indistinguishable" if low <= 0 <= high else ""
        local = math.expm1(mean_gap)
        rows.append({"threshold": t, "after": ts[i - 1] if i else 0.0,
                     "geomean": study.geomean(picks_at(f, t, a, z)), "differs": differs, "gap": local,
                     "gap_ci": [math.expm1(low), math.expm1(high)],
                     "in_band": bool(why) and local <= LOCAL, "why": why if local <= LOCAL else "local loss"})
    inside: list[dict[str, Any]] = [r for r in rows if r["in_band"]]
    low, high = inside[0]["after"], inside[-1]["threshold"]
    kept = incumbent is not None and any(r["after"] < incumbent <= r["threshold"] for r in inside)
    return {"rules": rows, "lo": low, "hi": high, "best": ts[best], "contiguous": _contiguous(rows),
            "chosen": incumbent if kept else ship(low, high, ts[best - 1] if best else 0.0, ts[best]),
            "kept_incumbent": kept}


def _contiguous(rows: list[dict[str, Any]]) -> bool:
    flags = "".join("x" if r["in_band"] else " " for r in rows).strip()
    return " " not in flags


def ship(low: float, high: float, best_low: float, best_high: float) -> float:
    """The geometric midpoint of the band (low, high], brought into the best rule's own interval (best_low, best_high]
    (a wide band says that the data cannot tell, not that another rule measured better); a multiple of 16 where that
    interval holds one."""
    low, high = (low, high) if math.isfinite(high) else (best_low, best_high)
    middle = math.sqrt(max(low, 1.0) * high)
    inside = [t for t in range(16, 1 << 17, 16) if best_low < t <= best_high] if math.isfinite(best_high) else []
    return float(min(inside, key=lambda t: (abs(math.log(t / middle)), t))) if inside and best_low > 0 else best_high



# ---- which feature, and does it matter -------------------------------------------------------------------------------

Feature = Callable[[Point], float]


def features(square: bool, units: int) -> dict[str, Feature]:
    """What a dispatcher may look at. The first is the one it uses."""
    if not square:
        return {"m": lambda p: p.m, "max(m,n)": lambda p: max(p.m, p.n), "k": lambda p: p.k}
    return {"n": lambda p: p.n, "b": lambda p: p.batch, "b*n": lambda p: p.batch * p.n,
            "b*n^2": lambda p: p.batch * p.n ** 2, "b*n^3": lambda p: p.batch * p.n ** 3,
            "waves*n": lambda p: math.ceil(p.batch / units) * p.n, "n*sqrt(b)": lambda p: p.n * math.sqrt(p.batch)}


def best_features(study: Study, a: int, z: int, thresholds: Sequence[float] | None = None) -> list[dict[str, Any]]:
    """The best threshold of each feature, sorted by regret; the smallest threshold wins ties. In robust mode also in
    how many resamples the dispatcher's feature, refitted as this one is, does better."""
    square = all(p.m == p.n for p in study.points)
    rows: list[dict[str, Any]] = []
    means: dict[str, Array] = {}
    gap = study.lr[:, z] - study.lr[:, a]
    robust = study.stats == "robust" and thresholds is None
    drawn = (study.draws * (study.lr_drawn[:, :, z] - study.lr_drawn[:, :, a])) if robust else np.zeros((1, 1))
    for name, feature in features(square, study.units).items():
        f = np.array([feature(p) for p in study.points], float)
        ts = list(thresholds) if thresholds is not None else candidates(f)
        masks = np.stack([f >= t for t in ts])
        totals = np.round((masks * gap).sum(1), 12)
        t = ts[int(totals.argmin())]
        r = study.of(picks_at(f, t, a, z))
        rows.append({"feature": name, "threshold": t, "geomean": math.exp(math.fsum(r) / len(r)),
                     "worst": math.exp(r.max())})
        if robust:
            means[name] = (drawn @ masks.T).min(1)
    own = next(iter(features(square, study.units)))
    for row in rows:
        row["dispatcher"] = row["feature"] == own
        if robust and row["feature"] != own:
            better, equal = means[row["feature"]] < means[own] - 1e-12, abs(means[row["feature"]] - means[own]) <= 1e-12
            row["beats_dispatcher"] = float(better.mean() + equal.mean() / 2)
    return sorted(rows, key=lambda r: r["geomean"])


def leverage(policies: Sequence[Array], chosen: Array, weights: Array | None = None) -> list[dict[str, float]]:
    """For each candidate's final policy (after all later stages): at how many points, and with what contest weight,
    another backend is dispatched than by the chosen policy."""
    weights = np.zeros(len(chosen)) if weights is None else weights
    return [{"points": int((p != chosen).sum()), "weight": float(weights[p != chosen].sum())} for p in policies]


def power(study: Study, f: Array, thresholds: Sequence[float], a: int, z: int) -> dict[str, dict[str, Any]]:
    """Per class: how far its curve spans, the standard error of that by bootstrap, and whether it can speak at all."""
    result = {}
    masks = np.stack([f >= t for t in thresholds]).astype(float)
    for c, m in study.classes.items():
        if not m.any():
            continue
        base, gap = study.lr[m, a], study.lr[m, z] - study.lr[m, a]
        logs = (base.sum() + masks[:, m] @ gap) / m.sum()
        weights = study.draws[:, m] / np.maximum(study.draws[:, m].sum(1, keepdims=True), 1)
        drawn = weights @ base[:, None] + (weights * gap) @ masks[:, m].T
        low, high = int(logs.argmin()), int(logs.argmax())
        spread = float((drawn[:, high] - drawn[:, low]).std())
        span = math.expm1(float(logs[high] - logs[low]))
        result[c] = {"range": span, "se": spread, "no_power": span < 2 * spread}
    return result
