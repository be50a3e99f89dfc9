"""A run's folder, `.research/<name>/`: configuration, the files of a person, the lock.

    config.yml  program.md  ideas.md     written by init; the last two are a person's to edit at any time
    ledger.jsonl                         the only truth (ledger.py)
    attempts/0007/                       prompt, submission, diff, idea, log, gates, runs, note
    calibrations/  audits/  profiles/    what was timed besides candidates
    work/                                the agent's scratch folder, made anew for each call
    report.md  progress.svg  progress.csv
"""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.cases import ROOT
from harness.errors import UserError
from harness.research.ledger import write_whole

RESEARCH_DIR = ROOT / ".research"
LOCKED = 6  # exit code

DEFAULTS: dict[str, Any] = {
    "seed": 17, "evaluator": "local", "cases": [], "tests": [], "schedule": {}, "screen_rounds": 3, "confirm_rounds": 8,
    "min_gain": 0.003, "shape_loss": 0.03, "allow_shape_loss": False, "price_lines": 100, "price_gain": 0.01,
    "recalibrate_every": 25, "audit_every": 10, "remote": "", "remote_budget": 3,
    "limits": {"iterations": 40, "wall_h": 8.0, "gpu_h": 4.0, "usd": 20.0, "tokens": None, "gain": 0.05, "stall": 12,
               "target_us": None},
    "agent": {"timeout_s": 1200, "usd_per_call_default": 0.0, "usd_per_million": None, "prices_of": ""},
    "agents": {},
}
CONFIG_HEAD = """\
# Frozen when the run began; what is changed later is written into the ledger.
# cases, tests: as for --case, empty for all. schedule: harness/evaluate.py's Schedule. confirm_rounds: an even number.
# agent.usd_per_million: {in, cached, out} of an agent that reports tokens only; prices_of: the date they were read.
# remote: "", test or benchmark: what a kept file is sent to the leaderboard for, at most remote_budget times.
"""
PROGRAM = """\
What the agent should know or aim for; read before every attempt, may be edited at any time.
"""
IDEAS = """\
Ideas that agents are handed, first unchecked first:

"""


def read_config(folder: Path) -> dict[str, Any]:
    """config.yml over the defaults. Raises UserError for a key that does not exist."""
    return _merge(_yaml(folder / "config.yml"), folder / "config.yml")


def _yaml(path: Path) -> dict[str, Any]:
    import yaml
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as e:
        raise UserError(f"{path}: {e}", "./kit research init makes one") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected a mapping, got {type(data).__name__}", f"correct {path}")
    return data


def _merge(given: dict[str, Any], path: Path) -> dict[str, Any]:
    config = json.loads(json.dumps(DEFAULTS)) | {"parent": ""}
    for key, value in given.items():
        if key not in config:
            raise UserError(f"{path}: {key}: no such setting", f"one of {', '.join(config)}")
        if key in ("limits", "agent"):
            unknown = (value or {}).keys() - config[key].keys()
            if unknown:
                raise UserError(f"{path}: {key}.{min(unknown)}: no such setting", f"one of {', '.join(config[key])}")
            config[key] |= value or {}
        else:
            config[key] = value
    if config["confirm_rounds"] < 4 or config["confirm_rounds"] % 2 or config["screen_rounds"] < 2:
        raise UserError(f"{path}: expected screen_rounds of at least 2 and an even confirm_rounds of at least 4",
                        f"correct {path}")
    return config


def init(file: Path, name: str, config_file: Path | None = None) -> Path:
    """Copy the parent, freeze the configuration. Raises UserError where the run exists or the parent does not."""
    import yaml
    folder = RESEARCH_DIR / name
    if not file.is_file():
        raise UserError(f"{file}: no such file", "name a submission, for example submissions/v01_compact_wy.py")
    if folder.exists():
        raise UserError(f"{folder} exists", f"./kit research run {name}, or init with another --name")
    config = _merge(_yaml(config_file) if config_file else {}, config_file or folder)
    config["parent"] = str(file.resolve())
    write_whole(folder / "attempts" / "0000" / "submission.py", file.read_bytes())
    write_whole(folder / "program.md", PROGRAM)
    write_whole(folder / "ideas.md", IDEAS)
    write_whole(folder / "config.yml", CONFIG_HEAD + yaml.safe_dump(config, sort_keys=False))
    return folder


def existing(name: str) -> Path:
    folder = Path(name) if "/" in name else RESEARCH_DIR / name
    if not (folder / "config.yml").exists():
        found = sorted(p.parent.name for p in RESEARCH_DIR.glob("*/config.yml"))
        raise UserError(f"no research run {name}", f"one of {', '.join(found)}" if found
                        else "./kit research init submissions/v01_compact_wy.py --name " + name)
    return folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One supervisor a run. The lock goes with the process that holds it; what is written in it is for people."""
    with open(folder / "LOCK", "a+") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            f.seek(0)
            raise UserError(f"{folder.name} is being run by process {(f.read().split() or ['?'])[0]}",
                            f"./kit research stop {folder.name}", LOCKED) from None
        f.truncate(0)
        with contextlib.suppress(OSError):
            f.write(f"{os.getpid()} {Path('/proc/sys/kernel/random/boot_id').read_text()}")
            f.flush()
        yield


def attempt_dir(folder: Path, number: int) -> Path:
    return folder / "attempts" / f"{number:04d}"
