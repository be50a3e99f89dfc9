"""`./kit record FILE -m "idea"`: evidence for one version, made from saved runs; nothing is measured here.

records/YYYY-MM-DD_vNN_idea/
    submission.py   the bytes that were measured
    runs.jsonl      raw runs of parent, file and v00_geqrf from the sessions in which parent and file were interleaved
    README.md       idea, why, table, cost, verdict, surprises: generated, then yours to add to
and the Result line of the submission's header, which is never written by hand.
"""
from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from harness import pick, render
from harness.compare import FACTOR_ALLOWED, ORTH_ALLOWED, Comparison, compare_sides
from harness.errors import EXIT_OK, UserError
from harness.header import Header, read_header, with_result
from harness.pick import Side
from harness.results import Run, append_runs, file_sha, read_runs
from harness.show import duration

BASELINE = "v00_geqrf.py"
# What complexity costs: a hundred more lines must buy at least one percent of the geometric mean, or the version is
# recorded and not kept. A reader spends an hour on a hundred lines of CUDA.
LINES_PER_PERCENT = 100


@dataclass
class Record:
    """One folder of records/, read back. `others` holds parent and baseline, or what else was interleaved."""

    folder: Path
    header: Header
    own: Side
    others: list[Side]

    @property
    def parent(self) -> Side | None:
        return next((s for s in self.others if s.file == f"{self.header.parent}.py"), None)

    @property
    def baseline(self) -> Side | None:
        return next((s for s in [self.own, *self.others] if s.file == BASELINE), None)


def read_record(folder: Path) -> Record | None:
    """None for a folder that holds notes and logs only. Of several protocols the first in the file counts.

    Raises UserError where runs.jsonl has no run of submission.py.
    """
    exact, lines = folder / "submission.py", folder / "runs.jsonl"
    if not exact.is_file() or not lines.is_file():
        return None
    sides = pick.group(read_runs(lines))
    own = next((s for s in sides if s.sha == file_sha(exact)), None)
    if own is None:
        raise UserError(f"{lines}: no run of {exact} ({file_sha(exact)})", f"rm -r {folder}, then ./kit record again")
    others = [s for s in sides if s is not own and s.environment == own.environment]
    return Record(folder, read_header(exact), own, others)


def read_ladder(folder: Path, submissions: Path) -> list[Record]:
    """What a folder's sessions say of every file that still stands in submissions/ with the bytes that ran (a record of
    one version holds its parent and v00 too, a folder without submission.py is all sessions): one record each; the
    other files of its sessions are its others."""
    lines = folder / "runs.jsonl"
    if not lines.is_file():
        return []
    sides = pick.group(read_runs(lines))
    found = []
    for own in sides:
        file = submissions / own.file
        if file.is_file() and own.sha == file_sha(file):
            sessions = {r.session for r in own.benchmarks}
            found.append(Record(folder, read_header(file), own,
                                [s for s in sides if s is not own and s.environment == own.environment
                                 and sessions & {r.session for r in s.benchmarks}]))
    return found


# ---------------------------------------------------------------- making one

