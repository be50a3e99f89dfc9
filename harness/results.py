"""Run records: one JSON object a line, one line for one file on one case in one round. Needs no torch.

A line is complete in itself (file hash, task hash, protocol, device, raw samples), so files of runs may be cut, joined
and copied into records/. Lines are appended and flushed as soon as a case ends; a torn last line is what a crash
leaves and costs that line alone.
"""
from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import os
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cases import ROOT
from harness.errors import UserError

VERSION = 1
RUNS_DIR = ROOT / ".kit" / "runs"

# Closed set. pass: right; flagged: right by the contest's gate but for the reasons in `flags` not to be trusted;
# the rest say what went wrong, and where it happened.
STATUSES = ("pass", "flagged", "wrong", "output", "raised", "import", "timeout", "died", "oom", "clock", "infra")


@dataclass
class Run:
    """What one file did on one case in one round.

    samples_ns: one figure a repeat, nanoseconds a call (elapsed time over `inputs` calls). Empty where nothing was
    timed. margin: worst scaled residuals seen (factor, allowed 20; orth, allowed 100; column).
    """

    file: str  # name, `v01_compact_wy.py`
    sha: str  # of the file's bytes
    case: str  # label
    spec: str  # the contest's case line, with the batch that was really run
    status: str
    mode: str = "benchmark"  # or test
    protocol: str = "strict"  # strict, contest
    where: str = "local"  # local, popcorn, fake
    session: str = ""  # one call of bench; rounds of one session on one device are comparable
    task: str = ""  # Task.sha
    round: int = 0
    message: str = ""
    samples_ns: list[float] = field(default_factory=list)
    inputs: int = 0  # calls a repeat
    cut: bool = False  # the batch was cut to what a CPU can do
    margin: dict[str, float] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    device: dict[str, str] = field(default_factory=dict)  # gpu or cpu name, driver, torch, cuda, triton
    clock_mhz: list[int] = field(default_factory=list)  # SM clock before and after, where it can be read
    t: str = ""  # UTC
    v: int = VERSION

    @property
    def ok(self) -> bool:
        return self.status == "pass"

    @property
    def mean_ns(self) -> float:
        """Mean of the samples; NaN where there are none."""
        return statistics.fmean(self.samples_ns) if self.samples_ns else float("nan")


def utc_now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_session() -> str:
    """Sortable by time and unique: names the run file as well."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-") + os.urandom(2).hex()


def file_sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def append_runs(path: Path, runs: Iterable[Run]) -> None:
    """Append lines and force them to disk. Raises UserError (exit 3) where the disk does not take them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "a+b") as f:
            torn = f.seek(0, os.SEEK_END) and _last_byte(f) != b"\n"
            lines = [json.dumps(dataclasses.asdict(r), separators=(",", ":")) + "\n" for r in runs]
            f.write(b"\n" * bool(torn) + "".join(lines).encode())
            f.flush()
            os.fsync(f.fileno())
    except OSError as e:
        raise UserError(f"{path}: could not save results: {e.strerror}", "free space there, then --resume", 3) from None


def _last_byte(f: Any) -> bytes:
    f.seek(-1, os.SEEK_END)
    return f.read(1)


def read_runs(path: Path, warn: bool = True) -> list[Run]:
    """All runs of a file. A torn line is skipped with a warning on stderr; a missing file or one that holds no run
    is a UserError."""
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "name a .jsonl file of runs; ./kit bench makes one") from None
    runs: list[Run] = []
    known = {f.name for f in dataclasses.fields(Run)}
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            d = json.loads(line)
            if d["v"] > VERSION:
                raise UserError(f"{path}:{number}: written by a newer kit (format {d['v']}, this kit reads {VERSION})",
                                "git pull")
            runs.append(Run(**{k: x for k, x in d.items() if k in known}))
        except (ValueError, TypeError, KeyError):
            if warn:
                print(f"warning: {path}:{number}: not a run (torn by a crash?), skipped", file=sys.stderr)
    if not runs:
        raise UserError(f"{path}: holds no run", "./kit bench FILE makes one in .kit/runs")
    return runs


def saved_runs(directory: Path | None = None) -> Iterator[Path]:
    """The files of runs, newest first (their names sort by time)."""
    yield from sorted((directory or RUNS_DIR).glob("*.jsonl"), reverse=True)


COMPARABLE = ("device", "task", "protocol", "where", "cut")


def differs(a: Run, b: Run) -> str:
    """Why a and b cannot be compared ("device.driver: 580.1 and 590.2"), or "" where they can."""
    name = [r.device.get("name") for r in (a, b)]
    if name[0] != name[1]:
        return f"device.name: {name[0]} and {name[1]}"
    for key in COMPARABLE:
        x, y = getattr(a, key), getattr(b, key)
        if x == y:
            continue
        if key != "device":
            return f"{key}: {x} and {y}"
        for part in sorted(x.keys() | y.keys()):
            if x.get(part) != y.get(part):
                return f"device.{part}: {x.get(part)} and {y.get(part)}"
    return ""


def geomean(values: Iterable[float]) -> float:
    """Geometric mean; NaN of nothing."""
    values = list(values)
    return statistics.geometric_mean(values) if values else float("nan")
