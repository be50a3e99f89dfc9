"""Saved runs -> what the page shows. Pure, but for the noise floor and the ceilings that this checkout has stored.

{v, made, note, environments: [{title, noise, cases: [{label, floor_ns, bound}], base: index of v00_geqrf or null,
  files: [{name, file, sha, first, rounds, passed, ran, geomean_ns or null, cells: [cell or null for each case]}]}]}
cell: {ns, status, message, factor, orth, rounds: [{at, ns, n, samples}]}

ns is the geometric mean of the rounds' means, as in compare. geomean_ns is there only for a file that passed every
case of its environment: anything else is no score.
"""
from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import noise, pick, roofline, stats
from harness.cases import load_task
from harness.compare import Timings
from harness.pick import Side
from harness.results import Run, geomean, utc_now

VERSION = 1
LIMIT = 950_000  # bytes of the page: small enough for a mail, a chat, a browser on a phone
BASELINE = "v00_geqrf.py"


def collect(sides: Sequence[Side], samples: int | None = None) -> dict[str, Any]:
    """Of each file the newest content in each environment; of each run at most about `samples` samples (None: all)."""
    newest: dict[object, Side] = {}
    for s in sides:
        key = (s.environment, s.file)
        if key not in newest or newest[key].last.t <= s.last.t:
            newest[key] = s
    environments: dict[object, list[Side]] = {}
    for s in newest.values():
        environments.setdefault(s.environment, []).append(s)
    ordered = sorted(environments.values(), key=lambda group: max(s.last.t for s in group), reverse=True)
    note = "" if samples is None else f"raw samples are thinned to {samples} a run" if samples else \
        "raw samples are left out"
    return {"v": VERSION, "made": utc_now(), "note": note,
            "environments": [_environment(group, samples) for group in ordered]}


def title(r: Run) -> str:
    parts = [r.device.get("name", "unknown device"), *(f"{k} {r.device[k]}" for k in ("torch", "driver")
                                                      if k in r.device), f"{r.protocol} protocol"]
    return ", ".join(parts + ([r.where] if r.where != "local" else []))


def _environment(sides: list[Side], samples: int | None) -> dict[str, Any]:
    order = [c.label for c in load_task().benchmarks]
    labels = sorted({r.case for s in sides for r in s.benchmarks},
                    key=lambda c: order.index(c) if c in order else len(order))
    last = sides[0].last
    card = roofline.ceilings(last.device.get("name", ""))
    floor = noise.read(last.device, last.protocol, last.task)
    specs = {r.case: r.spec for s in sides for r in s.benchmarks}
    cases = []
    for label in labels:
        ns, bound = roofline.floor_ns(*roofline.shape(specs[label]), card) if card else (None, "")
        cases.append({"label": label, "floor_ns": ns, "bound": bound})
    files = sorted((_file(s, labels, samples) for s in pick.name_apart(sides)), key=lambda f: (f["first"], f["name"]))
    base = next((i for i, f in enumerate(files) if f["file"] == BASELINE), None)
    return {"title": title(last), "noise": floor.typical if floor else None, "cases": cases, "base": base,
            "cut": any(r.cut for s in sides for r in s.benchmarks), "files": files}


def _file(s: Side, labels: list[str], samples: int | None) -> dict[str, Any]:
    cells = [_cell(s, label, samples) for label in labels]
    passed = [c["ns"] for c in cells if c and c["ns"]]
    return {"name": s.name, "file": s.file, "sha": s.sha, "first": min(r.t for r in s.benchmarks),
            "rounds": len({(r.session, r.round) for r in s.benchmarks}), "passed": len(passed),
            "ran": sum(c is not None for c in cells),
            "geomean_ns": geomean(passed) if len(passed) == len(labels) else None, "cells": cells}


def _cell(s: Side, label: str, samples: int | None) -> dict[str, Any] | None:
    t = Timings(s, label)
    if not t.runs:
        return None
    good = not t.failure and bool(t.logs)
    rounds = [{"at": i, "ns": r.mean_ns, "n": len(r.samples_ns), "samples": _thin(r.samples_ns, samples)}
              for i, r in enumerate(r for r in t.runs if r.samples_ns)]
    return {"ns": stats.geometric(t.logs.values()) if good else None, "status": t.status or "infra",
            "message": t.failure.message if t.failure else "", "factor": _number(t.margin("factor")),
            "orth": _number(t.margin("orth")), "rounds": rounds}


def _number(x: float | None) -> float | None:
    return x if x is not None and math.isfinite(x) else None


def _thin(samples: Sequence[float], most: int | None) -> list[float]:
    """Every k-th, to a tenth of a nanosecond below 10 µs and to a nanosecond above: the clock resolves no more."""
    step = 1 if most is None else math.ceil(len(samples) / most) if most else len(samples) + 1
    return [round(x) if x >= 1e4 else round(x, 1) for x in (samples[::step] if most != 0 else ())]


def page(sides: Sequence[Side]) -> str:
    """The HTML page, under LIMIT: samples are thinned first, then the oldest files left out; the page says so."""
    counts = [len(r.samples_ns) for s in sides for r in s.benchmarks]
    room = LIMIT // 9 // max(1, len(counts))  # a sample takes about nine bytes
    most = None if max(counts, default=0) <= room else room
    found = collect(sides, most)
    while len((text := _fill(found)).encode()) > LIMIT:
        if most != 0:
            most = (max(counts) if most is None else most) // 2
            found = collect(sides, most)
        else:
            largest = max(found["environments"], key=lambda e: len(e["files"]))
            oldest = [f for f in largest["files"] if f["file"] != BASELINE][:max(1, len(largest["files"]) // 4)]
            largest["files"] = [f for f in largest["files"] if f not in oldest]
            largest["base"] = next((i for i, f in enumerate(largest["files"]) if f["file"] == BASELINE), None)
            found["note"] = "raw samples and the oldest files are left out"
    return text


def _fill(found: dict[str, Any]) -> str:
    here = Path(__file__).parent
    text = (here / "page.html").read_text(encoding="utf-8")
    # "<" would end the script element that holds the data
    blob = json.dumps(found, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    for mark, part in (("/*css*/", (here / "page.css").read_text(encoding="utf-8")),
                       ("/*js*/", (here / "page.js").read_text(encoding="utf-8")), ("/*data*/", blob)):
        text = text.replace(mark, part, 1)
    return text
