"""Is this one faster, on which shape, by how much, and is it real? Pure: runs in, verdict rows out; no torch, no GPU.

A change is called faster or slower only if it passes two tests:

size   it exceeds SIZE, and the case's noise floor where `harness.noise` has one: what a file shows against itself
noise  the log ratios of the rounds have a mean that differs from 0 (paired t-test, the round as unit; Holm over all
       cases and the total; harness.stats), at most 5 % of comparisons of equal files calling any of them

A smaller change is `same` where the noise would have let one of that size be seen, else `unclear`, with the number of
rounds that should settle it. Files that never ran in one round are compared by Welch's test, and since the sessions
of one machine differ by more than their rounds do, only differences over SIZE_APART count.

The other verdicts need no statistics: broken (the new one fails there), fixed (only the base does), missing (one of
them has no run there), incomparable (another card, driver, torch, task or protocol: said by name; --anyway overrides).
"""
from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from harness import noise as noise_floor
from harness import roofline, stats
from harness.cases import Case, load_task
from harness.errors import EXIT_OK, EXIT_WRONG, UserError
from harness.noise import TOTAL, Noise
from harness.pick import Side, current_shas, group, name_apart, pick, split_tag
from harness.results import Run, differs

VERDICTS = ("faster", "slower", "same", "unclear", "broken", "fixed", "missing", "incomparable")
SIZE = 0.01  # of a time: under it the cases of two builds of the same source differ by alignment alone
SIZE_APART = 0.05  # between sessions the clock, the temperature and the neighbours change
DEFAULT_ROUNDS = 12  # settles 1 % at a spread of 0.7 % a round, which is 0.5 % a file; bench stops earlier if it can
FACTOR_ALLOWED, ORTH_ALLOWED = 20, 100


@dataclass
class Row:
    """One case, or the total. Times are geometric means over the rounds; change = new / base - 1."""

    case: str
    verdict: str = "missing"
    base_ns: float | None = None
    new_ns: float | None = None
    base_status: str = ""  # of the first failing run, else "pass"; "" where there is none
    new_status: str = ""
    change: float | None = None
    half_width: float | None = None  # of the interval around change at the corrected level; None: no spread known
    p: float | None = None
    rounds: int = 0  # that both ran
    won: int | None = None  # rounds in which new was faster; None where they share no round
    add_rounds: int = 0  # where unclear
    share: float | None = None  # factor on the score that this case alone would bring, less 1
    factor: float | None = None  # worst scaled residuals of new
    orth: float | None = None
    floor_ns: float | None = None
    bound: str = ""  # what sets the floor: memory, products, chain
    reason: str = ""

    @property
    def of_floor(self) -> float | None:
        return self.floor_ns / self.new_ns if self.floor_ns and self.new_ns else None


@dataclass
class Comparison:
    """New against base. `total` covers the `common` cases that both pass; only if `score` are they the whole score."""

    base: Side
    new: Side
    rows: list[Row]
    total: Row
    common: int
    interleaved: bool
    noise: Noise | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def score(self) -> bool:
        return not self.notes and self.common == len(self.rows)

    def verdicts(self) -> set[str]:
        return {r.verdict for r in [*self.rows, self.total]}


class Timings:
    """What one side did on one case: log mean times by (session, round), and how it failed."""

    def __init__(self, side: Side, case: str):
        self.runs = [r for r in side.benchmarks if r.case == case]
        tried = [r for r in self.runs if r.status != "infra"]  # the harness's own failure says nothing about the file
        failed = [r for r in tried if not r.ok]
        self.failure = failed[0] if failed else None
        self.often = f" ({len(failed)} of {len(tried)} runs)" if 0 < len(failed) < len(tried) else ""
        self.second_tries = {(r.session, r.round): f"{side.file}: {r.message}" for r in tried if r.ok and r.message}
        self.logs = {(r.session, r.round): math.log(r.mean_ns) for r in tried if r.ok and r.samples_ns}

    @property
    def status(self) -> str:
        return self.failure.status if self.failure else "pass" if self.logs else ""

    def margin(self, key: str) -> float | None:
        return max((r.margin[key] for r in self.runs if key in r.margin), default=None)


