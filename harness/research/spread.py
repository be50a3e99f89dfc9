"""More than one GPU: an evaluator, and whole judgements, on whatever an executor of `tune` has free.

A candidate and its incumbent travel together, so that every comparison is of one GPU.
"""
from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.research import evaluators, gates
from harness.research.gates import Job, Step
from harness.results import Run


class OnExecutor:
    """An evaluator on whatever GPU an executor has free: the supervisor itself needs none."""

    def __init__(self, executor: Executor, spec: str, config: dict[str, Any]):
        self.submit, self.spec, self.config = executor.submit, spec, config

    def env(self) -> dict[str, str]:
        return self.submit(_env, self.spec, self.config).result()

    def floors(self) -> dict[str, float]:
        return self.submit(_floors, self.spec, self.config).result()

    def check(self, file: Path, on_run: evaluators.Sink) -> None:
        for r in self.submit(_check, self.spec, self.config, file.name, file.read_bytes()).result():
            on_run(r)

    def rounds(self, files: Sequence[Path], pairs: int, per_pair: int, session: str, on_run: evaluators.Sink) -> None:
        content = {f.name: f.read_bytes() for f in files}
        for r in self.submit(_rounds, self.spec, self.config, content, pairs, per_pair, session).result():
            on_run(r)

    def profile(self, file: Path, case: str, folder: Path) -> list[dict[str, Any]]:
        return []


def _env(spec: str, config: dict[str, Any]) -> dict[str, str]:
    return evaluators.make(spec, config).env()


def _floors(spec: str, config: dict[str, Any]) -> dict[str, float]:
    return evaluators.make(spec, config).floors()


def _check(spec: str, config: dict[str, Any], name: str, content: bytes) -> list[Run]:
    runs: list[Run] = []
    with TemporaryDirectory(prefix="qrkit-check-") as d:
        (Path(d) / name).write_bytes(content)
        evaluators.make(spec, config).check(Path(d) / name, runs.append)
    return runs


def _rounds(spec: str, config: dict[str, Any], content: dict[str, bytes], pairs: int, per_pair: int,
            session: str) -> list[Run]:
    runs: list[Run] = []
    with TemporaryDirectory(prefix="qrkit-rounds-") as d:
        for name, data in content.items():
            (Path(d) / name).write_bytes(data)
        evaluators.make(spec, config).rounds([Path(d) / n for n in content], pairs, per_pair, session, runs.append)
    return runs


def judged(job: Job) -> tuple[Job, list[Step]]:
    return job, gates.judge_all(job)


def lost(job: Job, reason: str) -> tuple[Job, list[Step]]:
    return job, [Step("decision", {"verdict": "infra", "reason": reason})]
