"""One submission from preflight to verdict, and the same from a number alone.

Order: lint, program, registration, is it on its way already, store, send, wait on the server's own record, judge,
save. A submission is sent by one run of the program; nothing but a stated rate limit (the server took nothing) sends
it again.
"""
from __future__ import annotations

import datetime
import functools
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.cases import ROOT, Task, load_task
from harness.errors import EXIT_USAGE, UserError
from harness.popcorn import program, report, rows, store, verdict
from harness.popcorn.server import Account
from harness.popcorn.store import Entry
from harness.popcorn.verdict import Outcome, Problem, Verdict
from harness.results import append_runs, file_sha, utc_now

ACCEPTED = re.compile(r"^Submission (\d+) accepted\.")
STATUS = re.compile(r"^Submission (\d+) status: (\S+)(?: - (.+?))? \((\d+)s\)$")
INTERRUPTED = 130
REFUSED = (Verdict.USAGE, Verdict.AUTH, Verdict.RATE, Verdict.CLOSED, Verdict.GUARD)  # the server took nothing


def submit(file: Path, mode: str, leaderboard: str | None, gpu: str | None, wait: bool) -> int:
    """Send a file and return the verdict's exit code. leaderboard and gpu default to the file's directives, then to
    qr_v2 on B200. wait: sit out a rate limit. Raises UserError before anything is sent."""
    code = preflight(file)
    said = directives(code)
    leaderboard = (leaderboard or said.get("leaderboard") or "qr_v2").lower()
    gpu = gpu or said.get("gpu") or task().gpus[0]
    popcorn = program.find()
    if popcorn.old:
        tell(f"warning: {popcorn} is old: it prints less than the server knows\n"
             f"  next: {program.INSTALL.splitlines()[1].strip()}")
    try:
        account = Account()
        kind = {"sha": file_sha(file), "mode": mode, "leaderboard": leaderboard, "gpu": gpu}
        refuse_second(account, kind)
    except Problem as p:
        what = f"{leaderboard}, {mode}, {gpu}"
        return report.verdict_line(file.name, what, None, p.outcome, str(file), popcorn.local)
    entry = store.new(file=file.name, path=str(file), **kind, program=popcorn.version, generation=popcorn.generation,
                      local=popcorn.local, started=utc_now(), revision=revision())
    entry.write(file.name, as_sent(code, leaderboard))
    try:
        while True:
            outcome, doc, over = send(entry, popcorn, account)
            if outcome.verdict is not Verdict.RATE or not wait:
                return finish(entry, account, outcome, doc, over)
            count_down(outcome)
    except KeyboardInterrupt:
        again = f"--resume {entry.number}" if entry.number else f"{file} --mode {mode} (it first asks the server)"
        tell(f"interrupted; what the server took goes on\n  next: scripts/submit {again}")
        return INTERRUPTED


def resume(number: int) -> int:
    """Follow a submission that was sent before, from here or elsewhere, to its verdict."""
    account = None
    entry = store.by_number(number)
    try:
        account = Account()
        doc = account.wait(number, tell)
    except KeyboardInterrupt:
        tell(f"interrupted; submission {number} goes on\n  next: scripts/submit --resume {number}")
        return INTERRUPTED
    except Problem as p:
        name = entry.state["file"] if entry else "?"
        return report.verdict_line(name, "resumed", number, p.outcome, name, False)
    if entry is None:
        entry = adopt(number, doc)
    outcome = verdict.from_document(doc, entry.state["mode"], limits())
    return finish(entry, account, outcome, doc, over=True)


def preflight(file: Path) -> str:
    """The file's text, once nothing in it is known to be refused by the server. Raises UserError."""
    from harness.lint import lint

    if not file.is_file():
        raise UserError(f"{file}: no such file", "name a submission, for example submissions/v00_geqrf.py", EXIT_USAGE)
    findings = lint(file)
    for finding in findings:
        tell(f"{file.name}:{finding}")
    if any(f.severity == "error" for f in findings):
        raise UserError(f"{file.name}: the server must refuse it; nothing was sent",
                        f"correct the lines above; ./kit check {file}", EXIT_USAGE)
    return file.read_bytes().decode()


DIRECTIVE = re.compile(r"^((?:#|//)!POPCORN\s+(\w+)\s+)(\S+)", re.I)


def directives(code: str) -> dict[str, str]:
    """`#!POPCORN key value` lines of the first comment block, the only ones that the server reads."""
    found = {}
    for line in code.splitlines():
        if not line.startswith(("#", "//")):
            break
        match = DIRECTIVE.match(line)
        if match:
            found[match[2].lower().removesuffix("s")] = match[3]
    return found


def as_sent(code: str, leaderboard: str) -> str:
    """The code with its leaderboard directive set to where it goes: the server refuses any difference, case too."""
    lines = code.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if not line.startswith(("#", "//")):
            break
        match = DIRECTIVE.match(line)
        if match and match[2].lower() == "leaderboard":
            lines[i] = match[1] + leaderboard + line[match.end():]
    return "".join(lines)


def refuse_second(account: Account, kind: dict[str, str]) -> None:
    """Raises UserError where the same bytes are on their way already (a script was killed, a laptop closed), and
    Problem where that cannot be found out."""
    before = store.unfinished(**kind)
    if before and not before.number:
        before.save(id=look_up(before, account))
    if before and before.number:
        raise UserError(f"{before.state['file']}: the same bytes are on their way as submission {before.number}; "
                        "nothing was sent", f"scripts/submit --resume {before.number}", EXIT_USAGE)
    if before:
        before.save(verdict=Verdict.NETWORK.words, why="the server never took it")