def compare(base: Side, new: Side, cases: Sequence[Case] | None = None, noise: Noise | None = None,
            anyway: bool = False, ceilings: roofline.Ceilings | None = None) -> Comparison:
    """One row for each case that either has run, in the order of `cases` (task.yml's benchmarks), and the total."""
    order = [c.label for c in (_benchmarks() if cases is None else cases)]
    labels = list(dict.fromkeys(r.case for r in [*base.benchmarks, *new.benchmarks]))
    labels.sort(key=lambda c: order.index(c) if c in order else len(order))
    timings = {c: (Timings(base, c), Timings(new, c)) for c in labels}
    rows = [_row(c, *timings[c], anyway, ceilings) for c in labels]
    common = [r for r in rows if not r.verdict]
    pairs = {r.case: _pairs(*timings[r.case]) for r in common}
    interleaved = all(pairs.values())
    total = Row(TOTAL, "")
    _decide([*common, total], [*(_estimate(r, *timings[r.case], pairs[r.case]) for r in common),
                               _total(total, common, timings, pairs)], noise, len(common))
    for r in common:
        r.share = math.exp(math.log1p(r.change or 0) / len(common)) - 1
    if not common:
        total.verdict = "incomparable" if any(r.verdict == "incomparable" for r in rows) else "missing"
    result = Comparison(base, new, rows, total, len(common), interleaved, noise)
    result.notes = _notes(result, order)
    return result


@cache
def _benchmarks() -> tuple[Case, ...]:
    return load_task().benchmarks


def _row(case: str, base: Timings, new: Timings, anyway: bool, ceilings: roofline.Ceilings | None) -> Row:
    """The row with what needs no statistics; its verdict is empty where both have times to compare."""
    row = Row(case, "", base_status=base.status, new_status=new.status, factor=new.margin("factor"),
              orth=new.margin("orth"))
    if new.logs and not new.failure:
        row.new_ns = stats.geometric(new.logs.values())
    if base.logs and not base.failure:
        row.base_ns = stats.geometric(base.logs.values())
    if ceilings and new.runs:
        row.floor_ns, row.bound = roofline.floor_ns(*roofline.shape(new.runs[-1].spec), ceilings)
    unlike = differs(base.runs[-1], new.runs[-1]) or _shapes(base.runs[-1], new.runs[-1]) if base.runs and new.runs \
        else ""
    if not base.status or not new.status:
        row.verdict = "missing"
        lost = [r for t in (base, new) if not t.status for r in t.runs]
        row.reason = lost[0].message if lost else ""
    elif unlike and not anyway:
        row.verdict, row.reason = "incomparable", unlike
    elif new.failure:
        row.verdict = "broken"
        row.reason = (new.failure.message or ", ".join(new.failure.flags)) + new.often
    elif base.failure:
        row.verdict = "fixed"
    else:
        shared = base.logs.keys() & new.logs.keys() or base.logs.keys() | new.logs.keys()
        row.reason = "; ".join(said for t in (base, new) for k, said in t.second_tries.items() if k in shared)
    return row


def _shapes(a: Run, b: Run) -> str:
    x, y = roofline.shape(a.spec), roofline.shape(b.spec)
    return "" if x == y else f"batch x n: {x[0]} x {x[1]} and {y[0]} x {y[1]}"


def _pairs(base: Timings, new: Timings) -> dict[tuple[str, int], float]:
    """Log ratio new / base of each round that both ran."""
    return {k: new.logs[k] - base.logs[k] for k in sorted(base.logs.keys() & new.logs.keys())}


def _estimate(row: Row, base: Timings, new: Timings, pairs: dict[tuple[str, int], float]) -> stats.Estimate:
    if pairs:  # times of the shared rounds, so that the two of a row divide to its change
        row.rounds, row.won = len(pairs), sum(x < 0 for x in pairs.values())
        row.base_ns, row.new_ns = (stats.geometric(t.logs[k] for k in pairs) for t in (base, new))
        return stats.paired(list(pairs.values()))
    row.rounds = min(len(base.logs), len(new.logs))
    return stats.apart(list(new.logs.values()), list(base.logs.values()))


