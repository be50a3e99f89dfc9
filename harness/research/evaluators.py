"""What judges a file: the harness on this machine, or a fake with declared times. Both give Runs and nothing else.

A fake needs no torch and no device; its figures are declared, not measured, and every Run says so (`where: fake`).
"""
from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from harness import roofline
from harness.cases import ROOT, Case, load_task, select
from harness.errors import UserError
from harness.results import Run, file_sha

TIMING_VERSION = 1  # raised when times of this kit's protocol change their meaning: a new epoch
Sink = Callable[[Run], None]


class Evaluator(Protocol):
    def env(self) -> dict[str, str]:
        """What must agree before times are compared; a change begins an epoch."""

    def check(self, file: Path, on_run: Sink) -> None:
        """The tests on fresh secret seeds, then the probes (labels `probe ...`)."""

    def rounds(self, files: Sequence[Path], pairs: int, per_pair: int, session: str, on_run: Sink) -> None:
        """pairs x per_pair rounds, numbered from 0: each pair a fresh process a file, each round new inputs."""

    def floors(self) -> dict[str, float]:
        """Nanoseconds by shape that no file can beat; empty where the card is unknown."""

    def profile(self, file: Path, case: str, folder: Path) -> list[dict[str, Any]]:
        """The kernels of one call, by time; empty where this machine has no profiler."""


def make(spec: str, config: dict[str, Any]) -> Evaluator:
    """"local", or "fake:FILE.yml"."""
    if spec == "local":
        return Local(config)
    if spec.startswith("fake:"):
        return Fake(Path(spec.removeprefix("fake:")), config)
    raise UserError(f"evaluator {spec!r}: expected local or fake:FILE.yml", "correct it in config.yml")


class Local:
    """The harness: its checker, its interleaved timing."""

    def __init__(self, config: dict[str, Any]):
        self.cases = select(load_task().benchmarks, config["cases"])
        self.tests = select(load_task().tests, config["tests"])
        self.schedule = config["schedule"]

    def env(self) -> dict[str, str]:
        from harness.machine import fingerprint
        return fingerprint() | {"task": load_task().sha, "timing": str(TIMING_VERSION),
                                "shapes": ", ".join(c.label for c in self.cases)}

    def check(self, file: Path, on_run: Sink) -> None:
        from harness.bench import check
        check(file, self.tests, seeds="secret", probe=True, on_run=on_run)

    def rounds(self, files: Sequence[Path], pairs: int, per_pair: int, session: str, on_run: Sink) -> None:
        from harness.bench import measure
        from harness.evaluate import CPU, ROUND, Schedule
        from harness.machine import device_kind
        usual = CPU if device_kind() == "cpu" else ROUND
        schedule = Schedule(**(vars(usual) | self.schedule))
        seen: dict[tuple[str, str, int], int] = {}

        def renumber(run: Run) -> None:  # a pass over the cases is a round; measure numbers the pairs of processes
            key = (run.file, run.case, run.round)
            seen[key] = seen.get(key, 0) + 1
            run.round = run.round * per_pair + seen[key] - 1
            on_run(run)

        measure(list(files), list(self.cases) * per_pair, rounds=pairs, session=session, schedule=schedule,
                on_run=renumber)  # turns the order of the files from pair to pair

    def floors(self) -> dict[str, float]:
        from harness.bench import on_this_device
        from harness.machine import fingerprint
        card = roofline.ceilings(fingerprint()["name"])
        return {c.label: roofline.floor_ns(on_this_device(c).batch, c.n, card)[0] for c in self.cases} if card else {}

    def profile(self, file: Path, case: str, folder: Path) -> list[dict[str, Any]]:
        from harness.bench import on_this_device
        from harness.profiling import profile, summarise
        asked = next(c for c in self.cases if c.label == case)
        try:
            profile(file, asked, folder)
            kernels = summarise((folder / "ncu-details.csv").read_text(encoding="utf-8", errors="replace")).kernels
        except UserError:  # no ncu, or its counters are closed
            return _by_torch(file, on_this_device(asked))
        return [{"kernel": k.name[:80], "calls": k.launches, "time_pct": round(100 * k.share, 1), "bound": k.bound,
                 "dram_pct": k.memory_pct, "sm_pct": k.compute_pct, "occ_pct": k.occupancy_pct, "regs": k.registers,
                 "spills": k.spills, "top_stall": k.stall} for k in kernels[:8]]


