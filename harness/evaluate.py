"""The trusted parent: inputs, checker, clock and guards. It never imports a submission.

    parent (here)                                   worker (harness/worker.py, through harness/child.py)
    draws the seeds, generates the inputs
    starts its own clock, writes the inputs
    into shared memory                     ------>  calls custom_kernel on each, timed as a whole
    reads its own clock                    <------  "timed"
    reads it again: late work is work      <------  looks at types and aliases, copies the outputs into shared memory
    checks every output against its own copy of the input, in float64
"""
from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

import reference
from harness.cases import Case
from harness.child import Failure, Pool, Reply, Worker
from harness.machine import device_kind
from harness.residuals import residuals


@dataclass
class Outcome:
    """What one case gave, in the words of results.Run."""

    status: str
    message: str = ""
    samples_ns: list[float] = field(default_factory=list)
    inputs: int = 0
    margin: dict[str, float] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    failing: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None  # A, H, tau of a wrong one, for --dump

    def note(self, notes: list[str]) -> None:
        self.flags += [n for n in notes if n not in self.flags]

    def widen(self, **figures: float) -> None:
        for k, v in figures.items():
            self.margin[k] = max(self.margin.get(k, 0.0), v)


@dataclass(frozen=True)
class Schedule:
    """How many calls and when to stop; the defaults are the contest's benchmark rule."""

    input_bytes: int = 256 << 20  # C = min(50, this over the bytes of one input), at least 1
    max_inputs: int = 50
    min_repeats: int = 3
    max_repeats: int = 200
    settle_s: float = 0.1  # no stop before this much wall time
    rel_err: float = 1e-3  # standard error over the mean
    sum_s: float = 10.0  # mean x repeats
    wall_s: float = 120.0

    def inputs(self, case: Case) -> int:
        return max(1, min(self.max_inputs, self.input_bytes // (4 * case.batch * case.n ** 2)))

    def enough(self, samples_ns: list[float], wall_s: float) -> bool:
        runs = len(samples_ns)
        if runs >= self.max_repeats:
            return True
        if runs < self.min_repeats or wall_s < self.settle_s:
            return False
        mean = statistics.fmean(samples_ns)
        err = statistics.stdev(samples_ns) / runs ** 0.5 if runs > 1 else float("inf")
        return err < self.rel_err * mean or mean * runs > self.sum_s * 1e9 or wall_s > self.wall_s


CONTEST = Schedule()
STRICT = Schedule(max_repeats=100)  # fresh matrices spread by 2 % where each has its own path: 0.2 % on the mean
ROUND = Schedule(max_repeats=30, sum_s=2.0, wall_s=6.0)  # one of several rounds: the rounds carry the statistics
BASELINE = Schedule(max_repeats=3)  # v00 where it stands for comparison only: hundreds of times need no statistics
CPU = Schedule(max_inputs=1, min_repeats=1, max_repeats=10, sum_s=1.0, wall_s=2.0)


def labels_of(case: Case) -> list[str] | None:
    """The profile of each matrix of a mixed batch, drawn as generate_input draws it; None for other cases."""
    if case.case != "mixed":
        return None
    gen = torch.Generator("cuda" if torch.cuda.is_available() else "cpu").manual_seed(case.seed)
    torch.randn(case.batch, case.n, case.n, generator=gen, device=gen.device)
    return [reference.MIXED_PROFILES[i] for i in reference.mixed_labels(case.batch, gen).tolist()]


def make_input(case: Case) -> torch.Tensor:
    a = reference.generate_input(case.batch, case.n, case.cond, case.seed, case.case)
    return a if device_kind() == "cuda" else a.cpu()


def _truncated(a: torch.Tensor, tau: torch.Tensor, column: torch.Tensor, bad: torch.Tensor) -> list[str]:
    """Signs that columns were left out: columns wrong on their own scale, or reflectors that geqrf has and this not."""
    notes = []
    if not (column <= reference.COLUMN_RTOL).all():
        worst = int(torch.nan_to_num(column, nan=float("inf")).argmax())
        notes.append(f"columnwise: {int(bad[worst])} of {a.shape[-1]} columns of matrix {worst} are wrong on their own "
                     f"scale (worst {float(column[worst]):.3g}, honest below {reference.COLUMN_RTOL})")
    zeros = (tau == 0).sum(-1)
    worst = int(zeros.argmax())
    if zeros[worst] > 1:  # one is usual: the last column has nothing below it
        usual = int((torch.geqrf(a[worst:worst + 1])[1] == 0).sum())
        if int(zeros[worst]) > usual:
            notes.append(f"tau: {int(zeros[worst])} of {a.shape[-1]} reflectors of matrix {worst} do nothing, "
                         f"torch.geqrf leaves out {usual}")
    return notes


def verify(case: Case, a: torch.Tensor, seen: torch.Tensor, output: tuple[torch.Tensor, torch.Tensor],
           outcome: Outcome, contest_checker: bool) -> bool:
    """Judge one output against the parent's own input `a`; `seen` is the worker's copy of it after the call."""
    if not torch.equal(a, seen):
        outcome.status, outcome.message = "wrong", "changes its input"
        return False
    h, tau = output
    n = a.shape[-1]
    unit = n * reference.EPS32
    if contest_checker:
        j = reference.judge(a, output)
        ok, message = j.ok, j.message
        if j.a1 is not None and j.factor is not None and j.orth is not None and j.column is not None:
            outcome.widen(factor=float((j.factor / (unit * j.a1.clamp(min=1e-30))).max()),
                          orth=float(j.orth.max() / unit), column=float(j.column.max()))
        column, bad = j.column, j.bad_columns
    else:
        r = residuals(a, h, tau)
        worst = r.worst()
        finite = bool(torch.isfinite(h).all() and torch.isfinite(tau).all())
        ok = finite and worst["factor"] <= reference.FACTOR_RTOL and worst["orth"] <= reference.ORTH_RTOL
        where = int(torch.nan_to_num(r.factor, nan=float("inf")).argmax())
        message = "" if ok else (
            f"factor residual {worst['factor']:.3g}, allowed {reference.FACTOR_RTOL}; "
            f"orthogonality {worst['orth']:.3g}, allowed {reference.ORTH_RTOL}; "
            f"matrix {where} of {case.batch}") if finite else "not finite"
        outcome.widen(factor=worst["factor"], orth=worst["orth"], column=worst["column"])
        column, bad = r.column, r.bad_columns
    if not ok:
        outcome.status, outcome.message = "wrong", message + _profile(case, message)
        outcome.failing = (a.clone(), h.clone(), tau.clone())
        return False
    assert column is not None and bad is not None  # a pass has all figures
    outcome.note(_truncated(a, tau, column, bad))
    return True


def _profile(case: Case, message: str) -> str:
    labels = labels_of(case)
    words = message.replace(",", " ").replace(":", " ").split()
    if labels is None or "matrix" not in words:
        return ""
    return f" (profile {labels[int(words[words.index('matrix') + 1])]})"


def run_case(worker: Worker, case: Case, seeds: Callable[[int, int], int], schedule: Schedule | None,
             reuse: bool = False, progress: Callable[[str], None] = lambda text: None,
             make: Callable[[Case], torch.Tensor] = make_input) -> Outcome:
    """One untimed, checked pass; then, with a schedule, timed repeats, every output of which is checked.

    seeds(repeat, input) gives each input's seed; the untimed pass is repeat 0. With reuse=True the inputs of repeat 0
    serve all repeats and stand where they stood (the contest's way); else each repeat sees new matrices at other
    addresses. Never raises for what the submission does: the outcome says it.
    """
    outcome = Outcome("pass")
    count = schedule.inputs(case) if schedule else 1
    replies: list[Reply] = []
    try:
        pool = Pool(case.batch, case.n, count + 1, count)
        try:
            worker.map(pool, fresh=not reuse)
        finally:
            pool.unlink()
        outcome.inputs = count
        slots = list(range(count))
        mine: list[torch.Tensor] = []
        begin = time.monotonic()
        repeat = 0
        while True:
            fresh = not (reuse and mine)
            if fresh:
                slots = [(repeat + i) % pool.slots for i in range(count)]
                mine = [make(case.with_seed(seeds(repeat, i))) for i in range(count)]
            pool.poison()
            reply = worker.run(slots, mine if fresh else None, flush=schedule is not None)
            outcome.note(reply.notes)
            if reply.problem:
                outcome.status, outcome.message = "output", reply.problem
                break
            if not all(verify(case.with_seed(seeds(0 if reuse else repeat, i)), a, pool.input(slot), pool.output(i),
                              outcome, contest_checker=repeat == 0)
                       for i, (slot, a) in enumerate(zip(slots, mine, strict=True))):
                break
            if schedule is None:
                break
            if repeat:
                replies.append(reply)
                outcome.samples_ns.append(reply.elapsed_ns / count)
                progress(f"run {repeat}, mean {statistics.fmean(outcome.samples_ns) / 1e6:.4f} ms")
                if schedule.enough(outcome.samples_ns, time.monotonic() - begin):
                    break
            else:
                begin = time.monotonic()
            repeat += 1
        if outcome.status == "pass" and replies and (text := worker.late(replies)):
            outcome.status, outcome.message = "clock", text
    except Failure as e:
        outcome.status, outcome.message = e.status, e.text
    except torch.OutOfMemoryError as e:
        outcome.status, outcome.message = "infra", f"the harness ran out of device memory: {str(e).splitlines()[0]}"
    if outcome.status == "pass" and outcome.flags:
        outcome.status, outcome.message = "flagged", "; ".join(outcome.flags)
    return outcome


class Seeds:
    """Fresh 62-bit seeds for (repeat, input), the same for every file of a round: nobody saw them before."""

    def __init__(self, rng: random.Random):
        self.rng, self.drawn = rng, {}  # type: ignore[var-annotated]

    def __call__(self, repeat: int, i: int) -> int:
        return self.drawn.setdefault((repeat, i), self.rng.getrandbits(62))


def contest_seeds(case: Case) -> Callable[[int, int], int]:
    """The contest's: the spec's own seed + 42 (k + 1) for input k, in every repeat."""
    return lambda repeat, i: case.seed + 42 * (i + 1)


# ---------------------------------------------------------------- probes: what must hold between two calls

def probes(n: int) -> Iterator[tuple[Case, Callable[[Case], torch.Tensor]]]:
    """Small batches that a decision taken for the batch from a part of it, or a scale taken for granted, gets wrong.

    A batch in another order, with an unrelated matrix before it, scaled by a power of two; zeros; the identity.
    """
    def case(label: str, batch: int, kind: str = "mixed") -> Case:
        return Case("test", 0, f"probe {label}", batch, n, 2, 0, kind)

    def mixed(c: Case) -> torch.Tensor:
        return reference.generate_input(c.batch, n, 2, c.seed, "mixed")

    def unrelated_first(kind: str) -> Callable[[Case], torch.Tensor]:
        def make(c: Case) -> torch.Tensor:
            a = reference.generate_input(c.batch, n, 0, c.seed, "dense")
            a[0] = reference.generate_input(1, n, 0, c.seed, kind)[0]
            return a
        return make

    def scaled(power: int) -> Callable[[Case], torch.Tensor]:
        return lambda c: mixed(c) * 2.0 ** power

    def permuted(c: Case) -> torch.Tensor:
        return mixed(c)[torch.randperm(c.batch, generator=torch.Generator().manual_seed(c.seed))]

    yield case("permuted", 12), permuted
    for kind in ("clustered", "rankdef", "nearcollinear"):
        yield case(f"{kind} first", 4, "dense"), unrelated_first(kind)
    for power in (40, -40):
        yield case(f"scaled 2^{power}", 6), scaled(power)
    yield case("zeros", 3, "dense"), lambda c: torch.zeros_like(mixed(c))
    yield case("identity", 3, "dense"), lambda c: torch.eye(n).expand(3, n, n).contiguous().to(mixed(c).device)
