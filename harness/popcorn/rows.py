"""What the server measured, case by case: from its raw nanoseconds, or where it is too old, from printed text.

The text keeps three or four digits, so rows that come from it say so.
"""
from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.cases import Case, Task
from harness.popcorn.verdict import Outcome, Verdict, public_runs
from harness.results import Run, utc_now

FIGURES = ("mean", "std", "err", "best", "worst")


@dataclass
class Row:
    """One case of one stage. state: pass, fail, or lost (the stage broke off in it)."""

    mode: str  # test or benchmark
    spec: str
    state: str
    message: str = ""
    ns: dict[str, float] = field(default_factory=dict)  # of FIGURES, nanoseconds
    repeats: int = 0
    rounded: bool = False
    runner: str = ""
    t: str = ""


def from_document(doc: dict[str, Any]) -> list[Row]:
    """Rows of the public test and benchmark stages; secret runs are not looked at."""
    rows = []
    for mode in ("test", "benchmark"):
        for run in public_runs(doc, mode):
            found = _from_result(run.get("result") or {}, mode)
            for row in found:
                row.runner, row.t = str(run.get("runner") or ""), str(run.get("end_time") or "")
            rows += found
    return rows


def _from_result(result: dict[str, str], mode: str) -> list[Row]:
    rows: list[Row] = []
    while (spec := result.get(f"{mode}.{len(rows)}.spec")) is not None:
        key = f"{mode}.{len(rows)}."
        ns = {f: _number(result.get(key + f)) for f in FIGURES}
        status = result.get(key + "status", "pass" if ns["mean"] > 0 else "lost")
        message = result.get(key + "error") or result.get(key + "message") or ""
        repeats = _number(result.get(key + "runs"))
        rows.append(Row(mode, spec, status if status in ("pass", "fail") else "lost", message,
                        {f: v for f, v in ns.items() if v > 0 or (v == 0 and f in ("std", "err"))},
                        int(repeats) if repeats > 0 else 0))
    return rows


def _number(text: object) -> float:
    """NaN where it is no finite number, so that no comparison holds."""
    try:
        value = float(str(text))
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6}
SPEC = re.compile(r"(?:[a-zA-Z]+: [a-zA-Z0-9-]+; )+[a-zA-Z]+: [a-zA-Z0-9-]+")


def from_text(text: str) -> list[Row]:
    """Rows of a printed report, generation A's (JSON-escaped, its secret half dropped) or C's."""
    lines = public_text(text).splitlines()
    rows: list[Row] = []
    for i, line in enumerate(lines):
        spec = SPEC.search(line)
        after = lines[i + 1] if i + 1 < len(lines) else ""
        if not spec:
            continue
        if line == spec[0]:  # a benchmark's block: the spec alone, then the mean, then the range
            second = lines[i + 2] if i + 2 < len(lines) else ""
            ns = _times(after.split(), "mean", "err") | _times(second.split(), "best", "worst")
            if "mean" in ns:
                rows.append(Row("benchmark", spec[0], "pass", ns=ns, rounded=True))
        elif line.endswith("failed testing:"):
            error = next((x for x in lines[i + 1:] if x.strip()), "")
            rows.append(Row("benchmark", spec[0], "fail", error.strip(), rounded=True))
        elif line.startswith("✅") or after.startswith(">"):
            good = line.startswith("✅") or "rtol=" in after  # a damaged mark: the pass message tells
            rows.append(Row("test", spec[0], "pass" if good else "fail", after.removeprefix(">").strip(), rounded=True))
    return rows


def _times(tokens: list[str], *names: str) -> dict[str, float]:
    """` ⏱ 41.2 ± 0.03 µs` or ` ⚡ 40.1 µs 🐌 45.0 µs`, by position: the marks may be damaged."""
    unit_last = _unit(tokens[-1]) if tokens else 0
    if names[0] == "mean" and len(tokens) in (3, 5) and unit_last:
        values = [tokens[1]] + ([tokens[3]] if len(tokens) == 5 else [])
        figures = [_number(v) * unit_last for v in values]
    elif names[0] == "best" and len(tokens) == 6 and unit_last and _unit(tokens[2]):
        figures = [_number(tokens[1]) * _unit(tokens[2]), _number(tokens[4]) * unit_last]
    else:
        return {}
    return {name: v for name, v in zip(names, figures, strict=False) if v >= 0}


