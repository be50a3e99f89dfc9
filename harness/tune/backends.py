"""What can be timed: `geqrf`, `cpu`, every submission (`sub:v12`), its declared variants (`sub:v12@nb=32`), fakes.

A backend is a file in submission form; a *lane* is one backend loaded in one process for one pass. `visit` is all that
the schedule asks of a lane: time it at one point. The fake lane answers from a closed form with seeded noise; every
test of the tool runs on it. The harness lane stands on harness.evaluate: its worker, inputs, checker and clock guard.
"""
from __future__ import annotations

import ast
import hashlib
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from harness.cases import ROOT
from harness.errors import UserError
from harness.results import file_sha
from harness.tune.grid import Point

STATUSES = ("ok", "wrong", "crash", "timeout", "oom", "unsupported", "offstream")
SUBMISSIONS = ROOT / "submissions"
BUILTIN = Path(__file__).parent / "builtin"
VISIT_MS = 30.0  # one visit aims at this much timed work ...
SAMPLES = (3, 9)  # ... with so many samples, at least and at most
LOSER_MS, LOSER_RATIO, LOSER_SAMPLES = 20.0, 1.3, 2  # slower than this and that much behind: two samples say enough
HOPELESS = 4.0  # its first, untimed run is so many times a rival's: an eighth of the inputs says enough as well


@dataclass(frozen=True)
class Backend:
    """`params` (name, value) reach the worker as environment variables TUNE_<NAME>."""

    id: str
    path: str = ""  # empty for a fake
    sha: str = ""
    params: tuple[tuple[str, str], ...] = ()
    n_range: tuple[int, int] = (1, 1 << 30)  # elsewhere it would only fall back to geqrf, which is timed anyway

    @property
    def fake(self) -> bool:
        return self.id.startswith("fake:")

    @property
    def default(self) -> str:
        """The id without its parameters: what a variant has to beat."""
        return self.id.partition("@")[0]

    def supports(self, p: Point) -> bool:
        return (self.fake or p.m == p.n) and self.n_range[0] <= p.n <= self.n_range[1]


