"""One candidate from lint to verdict: the gates that need nothing but the two files and an evaluator.

`judge` is a generator of steps, each an event for the ledger with the runs that it rests on. In a serial run the loop
writes each step down before it asks for the next, and after a crash hands back what is there already; on a cluster a
worker collects the steps of a candidate and sends them home. Capture, duplicates and the remote gate are the loop's.

    lint    build, tests, probes    screen    confirm (extended once)    floor    decision
"""
from __future__ import annotations

import ast
import contextlib
import difflib
import hashlib
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.research import evaluators
from harness.research.decide import Rounds, Rule, decide, percent, rounds_of, score_ns
from harness.research.evaluators import Evaluator
from harness.results import Run

MAX_BYTES = 1_000_000
JUMP = 3.0  # faster than this on any shape: checked again on new seeds, and a person is to look
FLOOR_SLACK = 1e-3
DETAIL = 1000  # characters of a failure that go into the ledger and the next prompt
# What a status of harness.results says about an attempt.
VERDICT_OF = {"wrong": "wrong", "output": "wrong", "flagged": "flagged", "clock": "rejected", "import": "broken",
              "raised": "broken", "timeout": "broken", "died": "broken", "oom": "broken", "infra": "infra"}


@dataclass(frozen=True)
class Job:
    """All that a judge on another machine needs."""

    run: str
    attempt: int
    against: int
    candidate: bytes
    incumbent: bytes
    evaluator: str
    config: dict[str, Any]
    rule: Rule
    env: dict[str, str] = field(default_factory=dict)  # of the epoch: a judge elsewhere must have the same
    gates: dict[str, dict[str, Any]] = field(default_factory=dict)  # on disk already: what is not repeated
    measures: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()

    def session(self, stage: str) -> str:
        return f"{self.run}-{self.attempt:04d}-{stage}"

    @property
    def more_lines(self) -> int:
        return self.candidate.count(b"\n") - self.incumbent.count(b"\n")


@dataclass
class Step:
    event: str  # gate, measure or decision
    fields: dict[str, Any]
    runs: list[Run] = field(default_factory=list)


class _Enough(Exception):
    """The first failing run: the others would only cost time."""


def failed(gate: str, verdict: str, detail: str, ms: float = 0) -> Step:
    return Step("gate", {"gate": gate, "ok": False, "verdict": verdict, "detail": detail[:DETAIL], "ms": round(ms)})


def passed(gate: str, ms: float = 0, **more: Any) -> Step:
    return Step("gate", {"gate": gate, "ok": True, "ms": round(ms), **more})


def judge_all(job: Job) -> list[Step]:
    """What an executor's worker runs."""
    return list(judge(job, evaluators.make(job.evaluator, job.config)))


def judge(job: Job, evaluator: Evaluator) -> Iterator[Step]:
    """The steps of a candidate that are not in the job already; the last one is its decision."""
    with tempfile.TemporaryDirectory(prefix="qrkit-judge-") as folder:
        candidate, incumbent = (Path(folder) / f"a{n:04d}.py" for n in (job.attempt, job.against))
        candidate.write_bytes(job.candidate)
        incumbent.write_bytes(job.incumbent)
        yield from _judge(job, evaluator, candidate, incumbent)