def _total(total: Row, common: list[Row], timings: dict[str, tuple[Timings, Timings]],
           pairs: dict[str, dict[tuple[str, int], float]]) -> stats.Estimate:
    """The geometric mean over the common cases: as one more case where whole rounds are shared by all of them."""
    if not common:
        return stats.Estimate(0.0, math.inf, 0)
    total.base_ns, total.new_ns = (stats.geometric(math.log(t) for r in common if (t := getattr(r, which)))
                                   for which in ("base_ns", "new_ns"))
    whole = sorted(set.intersection(*(set(pairs[r.case]) for r in common)))
    mean = math.log(total.new_ns / total.base_ns)
    if whole:
        logs = [math.fsum(pairs[r.case][k] for r in common) / len(common) for k in whole]
        total.rounds, total.won = len(whole), sum(x < 0 for x in logs)
        spread = stats.paired(logs)
        return stats.Estimate(mean, spread.error, spread.df)  # the mean of all rounds, which is what is printed
    parts = [_estimate(Row(r.case), *timings[r.case], pairs[r.case]) for r in common]
    total.rounds = min(r.rounds for r in common)
    if any(p.df < 1 for p in parts):
        return stats.Estimate(mean, math.inf, 0)
    # cases of one session drift together: their errors are added, not their squares
    return stats.Estimate(mean, math.fsum(p.error for p in parts) / len(parts), min(p.df for p in parts))


def _decide(rows: list[Row], estimates: list[stats.Estimate], noise: Noise | None, common: int) -> None:
    """The two tests. The total of m cases needs 1 / sqrt(m) of a case's size: unrelated errors average so."""
    if not common:
        return
    for row, e, (significant, level) in zip(rows, estimates, stats.holm(estimates), strict=True):
        size = SIZE if row.won is not None else SIZE_APART
        if row.case == TOTAL and row.won is not None:
            size /= math.sqrt(common)
        size = math.log1p(max(size, noise.floor(row.case) if noise else 0))
        width = e.half_width(level)
        row.change, row.p = math.expm1(e.mean), e.p if e.df >= 1 else None
        row.half_width = math.expm1(width) if math.isfinite(width) else None
        if abs(e.mean) > size and significant:
            row.verdict = "slower" if e.mean > 0 else "faster"
        elif abs(e.mean) <= size and width <= size:
            row.verdict = "same"
        else:
            row.verdict = "unclear"
            row.add_rounds = stats.rounds_to_add(e, row.rounds, level, max(size, abs(e.mean)))


def _notes(c: Comparison, order: list[str]) -> list[str]:
    """Why the geometric mean is no score."""
    ran = {r.case for r in c.rows}
    counts = [(len([r for r in c.rows if r.verdict == v]), v) for v in ("broken", "fixed", "missing", "incomparable")]
    notes = [f"{n} case{'s' * (n > 1)} {v}" for n, v in counts if n]
    absent = len([label for label in order if label not in ran])
    if absent:
        notes.append(f"{absent} of {len(order)} cases not run")
    if any(r.cut for side in (c.base, c.new) for r in side.benchmarks):
        notes.append("batches cut for a CPU")
    newest = [r for r in c.new.tests if r.session == c.new.tests[-1].session]
    failed = {r.case for r in newest if not r.ok}
    if failed:
        notes.append(f"{c.new.name} fails {len(failed)} of {len({r.case for r in newest})} tests")
    return notes


# ---------------------------------------------------------------- what bench asks between rounds

def _all(runs: Sequence[Run], noise: Noise | None) -> list[Comparison]:
    """Each file against the first, and against the one named before it: often its parent, which a baseline far behind
    says nothing about."""
    sides = name_apart(group(_latest(runs)))
    pairs = [(sides[j], sides[i]) for i in range(1, len(sides)) for j in sorted({0, i - 1})]
    return [compare(base, new, noise=noise) for base, new in pairs]


def _latest(runs: Sequence[Run]) -> list[Run]:
    """Those timed under the protocol that is being measured: one session may hold both."""
    timed = [r for r in runs if r.mode != "test"]
    return [r for r in timed if r.protocol == timed[-1].protocol]


