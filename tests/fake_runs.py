"""Synthetic runs for the tests of compare, report and record: no torch, no device."""
from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from harness.cases import load_task
from harness.results import Run

TASK = load_task()
H200 = {"name": "NVIDIA H200", "torch": "2.11.0", "driver": "580.1"}
TIMES = [14e3, 90e3, 270e3, 2.3e6, 2.4e6, 2.5e6, 4.8e6, 2.3e6, 2.4e6, 2.3e6, 2.3e6, 2.4e6]  # ns, of the twelve cases


def sha_of(file: str) -> str:
    return f"{sum(map(ord, file)):012x}"


def session(files: Sequence[str] = ("v01_a.py", "v02_b.py"), *, rounds: int = 8, noise: float = 0.002,
            drift: float = 0.02, first: int = 0, name: str = "20261130-030000-aaaa", seed: int = 0,
            rng: random.Random | None = None, factor: Callable[[str, int], float] = lambda file, case: 1.0,
            cases: Sequence[int] = range(12), shas: dict[str, str] | None = None, **fields: object) -> list[Run]:
    """Interleaved rounds: every round drifts as a whole, every process has its own noise (fractions of a time).
    factor(file, case index) multiplies the time."""
    rng = rng or random.Random(seed)
    fields = {"device": H200, "t": "2026-11-30T03:00:00Z", "margin": {"factor": 3.1, "orth": 12.0}} | fields
    runs = []
    for number in range(first, first + rounds):
        for i in cases:
            case, moment = TASK.benchmarks[i], rng.gauss(0, drift)
            for file in files:
                mean = TIMES[i] * factor(file, i) * math.exp(moment + rng.gauss(0, noise))
                samples = [mean * 0.999, mean, mean * 1.001]
                runs.append(Run(file, (shas or {}).get(file, sha_of(file)), case.label, case.spec, "pass",
                                session=name, task=TASK.sha, round=number, samples_ns=samples, **fields))  # type: ignore[arg-type]
    return runs
