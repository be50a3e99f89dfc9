"""The next prompt: rendered from the state alone, at most MOST bytes, and kept with its attempt."""
from __future__ import annotations

import json
from typing import Any

from harness.cases import load_task
from harness.research.choose import FAMILIES, Assignment
from harness.research.decide import percent
from harness.research.ledger import State
from harness.show import duration, table

MOST = 16_000  # bytes
PROFILE, HISTORY, FAILURE = 2_000, 8, 1_000  # bytes, attempts, bytes

TASK = """\
# Task
Make `submission.py` in this folder faster. It holds `custom_kernel(data)`: data is A, (batch, n, n) float32 on the
GPU; it returns (H, tau), (batch, n, n) and (batch, n) float32, the compact Householder QR as `torch.geqrf` gives it: R
in the upper triangle of H, the reflectors' tails below the unit diagonal.
Right is: ||R - Q'A||_1 <= 20 n eps32 ||A||_1 and ||Q'Q - I||_1 <= 100 n eps32, for each matrix (`reference.py`).
The score is the geometric mean of the times on {count} ranked shapes: every shape has the same weight.
The file stays self-contained (torch, triton, the standard library, CUDA by torch.utils.cpp_extension) and keeps its
first two lines. The letters that spell CUDA's word for a queue of work are refused by the server anywhere in the file.

# How it is judged
Nothing that you measure counts. A trusted parent process draws secret inputs, sends them to a fresh process, checks
every timed output, and times your file in turns with its parent, on new data in every call. Caching results, reading
the evaluator, skipping columns, or leaving work for after the call is detected and ends the attempt. A change is kept
if its rounds agree and the geometric mean falls by more than {margin}. You may run `./try` (lint and small tests).
"""

CONTRACT = """\
# What to hand back
Edit `submission.py`: exactly one change, that attacks the bottleneck that you name. Then write `idea.json`:
{"title": "...", "family": "...", "hypothesis": "...", "change": "...", "expected_pct": -3.0, "shapes": ["..."]}
family: one of %s.
"""

MODES = {"exploit": "Improve the best file further, where it loses most.",
         "explore": "Try something of the family below: few attempts were made there.",
         "fork": "This parent is not the best overall, but the fastest on the focus shape: build on that.",
         "merge": "Bring the change of attempt {other} (other.py) into this parent: they speed up different shapes."}


def render(state: State, a: Assignment, number: int, *, program: str, idea: str, margin: float,
           floors: dict[str, float], margins: dict[str, str], profile: list[dict[str, Any]], remote: list[str]) -> str:
    """The text. Sections are left out from the end of `optional` where it would be too long; no section is cut."""
    must = [TASK.format(count=len(state.base_ns) or len(load_task().benchmarks), margin=f"{100 * margin:.2f} %"),
            _assignment(state, a, number, idea), CONTRACT % ", ".join(FAMILIES)]
    history = [_families(state), _tried(state)] if state.pivoted else [_recent(state), _families(state), _tried(state)]
    optional = [_program(program), _shapes(state, a, floors, margins), _profile(a, profile), *history, _remote(remote)]
    left = MOST - sum(len(s.encode()) + 1 for s in must)
    chosen = []
    for section in optional:
        if section and len(section.encode()) + 1 <= left:
            chosen.append(section)
            left -= len(section.encode()) + 1
    return "\n".join([must[0], *chosen, *must[1:]])


def _clip(text: str, most: int) -> str:
    return text if len(text.encode()) <= most else text.encode()[:most].decode(errors="ignore") + " ..."


def _program(text: str) -> str:
    return f"# Directions of the person who runs this\n{_clip(text.strip(), 4000)}\n" if text.strip() else ""


def _shapes(state: State, a: Assignment, floors: dict[str, float], margins: dict[str, str]) -> str:
    times = state.times_ns(a.parent)
    if not times:
        return ""
    elites = state.elites()
    rows = [[c, duration(t), f"{100 * floors[c] / t:.0f} %" if c in floors else "-", margins.get(c, "-"),
             duration(state.times_ns(elites[c])[c])] for c, t in times.items()]
    return "# Where the time goes (every shape weighs the same)\n" + table(
        ["shape", "parent", "of the card's floor", "residuals f/o (20/100)", "fastest so far"], rows) + "\n"


def _profile(a: Assignment, profile: list[dict[str, Any]]) -> str:
    while profile and len(json.dumps(profile)) > PROFILE:
        profile = profile[:-1]
    return f"# Profile of the parent on {a.focus}\n{json.dumps(profile)}\n" if profile else ""


def _recent(state: State) -> str:
    rows = [a for a in state.attempts.values() if a.verdict][-HISTORY:]
    if not rows:
        return ""
    lines = [f"- {a.number} {a.title or '(no title)'} [{a.family or '?'}]: {a.verdict}"
             + (f", {percent(a.gain)}" if a.gain is not None else "") + (f". {a.lesson}" if a.lesson else "")
             for a in rows]
    failed = rows[-1]
    if failed.verdict in ("wrong", "broken", "flagged", "rejected"):
        lines.append("The last one failed: " + _clip(failed.reason.strip(), FAILURE))
    return "# The last attempts\n" + "\n".join(lines) + "\n"


def _families(state: State) -> str:
    cold = state.cooling()
    rows = []
    for f in sorted({a.family for a in state.finished if a.family}):
        mine = [a for a in state.finished if a.family == f]
        kept = [a.gain for a in mine if a.verdict == "kept" and a.gain is not None]
        rows.append([f, str(len(mine)), str(len(kept)), percent(min(kept)) if kept else "-", "cooling" * (f in cold)])
    return "# Families\n" + table(["family", "tried", "kept", "best", ""], rows) + "\n" if rows else ""


def _tried(state: State) -> str:
    titles = list(dict.fromkeys(a.title for a in state.finished if a.title and a.verdict != "kept"))
    return "# Already tried, do not repeat\n" + "\n".join(f"- {t[:100]}" for t in titles[-60:]) + "\n" if titles else ""


def _remote(said: list[str]) -> str:
    return "# What the leaderboard's server answered\n" + "\n".join(f"- {s}" for s in said[-3:]) + "\n" if said else ""


def _assignment(state: State, a: Assignment, number: int, idea: str) -> str:
    parent = "the file as the run began with it" if a.parent == 0 else f"attempt {a.parent}"
    lines = [f"# Assignment {number}", f"Mode: {a.mode}. {MODES[a.mode].format(other=a.other)}",
             f"Parent: {parent} (submission.py now).", f"Focus: {a.focus}.", "Exactly one change. Name the bottleneck "
             "that it attacks and the percent that you expect."]
    if a.family:
        lines.append(f"Family: {a.family}.")
    cold = state.cooling()
    if cold and not a.family:
        lines.append(f"Not now: {', '.join(sorted(cold))} (three misses in a row).")
    if idea:
        lines.append(f"An idea from the backlog: {idea}")
    return "\n".join(lines) + "\n"
