"""One verdict of our own for whatever the program, the server or the network did. Pure: documents and text in.

`from_document` judges the server's own record of a submission and is trusted first; `from_text` judges what the
program printed and serves where the server has no record. The program's exit code is never evidence of a pass:
generations A and B exit 0 on failed tests.
"""
from __future__ import annotations

import datetime
import enum
import re
from dataclasses import dataclass
from typing import Any


class Verdict(enum.Enum):
    """(words, exit code). 3 stays "could not run here": popcorn missing."""

    PASSED = "passed", 0
    FAILED = "failed tests", 1
    USAGE = "usage", 2
    CRASHED = "crashed", 10
    TIMEOUT = "timeout", 11
    INFRA = "infrastructure", 12
    GUARD = "rejected by guard", 13
    RATE = "rate limited", 14
    CLOSED = "closed", 15
    AUTH = "authentication", 16
    NETWORK = "network", 17

    @property
    def words(self) -> str:
        return self.value[0]

    @property
    def code(self) -> int:
        return self.value[1]


@dataclass(frozen=True)
class Outcome:
    """A verdict, why, and for a rate limit how long the server asks to wait (seconds)."""

    verdict: Verdict
    why: str = ""
    seconds: int = 0


class Problem(Exception):
    """The server's API did not answer with a document; carries the Outcome."""

    def __init__(self, verdict: Verdict, why: str, seconds: int = 0):
        super().__init__(why)
        self.outcome = Outcome(verdict, why, seconds)


# First match decides. The order is the contract's: a 401 that mentions a deadline is still a 401.
TEXTS = (
    (Verdict.AUTH, r"status 401|Missing X-|Invalid or unauthorized|Config file not found|cli_id not found"),
    (Verdict.RATE, r"status 429|Rate limit exceeded"),
    (Verdict.CLOSED, r"deadline to submit|not accepting any new submissions|do not have access to this leaderboard"
                     r"|Closed leaderboards only|You are banned"),
    (Verdict.INFRA, r"pre-check is unavailable|kernelbot was shutting down|worker crashed while"
                    r"|did not complete all public and secret runs|An unexpected error occurred"),
    (Verdict.GUARD, r" hacked: |rejected by KernelGuard"),
    (Verdict.CRASHED, r"'NoneType' object has no attribute '__dict__'"),  # the server's form of "does not compile"
    (Verdict.TIMEOUT, r" timed_out: |hard timeout reached|Timed out waiting"),
    (Verdict.FAILED, r"(ranked|secret) validation failed|failed secret validation|did not pass secret"),
    (Verdict.USAGE, r"status 4\d\d|another stream|not specified|File not found|File path is required"
                    r"|Multiple GPUs|Please provide a|!POPCORN|doesn't match the one in|Leaderboard `.*` does not exist"
                    r"|Invalid submission mode|Status Code: 4\d\d"),
    (Verdict.NETWORK, r"error sending request|Stream ended unexpectedly|error decoding response|connection closed"),
    (Verdict.INFRA, r"status 5\d\d|Status Code: 5\d\d"),
)


def from_message(text: str) -> Outcome | None:
    """The outcome that a message of the program or the server stands for, or None where it is not known."""
    for verdict, pattern in TEXTS:
        if re.search(pattern, text):
            asked = re.search(r"Try again in (\d+)s", text)
            return Outcome(verdict, text.strip(), int(asked[1]) if asked else 0)
    return None


def from_text(code: int, stdout: str, stderr: str) -> Outcome:
    """Judge the program's output. code: its exit status, negative for a signal."""
    if code == 2:
        return Outcome(Verdict.USAGE, _last_line(stderr) or "popcorn refused its arguments")
    fatal = re.search(r"^Application error: (.*)", stderr, re.M | re.S)
    if fatal:
        report = fatal[1]
        return (from_message(report.split("\n{", 1)[0]) or _from_report(report)
                or Outcome(Verdict.INFRA, _first_line(report)))
    if code != 0:
        return Outcome(Verdict.INFRA, f"popcorn ended with status {code}: {_last_line(stderr)}")
    return _from_report(stdout) or Outcome(Verdict.INFRA, "popcorn ended well but reported no run")


