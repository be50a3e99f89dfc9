"""Richer rules are tried against the plain one on points that neither saw, and taken or left by rule."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.tune.grid import Point
from harness.tune.rules import (
    FORMS,
    PENALTY_PER_CONSTANT,
    Rule,
    choose_count,
    feature_of,
    fit_segments,
    group_folds,
    halves,
    held_out,
    stratified_folds,
)
from harness.tune.score import Study
from harness.tune.timings import Array

BETTER_SHARE, WORST_FACTOR, CLASS_FACTOR = 0.95, 1.02, 1.01


def justified(base: tuple[float, float], refined: tuple[float, float]) -> bool:
    """The published verdict on held-out (G, worst): better by more than 0.002, and the worst not worse by 0.01."""
    return refined[0] < base[0] - 0.002 and refined[1] <= base[1] + 0.01


def published_refinements(study: Study, a: int, z: int, threshold: float) -> list[dict[str, Any]]:
    """Batch split and narrow-n on the published halves: least train G (the first minimum), base the chosen rule."""
    train, test = halves(study.points)
    m, n, b = (np.array([getattr(p, k) for p in study.points]) for k in ("m", "n", "batch"))
    forms: dict[str, list[tuple[str, Array]]] = {"batch split": [], "narrow-n": []}
    for low in (256, 288, 320, 352, 384, 416):
        for high in (352, 384, 416, 448, 480, 512, 576):
            for b0 in (2, 4, 8, 16, 32):
                forms["batch split"].append((f"m >= ({high} if b < {b0} else {low})", m >= np.where(b < b0, high, low)))
    for t1 in (352, 384, 416, 448):
        for n0 in (16, 32, 64, 96):
            for t2 in (128, 192, 224, 256, 288, 320):
                forms["narrow-n"].append((f"m >= {t1} or (n <= {n0} and m >= {t2})",
                                          (m >= t1) | ((n <= n0) & (m >= t2))))

    def score(mask: Array, where: Array) -> tuple[float, float]:
        r = study.of(np.where(mask, z, a))[where]
        return math.exp(math.fsum(r) / len(r)), math.exp(r.max())
    base = score(m >= threshold, test)
    rows = []
    for name, options in forms.items():
        form, mask = min(options, key=lambda o: round(score(o[1], train)[0], 12))
        held = score(mask, test)
        rows.append({"name": name, "form": form, "train_geomean": score(mask, train)[0], "test_geomean": held[0],
                     "test_worst": held[1], "justified": justified(base, held), "base": list(base)})
    return rows


def refinements(study: Study, count: int, columns: Sequence[int], base: Rule) -> list[dict[str, Any]]:
    """Each richer form against the plain segments, both refitted on every training part of the leave-one-n-out and
    leave-one-batch-out folds. Accepted iff better in 95 % of resamples by more than 0.002 a constant, worst within
    1.02, no class worse by more than 1 %, and it dispatches some point differently."""
    everything = np.ones(len(study.points), bool)
    folds = _both_groups(study.points)
    if not folds:
        return []
    plain = held_out(study, folds, lambda s, train: _segments(s, train, count, columns))
    rows = []
    for name, form in FORMS.items():
        whole = form(study, everything, count, columns)
        if whole is None:
            continue
        rule = Rule(tuple(whole))

        def fit(s: Study, train: Array, form: Any = form) -> Rule:
            rows = form(s, train, count, columns)
            return Rule(tuple(rows)) if rows else _segments(s, train, count, columns)
        refined = held_out(study, folds, fit)
        gain = plain - refined
        drawn = (study.draws @ gain) / study.draws.sum(1)
        extra = max(1, rule.constants - base.constants)
        worst = (math.exp(plain.max()), math.exp(refined.max()))
        classes = [c for c, m in study.classes.items() if m.any() and gain[m].mean() < -math.log(CLASS_FACTOR)]
        leverage = int((rule.picks(study) != base.picks(study)).sum())
        better = float((drawn > PENALTY_PER_CONSTANT * extra).mean())
        reasons = [*(["not better often enough"] if better < BETTER_SHARE else []),
                   *(["worst"] if worst[1] > WORST_FACTOR * worst[0] else []),
                   *(f"class {c}" for c in classes), *([] if leverage else ["no leverage"])]
        rows.append({"name": name, "form": rule.describe(), "rows": [r.to_json() for r in rule.rows],
                     "train_geomean": study.geomean(rule.picks(study)), "test_geomean": math.exp(refined.mean()),
                     "test_worst": worst[1], "base": [math.exp(plain.mean()), worst[0]], "p_better": better,
                     "gain_median": float(np.median(drawn)), "gain_p5": float(np.quantile(drawn, 0.05)),
                     "extra_constants": extra, "leverage": leverage, "justified": not reasons, "reasons": reasons})
    return rows


def _both_groups(points: Sequence[Point]) -> list[tuple[Array, Array]]:
    return group_folds([p.n for p in points]) + group_folds([p.batch for p in points])


def _segments(study: Study, train: Array, count: int, columns: Sequence[int]) -> Rule:
    return Rule(tuple(fit_segments(study, train, count, columns)), feature_of(study.points))


def fold_report(study: Study, columns: Sequence[int], form: str | None) -> list[dict[str, Any]]:
    """The whole pipeline (number of segments, constants, the accepted form) refitted in each fold and scored on what
    it did not see, beside its rivals: the best single backend of the training part, and every backend throughout."""
    def pipeline(s: Study, train: Array) -> Rule:
        count, _ = choose_count(s, train, columns, repeats=1)
        rows = FORMS[form](s, train, count, columns) if form else None
        return Rule(tuple(rows), feature_of(s.points)) if rows else _segments(s, train, count, columns)

    def best_single(s: Study, train: Array) -> Rule:
        return Rule.always(s.table.backends[columns[int(s.lr[train][:, list(columns)].sum(0).argmin())]])
    kinds = {"leave one n out": group_folds([getattr(p, feature_of(study.points)) for p in study.points]),
             "leave one batch out": group_folds([p.batch for p in study.points]),
             "5 x 2 stratified": [f for f in stratified_folds(study) if f[0].any() and f[1].any()]}
    rows = [_fold_row(study, name, folds, pipeline, best_single) for name, folds in kinds.items() if folds]
    passes = [i for i, r in enumerate(study.table.run_of) if r == study.table.run_of[0]]
    if len(passes) >= 2:
        timed = [np.isfinite(study.table.of_pass(i).lt).any(1) for i in passes[:2]]
        both = np.asarray(timed[0] & timed[1])
        if both.any():
            part = study.table.take(both)
            first, second = (Study(part.of_pass(i), study.units, study.seed, study.resamples, study.oracle)
                             for i in passes[:2])
            everything = np.ones(int(both.sum()), bool)
            rules = {"fitted": pipeline(first, everything), "best_single": best_single(first, everything)}
            r = {k: second.of(rule.picks(second)) for k, rule in rules.items()}
            rows.append({"name": "pass 1 fits, pass 2 scores", "points": int(both.sum())} | {
                k: [math.exp(x.mean()), math.exp(x.max())] for k, x in r.items()} | _always(second, everything))
    return rows


def _fold_row(study: Study, name: str, folds: Any, pipeline: Any, best_single: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name}
    seen = np.zeros(len(study.points), bool)
    for key, fit in (("fitted", pipeline), ("best_single", best_single)):
        r = held_out(study, folds, fit)
        seen = ~np.isnan(r)
        row[key] = [math.exp(r[seen].mean()), math.exp(r[seen].max())]
    return row | {"points": int(seen.sum())} | _always(study, seen)


def _always(study: Study, mask: Array) -> dict[str, Any]:
    return {"always": {b: [math.exp(study.lr[mask, x].mean()), math.exp(study.lr[mask, x].max())]
                       for x, b in enumerate(study.table.backends)}}