def make_record(file: Path, idea: str, runs_dir: Path | None = None, records: Path | None = None) -> Path:
    """The new folder. Raises UserError where FILE was not measured as it stands, or not beside its parent."""
    records = records or pick.RECORDS_DIR
    if not file.is_file():
        raise UserError(f"{file}: no such file", "name a file of submissions/")
    source, header = file.read_bytes(), read_header(file)
    if with_result(source, "") is None:
        raise UserError(f"{file}: its docstring has no Result line", "add the line `Result     see records/`")
    parent = file.with_name(f"{header.parent}.py") if header.parent else None
    bench = "./kit bench " + " ".join(str(f) for f in (parent, file) if f) + " --rounds 12"
    sides = pick.pick([str(f) for f in (parent, file) if f], runs_dir=runs_dir, records=records)
    own = sides[-1]
    if own.sha != file_sha(file):  # not current_shas: what is kept are the bytes that ran
        raise UserError(f"{file} has changed since it was last measured ({own.sha}, now {file_sha(file)})", bench)
    comparison = None
    if parent:
        comparison = compare_sides(sides)[0]
        if not comparison.interleaved or not comparison.common:
            why = next((r.reason for r in comparison.rows if r.verdict == "incomparable"), "they share no round")
            raise UserError(f"{file.name} was not measured beside its parent {parent.name}: {why}", bench)
    runs = _evidence(sides, runs_dir, records)
    folder = records / f"{max(r.t for r in own.benchmarks)[:10]}_{file.stem}"
    if folder.exists():
        raise UserError(f"{folder} exists: a record is not overwritten", f"rm -r {folder} if it is to be made again")
    records.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=records, prefix=".new-") as new:  # whole or not at all
        draft = Path(new) / "record"
        draft.mkdir()
        shutil.copyfile(file, draft / "submission.py")
        append_runs(draft / "runs.jsonl", runs)
        (draft / "README.md").write_text(_readme(file, header, idea, own, comparison, parent), encoding="utf-8")
        draft.rename(folder)
    kept = {r.session for r in runs}  # of the record, not what else ran: the header says what the tables say
    filled = with_result(source, result_line(replace(own, benchmarks=tuple(
        r for r in own.benchmarks if r.session in kept)), folder))
    assert filled is not None  # the same expression matched above
    file.write_bytes(filled)
    return folder


def _evidence(sides: list[Side], runs_dir: Path | None, records: Path | None) -> list[Run]:
    """Parent first, then the file, then the baseline where it ran in the same rounds; tests included."""
    shared = set.intersection(*({r.session for r in s.benchmarks} for s in sides))
    tests = [r for s in sides for r in s.tests if r.session == s.tests[-1].session]
    if BASELINE not in {s.file for s in sides}:
        with contextlib.suppress(UserError):  # no run of it: the record has no column for it
            sides = [*sides, *pick.pick([f"{BASELINE}@{sides[-1].last.protocol}"], runs_dir, records)]
    return [*tests, *(r for s in sides for r in s.benchmarks if r.session in shared)]


def passing(side: Side) -> tuple[int, int]:
    """(cases that passed in every round, cases run)."""
    cases = {r.case for r in side.benchmarks}
    return len(cases - {r.case for r in side.benchmarks if not r.ok and r.status != "infra"}), len(cases)


def result_line(own: Side, folder: Path) -> str:
    good, ran = passing(own)
    time = pick.score(own)
    parts = [f"geomean {duration(time)}" if time == time else "no score", f"{good}/{ran} pass",
             own.last.device.get("name", "unknown device"), f"records/{folder.name}"]
    return ", ".join(parts)


def _lines(path: Path) -> int:
    return sum(bool(line.strip()) for line in path.read_text(encoding="utf-8", errors="replace").splitlines())


def judge(c: Comparison, more_lines: int) -> tuple[str, str]:
    """("Kept", "Rejected" or "Undecided", why). Kept: nothing broken, the total or some case faster, none slower
    without the total being faster, and the gain worth its lines."""
    verdicts = {r.verdict for r in c.rows}
    gain = -100 * (c.total.change or 0)
    if "broken" in verdicts:
        return "Rejected", "it is broken on " + ", ".join(r.case for r in c.rows if r.verdict == "broken")
    if "fixed" in verdicts:
        return "Kept", "it is right where its parent is not: " + ", ".join(
            r.case for r in c.rows if r.verdict == "fixed")
    if c.total.verdict == "unclear":
        return "Undecided", f"the geometric mean is unclear after {c.total.rounds} round{'s' * (c.total.rounds != 1)}"
    if c.total.verdict != "faster" and ("slower" in verdicts or "faster" not in verdicts):
        return "Rejected", f"the geometric mean is {c.total.verdict}, and no case is faster at no other's cost"
    if more_lines > LINES_PER_PERCENT * gain:
        return "Rejected", f"{more_lines} more lines for {gain:.1f} % of the total, at {LINES_PER_PERCENT} a percent"
    return "Kept", f"the geometric mean is {c.total.verdict} ({render.percent(c.total.change)})"


