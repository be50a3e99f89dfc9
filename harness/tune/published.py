"""The studied report's numbers (QR on an Apple M5 Pro), and its tables computed from them: `./kit tune --compat`.

What is typed here was measured elsewhere; everything printed beside it is computed by the code that serves our own
runs. The tests compare the two.
"""
from __future__ import annotations

import math
from typing import Any

from harness.errors import EXIT_OK
from harness.tune import grid
from harness.tune.report import cell, class_table, noise_rows, routing_rows, table, threshold_name

THRESHOLDS = (128, 192, 256, 288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 768, 1024)
_TWICE = (1, 1, 1, 2, 2, 2, 2, 2, 1, 1)  # how often each column of the printed table stands for a threshold


def _spread(values: str) -> list[float]:
    return [float(v) for v, times in zip(values.split(), _TWICE, strict=True) for _ in range(times)]


POOLED = _spread("1.1167 1.0804 1.0685 1.0395 1.0309 1.0347 1.0346 1.0605 1.1142 1.1261")
CLASSES = {"square": _spread("1.1993 1.1462 1.1017 1.0695 1.0478 1.0385 1.0372 1.0440 1.0700 1.1117"),
           "tall": _spread("1.0533 1.0388 1.0388 1.0084 1.0084 1.0322 1.0322 1.0942 1.2331 1.2331"),
           "wide": _spread("1.0501 1.0155 1.0155 1.0083 1.0083 1.0083 1.0083 1.0083 1.0083 1.0083"),
           "near-square": _spread("1.1784 1.1269 1.1269 1.0799 1.0664 1.0616 1.0627 1.0890 1.1199 1.1199")}
COUNTS = {"square": 40, "tall": 44, "wide": 30, "near-square": 29}
CELLS = (0.847, 0.598, 0.602, 0.942, 0.895, 0.963, 0.993, 1.064, 1.295, 1.354)
# name: base (held-out G, worst), then each refinement's
HELD_OUT = {"the report": ((1.0287, 1.311), (1.0284, 1.495), (1.0235, 1.425)),
            "run 2": ((1.0175, 1.53), (1.0195, 1.53), (1.0266, 1.33)),
            "run 3": ((1.0324, 1.43), (1.0083, 1.39), (1.0409, 1.43))}
SHARE = ((0, 1.4750, 2.93), (64, 1.0253, 1.35), (256, 1.1156, 2.51), (1024, 1.1334, 2.51), (4096, 1.2070, 2.51),
         (16384, 1.3464, 2.58))
ROUTING: dict[str, dict[str, Any]] = {
    "chosen": {"geomean": 1.0059, "worst": 1.37, "over10": 4, "n": 185},
    "without_large": {"geomean": 1.0682, "worst": 6.66, "over10": 14, "n": 185},
    "gpu_always": {"geomean": 2.4937, "worst": 86.53, "over10": 155, "n": 185},
    "cpu_always": {"geomean": 1.0732, "worst": 6.66, "over10": 17, "n": 185}}
NOISE_PAIRS = (230, 153, 104, 52, 29, 18)
# device, units, threshold for small and for large batches, the batch between, s_max, P, b_min, s_min, L, C, share batch
ROW = ("Apple M5 Pro", 20, 384, 384, 16, 128, 20480, 1, 16, 768, 4, 64)


def boundary() -> Any:
    """The row's heavy-or-CPU boundary."""
    from harness.tune.routing import Boundary
    return Boundary(s_min=ROW[8], s_max=ROW[5], work=ROW[6], b_min=ROW[7], large=ROW[9], large_batch=ROW[10])


def final_policy(threshold: float) -> list[str]:
    """What the row dispatches on the published grid, with another kernel threshold: cpu, share, A or Z."""
    points = grid.rect(int(ROW[1]))
    heavy = boundary().heavy(points)
    return ["cpu" if not h else "share" if p.batch >= ROW[11] else "Z" if p.m >= threshold else "A"
            for p, h in zip(points, heavy, strict=True)]


