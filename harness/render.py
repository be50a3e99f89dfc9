"""Comparisons to text: terminal, Markdown, JSON, CSV. Pure.

The terminal's tables fit 100 columns and cut no number. Colour means better or worse, never "different".
"""
from __future__ import annotations

import csv as csv_format
import io
import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness import stats
from harness.compare import SIZE, SIZE_APART, Comparison, Row
from harness.pick import Side
from harness.show import duration

VERSION = 1
WIDTH = 100
BETTER, WORSE = ("faster", "fixed"), ("slower", "broken")
HEADER = ("change", "rounds", "verdict", "share", "margin f/o", "of floor")


def percent(x: float | None, digits: int = 1) -> str:
    """+1.2 %; a factor where a percentage would be unreadable."""
    if x is None:
        return "-"
    return f"{x + 1:.3g}x" if x >= 9.995 else f"{100 * x:+.{digits}f} %"


def residual(x: float | None) -> str:
    if x is None:
        return "-"
    return f"{x:.0f}" if x >= 99.5 else f"{x:.1f}" if x >= 0.95 else f"{x:.1g}" if math.isfinite(x) and x else "0"


def cells(row: Row) -> list[str]:
    """A row's text: case, base, new, then HEADER."""
    def time(ns: float | None, status: str) -> str:
        return duration(ns) if ns is not None else status if status not in ("", "pass") else "-"

    verdict = row.verdict + (f" +{row.add_rounds}" if row.add_rounds else "")
    return [row.case, time(row.base_ns, row.base_status), time(row.new_ns, row.new_status), percent(row.change),
            "-" if row.won is None else f"{row.won}/{row.rounds}", verdict, percent(row.share, 2),
            f"{residual(row.factor)} / {residual(row.orth)}",
            "-" if row.of_floor is None else f"{100 * row.of_floor:.0f} %"]


def head(c: Comparison) -> str:
    """Device, versions, protocol, rounds and noise floor in one line."""
    r = c.new.last
    parts = [r.device.get("name", "unknown device"), *(f"{k} {r.device[k]}" for k in ("torch",) if k in r.device),
             r.protocol + (f" ({r.where})" if r.where != "local" else "")]
    rounds = max((row.rounds for row in c.rows), default=0)
    parts.append(f"{rounds} round{'s' * (rounds != 1)} {'interleaved' if c.interleaved else 'in separate sessions'}")
    parts.append(f"noise floor {100 * c.noise.typical:.1f} %" if c.noise else "noise floor not measured")
    return ", ".join(parts)


def geomean_line(c: Comparison) -> str:
    t = c.total
    if t.change is None:
        return f"no case in common that both pass ({'; '.join(c.notes)})"
    width = "" if t.half_width is None else f" ± {100 * t.half_width:.1f} %"
    add = f" +{t.add_rounds}" if t.add_rounds else ""
    why = f"  (not a score: {'; '.join(c.notes)})" if c.notes else ""
    return (f"geomean over {c.common} of {len(c.rows)} common passing cases: {duration(t.base_ns or math.nan)} -> "
            f"{duration(t.new_ns or math.nan)}, {percent(t.change)}{width}, {t.verdict}{add}{why}")


def remarks(c: Comparison) -> list[str]:
    """What a reader of the table has to know, and the next thing to do."""
    lines = [f"{r.case}: {r.verdict}: {r.reason}" for r in c.rows if r.reason and r.verdict != "incomparable"]
    for reason in dict.fromkeys(r.reason for r in c.rows if r.verdict == "incomparable"):
        lines.append(f"incomparable: {reason}  (--anyway compares all the same)")
    unclear = [r.add_rounds for r in [*c.rows, c.total] if r.verdict == "unclear"]
    if unclear:
        lines.append(f"unclear: noise hides it; about {max(unclear)}{'+' * (max(unclear) >= 200)} more rounds may tell")
    if not c.interleaved and c.common:
        lines.append(f"not interleaved: only differences over {100 * SIZE_APART:.0f} % are called")
    if c.common and (unclear or not c.interleaved):
        rounds = max([*unclear, stats.LOOKS[0]])
        lines.append(f"  next: ./kit bench submissions/{c.base.file} submissions/{c.new.file} --rounds {rounds}")
    return lines


def _wrap(line: str) -> str:
    """Prose to WIDTH columns; a command stays whole, to be copied."""
    return line if line.startswith("  next: ") else textwrap.fill(
        line, WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], paint: dict[tuple[int, int], str]) -> list[str]:
    """Lines; first column flush left, verdict flush left, numbers flush right; two spaces between, one if too wide."""
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    gap = " " * (2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1)
    lines = []
    for y, line in enumerate([header, *rows]):
        padded = [cell.ljust(w) if i == 0 or header[i] == "verdict" else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(line, widths, strict=True))]
        lines.append(gap.join(f"\x1b[{paint[y - 1, i]}m{cell}\x1b[0m" if (y - 1, i) in paint else cell
                              for i, cell in enumerate(padded)).rstrip())
    return lines


