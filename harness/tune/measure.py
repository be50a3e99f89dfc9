"""Interleaved blocks over a grid, twice or more, each on disk before the next.

A block is one point: all backends back to back, in an order that a balanced Latin square rotates, so that a comparison
is made within seconds on one GPU. Blocks are visited breadth first: every point gets its first block before any gets
its second, so that a budget cuts repeats before it cuts points. A pass is a fresh set of processes and a full
traversal, so that two passes measure run-to-run noise.
"""
from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.results import utc_now
from harness.stats import t_quantile
from harness.tune.backends import FAKE_DEVICE, LOSER_MS, LOSER_RATIO, Backend, Lane, Visit, open_lane
from harness.tune.execute import run_all
from harness.tune.grid import Point
from harness.tune.journal import FINAL, TRIES, Journal, Plan, visit_key

PROBE_S = 60.0  # the anchor is timed so often
SETTLED = 0.01  # half-width of the 95 % interval at which a pair is settled
SETTLED_BLOCKS = 3  # not before this many blocks of a pass
ATTEMPTS = 3  # of a visit that crashes; a timeout is not repeated
RESUME_SHARE, RESUME_BAND = 0.05, (0.95, 1.05)  # blocks timed again by a resume; their median ratio must lie inside


# ---- one block, wherever it runs ------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Job:
    kind: str  # block, again, probe
    pass_: int
    block: int
    point: Point
    order: tuple[Backend, ...]
    limit_s: float
    seed: int
    prior: tuple[tuple[str, int], ...] = ()  # backend id -> tries that failed in earlier segments


_LANES: dict[tuple[int, str, str], Lane] = {}  # of this process


def run_block(job: Job) -> dict[str, Any]:
    """Time all of a job's backends at its point, one after the other. The journal's line, without its segment."""
    for key in [k for k in _LANES if k[0] != job.pass_]:  # a pass has processes of its own
        _LANES.pop(key).close()
    _open_lanes(job)
    visits: dict[str, Any] = {}
    fastest, prior = float("inf"), dict(job.prior)
    before = conditions(job.order[0].fake)
    for backend in job.order:
        lane = _LANES[job.pass_, backend.id, backend.sha]
        name = visit_key(job.point, backend, job.pass_, job.block)
        tries = prior.get(backend.id, 0)
        for _ in range(ATTEMPTS):
            tries += 1
            visit = lane.visit(job.point, int(name, 16) ^ job.seed, fastest, gate=job.block == 0)
            if visit.status != "crash":
                break
        visit.key, visit.tries = name, tries
        if visit.status == "ok":
            fastest = min(fastest, visit.ms[0])
        visits[backend.id] = visit.to_json()
    line = {"kind": job.kind, "pass": job.pass_, "block": job.block, "point": job.point.key, "t": utc_now(),
            "order": [b.id for b in job.order], "visits": visits, "gpu": str(os.environ.get("CUDA_VISIBLE_DEVICES", 0))}
    return line | {k: v for k, v in before.items() if v}


_OPENERS = ThreadPoolExecutor(8)  # kept: a worker dies with the thread that started it


def _open_lanes(job: Job) -> None:
    """Load the backends that are not loaded yet, side by side: a CUDA file builds for a minute on one core. Variants
    one by one, since they differ by the environment."""
    fresh = []
    for b in job.order:
        if (job.pass_, b.id, b.sha) not in _LANES:
            _LANES[job.pass_, b.id, b.sha] = open_lane(b, job.pass_, job.limit_s)
            fresh.append((b, _LANES[job.pass_, b.id, b.sha]))
    list(_OPENERS.map(lambda lane: lane.open(), [lane for b, lane in fresh if not b.params]))
    for b, lane in fresh:
        if b.params:
            lane.open()


def close_lanes() -> None:
    while _LANES:
        _LANES.popitem()[1].close()


_SEEN: dict[str, Any] = {}


def conditions(fake: bool) -> dict[str, Any]:
    """Load, SM clock (MHz), temperature (C), power (W) and throttle reasons now; read at most every 5 s."""
    if fake:
        return {"load": 0.0, "cpus": 1}
    if time.monotonic() - _SEEN.get("at", -9.0) > 5:
        _SEEN.update(at=time.monotonic(), now=_nvidia_smi())
    return {"load": round(os.getloadavg()[0], 2), "cpus": os.cpu_count() or 1} | _SEEN["now"]


