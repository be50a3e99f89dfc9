"""What to try next, and when to stop: pure functions of the folded state. Needs no torch."""
from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

from harness.research.ledger import Attempt, State

FAMILIES = ("small-n register kernel", "panel", "T-builder", "trailing update", "precision", "blocking/nb",
            "layout/packing/copies", "fusion/launch count", "large-n algorithm", "dispatch per shape", "memory/alloc",
            "compiler flags", "other")
MODES = {"exploit": 55, "explore": 25, "fork": 12, "merge": 8}
WINDOW = 8  # finished attempts over which the gain is looked at
REPEATS_IN_A_ROW, REPEATS, REPEATS_OF = 3, 5, 10
NEAR_FLOOR, AT_FLOOR = 1.25, 0.90
AGENT_ERRORS, INFRA = 5, 3
TOUCHES = 0.005  # a shape counts as touched by an attempt that moves it further


@dataclass
class Assignment:
    mode: str
    parent: int
    family: str  # "" leaves it to the agent
    focus: str  # a shape
    other: int | None = None


def assign(state: State, number: int, floors: dict[str, float]) -> Assignment:
    """The next assignment, drawn from the run's seed and the attempt's number. One that was interrupted is given
    again, once."""
    last = state.attempts.get(number - 1)
    if last and last.verdict == "interrupted" and not (
            (before := state.attempts.get(number - 2)) and before.verdict == "interrupted"):
        return Assignment(last.mode, last.parent, last.family, last.focus, last.other)
    rng = random.Random(f"{state.seed}:{number}")
    weights = {m: w for m, w in MODES.items() if not state.pivoted or m in ("explore", "fork")}
    mode = rng.choices(list(weights), list(weights.values()))[0]
    best = state.best
    if mode == "fork":
        elites = sorted({n for n in state.elites().values() if n != best})
        if elites:
            parent = rng.choice(elites)
            mine = [c for c, n in state.elites().items() if n == parent]
            return Assignment("fork", parent, "", rng.choice(mine))
        mode = "explore"
    if mode == "merge":
        pair = _mergeable(state, rng)
        if pair:
            return Assignment("merge", pair[0], "", focus(state, pair[0], floors), pair[1])
        mode = "exploit"
    if mode == "explore":
        cold = state.cooling()
        tried = {f: sum(a.family == f for a in state.attempts.values()) for f in FAMILIES if f not in cold}
        least = [f for f, n in tried.items() if n == min(tried.values())]
        return Assignment("explore", best, rng.choice(least), focus(state, best, floors))
    return Assignment("exploit", best, "", focus(state, best, floors))


def focus(state: State, number: int, floors: dict[str, float]) -> str:
    """The shape whose time, brought to its floor, would do most for the geometric mean. Every shape has the same
    weight in it, so that is the one furthest above its floor; where no floor is known, the slowest a matrix column."""
    times = state.times_ns(number)
    if not times:
        return ""
    return max(times, key=lambda c: times[c] / floors[c] if c in floors else times[c])


def _mergeable(state: State, rng: random.Random) -> tuple[int, int] | None:
    """Two kept attempts, neither an ancestor of the other, that move different shapes."""
    here = [a for a in state.kept if a.number in state.rel]

    def moves(a: Attempt) -> set[str]:
        own, of = state.shapes[a.number], state.shapes.get(a.parent, {})
        return {c for c, x in own.items() if x - of.get(c, 0.0) < -TOUCHES}

    pairs = [(a.number, b.number) for a in here for b in here if a.number < b.number and not moves(a) & moves(b)
             and a.number not in state.ancestors(b.number) and b.number not in state.ancestors(a.number)]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return (a, b) if state.rel[a] <= state.rel[b] else (b, a)


# ---------------------------------------------------------------- when to stop

def stop_rule(state: State, limits: dict[str, Any], wall_s: float, floors: dict[str, float],
              plan_left: int | None) -> tuple[str, str] | None:
    """(rule, why) of the first rule that is met, else None. The gain rule only says "gain": the loop pivots first."""
    n = len(state.attempts)
    if limits["iterations"] is not None and n >= limits["iterations"]:
        return "iterations", f"{n} attempts"
    if plan_left is not None and plan_left <= 0:
        return "plan", "every step of the plan was replayed"
    for rule, spent, most, unit in (("wall", wall_s / 3600, limits["wall_h"], "h"),
                                    ("gpu", state.gpu_s / 3600, limits["gpu_h"], "h on the device"),
                                    ("usd", state.usd, limits["usd"], "dollars"),
                                    ("tokens", state.tokens, limits["tokens"], "tokens")):
        if most is not None and spent >= most:
            return rule, f"{spent:.4g} of {most:g} {unit}"
    return _storm(state) or _target(state, limits) or _roofline(state, floors) or _no_progress(state, limits)


def _storm(state: State) -> tuple[str, str] | None:
    last = [a.verdict for a in state.attempts.values() if a.verdict]
    if len(last) >= AGENT_ERRORS and set(last[-AGENT_ERRORS:]) == {"agent_error"}:
        return "agent storm", f"{AGENT_ERRORS} failures of the agent in a row"
    if len(last) >= INFRA and set(last[-INFRA:]) == {"infra"}:
        return "infra storm", f"{INFRA} failures of the evaluator in a row"
    return None


def _target(state: State, limits: dict[str, Any]) -> tuple[str, str] | None:
    if limits["target_us"] is None or not state.audits or state.needs_retime:
        return None
    best = min(state.audits[-1]["score_ns"].values()) / 1e3
    return ("target", f"{best:.1f} µs in an audit, {limits['target_us']:g} asked for") if best <= limits["target_us"] \
        else None


def _roofline(state: State, floors: dict[str, float]) -> tuple[str, str] | None:
    times = state.times_ns(state.best)
    if not times or not all(c in floors for c in times):
        return None
    shares = [floors[c] / t for c, t in times.items()]
    bound = math.exp(sum(map(math.log, shares)) / len(shares))
    if min(shares) >= 1 / NEAR_FLOOR or bound >= AT_FLOOR:
        return "roofline", f"the best file is at {100 * bound:.0f} % of the floor"
    return None


def _no_progress(state: State, limits: dict[str, Any]) -> tuple[str, str] | None:
    judged = [a for a in state.attempts.values() if a.verdict and a.verdict not in ("agent_error", "infra",
                                                                                   "interrupted")]
    repeats = [a.verdict in ("noop", "duplicate") for a in judged]
    if repeats[-REPEATS_IN_A_ROW:] == [True] * REPEATS_IN_A_ROW or sum(repeats[-REPEATS_OF:]) >= REPEATS:
        return "repeats", f"{sum(repeats[-REPEATS_OF:])} of the last {len(repeats[-REPEATS_OF:])} attempts were repeats"
    stall = limits["stall"]
    if stall is not None and len(judged) >= stall and all(a.verdict != "kept" for a in judged[-stall:]):
        return "stall", f"{stall} attempts without a keep"
    since = max((n for n, what in state.marks if what == "pivot"), default=0)
    window = [a for a in judged if a.number > since][-WINDOW:]
    gain = 1 - math.exp(-sum(a.advance for a in window))
    if limits["gain"] is not None and len(window) == WINDOW and gain < limits["gain"]:
        return "gain", f"{WINDOW} attempts, {100 * gain:.1f} % < {100 * limits['gain']:g} %"
    return None


EXIT_OF = {"person": 3, "evaluator": 4, "infra storm": 4, "agent storm": 5}  # all other rules: 0
