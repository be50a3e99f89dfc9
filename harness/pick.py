"""Which saved runs a name means. Needs no torch.

.kit/runs/X.jsonl      every file in it
records/DIR            its submission, or parent and submission where nothing else is named
submissions/v07_x.py   (or v07_x, v07) the bytes that stand there, else the newest that have runs, in the newest
                       environment that all named files share
best                   the lowest geometric mean of all complete passing files in that environment

Each may end in @strict, @contest, @local or @popcorn: runs of that protocol or place only (`v07 v07@popcorn`).
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.cases import ROOT
from harness.errors import UserError
from harness.header import read_header, with_result
from harness.results import Run, file_sha, geomean, read_runs, saved_runs

RECORDS_DIR = ROOT / "records"
MOST_SESSIONS = 100  # of a named file, newest first: older ones would cost a second to read and change no verdict
TAGS = ("strict", "contest", "local", "popcorn")
Environment = tuple[object, ...]


@dataclass(frozen=True)
class Side:
    """One file (one content) in one environment, with its timed runs and its tests, each oldest first."""

    name: str  # short: v07
    file: str
    sha: str
    benchmarks: tuple[Run, ...]
    tests: tuple[Run, ...] = ()

    @property
    def last(self) -> Run:
        return self.benchmarks[-1]

    @property
    def environment(self) -> Environment:
        return environment(self.last)


def environment(r: Run) -> Environment:
    """What must agree for all of a file's runs; `cut` may differ from case to case."""
    return (tuple(sorted(r.device.items())), r.task, r.protocol, r.where)


def run_files(runs_dir: Path | None = None, records: Path | None = None) -> Iterator[Path]:
    """Saved sessions, newest first, then those of the records."""
    yield from saved_runs(runs_dir)
    yield from sorted((records or RECORDS_DIR).glob("*/runs.jsonl"), reverse=True)


def unique(runs: Iterable[Run]) -> list[Run]:
    """Without the copies that a record keeps of a session, oldest first."""
    seen: dict[object, Run] = {}
    for r in runs:
        key = (r.session or r.t, r.mode, r.protocol, r.file, r.sha, r.case, r.spec, r.round)
        seen.setdefault(key, r)
    return sorted(seen.values(), key=lambda r: (r.t, r.session, r.round))


def _matches(name: str, file: str) -> bool:
    stem = Path(name).name.removesuffix(".py")
    return file.removesuffix(".py") == stem or (re.fullmatch(r"v\d+", stem) is not None and file.startswith(stem + "_"))


def group(runs: Iterable[Run]) -> list[Side]:
    """One side for each file, content and environment that was timed, in order of appearance, with its tests."""
    timed: dict[object, list[Run]] = {}
    tests: dict[object, list[Run]] = {}
    for r in runs:
        if r.mode == "test":
            tests.setdefault((r.sha, r.device.get("name")), []).append(r)
        else:
            timed.setdefault((r.file, r.sha, environment(r)), []).append(r)
    return [Side(short(x[0].file), x[0].file, x[0].sha, tuple(x),
                 tuple(tests.get((x[0].sha, x[0].device.get("name")), ()))) for x in timed.values()]


def short(file: str) -> str:
    """`v07` of v07_compact_wy.py; a name without a number keeps its stem."""
    stem = file.removesuffix(".py")
    number = re.match(r"(v\d+)_", stem)
    return number[1] if number else stem


def number(file: str) -> tuple[int, str]:
    """Sorts v9 before v10 and v99 before v100; names without a number come last."""
    found = re.match(r"v(\d+)_", file)
    return int(found[1]) if found else 10**9, file


def name_apart(sides: Sequence[Side]) -> list[Side]:
    """The same sides with names that tell them apart: v07, where that is not enough v07_idea, v07_idea@protocol ..."""
    def stem(s: Side) -> str:
        return s.file.removesuffix(".py")

    names = [s.name for s in sides]
    for how in (stem, lambda s: f"{stem(s)}@{s.last.protocol}", lambda s: f"{stem(s)}@{s.last.where}",
                lambda s: f"{stem(s)}@{s.sha[:6]}", lambda s: f"{stem(s)}@{s.last.session}"):
        if len(set(names)) == len(names):
            break
        names = [how(s) if names.count(n) > 1 else n for s, n in zip(sides, names, strict=True)]
    return [replace(s, name=n) for s, n in zip(sides, names, strict=True)]


def pick(names: Sequence[str], runs_dir: Path | None = None, records: Path | None = None) -> list[Side]:
    """A side for each name (several for a .jsonl file), in order. No name: the newest session.

    Raises UserError for a name that no saved run has.
    """
    if not names:
        newest = next(saved_runs(runs_dir), None)
        if newest is None:
            raise UserError("no saved run to compare", "./kit bench A.py B.py")
        names = [str(newest)]
    slots: list[list[Side] | str] = []  # a file's name stands until all are known
    for name in names:
        path = Path(split_tag(name)[0])
        if ".research/" in name and ":" in name:  # .research/night1:best
            from harness.research.promote import resolve
            slots.append(group(unique(resolve(name))))
        elif path.is_dir():
            slots.append(_tagged(_record(path, alone=len(names) == 1), name))
        elif path.suffix == ".jsonl":
            slots.append(_tagged(group(unique(read_runs(path))), name))
        else:
            slots.append(name)
    wanted = [s for s in slots if isinstance(s, str)]
    fixed = [side for s in slots if not isinstance(s, str) for side in s]
    found = _named(wanted, fixed, runs_dir, records) if wanted else {}
    return name_apart([side for s in slots for side in ([found[s]] if isinstance(s, str) else s)])