def _nvidia_smi() -> dict[str, Any]:
    fields = ("clocks.sm", "temperature.gpu", "power.draw", "clocks_event_reasons.hw_slowdown",
              "clocks_event_reasons.hw_thermal_slowdown", "clocks_event_reasons.sw_thermal_slowdown")
    one = ["-i", mine] if (mine := os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0]) else []
    try:
        text = subprocess.run(["nvidia-smi", *one, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=10, check=True).stdout.splitlines()[0]
        mhz, temp, watts, *reasons = (x.strip() for x in text.split(","))
        throttle = [f.split(".")[1] for f, r in zip(fields[3:], reasons, strict=True) if r == "Active"]
        return {"sm_mhz": int(mhz), "temp_c": int(temp), "power_w": float(watts), "throttle": " ".join(throttle)}
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return {}


def describe_device(fake: bool) -> dict[str, Any]:
    """Name, units (SMs or cores), memory and versions of what this process measures on."""
    if fake:
        return dict(FAKE_DEVICE)
    import torch

    from harness.machine import fingerprint
    seen = fingerprint()
    device = {"name": seen["name"], "driver": seen.get("driver", "none"), "torch": seen["torch"],
              "cuda": seen.get("cuda", "none")}
    if device["cuda"] == "none":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return device | {"units": os.cpu_count() or 1, "memory_bytes": memory, "kind": "cpu", "resident_ctas": 0}
    p = torch.cuda.get_device_properties(0)
    return device | {"units": p.multi_processor_count, "memory_bytes": p.total_memory, "kind": "gpu",
                     "resident_ctas": p.multi_processor_count * (p.max_threads_per_multi_processor // 256)}


# ---- which backends, in which order, and whether at all -------------------------------------------------------------

def latin_rows(k: int) -> list[list[int]]:
    """Williams' design: over its rows each of k stands equally often at each place and after each other one."""
    zigzag = [(i + 1) // 2 if i % 2 else (k - i // 2) % k for i in range(k)]
    rows = [[(x + shift) % k for x in zigzag] for shift in range(k)]
    return rows + ([row[::-1] for row in rows] if k % 2 else [])


@dataclass
class State:
    """What the journal says, by point: enough to decide what is still to be measured."""

    plan: Plan
    visits: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)  # (point, pass) -> its blocks
    failed: dict[tuple[str, str], str] = field(default_factory=dict)  # (point, backend) -> status
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)  # visit key -> visit

    @classmethod
    def of(cls, plan: Plan, journal: Journal) -> State:
        state = cls(plan)
        for line in journal.blocks():
            state.take(line)
        return state

    def take(self, line: dict[str, Any]) -> None:
        blocks = self.visits.setdefault((line["point"], line["pass"]), [])
        while len(blocks) <= line["block"]:
            blocks.append({})
        for name, visit in line["visits"].items():
            self.keys[visit["key"]] = visit
            blocks[line["block"]][name] = visit
            if visit["status"] == "ok":
                self.failed.pop((line["point"], name), None)
            else:
                self.failed[line["point"], name] = visit["status"]

    def backends(self, p: Point, pass_: int, block: int) -> list[Backend]:
        """Those still to be timed in this block: not failed here before, no loser, not on disk already."""
        def due(b: Backend) -> bool:
            seen = self.keys.get(visit_key(p, b, pass_, block))
            if seen:
                return seen["status"] not in FINAL and seen.get("tries", 1) < TRIES * ATTEMPTS and self.retry
            return b.supports(p) and (p.key, b.id) not in self.failed and not self.loses(p, pass_, block, b)
        return [b for b in self.plan.backends if due(b)]

    retry = False  # a resume tries failures again; a run does not come back to them

    def loses(self, p: Point, pass_: int, block: int, b: Backend) -> bool:
        """Cut short in this pass's first block, as far behind: its two samples there are all it gets."""
        first = (self.visits.get((p.key, pass_)) or [{}])[0]
        ms = {name: v["ms"][0] for name, v in first.items() if v["ms"]}
        return block > 0 and b.id in ms and ms[b.id] >= LOSER_MS and ms[b.id] > LOSER_RATIO * min(ms.values())

    def settled(self, p: Point, pass_: int) -> bool:
        """Every pair that could still be best is known to 1 % by the blocks of this pass."""
        blocks = [b for b in self.visits.get((p.key, pass_), []) if b]
        if len(blocks) < SETTLED_BLOCKS:
            return False
        logs = {name: [_log_median(b.get(name)) for b in blocks] for name in blocks[0]}
        whole: dict[str, list[float]] = {n: [y for y in x if y is not None] for n, x in logs.items() if None not in x}
        if not whole:
            return True
        best = min(whole, key=lambda n: statistics.fmean(whole[n]))
        for name, x in whole.items():
            d = [a - b for a, b in zip(x, whole[best], strict=True)]
            half = t_quantile(0.05, len(d) - 1) * statistics.stdev(d) / len(d) ** 0.5
            if name != best and half > SETTLED and statistics.fmean(d) - half < 0:
                return False
        return True


def _log_median(visit: dict[str, Any] | None) -> float | None:
    return math.log(statistics.median(visit["ms"])) if visit and visit["status"] == "ok" else None


# ---- the run -------------------------------------------------------------------------------------------------------

Say = Callable[[str], None]


class Progress:
    """Pass, round, blocks and minutes left, on stderr: a line that overwrites itself, or one every half minute where it
    is no terminal."""

    def __init__(self, total: int, budget_s: float | None, clock: Callable[[], float]):
        self.total, self.budget_s, self.clock = total, budget_s, clock
        self.start = self.said = clock()
        self.done = 0

    def step(self, line: dict[str, Any]) -> None:
        self.done += 1
        now = self.clock()
        left = (now - self.start) / self.done * max(0, self.total - self.done)
        left = left if self.budget_s is None else min(left, self.budget_s - (now - self.start))
        text = (f"pass {line['pass']} round {line['block'] + 1}: {self.done} of at most {self.total} blocks, "
                f"{max(0.0, left) / 60:.1f} min left, {line['point']}")
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif now - self.said >= 30:
            print(text, file=sys.stderr, flush=True)
            self.said = now


def anchor(plan: Plan) -> tuple[Point, Backend]:
    """What is timed every minute: the reference backend on a mid-sized point."""
    by_id = {b.id: b for b in plan.backends}
    backend = by_id.get("geqrf") or by_id.get("fake:geqrf") or plan.backends[0]
    points = [p for p in plan.points if backend.supports(p)] or plan.points
    return min(points, key=lambda p: (abs(p.batch * p.m * p.n - 40 * 352 * 352), p)), backend


def measure(plan: Plan, run_dir: Path, executor: Executor, width: int, *, budget_s: float | None = None,
            resuming: bool = False, say: Say, clock: Callable[[], float] = time.monotonic) -> bool:
    """Measure what of the plan is not yet in the journal. Returns False where the budget ended first.

    Raises UserError where the disk takes no more; an interrupt loses the block at hand and nothing else.
    """
    journal = Journal(run_dir)
    segment = sum(x["kind"] == "segment" for x in journal.lines)
    try:
        journal.append({"kind": "segment", "segment": segment, "t": utc_now()})
        if resuming:
            _compare_segments(plan, journal, segment, executor, width, say)
        state = State.of(plan, journal)
        state.retry = resuming
        run = _Run(plan, journal, state, segment, clock, budget_s)
        for pass_ in range(1, plan.passes + 1):
            for block in range(plan.blocks):  # the next round's choices stand on the whole of the last one
                for line in run_all(executor, width, run_block, run.jobs_of(pass_, block), run.lost):
                    run.take(line)
        if run.ended:
            say(f"budget of {(budget_s or 0) / 60:g} min spent: {run.skipped} points have no block in some pass, "
                f"{run.cut} planned blocks were not run; --top-up measures them")
        return not run.ended
    finally:
        if sys.stderr.isatty():
            print(file=sys.stderr)
        close_lanes()
        journal.file.close()


@dataclass
class _Run:
    plan: Plan
    journal: Journal
    state: State
    segment: int
    clock: Callable[[], float]
    budget_s: float | None
    ended: bool = False
    skipped: int = 0
    cut: int = 0

    def __post_init__(self) -> None:
        self.begin = self.clock()
        self.probed: dict[int, float] = {}  # pass -> when
        self.progress = Progress(len(self.plan.points) * self.plan.passes * self.plan.blocks, self.budget_s, self.clock)

    def jobs_of(self, pass_: int, block: int) -> Iterator[Job]:
        """A round: one block of every point that needs it, until the pass's share of the budget is spent; a probe at
        the start of a pass and every minute."""
        share = None if self.budget_s is None else self.begin + self.budget_s * pass_ / self.plan.passes
        for i, p in enumerate(self.plan.order(pass_)):
            if pass_ > 1 and not self.state.visits.get((p.key, 1)):
                continue  # the budget cut it from the first pass
            if block and self.state.settled(p, pass_):
                continue
            order = self._ordered(p, pass_, block, i)
            if not order:
                continue
            if share is not None and self.clock() + self._expected_s(p) > share:
                self.ended = True
                self.cut += 1
                self.skipped += block == 0
                continue
            if self.clock() - self.probed.get(pass_, -PROBE_S) >= PROBE_S:
                yield self.probe(pass_)
            prior = tuple((b.id, self.state.keys[k].get("tries", 1))
                          for b in order if (k := visit_key(p, b, pass_, block)) in self.state.keys)
            yield Job("block", pass_, block, p, order, self.plan.limit_s, self.plan.seed, prior)

    def _ordered(self, p: Point, pass_: int, block: int, i: int) -> tuple[Backend, ...]:
        backends = self.state.backends(p, pass_, block)
        rows = latin_rows(len(backends)) if backends else [[]]
        return tuple(backends[x] for x in rows[(i + (pass_ - 1) * self.plan.blocks + block) % len(rows)])

    def _expected_s(self, p: Point) -> float:
        """What this point's last block cost in timed calls: a block that would overrun the budget is not begun."""
        seen = [b for pass_ in range(1, self.plan.passes + 1) for b in self.state.visits.get((p.key, pass_), [])]
        return sum(v.get("seconds", sum(v["ms"]) / 1e3) for v in seen[-1].values()) if seen else 0.0

    def probe(self, pass_: int) -> Job:
        self.probed[pass_] = self.clock()
        point, backend = anchor(self.plan)
        return Job("probe", pass_, 0, point, (backend,), self.plan.limit_s, self.plan.seed)

    def take(self, line: dict[str, Any]) -> None:
        self.journal.append(line | {"segment": self.segment})
        if line["kind"] == "block":
            self.state.take(line)
            self.progress.step(line)

    def lost(self, job: Job, reason: str) -> dict[str, Any]:
        visits = {b.id: replace(Visit("crash", reason), key=visit_key(job.point, b, job.pass_, job.block)).to_json()
                  for b in job.order}
        return {"kind": job.kind, "pass": job.pass_, "block": job.block, "point": job.point.key, "t": utc_now(),
                "order": [b.id for b in job.order], "visits": visits}


def _compare_segments(plan: Plan, journal: Journal, segment: int, executor: Executor, width: int, say: Say) -> None:
    """Time the anchor and 5 % of the finished blocks again: where the machine has changed, what it measured before is
    discarded rather than mixed."""
    blocks = list(journal.blocks())
    points = {p.key: p for p in plan.points}
    by_id = {b.id: b for b in plan.backends}
    count = -(-len(blocks) * RESUME_SHARE // 1)
    jobs = []
    for line in blocks[::max(1, int(len(blocks) // max(1, count)))]:
        ids = [n for n in line["order"] if line["visits"][n]["status"] == "ok" and n in by_id]
        if ids and line["point"] in points:
            jobs.append(Job("again", line["pass"], line["block"], points[line["point"]],
                            tuple(by_id[n] for n in ids), plan.limit_s, plan.seed))
    earlier = {v["key"]: v for line in blocks for v in line["visits"].values()}
    jobs.sort(key=lambda job: job.pass_)  # lanes of one pass at a time
    ratios = []
    for line in run_all(executor, width, run_block, jobs, lambda job, why: {"kind": "again", "visits": {}}):
        journal.append(line | {"segment": segment})
        ratios += [statistics.median(v["ms"]) / statistics.median(earlier[v["key"]]["ms"])
                   for v in line["visits"].values() if v["status"] == "ok"]
    if ratios and not RESUME_BAND[0] <= statistics.median(ratios) <= RESUME_BAND[1]:
        say(f"the machine has changed: {len(ratios)} timings repeated are {statistics.median(ratios):.3f} times the "
            "earlier ones; what was measured before is discarded")
        for old in {line["segment"] for line in blocks}:
            journal.append({"kind": "discard", "segment": old})
    elif ratios:
        say(f"resumed: {len(blocks)} blocks kept, {len(ratios)} timings repeated agree "
            f"(median ratio {statistics.median(ratios):.3f})")
