"""Points to measure, and the classes that a lazy grid leaves out. Needs no torch and no numpy.

A grid that samples one class only can be nearly flat in the fitted constant: the fit then chooses noise, and held-out
points of the same class do not notice. So every grid declares classes, and `blind` names those it does not cover.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product

from harness.cases import KINDS, Case, load_task
from harness.errors import UserError

MEMORY_SHARE = 0.35  # of the memory a point's peak may take
COPIES = 6  # float32 copies of input and square factor alive at the peak: input, output, check in float64


@dataclass(frozen=True, order=True)
class Point:
    """One shape with one kind of input: batch matrices of m rows and n columns (the contest: m = n)."""

    batch: int
    m: int
    n: int
    case: str = "dense"
    cond: int = 0
    seed: int = 0

    @property
    def key(self) -> str:
        """`b640 n512 mixed c2` (square) or `b4 128x64 dense`. The seed is named only where a test spec differs from a
        ranked one in nothing else."""
        ranked = _ranked_seeds().get(self.base)
        return self.base + (f" s{self.seed}" if self.seed and ranked not in (None, self.seed) else "")

    @property
    def base(self) -> str:
        shape = f"n{self.n}" if self.m == self.n else f"{self.m}x{self.n}"
        return f"b{self.batch} {shape} {self.case}" + (f" c{self.cond}" if self.cond else "")

    @property
    def k(self) -> int:
        return min(self.m, self.n)

    @property
    def w(self) -> int:
        """floor(sqrt(m k)), exact: n for a square."""
        return math.isqrt(self.m * self.k)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.batch, self.m, self.n

    @property
    def peak_bytes(self) -> int:
        return COPIES * 4 * self.batch * (self.m * self.n + self.k ** 2)

    @classmethod
    def of(cls, case: Case) -> Point:
        return cls(case.batch, case.n, case.n, case.case, case.cond, case.seed)

    def to_case(self) -> Case:
        """As the harness takes it (square points only)."""
        return Case("benchmark", 0, self.key, self.batch, self.n, self.cond, self.seed, self.case, named=True)


# ---- classes -------------------------------------------------------------------------------------------------------

def aspect(m: int, n: int) -> str:
    """Classes in this order: m = 2n exactly is near-square."""
    if m == n:
        return "square"
    if m > 2 * n:
        return "tall"
    return "wide" if n > 2 * m else "near-square"


def n_bin(n: int) -> str:
    return next(name for limit, name in ((64, "tiny"), (256, "small"), (768, "mid"), (1536, "large"), (10**9, "huge"))
                if n <= limit)


ROLES = ("dense", "under-filled", "many waves", "unaligned", "case stress")  # what the coverage gate asks for
TAGS = (*ROLES, "one wave", "scaled", "deficient", "structured", "mixed")


def tags(p: Point, units: int) -> set[str]:
    """The classes of a square point. They overlap: batch, n and kind of input are separate axes.

    `units` is the device's count of SMs, or of cores where there is no GPU. Case and cond are not observable to a
    dispatcher: these tags are columns of the report, never a feature of a rule.
    """
    found = set()
    if p.case in ("dense", "upper", "diagonal") and p.cond <= 2:
        found.add("dense")
    elif p.case in ("dense", "upper", "diagonal", "rowscale"):
        found.add("scaled")
    elif p.case in ("rankdef", "nearrank", "clustered", "nearcollinear"):
        found.add("deficient")
    else:
        found.add("structured" if p.case == "band" else "mixed")
    if "dense" not in found:
        found.add("case stress")
    if p.batch >= 2 * units:
        found.add("many waves")
    elif 2 * p.batch >= units:
        found.add("one wave")
    elif p.n >= 512:
        found.add("under-filled")
    if p.n > 64 and p.n % 64:
        found.add("unaligned")
    return found


def classes(points: list[Point], units: int) -> dict[str, list[bool]]:
    """Class name to membership of each point: aspects where the grid has rectangles, tags where it is square."""
    if any(p.m != p.n for p in points):
        aspects = [aspect(p.m, p.n) for p in points]
        return {name: [a == name for a in aspects] for name in ("square", "tall", "wide", "near-square")}
    tagged = [tags(p, units) for p in points]
    return {name: [name in t for t in tagged] for name in TAGS if any(name in t for t in tagged) or name in ROLES}


def strata(points: list[Point]) -> list[str]:
    """A partition, for resampling: the aspect, or the n bin of a square grid."""
    square = all(p.m == p.n for p in points)
    return [n_bin(p.n) if square else aspect(p.m, p.n) for p in points]


def blind(points: list[Point], units: int) -> list[str]:
    """One sentence for each declared class with fewer than max(8 points, 10 %): no row is exported then."""
    need = max(8, math.ceil(len(points) / 10))
    members = classes(points, units)
    declared = [c for c in members if c in ROLES or "tall" in members]
    return [f"BLIND: class {c} has only {sum(members[c])} points, needs {need}" for c in declared
            if sum(members[c]) < need]


# ---- grids ---------------------------------------------------------------------------------------------------------

@cache
def contest_points(benchmarks_only: bool = False) -> tuple[Point, ...]:
    """The 12 ranked specs and the 22 tests."""
    task = load_task()
    return tuple(Point.of(c) for c in task.benchmarks + (() if benchmarks_only else task.tests))


def is_ranked(p: Point) -> bool:
    return p.key in _ranked_seeds()


@cache
def _ranked_seeds() -> dict[str, int]:
    return {p.base: p.seed for p in contest_points(True)}


def _unique(points: Iterable[Point]) -> list[Point]:
    """The first of each key (the contest's points come first: their seeds win), sorted by (batch, m, n)."""
    first: dict[str, Point] = {}
    for p in points:
        first.setdefault(p.key, p)
    return sorted(first.values())


def contest(units: int) -> list[Point]:
    return _unique(contest_points())


def quick(units: int) -> list[Point]:
    return _unique(contest_points(True))


def square(units: int) -> list[Point]:
    """n by batch at (dense, cond 2) within 2^28 entries, every case at the contest's and three other anchors, and the
    contest's own points."""
    sizes = (32, 64, 96, 128, 176, 256, 352, 512, 768, 1024, 1536, 2048, 3072, 4096)
    batches = sorted({1, 2, 4, 8, 16, 20, 40, 60, max(1, units // 2), units, 2 * units, 4 * units, 640})
    dense = [Point(b, n, n, "dense", 2) for n, b in product(sizes, batches)]
    anchors = {p.shape for p in contest_points(True)} | {(40, 768, 768), (16, 1536, 1536), (4 * units, 96, 96)}
    cases = [Point(b, m, n, case, 2 if case in ("dense", "upper", "diagonal", "mixed") else 0)
             for b, m, n in sorted(anchors) for case in KINDS]
    cases += [Point(b, m, n, "dense", 4) for b, m, n in sorted(anchors)]
    return _unique([*contest_points(), *(p for p in dense + cases if p.batch * p.n ** 2 <= 2 ** 28)])


def crossover_rect() -> list[Point]:
    """The part of `rect` on which a threshold between two kernels is fitted: 143 points."""
    sides, batches = (64, 128, 192, 256, 320, 384, 448, 512, 640, 768), (1, 4, 16)
    tall = ((256, 16), (256, 64), (384, 32), (384, 64), (512, 32), (512, 128), (640, 64), (1024, 64), (1024, 256),
            (2048, 64))
    near = ((384, 256), (448, 256), (512, 384), (256, 384), (320, 448))
    shapes = [(b, d, d) for d in sides for b in (*batches, 64)]
    shapes += [(b, m, n) for m in (128, 256, 384, 512, 640) for n in (32, 64, 128, 256, 512) for b in (1, 16)]
    shapes += [(b, m, n) for pair in tall for m, n in (pair, pair[::-1]) for b in batches]
    shapes += [(b, m, n) for m, n in near for b in batches]
    return _unique(Point(*s) for s in shapes if _published_limits(*s))


def rect(units: int) -> list[Point]:
    """The published report's grid: 185 points."""
    shapes = [(b, d, d) for d in (8, 16, 32) for b in (1, 4, 16, 64, 256, 1024, 4096, 16384)]
    shapes += [(b, d, d) for d in (1024, 1536, 2048, 3072) for b in (1, 2, 4)]
    shapes += [(b, d, d) for d in (64, 128, 256) for b in (256, 1024, 4096)]
    return _unique([*crossover_rect(), *(Point(*s) for s in shapes if _published_limits(*s))])


def _published_limits(b: int, m: int, n: int) -> bool:
    return b * m * n <= 40e6 and b * max(m, n) ** 2 <= 100e6


GRIDS: dict[str, Callable[[int], list[Point]]] = {"contest": contest, "square": square, "rect": rect, "quick": quick}


def make(name: str, units: int, memory_bytes: int) -> list[Point]:
    """The grid's points that fit: peak memory within 35 % of the device's (KIT_TUNE_MEMORY_GB overrides the size)."""
    override = os.environ.get("KIT_TUNE_MEMORY_GB")
    try:
        memory_bytes = int(float(override) * 2 ** 30) if override else memory_bytes
    except ValueError:
        raise UserError(f"KIT_TUNE_MEMORY_GB: expected a number, got {override!r}",
                        "unset KIT_TUNE_MEMORY_GB") from None
    return [p for p in GRIDS[name](units) if p.peak_bytes <= MEMORY_SHARE * memory_bytes]
