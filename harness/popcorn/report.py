"""The verdict and the cases, for people (stdout) and for programs (result.json)."""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

from harness.popcorn.rows import Row
from harness.popcorn.store import Entry
from harness.popcorn.verdict import Outcome, Verdict
from harness.results import Run, geomean, saved_runs

KEPT = ("id", "leaderboard_name", "file_name", "submission_time", "done", "job")
KEPT_RUN = ("start_time", "end_time", "mode", "runner", "score", "passed", "result", "diagnostics")


def public_record(doc: dict[str, Any] | None) -> dict[str, Any]:
    """The server's record without the user, the code and secret runs."""
    if not doc:
        return {}
    runs = [{k: r[k] for k in KEPT_RUN if k in r} for r in doc.get("runs") or [] if not r.get("secret")]
    return {**{k: doc[k] for k in KEPT if k in doc}, "runs": runs}


def figures(public: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    """score_s: the server's public score, seconds. geomean_ns: ours, over the passing benchmark cases."""
    scores = [float(r["score"]) for r in public.get("runs", []) if r.get("mode") == "leaderboard" and r.get("score")]
    means = [r.mean_ns for r in runs if r.mode == "benchmark" and r.samples_ns]
    return {"score_s": min(scores) if scores else None, "geomean_ns": geomean(means) if means else None,
            "passed": sum(r.ok for r in runs), "cases": len(runs)}


def as_json(state: dict[str, Any], outcome: Outcome, public: dict[str, Any]) -> str:
    known = {**state, "verdict": outcome.verdict.words, "exit_code": outcome.verdict.code, "why": outcome.why}
    return json.dumps({**known, "server": public}, indent=1) + "\n"


def show(entry: Entry, outcome: Outcome, public: dict[str, Any], measured: list[Row], runs: list[Run],
         redact: Callable[[str], str]) -> int:
    state = entry.state
    code = verdict_line(state["file"], f"{state['leaderboard']}, {state['mode']}, {state['gpu']}", entry.number,
                        outcome, state["path"], state.get("local", False), redact)
    _show_tests([r for r in runs if r.mode == "test"], redact)
    _show_benchmarks([(row, run) for row, run in zip(measured, runs, strict=True) if row.mode == "benchmark"], redact)
    if state.get("score_s"):
        print(f"server's score (ranked stage, public): {show_ns(state['score_s'] * 1e9)}")
    for run in public.get("runs", []):
        traceback = own_frames((run.get("diagnostics") or {}).get("stderr") or "")
        if traceback and not run.get("passed"):
            print(f"\nstderr of the {run.get('mode')} stage on the server:\n{redact(traceback)}", file=sys.stderr)
    print(f"saved: {entry.folder}" + (f", {entry.runs_file}" if runs else ""), file=sys.stderr)
    beside = _local_beside(state["sha"], entry.session)
    if runs and beside:
        print(f"  next: ./kit compare {beside} {entry.runs_file}", file=sys.stderr)
    return code


def verdict_line(file: str, what: str, number: int | None, outcome: Outcome, path: str, local: bool,
                 redact: Callable[[str], str] = str) -> int:
    """`failed tests: v07.py on qr_v2, test, B200, submission 71234: why`; the next step on stderr."""
    where = what + (f", submission {number}" if number else "")
    print(redact(f"{outcome.verdict.words}: {file} on {where}" + (f": {outcome.why}" if outcome.why else "")))
    step = next_step(outcome, path, number, local)
    if step:
        print(f"  next: {step}", file=sys.stderr)
    return outcome.verdict.code


def next_step(outcome: Outcome, path: str, number: int | None, local: bool) -> str:
    again = f"scripts/submit --resume {number}" if number else ""
    return {
        Verdict.PASSED: "",
        Verdict.FAILED: f"./kit check {path}",
        Verdict.USAGE: "correct what is named above; the server took nothing",
        Verdict.CRASHED: f"./kit check {path}; where it passes, compare torch, CUDA and GPU with the server's",
        Verdict.TIMEOUT: f"./kit bench {path}; compile time counts against each stage's limit",
        Verdict.INFRA: f"{again} reads it again; without runs, send it anew" if again else "send it anew later",
        Verdict.GUARD: f"./kit check {path} names the lines",
        Verdict.RATE: f"again in {outcome.seconds} s, or --wait",
        Verdict.CLOSED: f"./kit bench {path} works without the board"
                        + (f"; so does popcorn submit {path} --local (your own Modal account)" if local else ""),
        Verdict.AUTH: "popcorn register discord (or github); where you registered before: popcorn reregister discord",
        Verdict.NETWORK: again or "the same command again; it first looks whether the server took this one",
    }[outcome.verdict]


def _show_tests(runs: list[Run], redact: Callable[[str], str]) -> None:
    for run in runs:
        if not run.ok:
            print(redact(f"wrong: {run.file} on {run.case}: {run.message or run.status}"))
    if runs:
        print(f"{sum(r.ok for r in runs)} of {len(runs)} tests passed")


def _show_benchmarks(pairs: list[tuple[Row, Run]], redact: Callable[[str], str]) -> None:
    if not pairs:
        return
    width = max(len(run.case) for _, run in pairs)
    print(f"\n{'case':{width}} {'mean':>10} {'± err':>10} {'best':>10} {'worst':>10} {'repeats':>8}")
    for row, run in pairs:
        if not run.ok:
            print(redact(f"{run.case:{width}} {run.status:>10}   {run.message}"))
            continue
        cells = " ".join(f"{show_ns(row.ns[f]) if f in row.ns else '-':>10}" for f in ("mean", "err", "best", "worst"))
        print(f"{run.case:{width}} {cells} {row.repeats or '-':>8}")
    good = [run.mean_ns for _, run in pairs if run.ok]
    if good:
        note = "" if len(good) == len(pairs) else f"  (not a score: {len(pairs) - len(good)} without a time)"
        print(f"geomean over {len(good)} of {len(pairs)} shapes: {show_ns(geomean(good))}{note}")
    if any(row.rounded for row, _ in pairs):
        print("times are rounded to the digits that popcorn prints: this server gives no raw results", file=sys.stderr)


def show_ns(ns: float) -> str:
    """Four significant digits in µs or ms: `41.23 µs`, `2.832 ms`."""
    value, unit = (ns / 1e6, "ms") if ns >= 1e6 else (ns / 1e3, "µs")
    return f"{value:#.4g}".rstrip(".") + " " + unit if value < 1000 else f"{value:.0f} {unit}"


def own_frames(stderr: str, most: int = 25) -> str:
    """A submission's own end of a traceback: from its first frame on, at most `most` lines."""
    lines = stderr.rstrip().splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(r'File ".*submission\.py"', line)), 0)
    return "\n".join(lines[first:][-most:])


def _local_beside(sha: str, session: str) -> str:
    """The newest file of local runs of the same bytes; read by text, since only the name is wanted."""
    needle = f'"sha":"{sha}"'
    for path in saved_runs():
        if path.stem != session and sha:
            text = path.read_text(encoding="utf-8", errors="replace")
            if needle in text and '"where":"local"' in text:
                return str(path)
    return ""