def decided(runs: Sequence[Run], noise: Noise | None = None) -> bool:
    """Whether every case of every file is decided, against the first file and against the one before it.

    True only after one of stats.LOOKS rounds: the error rate is kept by looking at no other time.
    """
    rounds = len({(r.session, r.round) for r in _latest(runs)})
    return rounds in stats.LOOKS and bool(comparisons := _all(runs, noise)) and all(
        "unclear" not in c.verdicts() for c in comparisons)


def rounds_needed(runs: Sequence[Run], noise: Noise | None = None) -> int:
    """How many more rounds should settle every case; 0 where all are."""
    return max((r.add_rounds for c in _all(runs, noise) for r in [*c.rows, c.total]), default=0)


def default_rounds(noise: Noise | None, cases: int = 12) -> int:
    """The first look at which this machine's own spread allows a verdict about SIZE on every case."""
    if noise is None:
        return DEFAULT_ROUNDS
    spread = max(f.spread for f in noise.cases.values())
    level = stats.first_level(cases + 1)
    return next((n for n in stats.LOOKS if stats.t_quantile(level, n - 1) * spread / math.sqrt(n) <= SIZE),
                stats.LOOKS[-1])


# ---------------------------------------------------------------- ./kit compare

def compare_sides(sides: Sequence[Side], anyway: bool = False) -> list[Comparison]:
    """Every side against the first, with the noise floor and the ceilings of its machine."""
    result = []
    for new in sides[1:]:
        r = new.last
        result.append(compare(sides[0], new, noise=noise_floor.read(r.device, r.protocol, r.task), anyway=anyway,
                              ceilings=roofline.ceilings(r.device.get("name", ""))))
    return result


def run_compare(args: argparse.Namespace) -> int:
    from harness import render

    wanted = [v for v in args.fail_on.split(",") if v]
    for v in wanted:
        if v not in VERDICTS:
            raise UserError(f"--fail-on {v}: no such verdict", "one or more, with commas, of " + ", ".join(VERDICTS))
    sides = pick(args.runs)
    if len(sides) < 2:
        raise UserError(f"only {sides[0].name} to compare", f"./kit compare best {sides[0].name}")
    for path in (Path(split_tag(name)[0]) for name in args.runs):
        now = current_shas(path)
        if path.suffix == ".py" and now and not any(s.file == path.name and s.sha in now for s in sides):
            print(f"warning: {path} has changed since these runs: ./kit bench {path}", file=sys.stderr)
    comparisons = compare_sides(sides, args.anyway)
    if args.json:
        print(render.to_json(comparisons))
    elif args.csv:
        print(render.csv(comparisons), end="")
    elif args.markdown:
        print(render.markdown(comparisons))
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        print(render.terminal(comparisons, colour=colour))
    return EXIT_WRONG if any(c.verdicts() & set(wanted) for c in comparisons) else EXIT_OK


def register(verbs: argparse._SubParsersAction) -> None:
    p = verbs.add_parser(
        "compare", help="is it faster, on which shape, by how much, is it real: from saved runs",
        description="Compare saved runs case by case with the first named. A RUN is a submission (its newest\n"
                    "runs), a .jsonl file, a folder of records/, or best; with @strict, @contest, @local or\n"
                    "@popcorn behind it only runs of that protocol or place; or .research/NAME:best, :baseline,\n"
                    ":0007. Without any: the newest session.",
        epilog="example: ./kit compare submissions/v00_geqrf.py submissions/v01_compact_wy.py",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", metavar="RUN", nargs="*", help="submission, .jsonl file, record folder, or best")
    p.add_argument("--anyway", action="store_true", help="compare what is not comparable (another card, driver ...)")
    p.add_argument("--fail-on", metavar="VERDICTS", default="", help="exit 1 if a case has one of: slower,broken ...")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print a Markdown table")
    form.add_argument("--json", action="store_true", help="print JSON (format: harness/render.py)")
    form.add_argument("--csv", action="store_true", help="print CSV, a line for each case of each pair")
    p.set_defaults(run=run_compare)