def _from_report(text: str) -> Outcome | None:
    """Judge a text report (generation A's stdout, generation C's error), or None where it says nothing."""
    if re.search(r"\*\*timed out\*\* after|exited with code 114|exit code 114|\(timeout\)", text):
        return Outcome(Verdict.TIMEOUT, "a stage ran past the server's limit")
    died = re.search(r"exited with error code \*\*(-?\d+)\*\*|[Ee]xit(?:ed with)? code (-?\d+)", text)
    if died and (died[1] or died[2]) not in ("0", "112"):
        return Outcome(Verdict.CRASHED, f"the submission's process ended with status {died[1] or died[2]}")
    if "# Compilation failed" in text or "Compiler stderr:" in text:
        return Outcome(Verdict.CRASHED, "the submission did not compile")
    if re.search(r"\*\*.* failure\*\*", text):  # the title of the runner's own report
        return Outcome(Verdict.INFRA, _first_line(text.replace('"', "")))
    if re.search(r"failed testing:|^❌ |❌ (Testing|Benchmarking|Leaderboard)| (test|benchmark) failed$", text, re.M):
        return Outcome(Verdict.FAILED, "at least one case failed")
    if re.search(r"✅ (Testing|Benchmarking|Leaderboard[\w ]*) successful|## ✅ Passed|^✅ ", text, re.M):
        return Outcome(Verdict.PASSED)
    return None


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _last_line(text: str) -> str:
    return _first_line("\n".join(reversed(text.splitlines())))


FINAL = ("succeeded", "failed", "timed_out", "hacked")


def is_final(doc: dict[str, Any]) -> bool:
    """Has the server finished? `done` turns true before the job's last status is written, so it alone proves
    nothing where there is a job."""
    job = doc.get("job")
    return job.get("status") in FINAL if job else bool(doc.get("done"))


def public_runs(doc: dict[str, Any], mode: str) -> list[dict[str, Any]]:
    return [r for r in doc.get("runs") or [] if r.get("mode") == mode and not r.get("secret")]


def from_document(doc: dict[str, Any], mode: str, limits_s: dict[str, int]) -> Outcome:
    """Judge a final submission of `mode`. limits_s: the server's limit of each stage, to tell a stage that was killed
    from one that crashed where the server is too old to say."""
    job = doc.get("job") or {}
    status, error = job.get("status"), job.get("error") or ""
    if status == "hacked":
        return Outcome(Verdict.GUARD, error)
    if status == "timed_out":
        return Outcome(Verdict.TIMEOUT, error)
    if status == "failed":
        told = from_message(error)
        if told and told.verdict is not Verdict.FAILED:
            return told
        return _worst_stage(doc, limits_s) or told or Outcome(Verdict.INFRA, error)
    if mode != "leaderboard":
        runs = public_runs(doc, mode)
        if len(runs) != 1:  # the server calls a job succeeded even where the runner broke
            return Outcome(Verdict.INFRA, f"the server ran {len(runs)} {mode} stages, one is wanted: its runner broke")
        return _stage(runs[0], limits_s)
    broken = _worst_stage(doc, limits_s)
    if broken:
        return broken
    ranked = [r for r in doc.get("runs") or [] if r.get("mode") == "leaderboard"]
    if any(r.get("secret") and not r.get("passed") for r in doc.get("runs") or []):
        return Outcome(Verdict.FAILED, "secret validation failed; it will not appear on the leaderboard")
    if not any(r.get("secret") for r in ranked) or not any(not r.get("secret") and r.get("score") for r in ranked):
        return Outcome(Verdict.INFRA, "the server did not complete both the public and the secret ranked run")
    return Outcome(Verdict.PASSED)


def _worst_stage(doc: dict[str, Any], limits_s: dict[str, int]) -> Outcome | None:
    """The first public stage that did not pass, in the order in which the server runs them."""
    for mode in ("test", "benchmark", "leaderboard"):
        for run in public_runs(doc, mode):
            if not run.get("passed"):
                return _stage(run, limits_s)
    return None


def _stage(run: dict[str, Any], limits_s: dict[str, int]) -> Outcome:
    mode = run.get("mode", "")
    if run.get("passed"):
        return Outcome(Verdict.PASSED)
    code = (run.get("diagnostics") or {}).get("exit_code")
    result = run.get("result")
    if code == 114:
        return Outcome(Verdict.TIMEOUT, f"the {mode} stage ran past its limit of {limits_s.get(mode)} s")
    if code not in (None, 0, 112):
        return Outcome(Verdict.CRASHED, f"the {mode} stage ended with status {code}")
    if result is None or code == 112 or "check" in result or any(v == "fail" for v in result.values()):
        return Outcome(Verdict.FAILED, f"the {mode} stage failed"
                       + ("; this server does not say on which case" if result is None else ""))
    if not result and _seconds(run) >= limits_s.get(mode, 180):
        return Outcome(Verdict.TIMEOUT, f"the {mode} stage reported nothing and ran {_seconds(run):.0f} s, "
                       f"its limit is {limits_s.get(mode)} s")
    return Outcome(Verdict.CRASHED, f"the {mode} stage broke off without a verdict")


def _seconds(run: dict[str, Any]) -> float:
    try:
        start, end = (datetime.datetime.fromisoformat(run[k]) for k in ("start_time", "end_time"))
        return (end - start).total_seconds()
    except (KeyError, TypeError, ValueError):
        return 0.0