def _judge(job: Job, evaluator: Evaluator, candidate: Path, incumbent: Path) -> Iterator[Step]:
    gates, measures, runs = dict(job.gates), dict(job.measures), list(job.runs)

    def note(step: Step) -> Step:
        runs.extend(step.runs)
        {"gate": gates, "measure": measures}[step.event][step.fields.get("gate") or step.fields["stage"]] = step.fields
        return step

    def fallen() -> dict[str, Any] | None:
        return next((g for g in gates.values() if not g["ok"]), None)

    here = evaluator.env() if job.env else {}
    unlike = [f"{k}: {here.get(k)}, the epoch's is {v}" for k, v in job.env.items() if here.get(k) != v]
    if unlike:
        yield note(failed("device", "infra", ", ".join(unlike)))
    if not fallen() and "lint" not in gates:
        yield note(lint_gate(candidate, incumbent))
    if not fallen() and "probes" not in gates:
        for step in check_gates(candidate, evaluator):  # one check, of which a crash may have left a part
            if not (step.fields["ok"] and step.fields["gate"] in gates):
                yield note(step)
    stages = (("screen", 1, job.config["screen_rounds"]), ("confirm", 2, job.config["confirm_rounds"] // 2),
              ("extend", 1, 4))
    verdict = None
    for stage, pairs, per_pair in stages:
        if fallen() or verdict:
            break
        if stage not in measures:
            for step in _timed(job, evaluator, candidate, incumbent, stage, pairs, per_pair):
                yield note(step)
        if fallen():
            break
        if stage == "screen":
            verdict = _screened(job, _rounds(job, runs, candidate, incumbent, ("screen",)))
            continue
        seen = _rounds(job, runs, candidate, incumbent, ("confirm", "extend"))
        decision = decide(seen, job.rule, job.more_lines)
        if decision.extend and stage == "confirm":
            continue
        more: dict[str, Any] = {}
        if decision.verdict == "kept":
            if "floor" not in gates:
                yield note(floor_gate(job, evaluator, candidate, seen, runs))
            if fallen():
                break
            # the times of the confirm rounds alone: the screen's were selected
            of_confirm = [r for r in runs if r.session in (job.session("confirm"), job.session("extend"))]
            more = {"score_ns": round(score_ns(of_confirm, candidate.name)[0], 1)}
        verdict = {"verdict": decision.verdict, "reason": decision.reason, "gain": decision.gain,
                   "shapes": seen.shape_means(), **more}
    fall = fallen()
    if fall:
        verdict = {"verdict": fall["verdict"], "reason": f"{fall['gate']}: {fall['detail']}"}
    assert verdict is not None  # every path above sets it or falls at a gate
    yield Step("decision", verdict)


# ---------------------------------------------------------------- what costs nothing

def fingerprint(source: str) -> str:
    """The same for two files that differ in comments, docstrings and blanks only, those inside CUDA text included."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return hashlib.sha256(" ".join(source.split()).encode()).hexdigest()[:16]
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and isinstance(body[0], ast.Expr) \
                and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
            del body[0]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", node.value, flags=re.S)
            node.value = " ".join(code.split())
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]


def changed(old: str, new: str) -> list[str]:
    """The unified diff."""
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), "parent", "attempt", lineterm=""))


def shingles(diff: list[str]) -> set[tuple[str, ...]]:
    """Runs of five tokens of the changed lines, + and - included."""
    tokens = [t for line in diff if line[:1] in "+-" and line[:3] not in ("+++", "---")
              for t in (line[0], *re.findall(r"\w+|\S", line[1:]))]
    return {tuple(tokens[i:i + 5]) for i in range(max(1, len(tokens) - 4))} if tokens else set()


def alike(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> float:
    """Jaccard's index."""
    return len(a & b) / len(a | b) if a or b else 1.0


def lint_gate(candidate: Path, parent: Path) -> Step:
    """Rules of the server are certain: rejected. Signs of a cheat are for a person to judge: flagged, and not kept.
    What the parent shows as well is no news."""
    from harness.lint import lint
    start = time.monotonic()
    known = {(f.rule, f.message) for f in lint(parent)}
    found = [f for f in lint(candidate) if (f.rule, f.message) not in known]
    ms = 1e3 * (time.monotonic() - start)
    for severity, verdict in (("error", "rejected"), ("flag", "flagged")):
        bad = [f for f in found if f.severity == severity]
        if bad:
            return failed("lint", verdict, f"line {bad[0].line}: {bad[0].rule} {bad[0].message}", ms)
    return passed("lint", ms)


# ---------------------------------------------------------------- what runs the candidate

def check_gates(candidate: Path, evaluator: Evaluator) -> Iterator[Step]:
    """build, tests and probes from one check, which ends at its first failure. The harness's own failure is tried
    again once."""
    for attempt in (1, 2):
        runs: list[Run] = []

        def collect(r: Run, runs: list[Run] = runs) -> None:
            runs.append(r)
            if not r.ok:
                raise _Enough

        start = time.monotonic()
        with contextlib.suppress(_Enough):
            evaluator.check(candidate, collect)
        ms = 1e3 * (time.monotonic() - start)
        bad = next((r for r in runs if not r.ok), None)
        if bad is None or bad.status != "infra" or attempt == 2:
            break
    gate = "" if bad is None else "build" if bad.status == "import" else \
        "probes" if bad.case.startswith("probe") else "tests"
    for name in ("build", "tests", "probes"):
        if name == gate and bad:
            yield failed(name, VERDICT_OF[bad.status], f"{bad.case}: {bad.status}: {bad.message}", ms)
            return
        last = name == (gate or "probes")
        yield passed(name, ms if last else 0)


def _timed(job: Job, evaluator: Evaluator, candidate: Path, incumbent: Path, stage: str, pairs: int,
           per_pair: int) -> Iterator[Step]:
    """One stage of rounds: a measure step; before it a failed gate where the candidate does not run as it should."""
    for attempt in (1, 2):
        runs: list[Run] = []

        def collect(r: Run, runs: list[Run] = runs) -> None:
            runs.append(r)
            if not r.ok:
                raise _Enough

        start = time.monotonic()
        with contextlib.suppress(_Enough):
            order = [candidate, incumbent][::1 if job.attempt % 2 else -1]  # a screen has one pair of processes
            evaluator.rounds(order, pairs, per_pair, job.session(stage), collect)
        s = time.monotonic() - start
        bad = next((r for r in runs if not r.ok), None)
        seen = rounds_of(runs, candidate.name, incumbent.name, per_pair)
        # the incumbent's failure, and a clock that will not hold still, are no verdict on the candidate
        ours = bad is not None and (bad.file == incumbent.name or bad.status == "infra")
        if (not ours and (bad is not None or (seen.dropped <= 2 and len(seen.d) >= 2))) or attempt == 2:
            break
    if bad is not None or len(seen.d) < 2:
        detail = f"{bad.case}: {bad.status}: {bad.message}" if bad else f"the clock moved in {seen.dropped} rounds"
        verdict = "infra" if ours or bad is None else VERDICT_OF[bad.status]
        yield failed(stage, verdict, ("the incumbent, " if ours else "") + detail, 1e3 * s)
        return
    d = decide(seen, job.rule, job.more_lines)
    yield Step("measure", {
        "against": job.against, "stage": stage, "rounds": len(seen.d), "dropped": seen.dropped, "per_pair": per_pair,
        "geo_log": d.gain, "ci95_hi": d.ci_hi, "wins": d.wins, "worst_shape": list(d.worst), "s": round(s, 2)}, runs)


def _rounds(job: Job, runs: list[Run], candidate: Path, incumbent: Path, stages: tuple[str, ...]) -> Rounds:
    """The rounds of these stages; their pairs are told apart by stage too."""
    total = Rounds([], [])
    for stage in stages:
        mine = [r for r in runs if r.session == job.session(stage)]
        per_pair = {"screen": job.config["screen_rounds"], "confirm": job.config["confirm_rounds"] // 2}.get(stage, 4)
        part = rounds_of(mine, candidate.name, incumbent.name, per_pair)
        after = max(total.pair, default=-1) + 1
        total.d += part.d
        total.pair += [after + p for p in part.pair]
    return total


def _screened(job: Job, rounds: Rounds) -> dict[str, Any] | None:
    """A verdict where the screen shows no promise; None where the confirm rounds are worth their time."""
    mean, m = sum(rounds.g) / len(rounds.g), job.rule.margin
    if mean < -m / 2 or (job.more_lines <= -job.rule.shrink_lines and mean < m):
        return None
    return {"verdict": "slower" if mean > m else "same", "gain": mean, "shapes": rounds.shape_means(),
            "reason": f"{percent(mean)} in {len(rounds.g)} rounds of screening, {percent(-m / 2)} is asked for"}


def floor_gate(job: Job, evaluator: Evaluator, candidate: Path, rounds: Rounds, runs: list[Run]) -> Step:
    """No file is faster than the card. A jump is checked again on new seeds, and marked for review."""
    from math import exp
    start = time.monotonic()
    confirm = [r for r in runs if r.session in (job.session("confirm"), job.session("extend"))]
    times = score_ns(confirm, candidate.name)[1]
    for case, floor in evaluator.floors().items():
        if case in times and times[case] < floor * (1 - FLOOR_SLACK):
            return failed("floor", "rejected", f"{case}: {times[case] / 1e3:.1f} µs, the card needs at least "
                          f"{floor / 1e3:.1f} µs")
    jumps = [c for c, x in rounds.shape_means().items() if exp(-x) > JUMP]
    if jumps:
        bad = [s for s in check_gates(candidate, evaluator) if not s.fields["ok"]]
        if bad:
            return failed("floor", bad[0].fields["verdict"], f"on new seeds: {bad[0].fields['detail']}")
    return passed("floor", 1e3 * (time.monotonic() - start),
                  **({"review": True, "detail": f"more than {JUMP:g} times faster on {', '.join(jumps)}"}
                     if jumps else {}))
