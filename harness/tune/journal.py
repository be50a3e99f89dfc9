"""plan.json and samples.jsonl: what a run will measure and what it has measured, so that a kill costs one block.

The plan fixes points, backends, passes, blocks and seed; its fingerprint adds device, driver, torch and tool version,
and a run resumes only under the same one. The journal is append-only, one JSON object a line, on disk before the next
block starts:

    {"kind": "segment", "segment": 0, "t": ...}                      a start or a resume
    {"kind": "block", "pass": 1, "block": 0, "point": KEY, "order": [...], "visits": {ID: {...}}, ...}
    {"kind": "probe", "ms": 1.2, ...}                                the anchor, against drift
    {"kind": "again", ...}                                           a finished block timed again by a resume
    {"kind": "discard", "segment": 0}                                the machine had changed: that segment is void
"""
from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.tune.backends import Backend
from harness.tune.grid import Point, is_ranked

VERSION = 1  # of the tool's measurements: other versions are not mixed
FINAL = ("ok", "wrong", "unsupported", "offstream")  # not tried again by a resume; the rest at most twice
TRIES = 3


def visit_key(p: Point, b: Backend, pass_: int, block: int) -> str:
    text = json.dumps([p.key, p.seed, b.id, b.params, b.sha, pass_, block])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Plan:
    grid: str
    points: list[Point]
    backends: list[Backend]
    passes: int = 2
    blocks: int = 5
    seed: int = 0
    limit_s: float = 150.0
    device: dict[str, Any] = field(default_factory=dict)

    def order(self, pass_: int) -> list[Point]:
        """Freshly shuffled in each pass, so that size does not alias thermal drift; the ranked points first, so that
        a budget that ends early has them."""
        points = list(self.points)
        random.Random(9000 + pass_ + self.seed).shuffle(points)
        return sorted(points, key=lambda p: not is_ranked(p))

    @property
    def parts(self) -> dict[str, str]:
        """What must agree between the segments of a run, by name."""
        jobs = [[p.key for p in self.order(i)] for i in range(1, self.passes + 1)]
        text = json.dumps([jobs, self.blocks, self.seed, [(b.id, b.params) for b in self.backends]])
        return {"plan": hashlib.sha256(text.encode()).hexdigest()[:12],
                "sources": hashlib.sha256(json.dumps([b.sha for b in self.backends]).encode()).hexdigest()[:12],
                "device": slug(self.device), "driver": str(self.device["driver"]), "torch": str(self.device["torch"]),
                "tool version": str(VERSION)}

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self.parts).encode()).hexdigest()[:16]

    def save(self, path: Path) -> None:
        write_json(path, asdict(self) | {"parts": self.parts, "fingerprint": self.fingerprint})

    @classmethod
    def load(cls, path: Path) -> Plan:
        d = read_json(path)
        for b in d["backends"]:
            b["params"] = tuple(tuple(x) for x in b["params"])
            if "n_range" in b:  # plans from before it have none
                b["n_range"] = tuple(b["n_range"])
        return cls(d["grid"], [Point(**p) for p in d["points"]], [Backend(**b) for b in d["backends"]], d["passes"],
                   d["blocks"], d["seed"], d["limit_s"], d["device"])


def slug(device: dict[str, Any]) -> str:
    """`nvidia-h200-132sm`, or `...-2cpu` where there is no GPU."""
    name = "".join(c if c.isalnum() else " " for c in device["name"].lower())
    return "-".join([*name.split(), f"{device['units']}{'cpu' if device['kind'] == 'cpu' else 'sm'}"])


def write_json(path: Path, data: Any) -> None:
    """Whole or not at all: a kill never leaves half a file."""
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "name a file that ./kit tune wrote") from None
    except ValueError as e:
        raise UserError(f"{path}: not JSON: {e}", "name a results.json that ./kit tune wrote") from None


class Journal:
    """samples.jsonl of one run; samples.jsonl.gz once the run is complete."""

    def __init__(self, run_dir: Path):
        self.path, self.packed = run_dir / "samples.jsonl", run_dir / "samples.jsonl.gz"
        if self.packed.exists() and not self.path.exists():
            self.path.write_bytes(gzip.decompress(self.packed.read_bytes()))
        if self.path.exists():
            raw = self.path.read_bytes()
            whole = raw[:raw.rfind(b"\n") + 1]
            if whole != raw:  # a torn last line is what a kill leaves
                with open(self.path, "r+b") as f:
                    f.truncate(len(whole))
        else:
            self.path.touch()
        self.lines: list[dict[str, Any]] = read_lines(self.path)
        self.file = open(self.path, "ab")  # noqa: SIM115  open for the life of the run

    def append(self, line: dict[str, Any]) -> None:
        try:
            self.file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as e:
            raise UserError(f"{self.path}: could not save a block: {e.strerror}",
                            "free space, then --resume", 3) from None
        self.lines.append(line)

    def pack(self) -> None:
        """Compress, without a time stamp: the same lines give the same bytes."""
        self.file.close()
        temporary = self.packed.with_suffix(".part")
        temporary.write_bytes(gzip.compress(self.path.read_bytes(), mtime=0))
        os.replace(temporary, self.packed)
        self.path.unlink()

    def blocks(self) -> Iterator[dict[str, Any]]:
        yield from valid_blocks(self.lines)


def read_lines(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    return [json.loads(x) for x in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines() if x]


def valid_blocks(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Block lines of segments that were not discarded."""
    void = {x["segment"] for x in lines if x["kind"] == "discard"}
    yield from (x for x in lines if x["kind"] == "block" and x["segment"] not in void)
