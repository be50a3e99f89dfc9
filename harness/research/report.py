"""report.md, progress.csv and progress.svg, made anew from the ledger each time and never read back."""
from __future__ import annotations

import contextlib
import csv
import io
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from harness.cases import ROOT
from harness.errors import UserError
from harness.research.decide import percent
from harness.research.ledger import BASELINE, VERDICTS, Attempt, State, device_s, write_whole
from harness.results import Run, geomean, read_runs, saved_runs
from harness.show import duration

MEANINGLESS = ("wrong", "broken", "rejected", "noop", "duplicate", "agent_error", "infra", "interrupted")  # no time


def write(folder: Path, state: State, floors: dict[str, float], target_us: float | None, parent: str) -> Path:
    rows = points(state)
    write_whole(folder / "progress.csv", as_csv(rows))
    write_whole(folder / "progress.svg", svg(state, rows, floors, target_us))
    write_whole(folder / "report.md", markdown(folder, state, rows, parent))
    return folder / "report.md"


def points(state: State) -> list[dict[str, Any]]:
    """One row an attempt: its time as far as it was measured (geometric mean, ns), and the best when it was decided."""
    return [{"attempt": a.number, "parent": a.parent, "mode": a.mode, "family": a.family, "title": a.title,
             "verdict": a.verdict or "undecided", "gain_pct": None if a.gain is None else 100 * math.expm1(a.gain),
             "geomean_ns": a.ns, "best": a.best, "best_ns": geomean(a.best_ns.values()) if a.best_ns else None,
             "epoch": a.epoch, "review": a.review} for a in state.attempts.values()]


