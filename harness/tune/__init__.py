"""`./kit tune`: which backend serves which shape, how sure that is, and what a wrong choice costs.

    grid      points and classes             backends  what can be timed, and a fake of it
    measure   interleaved blocks             journal   what is on disk already; execute: where blocks run
    timings   the table of times, and noise  score     regret, intervals, the unbiased regret
    threshold one constant                   rules     segments of n; refine: richer forms and held-out folds
    routing   share, heavy or CPU            analyse   all of it, into results.json
    report    results.json to report.md      plots     to SVG
    apply     the row in tuned.json, and ROUTES in a submission
    published the studied report's numbers, and its tables from them
"""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def register(verbs: Any) -> None:
    p = verbs.add_parser(
        "tune", help="measure backends over a grid of shapes and fit which serves which",
        description="Measure backends over a grid of shapes, in interleaved blocks and at least two passes; fit a "
                    "route for each shape; try to disprove the fit; write a report. Killed at any moment, --resume "
                    "goes on.",
        epilog="example: ./kit tune --grid square --backends geqrf,v12,v21,v31,v41 --budget 10\n"
               "         ./kit tune --apply submissions/v60_all.py",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--grid", choices=("contest", "square", "rect", "quick"), default="square",
                   help="contest: its 34 specs; square: n from 32 to 4096 by batch, all kinds of input (default); "
                        "rect: the published report's; quick: a smoke test")
    p.add_argument("--backends", metavar="LIST", default="",
                   help="comma-separated: geqrf, cpu, names of submissions (v12; v12/257-512: for these n only), "
                        "fake (default: geqrf and all submissions)")
    p.add_argument("--passes", type=int, default=2, metavar="N", help="full traversals, at least 2 (default 2)")
    p.add_argument("--budget", type=float, metavar="MIN", help="minutes; repeats are cut before points are")
    p.add_argument("--limit", type=float, default=150.0, metavar="S", help="seconds one visit may take (default 150)")
    p.add_argument("--out", type=Path, default=_out(), metavar="DIR", help="default: results/")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of orders, inputs and resamples (default 0)")
    p.add_argument("--resume", nargs="?", const=Path("."), type=Path, metavar="RUN",
                   help="go on with a run that was broken off (default: the newest)")
    p.add_argument("--top-up", nargs="?", const=Path("."), type=Path, metavar="RUN",
                   help="add blocks, points or backends to a complete run (default: the newest)")
    p.add_argument("--stats", choices=("robust", "compat"), default="robust",
                   help="compat: the published report's arithmetic")
    p.add_argument("--from", dest="from_", type=Path, metavar="RESULTS", help="render a results.json again; no device")
    p.add_argument("--reanalyse", nargs="+", type=Path, metavar="RAW", help="fit again from raw.csv files; no device")
    p.add_argument("--compat", action="store_true", help="print the published report's tables from its numbers")
    p.add_argument("--apply", type=Path, metavar="SUBMISSION", help="write this device's routes into a submission")
    p.add_argument("--check", action="store_true", help="with --apply: only say whether its routes are stale (exit 1)")
    p.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler whose workers declare a GPU each")
    p.set_defaults(run=_run)


def _out() -> Path:
    from harness.cases import ROOT
    return ROOT / "results"


def _run(args: argparse.Namespace) -> int:
    from harness.tune.run import run
    return run(args)