def _short(name: str) -> str:
    return name if len(name) <= 12 else name[:11] + "…"


def overview(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """Header and rows of times: a case a line, a file a column, each with its change from the base. The last line has
    changes only: each pair has its own set of common cases."""
    base = comparisons[0].base
    table = [["case", base.name, *(c.new.name for c in comparisons)]]
    for label in dict.fromkeys(r.case for c in comparisons for r in c.rows):
        texts = [next((cells(r) for r in c.rows if r.case == label), ["-"] * 4) for c in comparisons]
        first = next((t[1] for t in texts if t[1] != "-"), "-")
        table.append([label, first, *(t[2] if t[3] == "-" else f"{t[2]} {t[3]}" for t in texts)])
    return [*table, ["geomean", "", *(percent(c.total.change) for c in comparisons)]]


def terminal(comparisons: Sequence[Comparison], colour: bool = False) -> str:
    """For a terminal of 100 columns. More than two files: first all times, then each against the first."""
    out: list[str] = []
    if len(comparisons) > 1:
        for i in range(0, len(comparisons), 3):
            table = overview(comparisons[i:i + 3])
            header = [_short(h) for h in table[0]]
            out += [*_table(header, table[1:], {}), ""]
    for c in comparisons:
        rows = [cells(r) for r in c.rows]
        paint = {(y, x): "32" if r.verdict in BETTER else "31" for y, r in enumerate(c.rows) for x in (3, 5)
                 if colour and r.verdict in BETTER + WORSE}
        header = ["case", _short(c.base.name), _short(c.new.name), *HEADER]
        out += [_wrap(head(c)), "", *_table(header, rows, paint), *map(_wrap, [geomean_line(c), *remarks(c)]), ""]
    return "\n".join(out).rstrip()


def markdown(comparisons: Sequence[Comparison]) -> str:
    out: list[str] = []
    for c in comparisons:
        header = ["case", c.base.name, c.new.name, *HEADER]
        lines = [header, ["---"] + ["---:"] * 4 + ["---"] + ["---:"] * 3, *(cells(r) for r in c.rows)]
        out += [head(c), "", *("| " + " | ".join(line) + " |" for line in lines), "", geomean_line(c), ""]
        out += [f"- {line.strip()}" for line in remarks(c)] + [""] * bool(remarks(c))
    return "\n".join(out).rstrip()


def _side(s: Side) -> dict[str, Any]:
    r = s.last
    return {"name": s.name, "file": s.file, "sha": s.sha, "sessions": sorted({x.session for x in s.benchmarks}),
            "device": r.device, "protocol": r.protocol, "where": r.where, "task": r.task}


def as_data(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """What --json prints. Version 1:

    kind "qrkit.compare", v 1, alpha (family-wise error rate), size and size_apart (size factors), comparisons: a list
    of {base, new: {name, file, sha, sessions, device, protocol, where, task}, interleaved, noise_floor: {case:
    fraction} or null, common, score: bool, notes: why it is no score, rows, total}. A row holds the fields of
    harness.compare.Row (times in ns; change, half_width and share as fractions; null where there is none), and
    of_floor. New fields may come within a version; a change of meaning raises it.
    """
    return {"kind": "qrkit.compare", "v": VERSION, "alpha": stats.ALPHA, "size": SIZE, "size_apart": SIZE_APART,
            "comparisons": [{
                "base": _side(c.base), "new": _side(c.new), "interleaved": c.interleaved,
                "noise_floor": {k: f.floor for k, f in c.noise.cases.items()} if c.noise else None,
                "common": c.common, "score": c.score, "notes": c.notes,
                "rows": [asdict(r) | {"of_floor": r.of_floor} for r in c.rows],
                "total": asdict(c.total)} for c in comparisons]}


def to_json(comparisons: Sequence[Comparison]) -> str:
    def finite(x: Any) -> Any:
        if isinstance(x, dict):
            return {k: finite(v) for k, v in x.items()}
        if isinstance(x, list):
            return [finite(v) for v in x]
        return None if isinstance(x, float) and not math.isfinite(x) else x

    return json.dumps(finite(as_data(comparisons)), indent=1, ensure_ascii=False, allow_nan=False)


def csv(comparisons: Sequence[Comparison]) -> str:
    """A line for each case of each pair; times in ns, fractions as fractions, nothing rounded."""
    out = io.StringIO()
    names = [*asdict(Row("")), "of_floor"]
    writer = csv_format.DictWriter(out, ["base", "new", *names], lineterminator="\n")
    writer.writeheader()
    for c in comparisons:
        for r in [*c.rows, c.total]:
            writer.writerow({"base": c.base.name, "new": c.new.name} | asdict(r) | {"of_floor": r.of_floor})
    return out.getvalue()