def _unit(word: str) -> float:
    """Nanoseconds of a unit. Both micro signs are in use; a damaged one is still micro: the others are ASCII."""
    return UNITS.get(re.sub(r"^[\u00b5\u03bc\ufffd]+", "u", word), 0.0)


def public_text(text: str) -> str:
    """Printed text without terminal links, secret results, the JSON summary, and generation A's JSON escapes."""
    text = re.sub(r"\x1b\]8;;.*?(?:\x1b\\|\x07)", "", text)
    text = re.sub(r"^\{$.*?^\}$\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"^STD(?:OUT|ERR) \(Run 2\):.*", "", text, flags=re.M | re.S)  # run 2 is the secret one
    parts = [p for p in re.split(r'"\s*,\s*"', text) if not re.match(r'[\s"\[]*\*\*[^\n]*\(secret\)', p)]
    text = "\n".join(line for line in "\n".join(parts).splitlines() if "(secret)" not in line)
    text = re.sub('^"|"$', "", text.replace("```", "\n"), flags=re.M)
    return text.replace(r"\"", '"').replace(r"\t", "\t").replace("\\\\", "\\").strip("\n") + "\n"


def summary(stdout: str) -> dict[str, Any]:
    """The JSON object that a program's stdout ends with, or {}. Strings may hold raw newlines."""
    found = re.search(r"^\{$.*^\}$", stdout, re.M | re.S)
    try:
        return json.loads(found[0], strict=False) if found else {}
    except ValueError:
        return {}


def label(spec: str, task: Task) -> str:
    """Our label of a server's case line; a case that task.yml does not have is labelled in the same style."""
    known = _case(spec, task)
    if known:
        return known.label
    d = _parse(spec)
    return f"b{d.get('batch', '?')} n{d.get('n', '?')} {d.get('case', 'dense')}"


def _case(spec: str, task: Task) -> Case | None:
    wanted = {"case": "dense", **_parse(spec)}
    return next((c for c in task.tests + task.benchmarks if {"case": "dense", **_parse(c.spec)} == wanted), None)


def _parse(spec: str) -> dict[str, str]:
    return dict(part.strip().split(": ", 1) for part in spec.split(";") if ": " in part)


SHAPE_ERRORS = re.compile(r"output must be|(H|tau) (shape|dtype|must be on|contains)")


def to_runs(rows: Iterable[Row], task: Task, outcome: Outcome, file: str, sha: str, session: str) -> list[Run]:
    """Runs with where="popcorn". The server gives a mean over its repeats and no samples: samples_ns holds that mean,
    `message` the rest. task: our hash where every case is one of task.yml's, else empty, so that results of a changed
    contest are never mixed with ours."""
    lost = {Verdict.TIMEOUT: "timeout", Verdict.CRASHED: "raised"}.get(outcome.verdict, "infra")
    rows = list(rows)
    same_task = all(_case(row.spec, task) for row in rows)
    runs = []
    for row in rows:
        wrong = "output" if SHAPE_ERRORS.match(row.message) else "wrong"
        runs.append(Run(
            file, sha, label(row.spec, task), row.spec, {"pass": "pass", "fail": wrong, "lost": lost}[row.state],
            mode=row.mode, protocol="contest", where="popcorn", session=session, task=task.sha if same_task else "",
            message=_spread(row) if row.ns else row.message,
            samples_ns=[row.ns["mean"]] if row.state == "pass" and "mean" in row.ns else [],
            margin=_margin(row.message), device={"name": row.runner} if row.runner else {}, t=row.t or utc_now()))
    return runs


def _spread(row: Row) -> str:
    figures = ", ".join(f"{f} {row.ns[f]:.7g}" for f in FIGURES[1:] if f in row.ns)
    mean = f"mean of {row.repeats} repeats on the server" if row.repeats else "the server's mean"
    return f"{mean}, ns: {figures}" + ("; rounded to the printed digits" if row.rounded else "")


def _margin(message: str) -> dict[str, float]:
    """Scaled residuals of a pass message, by our names."""
    names = {"factor": "scaled_factor_residual", "orth": "scaled_orthogonality_residual"}
    found = {ours: re.search(rf"{theirs}=([-+.0-9eE]+)", message) for ours, theirs in names.items()}
    return {ours: float(m[1].rstrip(".")) for ours, m in found.items() if m}