def as_csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    names = list(rows[0]) if rows else ["attempt"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


# ---------------------------------------------------------------- report.md

def headline(state: State) -> str:
    """The audit's figure where there is one; else what the single comparisons add up to, and that it is no audit."""
    if state.best == BASELINE:
        return "Nothing is faster than the file that the run began with."
    rel = state.rel[state.best]
    a = state.attempts[state.best]
    audit = state.audits[-1] if state.audits and str(state.best) in state.audits[-1]["rel"] else None
    how = "by adding up single comparisons; no audit yet"
    if audit:
        how = f"in an audit of {audit['rounds']} rounds (CI to {percent(audit['ci95_hi'][str(state.best)])})"
    title = a.title or "without a title"
    return f"Attempt {state.best}, {title}: {percent(rel)} on the baseline, {how}, {state.epoch}."


def _row(a: Attempt) -> str:
    gain = percent(a.gain) if a.gain is not None else "-"
    cells = (a.number, a.parent if a.other is None else f"{a.parent} + {a.other}", a.mode, a.family or "-",
             a.title or "-", (a.verdict or "undecided") + (", review" if a.review else ""), gain,
             " ".join(a.reason.split())[:200])
    return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"


def markdown(folder: Path, state: State, rows: list[dict[str, Any]], parent: str) -> str:
    attempts = list(state.attempts.values())
    where = state.env.get("name", "unknown")
    out = [f"# Research run {folder.name}", "", headline(state), "", "![progress](progress.svg)", "",
           f"Baseline {Path(parent).name}; {where}; margin "
           f"{100 * max(0.003, (state.calibration or {}).get('aa_geo_p90', 0)):.2f} % at the last calibration."]
    if state.stopped:
        out.append(f"Stopped by the rule {state.stopped['rule']}: {state.stopped['why']}.")
    counts = Counter(a.verdict or "undecided" for a in attempts)
    told = ", ".join(f"{counts[v]} {v}" for v in (*VERDICTS, "undecided") if counts[v])
    out += ["", f"{len(attempts)} attempts" + (f": {told}" if told else "") + ".", "", "## Attempts", "",
            "| # | parent | mode | family | title | verdict | change | why |",
            "| ---: | ---: | --- | --- | --- | --- | ---: | --- |", *(_row(a) for a in reversed(attempts))]
    if state.kept:
        out += ["", "## Ladder", "", "| # | parent | title | against its parent | against the baseline |",
                "| ---: | ---: | --- | ---: | ---: |"]
        out += [f"| {a.number} | {a.parent} | {a.title or '-'} | {percent(a.gain or 0)} | "
                f"{percent(state.rel[a.number]) if a.number in state.rel else 'another epoch'} |" for a in state.kept]
    if state.base_ns:
        times = state.times_ns(state.best)
        out += ["", "## Shapes", "", "| shape | baseline | best | change |", "| --- | ---: | ---: | ---: |"]
        out += [f"| {c} | {duration(state.base_ns[c])} | {duration(t)} | {percent(math.log(t / state.base_ns[c]))} |"
                for c, t in times.items()]
    families = sorted({a.family for a in attempts if a.family})
    if families:
        out += ["", "## Families", "", "| family | tried | kept | |", "| --- | ---: | ---: | --- |"]
        out += [f"| {f} | {sum(a.family == f for a in attempts)} | {sum(a.family == f for a in state.kept)} | "
                f"{'cooling' if f in state.cooling() else ''} |" for f in families]
    lessons = [a for a in attempts if a.lesson and (a.verdict == "kept" or a.review)]
    if lessons:
        out += ["", "## What was learnt", "", *(f"- {a.number} {a.title}: {a.lesson}" for a in lessons)]
    out += ["", "## Cost", "", "| verdict | attempts | tokens | dollars | agent | device |",
            "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for v in VERDICTS:
        mine = [a for a in attempts if a.verdict == v]
        if mine:
            called = [a.called for a in mine if a.called]
            tokens = sum(c["tokens"].get(k, 0) for c in called for k in ("in", "out"))
            out.append(f"| {v} | {len(mine)} | {tokens} | {sum(c['usd'] for c in called):.2f} | "
                       f"{sum(c['wall_s'] for c in called):.0f} s | {sum(map(device_s, mine)):.0f} s |")
    out += ["", f"In all {state.usd:.2f} dollars, {state.tokens} tokens, {state.agent_s:.0f} s of agents, "
            f"{state.gpu_s:.0f} s on the device, calibrations and audits included."]
    out += _board(state)
    reviews = [a for a in attempts if a.review or a.verdict == "flagged"]
    if reviews:
        out += ["", "## For a person to look at", "", *(f"- {a.number} {a.title}: {a.reason}" for a in reviews)]
    with contextlib.suppress(ValueError):
        parent = str(Path(parent).relative_to(ROOT))
    agents = list(dict.fromkeys(a.agent_name for a in attempts))
    again = "; ".join(f"`./kit research run NAME --agent '{a}'`" for a in agents) or "no attempt was made"
    out += ["", "## Again", "", f"`./kit research init {parent} --name NAME`, then {again}. "
            f"`./kit research run NAME --agent replay:.research/{folder.name}` judges the same files anew.", ""]
    return "\n".join(out)


def _board(state: State) -> list[str]:
    """What was sent to the leaderboard: its times beside ours. A steady ratio means that gains here are gains there."""
    sent = {a.sha: a.number for a in state.attempts.values() if "remote" in a.gates and a.number in state.rel}
    theirs = {(sent[r.sha], r.case): r.mean_ns for path in (saved_runs() if sent else ()) for r in _runs(path)
              if r.where == "popcorn" and r.sha in sent and r.samples_ns}
    rows = []
    for (n, case), there in sorted(theirs.items()):
        here = state.times_ns(n).get(case)
        if here:
            rows.append(f"| {n} | {case} | {duration(here)} | {duration(there)} | {here / there:.2f} |")
    head = ["", "## On the leaderboard", "", "| # | shape | here | there | here / there |",
            "| ---: | --- | ---: | ---: | ---: |"]
    return [*head, *rows] if rows else []


def _runs(path: Path) -> list[Run]:
    try:
        return read_runs(path, warn=False)
    except UserError:  # an empty file among many
        return []


# ---------------------------------------------------------------- progress.svg

W, H, LEFT, TOP, RIGHT, BAND = 900, 360, 70, 30, 20, 26
SMALL_W, SMALL_H = 210, 90
# Okabe and Ito's colours, told apart without colour vision as well; the marks differ in form too.
COLOUR = {"kept": "#0072b2", "best": "#0072b2", "same": "#555555", "slower": "#555555", "flagged": "#d55e00",
          "other": "#999999", "target": "#009e73", "floor": "#cc79a7"}


class _Picture:
    def __init__(self, height: int):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {W} {height}" font-family="sans-serif" '
                      f'font-size="11"><rect width="{W}" height="{height}" fill="white"/>']

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, dash: str = "", width: float = 1) -> None:
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                          f'stroke-width="{width}"' + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")

    def path(self, xy: list[tuple[float, float]], colour: str, width: float = 1.6) -> None:
        """Steps: level until the next point, then up or down."""
        d = "".join(f"M{x:.1f},{y:.1f}" if i == 0 else f"H{x:.1f}V{y:.1f}" for i, (x, y) in enumerate(xy))
        self.parts.append(f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def text(self, x: float, y: float, text: str, anchor: str = "start", colour: str = "#333") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>')

    def mark(self, x: float, y: float, verdict: str, title: str) -> None:
        colour = COLOUR.get(verdict, COLOUR["other"])
        hollow = f'<circle r="4" fill="white" stroke="{colour}" stroke-width="1.4"/>'
        shape = (f'<circle r="4.5" fill="{colour}"/>' if verdict == "kept" else
                 hollow if verdict in ("same", "slower") else
                 f'<path d="M0,-5L5,4H-5Z" fill="{colour}"/>' if verdict in ("flagged", "review") else
                 f'<path d="M-4,-4L4,4M-4,4L4,-4" stroke="{colour}" stroke-width="1.6"/>')
        self.parts.append(f'<g class="attempt {verdict}" transform="translate({x:.1f},{y:.1f})">{shape}'
                          f"<title>{escape(title)}</title></g>")

    def done(self) -> str:
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def svg(state: State, rows: list[dict[str, Any]], floors: dict[str, float], target_us: float | None) -> str:
    """x: attempt; y: geometric mean, logarithmic. Filled: kept; hollow: same, slower; cross, in the band on top: no
    time that means anything; triangle: flagged or to be reviewed. The step line is the best so far."""
    shapes = list(state.base_ns)
    height = TOP + H + 40 + (SMALL_H + 24) * math.ceil(len(shapes) / 4)
    pic = _Picture(height)
    if not state.base_ns:
        pic.text(W / 2, 40, "nothing was measured yet", "middle")
        return pic.done()
    now = geomean(state.times_ns(state.best).values())  # audited, where there was an audit
    lines = {"target": (target_us * 1e3, COLOUR["target"])} if target_us else {}
    if floors and all(c in floors for c in shapes):
        lines["card's floor"] = (geomean(floors[c] for c in shapes), COLOUR["floor"])
    near = [*(r["geomean_ns"] for r in rows if r["geomean_ns"]), *(r["best_ns"] for r in rows if r["best_ns"]),
            *state.bases.values(), now]
    low, high = min(near), max(near)
    low, high = (low / 1.03, high * 1.03) if high / low < 1.06 else (low / 1.01, high * 1.01)
    low = min([low, *(0.99 * v for v, _ in lines.values() if v > low / 2)])  # a far floor would press everything flat
    count = len(rows)

    def x(n: float) -> float:
        return LEFT + (W - LEFT - RIGHT) * n / (count + 1)

    def y(ns: float) -> float:
        return TOP + BAND + (H - BAND) * (1 - math.log(ns / low) / math.log(high / low))

    pic.text(LEFT, 18, f"{state.run}: geometric mean by attempt ({state.env.get('name', '?')})")
    pic.line(LEFT, TOP, LEFT, TOP + H, "#333")
    pic.line(LEFT, TOP + H, W - RIGHT, TOP + H, "#333")
    for i in range(5):
        ns = low * (high / low) ** (i / 4)
        pic.text(LEFT - 6, y(ns) + 4, duration(ns), "end")
        pic.line(LEFT - 3, y(ns), LEFT, y(ns), "#333")
    for n in range(0, count + 1, max(1, count // 10)):
        pic.text(x(n), TOP + H + 15, str(n), "middle")
    for name, (ns, colour) in lines.items():
        if ns >= low:
            pic.line(LEFT, y(ns), W - RIGHT, y(ns), colour, "5 4")
            pic.text(W - RIGHT, y(ns) - 4, name, "end", colour)
        else:
            pic.text(LEFT + 6, TOP + H - 6, f"{name}: {duration(ns)}, below", colour=colour)
    for n, what in state.marks:
        pic.line(x(n + 0.5), TOP, x(n + 0.5), TOP + H, "#999", "2 3")
        pic.text(x(n + 0.5) + 3, TOP - 2, what, colour="#777")
    breaks = [0.0, *(n + 0.5 for n, what in state.marks if what.startswith("epoch")), count + 1.0]
    for epoch, (start, end) in zip(state.bases, pairwise(breaks), strict=False):  # a new epoch is a new line
        base = state.bases[epoch]
        pic.line(x(start), y(base), x(end), y(base), "#333333", "5 4")
        pic.text(x(end), y(base) - 4, "baseline", "end")
        part = [(x(r["attempt"]), y(r["best_ns"])) for r in rows if r["best_ns"] and start < r["attempt"] < end]
        first = y(base) if start == 0 or not part else part[0][1]
        pic.path([(x(start), first), *part, *([(x(end), y(now))] if epoch == state.epoch else [])], COLOUR["best"])
    for r in rows:
        title = f"{r['attempt']} {r['title'] or '-'}: {r['verdict']}" + (
            "" if r["gain_pct"] is None else f", {r['gain_pct']:+.2f} %")
        nowhere = r["verdict"] in (*MEANINGLESS, "undecided") or not r["geomean_ns"]
        kind = "review" if r["review"] else r["verdict"]
        pic.mark(x(r["attempt"]), TOP + BAND / 2 if nowhere else y(r["geomean_ns"]), kind, title)
    for i, c in enumerate(shapes):
        _small(pic, state, c, LEFT - 50 + (i % 4) * (SMALL_W + 10), TOP + H + 44 + (i // 4) * (SMALL_H + 24))
    return pic.done()


def _small(pic: _Picture, state: State, case: str, left: float, top: float) -> None:
    """The best file's time on one shape after each attempt of this epoch; each to its own scale of at least 5 %."""
    first = next((a for a in state.attempts.values() if a.epoch == state.epoch and a.best_ns), None)
    start = state.base_ns[case] if state.epoch == "e1" or first is None else first.best_ns[case]
    times = [start, *(a.best_ns[case] for a in state.attempts.values() if a.epoch == state.epoch and a.best_ns),
             state.times_ns(state.best)[case]]
    logs = [math.log(t / state.base_ns[case]) for t in times]
    low, high = min(logs), max(logs)
    low, high = (low, high) if high - low > 0.05 else ((low + high) / 2 - 0.025, (low + high) / 2 + 0.025)
    pic.text(left, top - 4, f"{case}  {percent(logs[-1])}")
    pic.line(left, top + SMALL_H, left + SMALL_W - 20, top + SMALL_H, "#bbb")
    step = (SMALL_W - 20) / max(1, len(logs) - 1)
    pic.path([(left + i * step, top + SMALL_H * (high - v) / (high - low)) for i, v in enumerate(logs)],
             COLOUR["best"], 1.3)
