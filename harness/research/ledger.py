"""ledger.jsonl, the only truth of a run: events appended, state folded from them. Needs no torch.

Nothing points at a "best": which attempt is best, what was spent, which families cool off is computed from the events
each time, so a re-timing or a new machine moves it by itself. All ratios are logarithms of times over the baseline's in
one epoch (one card, driver, torch, task); below 0 is faster.
"""
from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.results import geomean, utc_now

VERSION = 1
VERDICTS = ("kept", "same", "slower", "wrong", "broken", "flagged", "rejected", "duplicate", "noop", "agent_error",
            "infra", "interrupted")
NOT_THE_IDEAS_FAULT = ("agent_error", "infra", "interrupted")
BASELINE = 0  # its attempt number
ON_THE_DEVICE = ("build", "tests", "probes", "screen", "confirm", "extend", "floor")  # gates
COOLS_AFTER, COOLS_FOR = 3, 6  # misses in a row, attempts

Event = dict[str, Any]


@dataclass
class Attempt:
    number: int
    parent: int = BASELINE
    other: int | None = None  # the second parent of a merge
    mode: str = "exploit"
    family: str = ""
    focus: str = ""
    agent_name: str = ""
    epoch: str = ""
    title: str = ""
    sha: str = ""
    called: Event | None = None  # the agent event
    gates: dict[str, Event] = field(default_factory=dict)
    measures: dict[str, Event] = field(default_factory=dict)
    verdict: str = ""
    reason: str = ""
    lesson: str = ""
    gain: float | None = None  # log ratio to its parent: the confirm rounds' median, else the screen's mean
    advance: float = 0.0  # by how much it moved the best, log units, at least 0
    score_ns: float | None = None
    review: bool = False
    ns: float | None = None  # its geometric mean in its epoch, where it was timed
    best: int = BASELINE  # after it was decided, with its times by shape
    best_ns: dict[str, float] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Judged on its merits: what says nothing about the idea does not count."""
        return bool(self.verdict) and self.verdict not in NOT_THE_IDEAS_FAULT


def device_s(a: Attempt) -> float:
    """Seconds on the device for one attempt."""
    return sum(m.get("s", 0.0) for m in a.measures.values()) + sum(
        g.get("ms", 0) / 1e3 for k, g in a.gates.items() if k in ON_THE_DEVICE)


@dataclass
class State:
    """What a list of events amounts to."""

    run: str = ""
    seed: int = 0
    epoch: str = ""
    env: dict[str, str] = field(default_factory=dict)
    config_sha: str = ""
    attempts: dict[int, Attempt] = field(default_factory=dict)
    calibration: Event | None = None
    calibrated_at: int = 0  # attempts there were
    base_ns: dict[str, float] = field(default_factory=dict)  # the baseline's times by shape
    bases: dict[str, float] = field(default_factory=dict)  # and their geometric mean, of every epoch
    rel: dict[int, float] = field(default_factory=dict)
    shapes: dict[int, dict[str, float]] = field(default_factory=dict)
    audits: list[Event] = field(default_factory=list)
    audited_keeps: int = 0
    marks: list[tuple[int, str]] = field(default_factory=list)  # (attempts before it, "epoch e2" or "pivot")
    pivoted: bool = False
    needs_retime: bool = False
    stopped: Event | None = None
    usd: float = 0.0
    tokens: int = 0
    gpu_s: float = 0.0
    agent_s: float = 0.0
    remote: int = 0

    # ---- reading

    @property
    def kept(self) -> list[Attempt]:
        return [a for a in self.attempts.values() if a.verdict == "kept"]

    @property
    def undecided(self) -> list[Attempt]:
        return [a for a in self.attempts.values() if not a.verdict]

    @property
    def finished(self) -> list[Attempt]:
        return [a for a in self.attempts.values() if a.finished]

    @property
    def best(self) -> int:
        """The attempt with the lowest time in this epoch; the baseline (0) where nothing is faster."""
        return min(self.rel, key=lambda n: (self.rel[n], n), default=BASELINE)

    def times_ns(self, number: int) -> dict[str, float]:
        """Times by shape: the baseline's times what was measured against it."""
        rel = self.shapes.get(number, {})
        return {c: t * exp(rel.get(c, 0.0)) for c, t in self.base_ns.items()}

    def elites(self) -> dict[str, int]:
        """For each shape the attempt that is fastest on it."""
        return {c: min(self.rel, key=lambda n: (self.shapes.get(n, {}).get(c, 0.0), n)) for c in self.base_ns}

    def ancestors(self, number: int) -> set[int]:
        found = {number}
        while number in self.attempts:
            a = self.attempts[number]
            found |= self.ancestors(a.other) if a.other is not None else set()
            number = a.parent
            found.add(number)
        return found

    def cooling(self) -> set[str]:
        """Families with COOLS_AFTER misses in a row, for COOLS_FOR attempts after the last of them."""
        cold = set()
        done = list(self.finished)
        for family in {a.family for a in done if a.family}:
            mine = [a for a in done if a.family == family]
            recent = mine[-COOLS_AFTER:]
            since = sum(a.number > mine[-1].number for a in done)
            if len(recent) == COOLS_AFTER and all(a.verdict != "kept" for a in recent) and since < COOLS_FOR:
                cold.add(family)
        return cold

    # ---- folding

    def apply(self, e: Event) -> None:
        """Bring the state up to date with one event. Unknown events change nothing (written by a newer kit)."""
        handler = getattr(self, f"_{e['event']}", None)
        if handler:
            handler(e)

    def _start(self, e: Event) -> None:
        self.run, self.seed, self.config_sha, self.stopped = e["run"], e["seed"], e["config_sha"], None
        if not self.epoch:
            self.epoch, self.env = e["epoch"], e["env"]

    def _config(self, e: Event) -> None:
        self.config_sha = e["config_sha"]

    def _epoch(self, e: Event) -> None:
        self.needs_retime = bool(self.kept)
        self.epoch, self.env, self.calibration, self.base_ns = e["epoch"], e["env"], None, {}
        self.rel, self.shapes = {}, {}
        for a in self.undecided:  # what was measured of it elsewhere counts for nothing here
            a.epoch, a.measures = self.epoch, {}
            a.gates = {k: g for k, g in a.gates.items() if k in ("capture", "new")}
        self.marks.append((len(self.attempts), f"epoch {self.epoch}"))

    def _calibrate(self, e: Event) -> None:
        self.calibration, self.calibrated_at = e, len(self.attempts)
        self.gpu_s += e.get("s", 0.0)

    def _baseline(self, e: Event) -> None:
        self.base_ns = e["shapes"]
        self.bases[self.epoch] = geomean(self.base_ns.values())
        self.rel[BASELINE], self.shapes[BASELINE] = 0.0, dict.fromkeys(e["shapes"], 0.0)

    def _attempt(self, e: Event) -> None:
        self.attempts[e["attempt"]] = Attempt(
            e["attempt"], e["parent"], e.get("other"), e["mode"], e["family"], e["focus"], e["agent"], self.epoch)

    def _agent(self, e: Event) -> None:
        a = self.attempts[e["attempt"]]
        a.called, a.sha, a.title = e, e["sha"], e["title"]
        a.family = e["family"] or a.family
        self.usd += e["usd"]
        self.agent_s += e["wall_s"]
        self.tokens += sum(e["tokens"].get(k, 0) for k in ("in", "out"))

    def _gate(self, e: Event) -> None:
        a = self.attempts[e["attempt"]]
        a.gates[e["gate"]] = e
        a.review |= e.get("review", False)
        self.gpu_s += e.get("ms", 0) / 1e3 * (e["gate"] in ON_THE_DEVICE)
        self.remote += e["gate"] == "remote"

    def _measure(self, e: Event) -> None:
        self.attempts[e["attempt"]].measures[e["stage"]] = e
        self.gpu_s += e.get("s", 0.0)

    def _decision(self, e: Event) -> None:
        a = self.attempts[e["attempt"]]
        a.verdict, a.reason, a.lesson = e["verdict"], e["reason"], e.get("lesson", "")
        a.gain, a.score_ns = e.get("gain"), e.get("score_ns")
        if a.gain is not None and a.parent in self.rel and self.base_ns:
            a.ns = self.bases[self.epoch] * exp(self.rel[a.parent] + a.gain)
        if a.verdict == "kept" and a.parent in self.rel and a.epoch == self.epoch:
            before = self.rel[self.best]
            self.rel[a.number] = self.rel[a.parent] + e["gain"]
            of_parent = self.shapes.get(a.parent, {})
            self.shapes[a.number] = {c: of_parent.get(c, 0.0) + x for c, x in e["shapes"].items()}
            a.advance = max(0.0, before - self.rel[a.number])
        a.best, a.best_ns = self.best, self.times_ns(self.best)

    def _audit(self, e: Event) -> None:
        """Measured together: these figures replace what was chained from single comparisons."""
        self.audits.append(e)
        self.audited_keeps, self.needs_retime = len(self.kept), False
        self.gpu_s += e.get("s", 0.0)
        for number, x in e["rel"].items():
            self.rel[int(number)], self.shapes[int(number)] = x, e["shapes"][number]

    def _pivot(self, e: Event) -> None:
        self.pivoted = True
        self.marks.append((len(self.attempts), "pivot"))

    def _stop(self, e: Event) -> None:
        self.stopped = e