def split_tag(name: str) -> tuple[str, str]:
    """`v07@contest` -> (v07, contest); what is no tag stays in the name."""
    bare, _, tag = name.rpartition("@")
    return (bare, tag) if bare and tag in TAGS else (name, "")


def _tagged(sides: list[Side], name: str) -> list[Side]:
    """Those of the protocol or place that the name asks for. Raises UserError where there is none."""
    bare, tag = split_tag(name)
    kept = [s for s in sides if tag in ("", s.last.protocol, s.last.where)]
    if not kept:
        raise UserError(f"no saved run of {name}", f"scripts/submit {bare}" if tag == "popcorn" else
                        f"./kit bench {bare}" + " --protocol contest" * (tag == "contest"))
    return kept


def _record(folder: Path, alone: bool) -> list[Side]:
    sides = group(unique(read_runs(folder / "runs.jsonl")))
    exact = folder / "submission.py"
    own = [s for s in sides if exact.is_file() and s.sha == file_sha(exact)]
    if not own:
        return sides
    parent = read_header(exact).parent + ".py"
    return ([s for s in sides if s.file == parent] if alone else []) + own


def _named(names: Sequence[str], fixed: Sequence[Side], runs_dir: Path | None,
           records: Path | None) -> dict[str, Side]:
    files = [n for n in names if split_tag(n)[0] != "best"]
    bares = [split_tag(n)[0] for n in files]
    runs = all_runs(bares if len(files) == len(names) else [], runs_dir, records, MOST_SESSIONS)
    by_name: dict[str, list[Side]] = {}
    for name, bare in zip(files, bares, strict=True):
        sides = _tagged(group(r for r in runs if _matches(bare, r.file)), name)
        now = current_shas(Path(bare), records)
        # what stands there before what stood there, what was timed here before what the server said, then the newest
        by_name[name] = sorted(sides, key=lambda s: (s.sha in now, s.last.where == "local", s.last.t), reverse=True)
    where = None
    if len({split_tag(n)[1] for n in names}) == 1:  # else they are meant to differ
        where = _shared([[s.environment for s in sides] for sides in [*by_name.values(), *([s] for s in fixed)]])
    result = {name: next((s for s in sides if s.environment == where), sides[0]) for name, sides in by_name.items()}
    others = {(s.file, s.sha) for s in [*fixed, *result.values()]}
    for name in names:
        if name not in result:
            result[name] = best(_tagged([s for s in group(runs) if (s.file, s.sha) not in others], name), where)
    return result


def current_shas(path: Path, records: Path | None = None) -> set[str]:
    """The hashes that stand for the file as it is: its own, and those of records that differ in the Result line only
    (`./kit record` writes it after the measurement). Empty where there is no such file."""
    if not path.is_file():
        return set()
    code = with_result(path.read_bytes(), "")
    recorded = (records or RECORDS_DIR).glob(f"*{path.stem}/submission.py")
    return {file_sha(path), *(file_sha(p) for p in recorded if code and with_result(p.read_bytes(), "") == code)}


def _shared(choices: list[list[Environment]]) -> Environment | None:
    """The first of the first list that all lists have."""
    if not choices:
        return None
    return next((e for e in choices[0] if all(e in c for c in choices[1:])), None)


def all_runs(names: Sequence[str] = (), runs_dir: Path | None = None, records: Path | None = None,
             most: int | None = None) -> list[Run]:
    """Every saved run (with names: of the named files), from the `most` newest sessions that have one."""
    found: list[Run] = []
    sessions = 0
    needles = [f'"{Path(n).name.removesuffix(".py")}'.encode() for n in names]
    for path in run_files(runs_dir, records):
        try:
            if needles and not any(n in raw for raw in [path.read_bytes()] for n in needles):
                continue  # found out in a tenth of the time that parsing takes
            runs = read_runs(path, warn=False)
        except (UserError, OSError):  # an empty or newer file among many is no reason to stop
            continue
        runs = [r for r in runs if not names or any(_matches(n, r.file) for n in names)]
        found += runs
        sessions += bool(runs)
        if sessions == most:
            break
    return unique(found)


def score(side: Side) -> float:
    """Geometric mean in ns over the cases of a side that passed every time; NaN where one did not, or none ran."""
    times: dict[str, list[float]] = {}
    for r in side.benchmarks:
        if r.status == "infra":
            continue
        if not r.ok:
            return float("nan")
        if r.samples_ns:
            times.setdefault(r.case, []).append(r.mean_ns)
    return geomean(geomean(x) for x in times.values())


def best(sides: Sequence[Side], where: Environment | None) -> Side:
    """The quickest of those that ran the most cases, all passing, in an environment (None: the newest)."""
    if where is None:
        where = max(sides, key=lambda s: s.last.t).environment if sides else None
    here = [s for s in sides if s.environment == where and score(s) == score(s)]
    if not here:
        raise UserError("best: no other file has passed every case it ran on this device and protocol",
                        "./kit bench submissions/*.py")
    most = max(len({r.case for r in s.benchmarks}) for s in here)
    return min((s for s in here if len({r.case for r in s.benchmarks}) == most), key=score)