def look_up(entry: Entry, account: Account) -> int | None:
    since = datetime.datetime.fromisoformat(entry.state["started"])
    name = entry.state["file"]
    return account.find(entry.read(name), name, entry.state["leaderboard"], since)


def send(entry: Entry, popcorn: program.Program, account: Account) -> tuple[Outcome, dict[str, Any] | None, bool]:
    """One run of the program. Returns the outcome, the server's record if there is one, and whether that is the end:
    False leaves the submission to --resume."""
    state = entry.state

    def on_line(line: str) -> None:
        accepted, status = ACCEPTED.match(line), STATUS.match(line)
        if accepted:
            entry.save(id=int(accepted[1]))  # at once: whatever dies now, the number is on disk
        if accepted or line.startswith('{"status"'):
            tell(account.redact(line))
        elif status:
            tell(f"submission {status[1]}: {status[2]}" + (f", {status[3]}" if status[3] else "") + f" ({status[4]} s)")

    finished = program.run(popcorn, ["submit", str(entry.folder / state["file"]), "--leaderboard", state["leaderboard"],
                                     "--gpu", state["gpu"], "--mode", state["mode"], "--no-tui"],
                           entry.folder, account.api, on_line)
    entry.write("stdout.txt", account.redact(rows.public_text(finished.stdout)))
    entry.write("stderr.txt", account.redact(rows.public_text(finished.stderr)))
    said = verdict.from_text(finished.code, finished.stdout, finished.stderr)
    said = Outcome(said.verdict, account.redact(said.why), said.seconds)
    if entry.number is None and said.verdict in REFUSED:
        return said, None, True
    return follow(entry, account, said)


def follow(entry: Entry, account: Account, said: Outcome) -> tuple[Outcome, dict[str, Any] | None, bool]:
    """From the program's end to the server's final record. said: what the program's own output stands for."""
    cut = said.verdict is Verdict.NETWORK
    try:
        if entry.number is None:
            entry.save(id=look_up(entry, account))
        if entry.number is None and cut:
            time.sleep(1)  # the row may be written just after the connection broke
            entry.save(id=look_up(entry, account))
    except Problem as p:
        if not cut and said.verdict is not Verdict.INFRA:  # the printed report stands by itself
            return said, None, True
        return Outcome(p.outcome.verdict, f"{said.why}; not known whether the server took it: {p}"), None, False
    if entry.number is None:
        return Outcome(said.verdict, said.why + "; the server took nothing" * cut), None, True
    try:
        doc = account.wait(entry.number, tell, cut)
    except Problem as p:
        return p.outcome, None, p.outcome.verdict is Verdict.USAGE
    if not verdict.is_final(doc):
        return said, None, False
    return verdict.from_document(doc, entry.state["mode"], limits()), doc, True


@functools.cache
def task() -> Task:
    return load_task()


def limits() -> dict[str, int]:
    return {"test": task().test_timeout, "benchmark": task().benchmark_timeout, "leaderboard": task().ranked_timeout}


def adopt(number: int, doc: dict[str, Any]) -> Entry:
    """A folder for a submission that was sent from elsewhere. Its mode is the furthest stage that it ran."""
    modes = [r.get("mode") for r in doc.get("runs") or []]
    mode = next((m for m in ("leaderboard", "benchmark", "test") if m in modes), "test")
    name = re.sub(r"[^\w.-]", "_", str(doc.get("file_name") or "submission.py")).lstrip(".") or "submission.py"
    entry = store.new(id=number, file=name, path=name, mode=mode, leaderboard=doc.get("leaderboard_name"),
                      gpu=next((r.get("runner") for r in doc.get("runs") or []), "?"), program="", generation="",
                      started=doc.get("submission_time"), sha="")
    entry.write(name, str(doc.get("code") or ""))
    entry.save(sha=file_sha(entry.folder / name))
    return entry


def finish(entry: Entry, account: Account, outcome: Outcome, doc: dict[str, Any] | None, over: bool) -> int:
    """Save what is known, print it, return the exit code."""
    state = entry.state
    measured = rows.from_document(doc) if doc else []
    if over and not measured:  # a server too old to give results
        measured = rows.from_text(entry.read("stdout.txt") + entry.read("stderr.txt"))
    runs = rows.to_runs(measured, task(), outcome, state["file"], state["sha"], entry.session)
    if runs and not entry.runs_file.exists():  # a second --resume reads the same numbers again
        append_runs(entry.runs_file, runs)
    public = report.public_record(doc)
    if over:
        entry.save(verdict=outcome.verdict.words, why=outcome.why, **report.figures(public, runs))
    entry.write("result.json", account.redact(report.as_json(state, outcome, public)))
    return report.show(entry, outcome, public, measured, runs, account.redact)


def count_down(outcome: Outcome) -> None:
    left = (outcome.seconds or 60) + random.uniform(0, 2)  # scattered, so that many waiting scripts do not meet
    tell(f"{outcome.why}\nrate limited: the server took nothing; sending again in {left:.0f} s")
    live = sys.stderr.isatty()
    while left > 0:
        step = min(left, 1 if live else 60)
        time.sleep(step)
        left -= step
        if live or left > 0:
            print(f"\r{left:.0f} s " if live else f"{left:.0f} s", end="" if live else "\n", file=sys.stderr,
                  flush=True)


def revision() -> str:
    """The checkout's commit, or "" outside one."""
    try:
        return subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                              timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