def print_tables() -> int:
    """TV1 to TV8 of the specification, on stdout."""
    from harness.tune import threshold
    from harness.tune.refine import justified
    from harness.tune.routing import choose_share

    points, crossover = grid.rect(int(ROW[1])), grid.crossover_rect()
    aspects = [grid.aspect(p.m, p.n) for p in points]
    coverage = ", ".join(f"{c} {aspects.count(c)}" for c in sorted(set(aspects)))
    shared = sum(p.batch >= 64 for p in points)
    b = threshold.band(THRESHOLDS, POOLED)
    rules = threshold.equivalent(THRESHOLDS, sorted({p.m for p in crossover}))
    pooled = [math.exp(sum(n * math.log(CLASSES[c][i]) for c, n in COUNTS.items()) / sum(COUNTS.values()))
              for i in range(len(THRESHOLDS))]
    heavy, clause = boundary().heavy(points), boundary().clause(points)
    chosen = final_policy(384)
    moved = {t: sum(x != y for x, y in zip(final_policy(t), chosen, strict=True)) for t in THRESHOLDS}
    out = [f"# The published report, recomputed: {ROW[0]}, {ROW[1]} units", "",
           f"{len(points)} shapes ({coverage}), {3 * len(points) + shared} shape/backend pairs measured twice, of "
           f"which "
           f"{shared} shared; {len(crossover)} shapes for the threshold.", "",
           "## Cost of missing the threshold", "",
           *table(("threshold", "regret", "excess", "in band"), (
               (f"{t}", f"{g:.4f}", f"{e:+.2f} %", "*" * (t in b["inside"]))
               for t, g, e in zip(THRESHOLDS, POOLED, threshold.excess(POOLED), strict=True))), "",
           f"Band: {b['lo']} to {b['hi']}, chosen {b['chosen']}. Distinct rules: {len(rules)}: "
           + " ".join("{" + ",".join(threshold_name(t) for t in g) + "}" for g in rules) + ".",
           f"The pooled column from the class columns differs by at most "
           f"{max(abs(x - y) for x, y in zip(pooled, POOLED, strict=True)):.5f}.", "",
           "## Regret by threshold", "",
           *class_table({"thresholds": list(THRESHOLDS), "pooled": POOLED, "classes": CLASSES}), "",
           f"Chart: y axis from 1.0 to {threshold.y_limit([*POOLED, *CLASSES['tall'], *CLASSES['square']]):.2f}.", "",
           "## Cells of the heat map", "", "```", *(cell(x) for x in CELLS), "```", "",
           "## Refinements", "",
           *table(("run", "base", "refinement", "verdict"), (
               (run, f"{base[0]:.4f}, {base[1]:.3g}", f"{x[0]:.4f}, {x[1]:.3g}",
                "adopt" if justified(base, x) else "reject")
               for run, (base, *tried) in HELD_OUT.items() for x in tried)), "",
           "## Share", "",
           *table(("from batch", "regret", "worst"),
                  ((str(c or "never"), f"{g:.4f}", f"{w:.2f}") for c, g, w in SHARE)), "",
           f"Chosen: {choose_share(SHARE) or 'never'}.", "", "## Heavy or CPU", "",
           *table(("rule", "regret", "worst", ">10 %"), routing_rows(ROUTING)), "",
           f"The row sends {int(heavy.sum())} shapes to the GPU: {int(clause.sum())} by the large clause, "
           f"{int((heavy & ~clause).sum())} by the window.",
           "Leverage of the threshold on the final policy: " + ", ".join(
               f"{t}: {n}" for t, n in moved.items()) + ".", "",
           "## Noise", "",
           *table(("quickest pass", "pairs"), [(r[0], r[1]) for r in noise_rows(_noise_counts())])]
    print("\n".join(out))
    return EXIT_OK


def _noise_counts() -> dict[str, Any]:
    from harness.tune.timings import bucket_order
    blank = {"median": math.nan, "p90": math.nan, "max": math.nan}
    rows = zip(bucket_order("compat"), NOISE_PAIRS, strict=True)
    return {"by_runtime": [{"bucket": b, "n": n} | blank for b, n in rows],
            "overall": {"n": sum(NOISE_PAIRS)} | blank}
