"""task.yml -> Case. Needs no torch.

A case has a label (`b640 n512 mixed`), an identifier (`b640-n512-mixed`), an index (`#7`) and the spec line that the
contest's evaluator reads (`batch: 640; n: 512; cond: 2; seed: 770001; case: mixed`).
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
TASK_FILE = ROOT / "task.yml"
KINDS = ("dense", "upper", "diagonal", "rankdef", "nearrank", "clustered", "band", "rowscale", "nearcollinear",
         "mixed")  # reference.PROFILES, repeated so that --help and lint need no torch; a test holds them together


@dataclass(frozen=True)
class Case:
    """One line of task.yml. `index` counts from 0 within its mode ("test" or "benchmark")."""

    mode: str
    index: int
    label: str
    batch: int
    n: int
    cond: int
    seed: int
    case: str = "dense"
    named: bool = False  # task.yml names the case, so the spec line does too

    @property
    def ident(self) -> str:
        return self.label.replace(" ", "-")

    @property
    def spec(self) -> str:
        """The contest's case line."""
        line = f"batch: {self.batch}; n: {self.n}; cond: {self.cond}; seed: {self.seed}"
        return line + (f"; case: {self.case}" if self.named else "")

    def with_seed(self, seed: int) -> Case:
        return replace(self, seed=seed)

    def cut(self, batch: int) -> Case:
        """The same case with at most `batch` matrices (what a CPU can do); the label stays."""
        return replace(self, batch=min(self.batch, batch))


def secret_seed(seed: int, secret: int) -> int:
    """The contest's pairing of a spec's own seed with a secret one (Cantor's pairing, shifted by the seed)."""
    return seed + (seed + secret) * (seed + secret + 1) // 2


@dataclass(frozen=True)
class Task:
    tests: tuple[Case, ...]
    benchmarks: tuple[Case, ...]
    test_timeout: int  # seconds, as are the next two
    benchmark_timeout: int
    ranked_timeout: int
    ranking_by: str
    gpus: tuple[str, ...]
    sha: str  # of the cases and limits, not of the prose: results of two tasks are never mixed


def _fail(path: Path, key: str, expected: str, got: object) -> UserError:
    return UserError(f"{path.name}: {key}: expected {expected}, got {got!r}", f"correct {key} in {path}")


def _number(path: Path, key: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _fail(path, key, f"an integer of at least {least}", value)
    return value


def _cases(path: Path, key: str, rows: object) -> tuple[Case, ...]:
    if not isinstance(rows, list) or not rows:
        raise _fail(path, key, "a list of cases", rows)
    cases: list[Case] = []
    seen: set[str] = set()
    for i, row in enumerate(rows):
        at = f"{key}[{i}]"
        if not isinstance(row, dict):
            raise _fail(path, at, "a mapping with batch, n, cond, seed", row)
        missing = {"batch", "n", "cond", "seed"} - row.keys()
        unknown = row.keys() - {"batch", "n", "cond", "seed", "case"}
        if missing:
            raise _fail(path, f"{at}.{min(missing)}", "an integer", None)
        if unknown:
            raise _fail(path, f"{at}.{min(unknown)}", "no such key (batch, n, cond, seed, case)", row[min(unknown)])
        numbers = {k: _number(path, f"{at}.{k}", row[k], least)
                   for k, least in (("batch", 1), ("n", 1), ("cond", 0), ("seed", 0))}
        case = row.get("case", "dense")
        if case not in KINDS:
            raise _fail(path, f"{at}.case", f"one of {', '.join(KINDS)}", case)
        label = f"b{row['batch']} n{row['n']} {case}"
        if label in seen:  # the tests hold two dense batches of the same size
            label += f" c{row['cond']}"
        seen.add(label)
        cases.append(Case(key.removesuffix("s"), i, label, **numbers, case=case, named="case" in row))
    return tuple(cases)


@cache
def load_task(path: Path = TASK_FILE) -> Task:
    """Read and check task.yml. Raises UserError with file, key, expected and got."""
    import yaml
    try:
        data: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file", "run from a checkout of qrkit") from None
    except yaml.YAMLError as e:
        raise UserError(f"{path.name}: not YAML: {' '.join(str(e).split())}", f"correct {path}") from None
    if not isinstance(data, dict):
        raise _fail(path, "top level", "a mapping", type(data).__name__)
    limits = {k: _number(path, k, data.get(k), 1) for k in ("test_timeout", "benchmark_timeout", "ranked_timeout")}
    if data.get("ranking_by") != "geom":
        raise _fail(path, "ranking_by", "'geom'", data.get("ranking_by"))
    gpus = data.get("gpus")
    if not isinstance(gpus, list) or not gpus or not all(isinstance(g, str) for g in gpus):
        raise _fail(path, "gpus", "a list of names", gpus)
    tests, benchmarks = (_cases(path, key, data.get(key)) for key in ("tests", "benchmarks"))
    identity = "\n".join([*(c.spec for c in tests + benchmarks), *map(str, limits.values())])
    return Task(tests, benchmarks, **limits, ranking_by="geom", gpus=tuple(gpus),
                sha=hashlib.sha256(identity.encode()).hexdigest()[:12])


def select(cases: Iterable[Case], patterns: list[str]) -> list[Case]:
    """The cases that any pattern names: `#7`, a label or identifier, or words of one (`512`, `mixed`, `n512 band`).

    Raises UserError when a pattern names none.
    """
    cases = list(cases)
    if not patterns:
        return cases
    chosen: list[Case] = []
    for pattern in patterns:
        words = pattern.lower().replace("-", " ").split()
        hit = [c for c in cases if pattern == f"#{c.index}" or (words and all(
            w in c.label.split() or w == str(c.n) or w == str(c.batch) for w in words))]
        if not hit:
            raise UserError(f"--case {pattern!r} names none of {len(cases)} cases",
                            "one of " + ", ".join(f"#{c.index} {c.ident}" for c in cases))
        chosen += [c for c in hit if c not in chosen]
    return sorted(chosen, key=lambda c: (c.mode != "test", c.index))
