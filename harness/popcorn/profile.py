"""Profiles made on the leaderboard's GPU: run the program in a folder of its own, unpack, summarise.

Three ways, by what is installed: `--profile` (generation D, hosted), `--profile-brev` where POPCORN_BREV_PROFILER_URL
is set, else `--mode profile`, which profiles every ranked case on the server.
"""
from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path, PurePosixPath

from harness import profiling
from harness.cases import Case, select
from harness.errors import UserError
from harness.popcorn import program, report, rows, store, verdict
from harness.popcorn.server import Account
from harness.popcorn.submit import as_sent, directives, preflight, revision, task, tell
from harness.popcorn.verdict import Outcome, Problem, Verdict
from harness.results import file_sha, utc_now

WANTED = ("ncu-details.csv", "ncu-details.txt")  # and *.ncu-rep


def profile(file: Path, patterns: list[str], leaderboard: str | None, gpu: str | None) -> int:
    """Profile the named ranked cases (all without patterns); the worst verdict's exit code. Raises UserError."""
    cases = select(task().benchmarks, patterns)
    code = preflight(file)
    said = directives(code)
    leaderboard = (leaderboard or said.get("leaderboard") or "qr_v2").lower()
    gpu = gpu or said.get("gpu") or task().gpus[0]
    popcorn = program.find()
    what = f"{leaderboard}, profile, {gpu}"
    try:
        account = Account()
    except Problem as p:
        return report.verdict_line(file.name, what, None, p.outcome, str(file), popcorn.local)
    entry = store.new(file=file.name, path=str(file), sha=file_sha(file), mode="profile", leaderboard=leaderboard,
                      gpu=gpu, program=popcorn.version, generation=popcorn.generation, local=popcorn.local,
                      started=utc_now(), revision=revision())
    entry.write(file.name, as_sent(code, leaderboard))
    route, by_index = _route(popcorn, gpu)
    outcome, found = Outcome(Verdict.PASSED), 0
    for one in cases if by_index and patterns else [None]:  # one run of the program for each case, or one for all
        folder = entry.folder / (one.ident if one else "all")
        folder.mkdir()
        arguments = ["submit", str(entry.folder / file.name), "--leaderboard", leaderboard, "--no-tui", *route,
                     *(["--benchmark-index", str(one.index)] if one else [])]
        finished = program.run(popcorn, arguments, folder, account.api, lambda line: _progress(account.redact(line)))
        printed = account.redact(rows.public_text(finished.stdout + "\n" + finished.stderr))
        (folder / "output.txt").write_text(printed, encoding="utf-8")
        outcome = _judge(finished)
        found += _show(folder, file, [one] if one else cases, sure=bool(one), narrowed=bool(patterns))
        if outcome.verdict is not Verdict.PASSED:
            break  # the next case would meet the same refusal
    if outcome.verdict is Verdict.PASSED and not found:
        outcome = Outcome(Verdict.INFRA, "the server sent no ncu-details.csv for the cases asked for")
    entry.save(verdict=outcome.verdict.words, why=account.redact(outcome.why))
    tell(f"saved: {entry.folder}")
    return report.verdict_line(file.name, what, None, outcome, str(file), popcorn.local, account.redact)


def _progress(line: str) -> None:
    if line.startswith(("Profile job", '{"status"')):
        tell(line)


def _route(popcorn: program.Program, gpu: str) -> tuple[list[str], bool]:
    """Flags, and whether --benchmark-index is obeyed (else it is ignored and every case runs)."""
    if popcorn.profile:
        return ["--profile", "--gpu", gpu], True
    brev = os.environ.get("POPCORN_BREV_PROFILER_URL") or os.environ.get("BREV_PROFILER_URL")
    if brev and popcorn.generation != "A":
        return ["--profile-brev"], True
    return ["--mode", "profile", "--gpu", gpu], False


def _judge(finished: program.Finished) -> Outcome:
    """A profile leaves no submission to read back: the program's own word, and then the artifacts, decide."""
    failed = re.search(r"Profile job \S+ (failed|timed_out)\b(.*)", finished.stderr)
    if failed:
        return Outcome(Verdict.TIMEOUT if failed[1] == "timed_out" else Verdict.CRASHED, failed[0])
    if finished.code == 0:
        status = rows.summary(finished.stdout).get("status", "succeeded")
        return Outcome(Verdict.PASSED) if status == "succeeded" else Outcome(Verdict.INFRA, f"profile job {status}")
    return verdict.from_text(finished.code, finished.stdout, finished.stderr)


def _show(folder: Path, file: Path, cases: list[Case], sure: bool, narrowed: bool) -> int:
    """Unpack and summarise every capture that belongs to one of the cases. Returns how many there were.

    sure: the folder holds captures of cases[0] only, whatever they are called. narrowed: cases were asked for by name.
    """
    for archive in sorted(folder.rglob("*.zip")):
        _unpack(archive, archive.with_suffix(""))
    shown = 0
    for capture in sorted({p.parent for p in folder.rglob("ncu-details.csv")}, key=_order):
        case = cases[0] if sure else _case_of(capture, cases)
        if case is None and narrowed:
            continue
        try:
            profiling.show(capture, f"{file.name} on {case.label if case else capture.name}")
            shown += 1
        except UserError as e:
            tell(f"warning: {capture.name}: {e}")
    return shown


def _unpack(archive: Path, target: Path) -> None:
    """The entries worth having, flattened to their base names: an archive never chooses where it is written."""
    try:
        with zipfile.ZipFile(archive) as z:
            for name in z.namelist():
                base = PurePosixPath(name.replace("\\", "/")).name
                if (base in WANTED or base.endswith(".ncu-rep")) and not (target / base).exists():
                    target.mkdir(parents=True, exist_ok=True)
                    (target / base).write_bytes(z.read(name))
    except (zipfile.BadZipFile, OSError) as e:
        tell(f"warning: {archive.name}: not unpacked: {e}")


def _order(capture: Path) -> list[tuple[int, str]]:
    """profile.2 before profile.10."""
    return [(int(x), "") if x.isdigit() else (-1, x) for x in re.split(r"(\d+)", capture.name)]


def _case_of(capture: Path, cases: list[Case]) -> Case | None:
    """By the name that the server gives, `profile.0-batch-20-n-32-cond-1-seed-43214` (with -case-mixed where the case
    line has one), or by the index alone, `profile_..._result0_profile_0`."""
    for case in cases:
        if re.search(re.escape(re.sub(r"[;:]? +", "-", case.spec)) + r"$", capture.name):
            return case
    index = re.search(r"(?:^|_)profile[._-](\d+)(?:-\d+)?$", capture.name)
    return next((c for c in cases if index and c.index == int(index[1])), None)