def declared_variants(path: Path) -> list[tuple[str, str]]:
    """`TUNE_PARAMS = {"nb": [16, 32]}` of a file, read without running it, as (name, value) pairs."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError) as e:
        raise UserError(f"{path}: cannot be read as Python: {e}", f"./kit check {path}") from None
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "TUNE_PARAMS" for t in node.targets):
            try:
                return [(str(k), str(v)) for k, values in ast.literal_eval(node.value).items() for v in values]
            except (ValueError, AttributeError, TypeError):
                raise UserError(f"{path.name}:{node.lineno}: TUNE_PARAMS: expected a literal dict of lists, got "
                                f"{ast.unparse(node.value)!r}", 'write it as {"nb": [16, 32]}') from None
    return []


def _submission(path: Path) -> list[Backend]:
    sha = file_sha(path)
    plain = Backend(f"sub:{path.stem}", str(path), sha)
    return [plain, *(Backend(f"sub:{path.stem}@{k}={v}", str(path), sha, ((k, v),))
                     for k, v in declared_variants(path))]


def discover(names: Sequence[str] = (), submissions: Path = SUBMISSIONS) -> list[Backend]:
    """The named backends, or geqrf and all of submissions/. `sub:v12` brings its variants; `fake` all fakes. The CPU is
    measured when it is asked for: on a GPU's large shapes it takes minutes to lose. `v12/257-512`: for these n only.

    Raises UserError for a name that nothing answers to.
    """
    files = sorted(submissions.glob("v*.py"))
    names = list(names) or ["geqrf", *(f"sub:{f.stem}" for f in files if f.stem != "v00_geqrf")]
    found: dict[str, Backend] = {}
    for asked in names:
        ranged = re.fullmatch(r"(.+)/(\d+)-(\d+)", asked)
        name = ranged[1] if ranged else asked
        if name.startswith("fake"):
            hits = [fake(f"fake:{m}") for m in FAKE_DEFAULT] if name == "fake" else [fake(name)]
        elif name in ("geqrf", "cpu"):
            path = BUILTIN / f"{name}.py"
            hits = [Backend(name, str(path), file_sha(path))]
        else:
            stem = name.removeprefix("sub:").partition("@")[0]
            match = [Path(name)] if name.endswith(".py") and Path(name).is_file() else [
                f for f in files if stem in (f.stem, f.stem.split("_")[0])]
            hits = [b for f in match for b in _submission(f)
                    if "@" not in name or b.id.endswith(name.partition("@")[2])]
        if not hits:
            raise UserError(f"--backends: no backend {name!r}", "one of geqrf, cpu, fake" + "".join(
                f", sub:{f.stem}" for f in files))
        if ranged:
            hits = [replace(b, n_range=(int(ranged[2]), int(ranged[3]))) for b in hits]
        found |= {b.id: b for b in hits}
    if len({b.fake for b in found.values()}) > 1:
        raise UserError("--backends: fake backends cannot be compared with real ones", "--backends fake")
    if not any(b.fake for b in found.values()) and "geqrf" not in found:  # the reference is always there
        path = BUILTIN / "geqrf.py"
        found = {"geqrf": Backend("geqrf", str(path), file_sha(path))} | found
    return list(found.values())


# ---- what a visit gives --------------------------------------------------------------------------------------------

@dataclass
class Visit:
    """One backend at one point in one block. Times in ms a call; residuals scaled (allowed 20 and 100)."""

    status: str = "ok"
    message: str = ""
    ms: list[float] = field(default_factory=list)
    wall_ms: float = 0.0
    factor: float = 0.0
    orth: float = 0.0
    key: str = ""
    tries: int = 1

    def to_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v or k in ("status", "ms")}


class Lane(Protocol):
    """One backend, loaded. `fastest_ms` is the quickest first sample of the block so far, for stopping losers."""

    def open(self) -> None: ...

    def visit(self, p: Point, seed: int, fastest_ms: float, gate: bool) -> Visit: ...

    def close(self) -> None: ...


def samples_wanted(first_ms: float, fastest_ms: float) -> int:
    """How many samples a visit takes, by its first one and by the fastest first one among its rivals."""
    if first_ms >= LOSER_MS and first_ms > LOSER_RATIO * fastest_ms:
        return LOSER_SAMPLES
    return max(SAMPLES[0], min(SAMPLES[1], round(VISIT_MS / max(first_ms, 1e-6))))


# ---- fakes ---------------------------------------------------------------------------------------------------------

def _flops(p: Point) -> float:
    return p.batch * 4 / 3 * p.m * p.k * p.k


# Closed forms, ms: a launch cost, a rate, and what each model is bad at. `hard` slows a kind of input.
FAKES: dict[str, Callable[[Point], float]] = {
    "geqrf": lambda p: 0.05 * p.batch + _flops(p) / 3e9,
    "small": lambda p: 0.01 + _flops(p) / 8e9 * (1 + (p.n / 200) ** 2),
    "large": lambda p: 0.20 + _flops(p) / 2e10,
    "mid": lambda p: 0.05 + _flops(p) / 1.4e10 * (1 + (p.n / 900) ** 2) * (1.0 if p.case == "dense" else 1.25),
    "twin": lambda p: 0.20 + _flops(p) / 2e10,  # exactly `large`: whatever tells them apart is wrong
    "cpu": lambda p: 0.002 + _flops(p) / 1e8,
}
FAKE_DEFAULT = ("geqrf", "small", "mid", "large")
FAKE_DEVICE = {"name": "Fake GPU", "units": 132, "memory_bytes": 140 << 30, "kind": "fake", "driver": "1",
               "torch": "none", "cuda": "none", "resident_ctas": 0}
FAKE_NOISE = 0.004  # sd of the log of one sample; a pass adds as much again


def fake(name: str) -> Backend:
    """`fake:small`, with parameters as `fake:small@delay=0.01` (seconds a visit really takes), `@fail=wrong`,
    `@noise=0.05`, `@crash=0.1` (the share of visits that crash once)."""
    model, _, params = name.removeprefix("fake:").partition("@")
    if model not in FAKES:
        raise UserError(f"--backends: no fake {model!r}", "one of " + ", ".join(f"fake:{m}" for m in FAKES))
    pairs = [tuple(x.split("=", 1)) for x in params.split("@") if x]
    if any(len(x) != 2 for x in pairs):
        raise UserError(f"--backends {name}: expected @name=value", f"fake:{model}@noise=0.05")
    return Backend(name, "", hashlib.sha256(name.encode()).hexdigest()[:12], tuple((k, v) for k, v in pairs))


class FakeLane:
    """Times from the closed form. All noise is a function of what is timed, not of when: a resumed run repeats it."""

    def __init__(self, backend: Backend, pass_: int):
        self.id, self.model = backend.id, FAKES[backend.default.removeprefix("fake:")]
        self.params, self.pass_ = dict(backend.params), pass_

    def open(self) -> None:
        pass

    def visit(self, p: Point, seed: int, fastest_ms: float, gate: bool) -> Visit:
        time.sleep(float(self.params.get("delay", 0)))
        if (fail := self.params.get("fail")) is not None:
            return Visit(fail, "as told")
        rng = random.Random(f"{seed} {self.id}")
        if rng.random() < float(self.params.get("crash", 0)) and (self.id, seed) not in _CRASHED:
            _CRASHED.add((self.id, seed))
            return Visit("crash", "as told")
        noise = float(self.params.get("noise", FAKE_NOISE))
        level = self.model(p) * _lognormal(random.Random(f"{self.pass_} {p.key} {self.id}"), noise)
        first = level * _lognormal(rng, noise)
        ms = [first] + [level * _lognormal(rng, noise) for _ in range(samples_wanted(first, fastest_ms) - 1)]
        return Visit("ok", "", ms, 1.02 * sum(ms) / len(ms), 1.0, 2.0)

    def close(self) -> None:
        pass


_CRASHED: set[tuple[str, int]] = set()


def _lognormal(rng: random.Random, sd: float) -> float:
    return rng.lognormvariate(0.0, sd) if sd else 1.0


# ---- the real thing ------------------------------------------------------------------------------------------------

_INPUTS: dict[tuple[Point, int], Any] = {}  # of this process, for the point at hand: all its backends see the same


def _inputs(p: Point, pass_: int, count: int, rng: random.Random) -> Any:
    """count inputs of a point as one tensor (count * batch, n, n), made once for all backends of a block."""
    import torch

    from harness.evaluate import make_input
    if (p, pass_) not in _INPUTS:
        _INPUTS.clear()
        case = p.to_case()
        _INPUTS[p, pass_] = torch.cat([make_input(case.with_seed(rng.getrandbits(62))) for _ in range(count)])
    return _INPUTS[p, pass_]


def _thin(margin: dict[str, float]) -> str:
    """"" or why a right answer does not qualify: a route is fitted on few inputs and serves all, so half of the
    allowance stays free."""
    from reference import FACTOR_RTOL, ORTH_RTOL
    return "; ".join(f"{name} residual {margin[key]:.3g}, more than half of the {allowed} allowed"
                     for name, key, allowed in (("factor", "factor", FACTOR_RTOL), ("orthogonality", "orth", ORTH_RTOL))
                     if margin.get(key, 0) > allowed / 2)


class HarnessLane:
    """A worker process of harness.child. One span of events holds the contest's number of inputs; L2 is flushed before
    it, outside. Every repeat sees data that no call saw before at that place: the matrices move on between the inputs
    and are scaled by a power of two. The first call of a run at a point is checked in full, and in every pass one timed
    repeat, chosen at random."""

    def __init__(self, backend: Backend, pass_: int, limit_s: float):
        self.backend, self.pass_, self.limit_s = backend, pass_, limit_s
        self.worker: Any = None  # a harness.child.Worker
        self.refused: Visit | None = None  # what came of loading the file, where it could not be loaded

    def visit(self, p: Point, seed: int, fastest_ms: float, gate: bool) -> Visit:
        import torch

        from harness import child, evaluate
        from harness.machine import device_kind
        rng = random.Random(seed)
        count = (evaluate.CONTEST if device_kind() == "cuda" else evaluate.CPU).inputs(p.to_case())
        outcome, visit, replies = evaluate.Outcome("pass"), Visit(), []
        self.open()
        if self.refused:
            return replace(self.refused)
        try:
            worker = self.worker
            base = _inputs(p, self.pass_, count, rng)
            pool = child.Pool(p.batch, p.n, count + 1, count)
            try:
                worker.map(pool)
            finally:
                pool.unlink()
            wanted, repeat = SAMPLES[0], 0
            checked = rng.randint(1, LOSER_SAMPLES)
            few = count
            while repeat <= wanted:
                check = gate and (repeat == checked or (repeat == 0 and self.pass_ == 1))
                inputs = count if check and repeat == 0 else few if repeat else min(few, 8)
                slots = [(repeat + i) % pool.slots for i in range(inputs)]
                a = base.roll(rng.randrange(len(base)), 0)[:inputs * p.batch] * 2.0 ** rng.randint(-8, 8)
                if check:
                    pool.poison()
                reply = worker.run(slots, list(a.split(p.batch)))
                outcome.note(reply.notes)
                if reply.problem:
                    return Visit("wrong", reply.problem)
                if check:
                    seen, outputs = torch.cat([pool.input(s) for s in slots]), [pool.output(i) for i in range(inputs)]
                    h, tau = (torch.cat([o[k] for o in outputs]) for k in (0, 1))
                    # one batch, dense: the checker's words for a mixed one would name the wrong input's profile
                    whole = replace(p.to_case(), batch=len(a), case="dense")
                    if not evaluate.verify(whole, a, seen, (h, tau), outcome, contest_checker=False):
                        return Visit("wrong", outcome.message)
                    if thin := _thin(outcome.margin):
                        return Visit("wrong", thin)
                if repeat:
                    replies.append(reply)
                    visit.ms.append(reply.elapsed_ns / inputs / 1e6)
                elif reply.elapsed_ns / 1e6 > max(LOSER_MS, HOPELESS * fastest_ms * inputs):
                    few = max(1, count // 8)
                if repeat == 1:
                    wanted = samples_wanted(visit.ms[0] * inputs, fastest_ms * inputs)
                repeat += 1
            visit.wall_ms = sum(r.wall_ns for r in replies) / len(replies) / few / 1e6
            visit.factor, visit.orth = outcome.margin.get("factor", 0.0), outcome.margin.get("orth", 0.0)
            if gate and (text := worker.late(replies)):
                return Visit("offstream", text, [], visit.wall_ms)
            if outcome.flags:
                return Visit("wrong", "flagged: " + "; ".join(outcome.flags))
            return visit
        except child.Failure as e:
            if self.worker is not None and not self.worker.alive:
                self.close()
            return Visit(e.status if e.status in ("timeout", "oom") else "crash", e.text[-500:])
        except torch.OutOfMemoryError as e:
            return Visit("oom", str(e).splitlines()[0])

    def open(self) -> None:
        """Start the worker and load the file, if that is still to be done. A file that cannot be loaded is not tried
        again: it might take a minute to fail each time."""
        from harness.child import Failure, Worker
        from harness.machine import device_kind
        if self.worker is not None or self.refused:
            return
        named = {f"TUNE_{k.upper()}": v for k, v in self.backend.params}
        os.environ.update(named)  # inherited by the worker, and gone again before another one starts
        try:
            self.worker = Worker(Path(self.backend.path), self.limit_s, interpret=device_kind() == "cpu")
        except Failure as e:
            self.refused = Visit("timeout" if e.status == "timeout" else "crash", e.text[-500:])
        finally:
            for k in named:
                del os.environ[k]

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None


def open_lane(backend: Backend, pass_: int, limit_s: float) -> Lane:
    return FakeLane(backend, pass_) if backend.fake else HarnessLane(backend, pass_, limit_s)
