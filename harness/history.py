"""`./kit history`: what was timed here and what the leaderboard said, newest first, with the change of each shape.

Reads `.kit/runs/*.jsonl` and `.kit/popcorn/*/state.json`; asks the server only with --server. A change is measured
against the next older entry that may be compared (same device, driver, torch, task, protocol, place).
"""
from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import EXIT_OK, UserError
from harness.results import Run, differs, geomean, read_runs, saved_runs

SAME = 0.005  # changes below this are not listed one by one: within what two identical runs differ by


@dataclass
class Entry:
    """One file in one session."""

    session: str
    file: str
    sha: str
    where: str
    runs: list[Run] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)  # of a submission

    @property
    def times_ns(self) -> dict[str, float]:
        """Case label -> median over rounds of the mean time, passing benchmark cases only."""
        means: dict[str, list[float]] = {}
        broken = {r.case for r in self.runs if r.mode == "benchmark" and not r.ok}
        for r in self.runs:
            if r.mode == "benchmark" and r.ok and r.samples_ns and r.case not in broken:
                means.setdefault(r.case, []).append(r.mean_ns)
        return {case: statistics.median(values) for case, values in means.items()}


def entries() -> Iterator[Entry]:
    """Newest first: sessions of runs, and submissions that left no runs."""
    from harness.popcorn import store

    states = {e.session: e.state for e in store.entries()}
    files = {path.stem: path for path in saved_runs()}
    for session in sorted(states.keys() | files.keys(), reverse=True):
        found: dict[tuple[str, str], Entry] = {}
        for run in _read(files[session]) if session in files else []:
            key = (run.file, run.sha)
            found.setdefault(key, Entry(session, *key, run.where, state=states.get(session, {}))).runs.append(run)
        if not found and session in states:
            s = states[session]
            found["", ""] = Entry(session, s.get("file", "?"), s.get("sha", ""), "popcorn", state=s)
        yield from found.values()


def _read(path: Path) -> list[Run]:
    try:
        return read_runs(path, warn=False)
    except UserError:
        return []


def changes(entry: Entry, older: Sequence[Entry]) -> tuple[Entry | None, dict[str, float]]:
    """The entry it is measured against, and case -> relative change of time (-0.03: 3 % faster)."""
    mine = entry.times_ns
    if not mine:
        return None, {}
    sample = next(r for r in entry.runs if r.case in mine and r.mode == "benchmark")
    for other in older:
        theirs = other.times_ns
        common = [c for c in mine if c in theirs]
        if common and not differs(sample, next(r for r in other.runs if r.case in theirs and r.mode == "benchmark")):
            return other, {c: mine[c] / theirs[c] - 1 for c in common}
    return None, {}


def lines(found: Sequence[Entry], limit: int) -> list[str]:
    """The printed list. found: newest first."""
    from harness.popcorn.report import show_ns

    out = []
    for i, entry in enumerate(found[:limit]):
        times, (other, change) = entry.times_ns, changes(entry, found[i + 1:])
        score = f"  geomean of {len(times)}: {show_ns(geomean(times.values()))}" if times else ""
        out.append(f"{entry.session}  {_place(entry):28} {entry.file:24} {entry.sha:12}  {_result(entry)}{score}")
        if other:
            whole = math.exp(statistics.fmean(math.log1p(x) for x in change.values())) - 1
            moved = [f"{case} {x:+.1%}" for case, x in change.items() if abs(x) >= SAME]
            out.append(f"    {whole:+.1%} against {other.file} of {other.session}: "
                       + (", ".join(moved) if moved else f"no shape by {SAME:.1%} or more"))
    return out


def _place(entry: Entry) -> str:
    if entry.where == "popcorn":
        return f"popcorn {entry.state.get('mode', '')} {entry.state.get('id') or ''}".strip()
    return (entry.runs[0].device.get("name") or entry.where)[:28] if entry.runs else entry.where


def _result(entry: Entry) -> str:
    if entry.state:
        return entry.state.get("verdict") or "not finished"
    good = sum(r.ok for r in entry.runs)
    return f"{good} of {len(entry.runs)} runs pass"


def run(args: argparse.Namespace) -> int:
    found = list(entries())
    if args.server:
        _server(found)
    if not found:
        raise UserError("no history yet: nothing was timed or submitted from this checkout",
                        "./kit bench submissions/v00_geqrf.py")
    print("\n".join(lines(found, args.limit)))
    return EXIT_OK


def _server(found: Sequence[Entry]) -> None:
    """Own submissions that the server has and this checkout has not."""
    from harness.popcorn.server import Account
    from harness.popcorn.verdict import Problem

    known = {e.state.get("id") for e in found}
    try:
        listed = Account().submissions("qr_v2", 50)
    except Problem as p:
        raise UserError(f"{p.outcome.verdict.words}: {p}", "./kit history without --server", 3) from None
    for item in listed:
        if item.get("id") not in known:
            print(f"{item.get('submission_time', ''):27}  submission {item.get('id')}  {item.get('file_name')}  "
                  f"not stored here: scripts/submit --resume {item.get('id')}")


def register(verbs: Any) -> None:
    p = verbs.add_parser("history", help="own runs and submissions, newest first, with the change of each shape",
                         description=(__doc__ or "").split("\n\n", 1)[1], epilog="example: ./kit history --limit 5",
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--limit", type=int, default=20, metavar="N", help="entries to list (20)")
    p.add_argument("--server", action="store_true", help="also list own submissions that only the server has")
    p.set_defaults(run=run)