def fold(events: list[Event]) -> State:
    state = State()
    for e in events:
        state.apply(e)
    return state


def read(path: Path, mend: bool = False) -> list[Event]:
    """All events but a torn last line; any other bad line is a UserError with its number. mend: cut the torn line off
    the file, with a warning (for the holder of the lock: to others it may be a line that is just being written)."""
    raw = path.read_bytes() if path.exists() else b""
    events: list[Event] = []
    at = 0
    for number, line in enumerate(raw.splitlines(keepends=True), 1):
        try:
            e = json.loads(line)
            if not isinstance(e, dict) or not line.endswith(b"\n"):
                raise ValueError
            if e["v"] > VERSION:
                raise UserError(f"{path}:{number}: written by a newer kit (format {e['v']})", "git pull")
            e["event"]
        except (ValueError, KeyError, TypeError):
            if at + len(line) < len(raw):
                raise UserError(f"{path}:{number}: not an event", "correct or remove the line by hand") from None
            if mend:
                print(f"warning: {path}:{number}: torn by a crash, cut off", file=sys.stderr)
                with open(path, "r+b") as f:
                    f.truncate(at)
            break
        events.append(e)
        at += len(line)
    return events


class Ledger:
    """The file and the state that it amounts to, in step; for the one process that holds the run's lock."""

    def __init__(self, path: Path, run: str):
        self.path, self.run = path, run
        self.events = read(path, mend=True)
        self.state = fold(self.events)

    def append(self, event: str, **fields: Any) -> Event:
        """On disk first, then in the state."""
        e: Event = {"v": VERSION, "t": utc_now(), "run": self.run, "event": event, **fields}
        with open(self.path, "ab") as f:
            f.write(json.dumps(e, separators=(",", ":")).encode() + b"\n")
            f.flush()
            os.fsync(f.fileno())
        e = json.loads(json.dumps(e))  # what a reader would see: keys of dictionaries are text
        self.events.append(e)
        self.state.apply(e)
        return e


def write_whole(path: Path, content: bytes | str) -> None:
    """Whole or not at all, and on the disk before the ledger speaks of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(path.name + ".tmp")
    with open(half, "wb") as f:
        f.write(content.encode() if isinstance(content, str) else content)
        f.flush()
        os.fsync(f.fileno())
    os.replace(half, path)
