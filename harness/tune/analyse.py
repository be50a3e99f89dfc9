"""Times in, results.json out: measure nothing, decide everything, and say how far each decision can be trusted."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.errors import UserError
from harness.tune import grid, routing, threshold
from harness.tune.refine import fold_report, published_refinements, refinements
from harness.tune.rules import (
    MAX_SEGMENTS,
    Row,
    Rule,
    choose_count,
    feature_of,
    fit_segments,
    halves,
)
from harness.tune.score import RESAMPLES, Study, contest_score
from harness.tune.timings import Array, Table, disagreement, interval

SCHEMA = 1
INCUMBENT_G, INCUMBENT_W, CLASS_LIMIT = 1.005, 1.10, 1.02


def analyse(table: Table, meta: dict[str, Any], *, seed: int = 0, resamples: int = RESAMPLES,
            incumbent: Sequence[Sequence[Any]] | None = None) -> dict[str, Any]:
    """The complete analysis of a table, as results.json holds it (floats to 12 digits, no infinities).

    Raises UserError where nothing has a time.

    meta: device {name, units, slug, kind}, grid, probes [[ms, gpu], ...], conditions [{load, cpus, throttle}, ...].
    """
    dropped = [p.key for p, ok in zip(table.points, table.usable, strict=True) if not ok]
    if not table.usable.any():
        raise UserError("nothing has a time: every backend failed at every point",
                        "see the status column of raw.csv", 3)
    table = table.take(table.usable)
    units = int(meta["device"]["units"])
    study = Study(table, units, seed, resamples)
    kernels = [i for i, b in enumerate(table.backends) if _role(b) == "kernel"]
    results: dict[str, Any] = {
        "schema": SCHEMA, "stats": table.stats, "device": meta["device"], "grid": meta["grid"], "seed": seed,
        "resamples": resamples, "n_points": len(table.points), "n_shapes": len({p.shape for p in table.points}),
        "n_pairs": int(((~np.isnan(table.passes)).sum(-1) >= 2).sum()), "backends": table.backends,
        "coverage": {c: int(m.sum()) for c, m in study.classes.items()}, "dropped": dropped,
        "blind": grid.blind(table.points, units), "noise": study.noise.summary(),
        "trust": trust(study, meta), "unusable": _unusable(table)}
    if len(set(table.run_of)) > 1:
        results["runs_agree"] = disagreement(table)
    scores = {b: study.score(np.full(len(table.points), i)) for i, b in enumerate(table.backends)}
    results["always"] = scores
    pair = _pair(study, kernels)
    if pair:
        results |= _threshold_part(study, *pair)
    final = _published_part(study, pair, results) if table.stats == "compat" else _rule_part(
        study, results, incumbent)
    _boundary_part(study, pair, final, results)
    results["contest"] = _contest(study)
    results["points"] = _points(study, final)
    results["probes"] = meta.get("probes", [])
    ranked = [i for i, p in enumerate(table.points) if grid.is_ranked(p)]
    if ranked:
        times = table.lt[ranked, final[ranked]]
        results["contest"]["rule_ms"] = math.exp(math.fsum(times) / len(ranked)) if np.isfinite(times).all() else None
    results["ktuned_entry"] = _entry(results)
    return tidy(results)


def tidy(x: Any) -> Any:
    """JSON's types, floats to 12 significant digits (libm differs between machines), infinities to null."""
    if isinstance(x, dict):
        return {str(k): tidy(v) for k, v in x.items()}
    if isinstance(x, list | tuple | np.ndarray):
        return [tidy(v) for v in x]
    if isinstance(x, bool | np.bool_):
        return bool(x)
    if isinstance(x, int | np.integer):
        return int(x)
    if isinstance(x, float | np.floating):
        return float(f"{x:.12g}") if math.isfinite(x) else None
    return x


def _role(backend: str) -> str:
    name = backend.removeprefix("fake:").partition("@")[0]
    return "cpu" if name == "cpu" else "share" if backend.startswith("share:") else "kernel"


