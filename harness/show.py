"""Text for people: tables that line up, times with units, one line of progress. Needs no torch."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def duration(ns: float) -> str:
    """Nanoseconds as µs below 1 ms, ms below 10 s, else s; four significant figures."""
    if ns != ns:
        return "-"
    value, unit = (ns / 1e3, "µs") if ns < 1e6 else (ns / 1e6, "ms") if ns < 1e10 else (ns / 1e9, "s")
    return f"{value:.{max(0, 3 - len(str(int(value))) + 1)}f} {unit}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns wide enough for what they hold; the first `left` flush left, the others flush right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join("  ".join(
        cell.ljust(w) if i < left else cell.rjust(w)
        for i, (cell, w) in enumerate(zip(line, widths, strict=True))).rstrip() for line in lines)


def warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Progress:
    """One line on stderr that overwrites itself on a terminal; elsewhere a line a case, not a line a run."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.last = ""

    def __call__(self, text: str) -> None:
        if self.live:
            print(f"\r\x1b[K{text[:100]}", end="", file=sys.stderr, flush=True)
        elif (head := "  ".join(text.split("  ")[:2])) != self.last:
            print(text, file=sys.stderr, flush=True)
            self.last = head

    def clear(self) -> None:
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
