"""What this machine calls a difference between a file and itself.

A file is run against a byte-identical copy, in interleaved rounds (A/A). Rounds average out what is random; what they
leave is systematic: the copy that always runs second, the path that loads differently. `floor` bounds that, and no
smaller change is ever called faster or slower. The spread of the A/A rounds says how many rounds a comparison needs.

Kept in .kit/noise/<device>-<protocol>.json, for one fingerprint of the device and one task: where either differs from
the run at hand, `read` returns None and the floor is to be measured again.
"""
from __future__ import annotations

import dataclasses
import json
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import stats
from harness.cases import ROOT
from harness.errors import UserError
from harness.results import Run

NOISE_DIR = ROOT / ".kit" / "noise"
VERSION = 1
TOTAL = "geomean"  # stands among the case labels


@dataclass(frozen=True)
class Floor:
    """One case of an A/A run; log units, which are fractions at this size."""

    bias: float  # mean log ratio of copy to file
    spread: float  # standard deviation of one round's log ratio
    rounds: int

    @property
    def floor(self) -> float:
        """Upper 95 % confidence bound of the difference that rounds do not average out: |bias| + t s / sqrt(n)."""
        return abs(self.bias) + stats.t_quantile(0.05, self.rounds - 1) * self.spread / math.sqrt(self.rounds)


@dataclass(frozen=True)
class Noise:
    device: dict[str, str]
    protocol: str
    task: str
    file: str  # what was run against its copy
    sha: str
    t: str
    cases: dict[str, Floor]
    v: int = VERSION

    def floor(self, case: str) -> float:
        """0 where the case was not measured."""
        return self.cases[case].floor if case in self.cases else 0.0

    @property
    def typical(self) -> float:
        """The median floor of the cases: what the header of a table says."""
        return statistics.median(f.floor for case, f in self.cases.items() if case != TOTAL)


def path_of(device: dict[str, str], protocol: str, directory: Path | None = None) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", device.get("name", "").lower()).strip("-") or "unknown"
    return (directory or NOISE_DIR) / f"{slug}-{protocol}.json"


def derive(runs: Sequence[Run]) -> Noise:
    """The noise floor from the runs of an A/A session: two file names with the same bytes.

    Raises UserError where the runs are not that, or no case has two rounds.
    """
    names = list(dict.fromkeys(r.file for r in runs))
    if len(names) != 2 or len({r.sha for r in runs}) != 1:
        raise UserError(f"noise floor: expected two names of one file, got {', '.join(names) or 'no run'}",
                        "run a file against a byte-identical copy of itself")
    logs: dict[str, dict[int, dict[str, float]]] = {}
    for r in runs:
        if r.ok and r.samples_ns:
            logs.setdefault(r.case, {}).setdefault(r.round, {})[r.file] = math.log(r.mean_ns)
    ratios = {case: {n: x[names[1]] - x[names[0]] for n, x in rounds.items() if len(x) == 2}
              for case, rounds in logs.items()}
    ratios = {case: by_round for case, by_round in ratios.items() if len(by_round) >= 2}
    if not ratios:
        raise UserError("noise floor: no case passed in two rounds", "bench it with --rounds 8")
    whole = set.intersection(*(set(by_round) for by_round in ratios.values()))
    if len(whole) >= 2:
        ratios[TOTAL] = {n: statistics.fmean(ratios[case][n] for case in ratios) for n in whole}
    cases = {case: Floor(statistics.fmean(x.values()), statistics.stdev(x.values()), len(x))
             for case, x in ratios.items()}
    last = runs[-1]
    return Noise(last.device, last.protocol, last.task, last.file, last.sha, last.t, cases)


def write(noise: Noise, directory: Path | None = None) -> Path:
    path = path_of(noise.device, noise.protocol, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(noise), indent=1) + "\n", encoding="utf-8")
    return path


def read(device: dict[str, str], protocol: str, task: str, directory: Path | None = None) -> Noise | None:
    """The floor of this machine, or None where there is none, or it was measured on another driver, torch or task."""
    try:
        d = json.loads(path_of(device, protocol, directory).read_text(encoding="utf-8"))
        cases = {case: Floor(**f) for case, f in d.pop("cases").items()}
        noise = Noise(**d, cases=cases)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    same = (noise.device, noise.protocol, noise.task, noise.v) == (device, protocol, task, VERSION)
    return noise if same else None