def trust(study: Study, meta: dict[str, Any]) -> dict[str, Any]:
    """Whether a row may be pasted: the machine's own repeatability, drift, load and throttling."""
    why, warnings = [], []
    noise = study.noise.summary()
    overall = noise["overall"]
    if overall["n"] == 0:
        why.append("single pass: no repeat, so no noise floor")
    elif overall["median"] > 1.10:
        why.append(f"the median ratio between passes is {overall['median']:.3f}, above 1.10")
    for row in noise["by_runtime"]:
        if study.stats == "robust" and row["bucket"] == "10-30" and row["p90"] > 1.10:
            why.append(f"p90 between passes at 10-30 ms is {row['p90']:.3f}, above 1.10")
    drift = 1.0
    first: dict[str, float] = {}
    for ms, gpu in meta.get("probes", []):
        r = ms / first.setdefault(gpu, ms)
        drift = max(drift, r, 1 / r)
    if drift > 1.25:
        why.append(f"the anchor drifted by a factor of {drift:.3f}, above 1.25")
    elif drift > 1.05:
        warnings.append(f"the anchor drifted by a factor of {drift:.3f}, above 1.05")
    seen = meta.get("conditions", [])
    loads = [c["load"] for c in seen if "load" in c]
    cpus = max([c.get("cpus", 1) for c in seen], default=1)
    if loads and sorted(loads)[len(loads) // 2] > max(2, cpus / 2):
        why.append(f"the median load average is {sorted(loads)[len(loads) // 2]:.1f} on {cpus} cores")
    throttled = sum(bool(c.get("throttle")) for c in seen)
    if seen and throttled > 0.02 * len(seen):
        why.append(f"the hardware throttled during {throttled} of {len(seen)} blocks")
    return {"trustworthy": not why, "why": why, "warnings": warnings, "drift": drift}


def _unusable(table: Table) -> list[dict[str, str]]:
    return [{"point": p, "backend": b, "status": s} for (p, b), s in sorted(table.status.items())]


# ---- one threshold between two backends -----------------------------------------------------------------------------

def _pair(study: Study, kernels: list[int]) -> tuple[int, int] | None:
    """(A, Z): the two sides of the best two segments; where one backend serves all, it and the runner-up."""
    if len(kernels) < 2:
        return None
    everything = np.ones(len(study.points), bool)
    rows = fit_segments(study, everything, 2, kernels)
    if len(rows) == 2:
        return study.table.column(rows[0].backend), study.table.column(rows[1].backend)
    best, second = sorted(kernels, key=lambda i: (float(study.lr[:, i].sum()), i))[:2]
    f = _feature(study)
    slope = np.corrcoef(np.log(f), study.lr[:, best] - study.lr[:, second])[0, 1] if len(set(f)) > 1 else 0.0
    return (second, best) if slope <= 0 else (best, second)  # the one that gains on large ones is Z


def _feature(study: Study) -> Array:
    return np.array([getattr(p, feature_of(study.points)) for p in study.points], float)


def _threshold_part(study: Study, a: int, z: int) -> dict[str, Any]:
    names = study.table.backends
    both = np.isfinite(study.table.lt[:, a]) & np.isfinite(study.table.lt[:, z])
    if both.sum() < 2:
        return {}
    local = study.among(both, (a, z))
    f = _feature(local)
    compat = study.stats == "compat"
    ts = list(threshold.PUBLISHED) if compat else threshold.candidates(f)
    c = threshold.curves(local, f, ts, a, z, compat)
    part: dict[str, Any] = {
        "pair": {"a": names[a], "z": names[z], "feature": feature_of(local.points), "points": len(local.points)},
        "threshold_curves": c,
        "equivalence_classes": threshold.equivalent([t for t in ts if math.isfinite(t)], sorted(set(f))),
        "power": threshold.power(local, f, ts, a, z), "surface": _surface(local, a, z)}
    if compat:
        b = threshold.band(ts, c["pooled"])
    else:
        fitted = threshold.fit(local, f, a, z)
        part["fit"] = fitted
        b = {"lo": fitted["lo"], "hi": fitted["hi"], "chosen": fitted["chosen"], "best_geomean": min(c["pooled"]),
             "tolerance": threshold.EQUIVALENT, "inside": [r["threshold"] for r in fitted["rules"] if r["in_band"]]}
        ribbon = [interval(np.exp(local.means_drawn(threshold.picks_at(f, t, a, z)))) for t in ts]
        c["pooled_ci"] = [list(x) for x in ribbon]
    part["band"] = b
    part["cost_of_missing"] = [{"threshold": t, "geomean": g, "excess_pct": e, "in_band": t in b["inside"]}
                               for t, g, e in zip(ts, c["pooled"], threshold.excess(c["pooled"]), strict=True)]
    part["features"] = threshold.best_features(local, a, z, ts if compat else None)
    return part


def _surface(study: Study, a: int, z: int) -> list[dict[str, Any]]:
    """Z / A, to three decimals, in panels: per batch (rows m, columns n) or, for squares, rows n, columns batch of
    the dense points and one panel of the kinds of input at the anchors."""
    ratio = np.exp(study.table.lt[:, z] - study.table.lt[:, a])
    best, lost = study.table.lt.argmin(1), study.beaten
    cells = []
    for i, p in enumerate(study.points):
        tie = not bool(lost[i, a] or lost[i, z])
        cells.append({"b": p.batch, "m": p.m, "n": p.n, "case": p.case, "cond": p.cond,
                      "ratio": round(float(ratio[i]), 3), "tie": tie, "best": study.table.backends[int(best[i])]})
    return cells


# ---- the rule -------------------------------------------------------------------------------------------------------

def _rule_part(study: Study, results: dict[str, Any],
               incumbent: Sequence[Sequence[Any]] | None) -> Array:
    """Segments of n, richer forms if they earn it, the incumbent if nothing beats it. Returns the final picks."""
    everything = np.ones(len(study.points), bool)
    columns = [i for i, b in enumerate(study.table.backends) if _role(b) != "share"]  # a stage of its own, later
    feature = feature_of(study.points)
    count, cv = choose_count(study, everything, columns)
    plain = Rule(tuple(fit_segments(study, everything, count, columns)), feature)
    tried = refinements(study, count, columns, plain) if feature == "n" else []
    adopted = [r for r in tried if r["justified"]]
    best = min(adopted, key=lambda r: r["test_geomean"]) if adopted else None
    rule = Rule.from_json(best["rows"], feature) if best else plain
    kept = ""
    old = None
    if incumbent and all(r[3] in study.table.backends for r in incumbent):
        old = Rule.from_json(incumbent, feature)
        kept = _keep(study, old, rule)
        rule = old if kept else rule
    picks = rule.picks(study)
    candidates = [("always " + b, Rule.always(b, feature)) for b in study.table.backends]
    candidates += [(f"{s} segments", Rule(tuple(fit_segments(study, everything, s, columns)), feature))
                   for s in range(2, MAX_SEGMENTS + 1)]
    candidates += [("incumbent", old)] if old else []
    results["segments"] = {"count": count, "cross_validated": cv, "rows": [r.to_json() for r in plain.rows]}
    results["refinements"] = tried
    results["rule"] = {"rows": [r.to_json() for r in rule.rows], "describe": rule.describe(), "feature": feature,
                       "adopted": best["name"] if best and not kept else None, "kept_incumbent": kept}
    results["chosen"] = study.score(picks)
    results["rules"] = [_rule_row(study, label, r.picks(study)) for label, r in candidates] + [
        _rule_row(study, "chosen", picks)]
    results["leverage"] = _leverage(study, rule, picks)
    results["folds"] = fold_report(study, columns, best["name"] if best else None)
    return picks


def _keep(study: Study, old: Rule, new: Rule) -> str:
    """Incumbent first: constants do not move on noise, and no class may pay for the others."""
    x, y = study.score(old.picks(study), False), study.score(new.picks(study), False)
    if x["geomean"] <= INCUMBENT_G * y["geomean"] and x["worst"] <= INCUMBENT_W * y["worst"]:
        return "the new rule is not better by 0.5 %"
    worse = [c for c, g in y["per_class"].items() if g > CLASS_LIMIT * x["per_class"][c]]
    return f"the new rule is worse on class {worse[0]}" if worse else ""


def _rule_row(study: Study, label: str, picks: Array) -> dict[str, Any]:
    s = study.score(picks, False)
    return {"label": label, "geomean": s["geomean"], "worst": s["worst"], "worst_shape": s["worst_shape"],
            "over_tie": s["over10"], "over_real": s["over10_real"], "failed": s["failed"], "n": s["n"],
            "total": s["total"], "per_region": s["per_class"]}


def _leverage(study: Study, rule: Rule, picks: Array) -> list[dict[str, Any]]:
    """What moving each limit to a neighbouring measured value changes in the backend finally dispatched."""
    weights = np.array([grid.is_ranked(p) / 12 for p in study.points])
    values = sorted({getattr(p, rule.feature) for p in study.points})
    rows = []
    for i, r in enumerate(rule.rows):
        if r.n_max is None:
            continue
        at = sum(v <= r.n_max for v in values)
        moved = [values[j] for j in (at - 2, at) if 0 <= j < len(values)]
        for n_max in moved:
            changed = list(rule.rows)
            changed[i] = Row(n_max, r.batch_max, r.multiple_of, r.backend)
            lever = threshold.leverage([Rule(tuple(changed), rule.feature).picks(study)], picks, weights)[0]
            rows.append({"constant": f"{rule.feature} <= {r.n_max}", "moved_to": n_max} | lever)
    return rows


# ---- the published stages: threshold, refinement, share, CPU --------------------------------------------------------

def _published_part(study: Study, pair: tuple[int, int] | None, results: dict[str, Any]) -> Array:
    if not pair or "band" not in results:
        picks = np.full(len(study.points), int(study.lr.sum(0).argmin()))
        results["chosen"] = study.score(picks)
        results["rules"] = [_rule_row(study, "chosen", picks)]
        return picks
    a, z = pair
    f = _feature(study)
    t = results["band"]["chosen"]
    results["refinements"] = published_refinements(study, a, z, t)
    train, test = halves(study.points)
    half = Study(study.table.take(train), study.units, study.seed, study.resamples, (a, z))
    refitted = threshold.band(threshold.PUBLISHED, threshold.curves(
        half, f[train], threshold.PUBLISHED, a, z, True)["pooled"])
    r = study.of(threshold.picks_at(f, refitted["chosen"], a, z))[test]
    results["baseline_held_out"] = {
        "threshold": refitted["chosen"], "train": int(train.sum()), "test": int(test.sum()),
        "geomean": math.exp(r.mean()), "worst": math.exp(r.max())}
    picks = threshold.picks_at(f, t, a, z)
    results["chosen"] = study.score(picks)
    names = study.table.backends
    results["rules"] = [_rule_row(study, f"always {names[x]}", np.full(len(f), x)) for x in (a, z)]
    results["rules"] += [_rule_row(study, f"{row['feature']} >= {row['threshold']:g}", threshold.picks_at(
        np.array([threshold.features(feature_of(study.points) == "n", study.units)[row["feature"]](p)
                  for p in study.points]), row["threshold"], a, z)) for row in results["features"]]
    results["rules"].append(_rule_row(study, "chosen", picks))
    results["rule"] = {"rows": [[int(t) - 1, None, 1, names[a]], [None, None, 1, names[z]]],
                       "describe": [f"{feature_of(study.points)} >= {t:g}: {names[z]}", f"otherwise: {names[a]}"],
                       "feature": feature_of(study.points), "adopted": None, "kept_incumbent": ""}
    return picks


def _boundary_part(study: Study, pair: tuple[int, int] | None, picks: Array, results: dict[str, Any]) -> None:
    """Where share or the CPU was timed: the published fits of both, the CPU among the rivals held out."""
    lt, names = study.table.lt, study.table.backends
    roles = {_role(b): i for i, b in enumerate(names)}
    kernels = [i for i, b in enumerate(names) if _role(b) == "kernel"]
    gpu = lt[:, kernels].min(1)
    heavy = lt[np.arange(len(picks)), picks]
    on_cpu = "cpu" in roles and bool((picks == roles["cpu"]).any())
    if on_cpu:  # the heavy side alone
        heavy = np.where(picks == roles["cpu"], gpu, heavy)
    section: dict[str, Any] = {}
    if "share" in roles and kernels:
        share = lt[:, roles["share"]]
        curve = routing.share_curve(study.points, heavy, share, gpu)
        c = routing.choose_share([(int(x), g, w) for x, g, w in curve])
        section |= {"share_min_batch": c, "share_curve": curve}
        batch = np.array([p.batch for p in study.points])
        heavy = np.where((c > 0) & (batch >= c) & np.isfinite(share), share, heavy)
    if "cpu" in roles and kernels:
        cpu = lt[:, roles["cpu"]]
        both = np.isfinite(cpu) & np.isfinite(heavy)
        points = [p for p, ok in zip(study.points, both, strict=True) if ok]
        fastest = int((cpu[both] <= lt[both].min(1)).sum()) if both.any() else 0
        section |= {"cpu_fastest": fastest, "cpu_points": len(points)}
        if fastest and len(points) >= 4:
            size = "k" if study.stats == "compat" else "w"
            best = lt[both].min(1)
            fit = routing.Routing(points, heavy[both], cpu[both], best, size)
            chosen, small = fit.fit(), fit.fit_without_large()
            train, test = halves(points)
            part = routing.Routing([p for p, ok in zip(points, train, strict=True) if ok], heavy[both][train],
                                   cpu[both][train], best[train], size).fit()
            rest = routing.Routing([p for p, ok in zip(points, test, strict=True) if ok], heavy[both][test],
                                   cpu[both][test], best[test], size)
            always = routing.Boundary(size=size)
            section |= {"constants": chosen.to_json(), "chosen": fit.of(chosen), "without_large": fit.of(small),
                        "gpu_always": fit.of(always), "cpu_always": fit.of(routing.CPU_ONLY),
                        "held_out": {"fitted": rest.of(part), "gpu_always": rest.of(always),
                                     "cpu_always": rest.of(routing.CPU_ONLY)},
                        "first_cpu": [p.key for p, won in zip(points, cpu[both] <= best, strict=True) if won][:8]}
    if section:
        results["routing"] = section


# ---- the contest's own shapes ---------------------------------------------------------------------------------------

def _contest(study: Study) -> dict[str, Any]:
    table = study.table
    score = contest_score(table)
    rows = []
    for i, p in enumerate(table.points):
        if not grid.is_ranked(p):
            continue
        cells = {}
        for x, b in enumerate(table.backends):
            if np.isfinite(table.lt[i, x]):
                low, high = interval(np.exp(study.times_drawn[:, i, x]))
                cells[b] = {"ms": math.exp(table.lt[i, x]), "ci": [low, high], "tied": not bool(study.beaten[i, x])}
        rows.append({"point": p.key, "cells": cells})
    penalty = []
    easy = {(p.batch, p.n): i for i, p in enumerate(table.points) if p.case == "dense" and p.cond <= 2 and p.m == p.n}
    for i, p in enumerate(table.points):
        j = easy.get((p.batch, p.n))
        if j is None or p.case == "dense" or p.m != p.n:
            continue
        both = np.isfinite(table.lt[i]) & np.isfinite(table.lt[j])
        ratio = np.where(both, np.where(both, table.lt[i], 0) - np.where(both, table.lt[j], 0), np.inf)
        penalty.append((p.case, {b: ratio[x] for x, b in enumerate(table.backends) if np.isfinite(ratio[x])}))
    by_case: dict[str, dict[str, list[float]]] = {}
    for case, ratios in penalty:
        for b, log in ratios.items():
            by_case.setdefault(case, {}).setdefault(b, []).append(log)
    return score | {"rows": rows, "case_penalty": {
        c: {b: math.exp(math.fsum(x) / len(x)) for b, x in v.items()} for c, v in by_case.items()}}


def _points(study: Study, picks: Array) -> list[dict[str, Any]]:
    table = study.table
    best = table.lt.argmin(1)
    rows = []
    for i, p in enumerate(table.points):
        tied = [b for x, b in enumerate(table.backends) if not study.beaten[i, x] and np.isfinite(table.lt[i, x])]
        rows.append({"key": p.key, "b": p.batch, "m": p.m, "n": p.n, "case": p.case, "cond": p.cond,
                     "ms": {b: math.exp(t) if math.isfinite(t) else None
                            for b, t in zip(table.backends, table.lt[i].tolist(), strict=True)},
                     "quartiles": {b: list(table.ms_spread[p.key, b]) for b in table.backends
                                   if (p.key, b) in table.ms_spread},
                     "pass_ratio": {b: math.exp(float(np.nanmax(x) - np.nanmin(x)))
                                    for b, x in zip(table.backends, table.passes[i], strict=True)
                                    if (~np.isnan(x)).sum() > 1},
                     "best": table.backends[int(best[i])], "pick": table.backends[int(picks[i])],
                     "regret": math.exp(float(study.lr[i, picks[i]])), "tied": tied})
    return rows


def _entry(results: dict[str, Any]) -> dict[str, Any] | None:
    """The row for tuned.json, with the reasons that forbid pasting it."""
    if "rule" not in results or results["rule"]["feature"] != "n":
        return None
    no = [*results["blind"], *results["trust"]["why"]]
    no += ["smoke test"] * (results["grid"] == "quick") + ["fake device"] * (results["device"].get("kind") == "fake")
    return {"device": results["device"]["name"], "units": results["device"]["units"], "slug": results["device"]["slug"],
            "rows": results["rule"]["rows"], "geomean": results["chosen"]["geomean"],
            "ci": results["chosen"].get("ci"), "held_out": max((f["fitted"][0] for f in results.get("folds", [])),
                                                               default=None),
            "indicative_only": no}