def _by_torch(file: Path, case: Case) -> list[dict[str, Any]]:
    """kernels.py in a process of its own; empty where it fails: a prompt can do without a profile."""
    try:
        done = subprocess.run([sys.executable, str(ROOT / "harness" / "research" / "kernels.py"), str(file),
                               json.dumps(asdict(case))], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300)
        return list(json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return []


class Fake:
    """Times and verdicts declared in a YAML file:

    noise: 0.003              standard deviation of the logarithm of one time
    env: {driver: "1"}        a change begins an epoch, as a real one would
    base_ns: {label: ns}      of a file that no entry matches; the ranked shapes that are missing get n^2 µs
    floor: 0.1                share of base_ns that no file can beat
    files:                    every entry that a file matches applies, factors multiply
      - {match: REGEX or sha: SHA, factor: 0.9, shapes: {label: 0.8}, check: wrong, bench: clock, message: TEXT}
    """

    def __init__(self, path: Path, config: dict[str, Any]):
        import yaml
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, yaml.YAMLError) as e:
            raise UserError(f"{path}: {e}", "name a file of declared times: harness/research/demo/times.yml") from None
        self.data, self.seed = data, config["seed"]
        self.cases: list[Case] = select(load_task().benchmarks, config["cases"])
        self.base = {c.label: float(c.n) ** 2 for c in self.cases} | {
            k: float(v) for k, v in data.get("base_ns", {}).items() if k in {c.label for c in self.cases}}

    def env(self) -> dict[str, str]:
        return {"name": "declared times, nothing measured"} | self.data.get("env", {})

    def _entries(self, file: Path) -> tuple[str, list[dict[str, Any]]]:
        text, sha = file.read_text(encoding="utf-8"), file_sha(file)
        return sha, [e for e in self.data.get("files", []) if e.get("sha") == sha or
                     ("match" in e and re.search(e["match"], text))]

    def _run(self, file: str, sha: str, case: str, spec: str, status: str, message: str = "", **fields: Any) -> Run:
        return Run(file, sha, case, spec, status, where="fake", message=message, device=self.env(),
                   t="2026-01-01T00:00:00Z", **fields)

    def check(self, file: Path, on_run: Sink) -> None:
        sha, found = self._entries(file)
        bad = next((e for e in found if "check" in e), {"check": "pass"})
        case = self.cases[0]
        on_run(self._run(file.name, sha, case.label, case.spec, bad["check"], bad.get("message", ""), mode="test"))
        on_run(self._run(file.name, sha, "probe permuted", case.spec, "pass", mode="test"))

    def rounds(self, files: Sequence[Path], pairs: int, per_pair: int, session: str, on_run: Sink) -> None:
        entries = {f.name: self._entries(f) for f in files}
        for number in range(pairs * per_pair):
            for c in self.cases:
                for name, (sha, found) in entries.items():
                    bad = next((e for e in found if "bench" in e), {})
                    factor = math.prod(e.get("factor", 1.0) * e.get("shapes", {}).get(c.label, 1.0) for e in found)
                    dice = random.Random(f"{self.seed} {session} {number} {c.label} {name}")
                    ns = self.base[c.label] * factor * math.exp(dice.gauss(0, self.data.get("noise", 0.003)))
                    on_run(self._run(name, sha, c.label, c.spec, bad.get("bench", "pass"), bad.get("message", ""),
                                     session=session, round=number, samples_ns=[] if bad else [ns], inputs=1))

    def floors(self) -> dict[str, float]:
        share = self.data.get("floor", 0.0)
        return {c: t * share for c, t in self.base.items()} if share else {}

    def profile(self, file: Path, case: str, folder: Path) -> list[dict[str, Any]]:
        return list(self.data.get("profile", []))