def surprises(c: Comparison) -> list[str]:
    """Cases that went against the total, margins past half, cases that stayed unclear."""
    found = []
    for r in c.rows:
        if r.verdict in ("faster", "slower") and (r.change or 0) * (c.total.change or 0) < 0:
            found.append(f"{r.case} is {r.verdict} ({render.percent(r.change)}), against the geometric mean")
        for name, x, allowed in (("factor", r.factor, FACTOR_ALLOWED), ("orthogonality", r.orth, ORTH_ALLOWED)):
            if x is not None and x > allowed / 2:
                found.append(f"{r.case}: scaled {name} residual {x:.1f}, more than half of the {allowed} allowed")
        if r.verdict == "unclear":
            found.append(f"{r.case}: unclear, rounds won {r.won} of {r.rounds} ({render.percent(r.change)})")
    return found


def _readme(file: Path, header: Header, idea: str, own: Side, c: Comparison | None, parent: Path | None) -> str:
    device = own.last.device
    out = [f"# {header.title.rstrip('.') or file.stem}", "", f"Idea: {idea}", ""]
    if c and parent:
        more = _lines(file) - _lines(parent)
        verdict, why = judge(c, more)
        bound = read_header(parent).fields.get("Bound by", "not stated")
        found = surprises(c) or ["none in the figures"]
        out += ["## Why", "", f"What bounded {parent.stem}: {bound}", "",
                "## Result", "", "<!-- table:compare -->", render.markdown([c]), "<!-- /table:compare -->", "",
                "## Cost", "", f"{_lines(file)} lines, {more:+d} against {parent.stem}.", "",
                "## Verdict", "", f"{verdict}: {why}.", "",
                "## Surprises", "", *(f"- {s}" for s in found), ""]
    else:
        out += ["## Result", "", "<!-- table:compare -->", "| case | time |", "| --- | ---: |"]
        for case in dict.fromkeys(r.case for r in own.benchmarks):
            alone = Side(own.name, own.file, own.sha, tuple(r for r in own.benchmarks if r.case == case))
            time = pick.score(alone)
            out.append(f"| {case} | {duration(time) if time == time else alone.last.status} |")
        out += ["<!-- /table:compare -->", "", f"geomean {duration(pick.score(own))}. No parent: a first version.", "",
                "## Cost", "", f"{_lines(file)} lines.", ""]
    versions = "".join(f", {k} {v}" for k, v in device.items() if k != "name")
    out += ["## Measured", "", f"{device.get('name', 'unknown device')}{versions}; protocol {own.last.protocol}; "
            f"sha256 {own.sha}; `./kit compare` on this folder prints the table again.", ""]
    return "\n".join(out)


def run_record(args: argparse.Namespace) -> int:
    idea = " ".join(args.message.split())
    if not idea:
        raise UserError("-m: expected a sentence, got an empty one", 'say what this version tries: -m "idea"')
    folder = make_record(args.file, idea)
    print(folder)
    print((folder / "README.md").read_text(encoding="utf-8"), end="")
    return EXIT_OK


def register(verbs: argparse._SubParsersAction) -> None:
    p = verbs.add_parser(
        "record", help="keep a version as evidence: the exact file, raw runs, what was learnt",
        description="Make records/YYYY-MM-DD_vNN_idea/ from the saved runs of FILE and its parent, and fill the\n"
                    "Result line of FILE's header. scripts/tables.py then brings the ladder up to date.",
        epilog='example: ./kit record submissions/v01_compact_wy.py -m "the whole batch in each product"',
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", type=Path, metavar="FILE")
    p.add_argument("-m", dest="message", metavar="IDEA", required=True, help="what this version tries, in a sentence")
    p.set_defaults(run=run_record)
