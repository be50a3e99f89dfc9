"""What was sent, kept on disk from before the first byte leaves: `.kit/popcorn/<session>/`.

    <file>         exactly what was sent
    state.json     file, hash, mode, board, program, and the submission's number as soon as it is known
    stdout.txt, stderr.txt   what the program printed, without the user's id and secret results
    result.json    the server's public record, the verdict

Runs go to `.kit/runs/<session>.jsonl` like all others.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import results
from harness.errors import EXIT_CANNOT_RUN, UserError


class Entry:
    """One folder. `state` is saved by `save`; verdict None means that the end is not known yet."""

    def __init__(self, folder: Path, state: dict[str, Any]):
        self.folder, self.state = folder, state

    @property
    def session(self) -> str:
        return self.folder.name

    @property
    def number(self) -> int | None:
        return self.state.get("id")

    @property
    def runs_file(self) -> Path:
        return results.RUNS_DIR / f"{self.session}.jsonl"

    def save(self, **news: Any) -> None:
        self.state.update(news)
        self.write("state.json", json.dumps(self.state, indent=1) + "\n")

    def write(self, name: str, text: str) -> None:
        """Whole or not at all: a reader never sees half a file. Raises UserError (exit 3) where the disk is full."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            half = self.folder / (name + ".tmp")
            half.write_text(text, encoding="utf-8")
            os.replace(half, self.folder / name)
        except OSError as e:
            raise UserError(f"{self.folder / name}: could not save: {e.strerror}", "free space there",
                            EXIT_CANNOT_RUN) from None

    def read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.exists() else ""


def new(**state: Any) -> Entry:
    entry = Entry(results.RUNS_DIR.parent / "popcorn" / results.new_session(), {"id": None, "verdict": None})
    entry.save(**state)
    return entry


def entries() -> Iterator[Entry]:
    """Newest first. A folder that a crash left without a readable state is passed over."""
    for path in sorted((results.RUNS_DIR.parent / "popcorn").glob("*/state.json"), reverse=True):
        try:
            yield Entry(path.parent, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue


def by_number(number: int) -> Entry | None:
    return next((e for e in entries() if e.number == number), None)


def unfinished(**wanted: Any) -> Entry | None:
    """The newest submission with these values whose end is not known."""
    return next((e for e in entries() if e.state.get("verdict") is None
                 and all(e.state.get(k) == v for k, v in wanted.items())), None)
