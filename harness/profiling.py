"""Nsight Compute's details, from the server's artifacts or a run here, to one summary.

    ./kit profile FILE --case '#7'      ncu on this machine, one call of the submission
    scripts/profile FILE                the same summary from the leaderboard's own profiler (harness/popcorn/)

`summarise` is pure: the text of `ncu --csv --page details` in, kernels by time out.
"""
from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import results
from harness.cases import ROOT, Case, load_task, select
from harness.errors import EXIT_CANNOT_RUN, EXIT_OK, EXIT_USAGE, EXIT_WRONG, UserError

BUSY = 60.0  # % of peak from which Nsight Compute itself calls a kernel bound by that unit; below both: latency
LAUNCHES = 100  # of one call; ncu replays each about ten times, a blocked solver at n = 4096 launches thousands
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "WarpStateStats", "MemoryWorkloadAnalysis")
# Where ncu is too old to count spilling requests: local loads and stores, in instructions.
SPILLS = ("smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum")
UNITS = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "µs": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9,
         "second": 1e9}

# What a wrapper launches before the algorithm: fills, copies, casts, random numbers. By the names that torch gives.
SETUP = re.compile(r"elementwise|Fill|[Mm]emset|[Mm]emcpy|copy_kernel|distribution|CatArray|triu_tril|arange|linspace"
                   r"|diag|index|direct_copy|random|philox|reduce_kernel|CompareFunctor")

# The wording of ncu's rule CPIStall -> the state's usual name.
STALLS = (("L1TEX", "long scoreboard"), ("MIO (memory input/output) operation", "short scoreboard"),
          ("MIO operation", "short scoreboard"), ("barrier", "barrier"), ("MIO instruction queue", "mio throttle"),
          ("local and global", "lg throttle"), ("(LG)", "lg throttle"), ("fixed latency", "wait"),
          ("execution pipe", "math pipe throttle"), ("immediate constant", "imc miss"), ("branch", "branch resolving"),
          ("instruction cache", "no instruction"), ("memory barrier", "membar"), ("TEX", "tex throttle"),
          ("micro scheduler", "not selected"), ("sleep", "sleeping"), ("dispatch", "dispatch"))


@dataclass
class Kernel:
    """All launches of one kernel name in a capture. Averages are weighted by time; None where ncu gave no number."""

    name: str
    launches: int
    total_ns: float
    share: float  # of the capture's kernel time
    bound: str  # memory, compute, latency, unknown
    compute_pct: float | None
    memory_pct: float | None
    occupancy_pct: float | None  # achieved
    occupancy_limit_pct: float | None  # theoretical
    registers: int | None  # a thread, the largest
    spills: float | None  # ncu's local memory spilling requests, or local loads and stores in instructions
    stall: str  # the state in which warps waited most, "" where ncu names none
    setup: bool


@dataclass
class Summary:
    kernels: list[Kernel]
    warnings: list[str] = field(default_factory=list)


@dataclass
class _Launch:
    name: str
    metrics: dict[tuple[str, str], float] = field(default_factory=dict)
    stall: str = ""

    def get(self, *names: str, unit: str = "") -> float | None:
        for name in names:
            for (known, its), value in self.metrics.items():
                if known == name and (not unit or its == unit):
                    return value
        return None

    @property
    def ns(self) -> float:
        found = [v * UNITS[u] for (n, u), v in self.metrics.items() if n in ("Duration", "gpu__time_duration.sum")
                 and u in UNITS]
        return found[0] if found else 0.0


def summarise(text: str) -> Summary:
    """text: `ncu --csv --page details` (or a server's ncu-details.csv), progress lines and all.

    Raises UserError (exit 3) where it holds no table.
    """
    launches = _launches(text)
    if not launches:
        raise UserError("the profile holds no kernel: Nsight Compute captured nothing",
                        "see that the file launches GPU kernels for this case: ./kit check FILE --case C",
                        EXIT_CANNOT_RUN)
    names = list(dict.fromkeys(x.name for x in launches))
    total = sum(x.ns for x in launches)
    kernels = sorted((_kernel(name, [x for x in launches if x.name == name], total) for name in names),
                     key=lambda k: -k.total_ns)
    return Summary(kernels, _warnings(kernels, launches))


def _launches(text: str) -> list[_Launch]:
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    found: dict[tuple[str, str], _Launch] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if not (row.get("ID") or "").isdigit():
            continue  # a header that is repeated, a line cut short
        launch = found.setdefault((row.get("Process ID") or "", row["ID"]), _Launch(_short(row["Kernel Name"] or "?")))
        metric, value = row.get("Metric Name") or "", number(row.get("Metric Value"))
        if metric and value is not None:
            launch.metrics.setdefault((metric, row.get("Metric Unit") or ""), value)  # tables repeat names
        if row.get("Rule Name") == "CPIStall" and not launch.stall:
            launch.stall = stall_of(row.get("Rule Description") or "")
    for launch in found.values():
        launch.stall = launch.stall or _top_stall(launch)
    return list(found.values())


def number(text: str | None) -> float | None:
    """`1,234.5` -> 1234.5; None for ncu's `n/a`, `nan` and blanks (B200 under ncu 2026.2 gives NaN counters)."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _short(name: str) -> str:
    """`void at::native::vectorized_elementwise_kernel<4, ...>(int, ...)` without return type and arguments; the
    template's functor stays, it tells a fill from a copy."""
    name = re.sub(r"\(anonymous namespace\)::", "", name.removeprefix("void "))
    depth = 0
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            return name[:i]
    return name


def stall_of(rule: str) -> str:
    """`long scoreboard` of "each warp ... spends 7.2 cycles being stalled waiting for a scoreboard dependency ..."."""
    told = re.search(r"being stalled ([^.]+)", rule)
    if not told:
        return ""
    name = next((state for words, state in STALLS if words in told[1]), told[1][:40])
    cycles = re.search(r"spends ([\d.]+) cycles", rule)
    return name + (f" {float(cycles[1]):.1f} cycles" if cycles else "")


def _top_stall(launch: _Launch) -> str:
    """From the single states, where the capture lists them: ("Stall Barrier", or the raw metric's name)."""
    states: dict[str, float] = {}
    for (name, _), value in launch.metrics.items():
        state = re.match(r"Stall (.+)", name) or re.search(r"issue_stalled_(\w+?)(?:_not_issued|_per_|\.|$)", name)
        if state:
            states[state[1].lower().replace("_", " ")] = value
    top = max(states, key=lambda s: states[s], default="")
    return top if top and states[top] > 0 else ""


def _kernel(name: str, launches: Sequence[_Launch], total_ns: float) -> Kernel:
    def mean(*names: str) -> float | None:
        pairs = [(v, x.ns or 1.0) for x in launches if (v := x.get(*names, unit="%")) is not None]
        return sum(v * w for v, w in pairs) / sum(w for _, w in pairs) if pairs else None

    compute, memory = mean("Compute (SM) Throughput", "Compute (SM) [%]"), mean("Memory Throughput", "Memory [%]")
    registers = [r for x in launches if (r := x.get("Registers Per Thread")) is not None]
    longest = max(launches, key=lambda x: (bool(x.stall), x.ns))
    time_ns = sum(x.ns for x in launches)
    return Kernel(name, len(launches), time_ns, time_ns / total_ns if total_ns else 0.0, _bound(compute, memory),
                  compute, memory, mean("Achieved Occupancy"), mean("Theoretical Occupancy"),
                  int(max(registers)) if registers else None, _spills(launches), longest.stall,
                  bool(SETUP.search(name)))


def _bound(compute: float | None, memory: float | None) -> str:
    if compute is None or memory is None:
        return "unknown"
    if max(compute, memory) < BUSY:
        return "latency"
    return "memory" if memory >= compute else "compute"


def _spills(launches: Iterable[_Launch]) -> float | None:
    for names in (("Local Memory Spilling Requests",), SPILLS):
        found = [v for x in launches for n in names if (v := x.get(n)) is not None]
        if found:
            return sum(found)
    return None


def _warnings(kernels: Sequence[Kernel], launches: Sequence[_Launch]) -> list[str]:
    said = []
    if all(k.setup for k in kernels):
        said.append(f"the capture holds only set-up kernels ({len(launches)} launches of fills, copies and the like); "
                    "the solver ran after the capture's end: widen it (--ncu-launch-count) or name its kernel "
                    "(--ncu-kernel-name)")
    if all(k.bound == "unknown" for k in kernels):
        said.append("no throughput was counted (n/a or NaN): this ncu or driver gives no counters for this GPU")
    return said


# ------------------------------------------------------------ for people


def table(summary: Summary) -> str:
    """Kernels by time, one a line."""
    head = ("kernel", "launches", "time", "share", "bound", "compute", "memory", "occupancy", "regs", "spills",
            "top stall")
    lines = [head] + [(
        k.name if len(k.name) <= 60 else k.name[:28] + "..." + k.name[-29:], str(k.launches),
        f"{k.total_ns / 1e3:.1f} µs", f"{100 * k.share:.0f} %", k.bound, _pct(k.compute_pct), _pct(k.memory_pct),
        f"{_pct(k.occupancy_pct)} of {_pct(k.occupancy_limit_pct)}", "-" if k.registers is None else str(k.registers),
        "-" if k.spills is None else f"{k.spills:.0f}", k.stall or "-") for k in summary.kernels]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    left = (0, 4, len(head) - 1)
    return "\n".join("  ".join(c.ljust(w) if i in left else c.rjust(w)
                               for i, (c, w) in enumerate(zip(line, widths, strict=True))).rstrip() for line in lines)


def _pct(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} %"


def show(folder: Path, title: str) -> Summary:
    """Summarise a folder's ncu-details.csv: print it, and keep it as summary.json beside it."""
    summary = summarise((folder / "ncu-details.csv").read_text(encoding="utf-8", errors="replace"))
    (folder / "summary.json").write_text(json.dumps(asdict(summary), indent=1) + "\n", encoding="utf-8")
    print(f"{title}\n{table(summary)}\n")
    for warning in summary.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return summary


# ------------------------------------------------------------ a run here


def profile(file: Path, case: Case, folder: Path) -> None:
    """Run one call of the submission on one case under ncu into folder: profile.ncu-rep, ncu-details.csv.

    Clocks are left alone (`--clock-control none`). Raises UserError (exit 3; 1 where the submission itself fails).
    """
    ncu = shutil.which("ncu")
    if not ncu:
        raise UserError("ncu (Nsight Compute) is not on PATH", "install NVIDIA's CUDA toolkit or Nsight Compute; "
                        f"for the leaderboard's own profiler: scripts/profile {file}", EXIT_CANNOT_RUN)
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "profile.ncu-rep"
    _ncu([ncu, "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all",
          "--launch-count", str(LAUNCHES), *(w for s in SECTIONS for w in ("--section", s)),
          "--metrics", ",".join(SPILLS), "--force-overwrite", "--export", str(report),
          sys.executable, str(ROOT / "harness" / "profiled.py"), str(file), json.dumps(asdict(case))], file, case)
    if not report.exists():
        raise UserError(f"{file.name} on {case.label}: Nsight Compute captured no kernel",
                        f"./kit check {file} --case '{case.ident}'", EXIT_CANNOT_RUN)
    details = _ncu([ncu, "--import", str(report), "--csv", "--page", "details", "--print-details", "all"], file, case)
    (folder / "ncu-details.csv").write_text(details, encoding="utf-8")


def _ncu(command: list[str], file: Path, case: Case) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                              errors="replace", timeout=1200)
    except subprocess.TimeoutExpired:
        raise UserError(f"{file.name} on {case.label}: no profile within 1200 s", "take a smaller case",
                        EXIT_CANNOT_RUN) from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr + done.stdout
    own = re.search(r"^wrong: .*", said, re.M)
    if own:
        raise UserError(own[0], f"./kit check {file} --case '{case.ident}'", EXIT_WRONG)
    error = re.search(r"==ERROR== (.*)", said)
    what = error[1].strip() if error else (said.strip().splitlines() or [f"status {done.returncode}"])[-1]
    advice = "allow it for this user: nvidia.com/ERR_NVGPUCTRPERM" if "ERR_NVGPUCTRPERM" in said else \
        "hardware counters may be closed in this container or runtime; scripts/profile uses the leaderboard's profiler"
    raise UserError(f"ncu on {case.label}: {what}", advice, EXIT_CANNOT_RUN)


def run(args: argparse.Namespace) -> int:
    file = args.file.resolve()
    if not file.is_file():
        raise UserError(f"{args.file}: no such file", "./kit profile submissions/v00_geqrf.py --case '#7'", EXIT_USAGE)
    cases = select(load_task().benchmarks, args.case)
    folder = results.RUNS_DIR.parent / "profiles" / f"{results.new_session()}-{file.stem}"
    for case in cases:
        print(f"profiling {file.name} on {case.label}", file=sys.stderr)
        profile(file, case, folder / case.ident)
        summary = show(folder / case.ident, f"{file.name} on {case.label}")
        if sum(k.launches for k in summary.kernels) >= LAUNCHES:
            print(f"warning: the capture ends at {LAUNCHES} launches; the table holds nothing after them",
                  file=sys.stderr)
    print(f"saved: {folder}", file=sys.stderr)
    return EXIT_OK


def register(verbs: Any) -> None:
    p = verbs.add_parser("profile", help="Nsight Compute on one call of a submission, summarised by kernel",
                         description="Run one call of a submission under Nsight Compute (ncu) and list its kernels by "
                                     "time, with what bounds each. Times under ncu are for shares, not for ranking.",
                         epilog="example: ./kit profile submissions/v00_geqrf.py --case '#7'",
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", type=Path, metavar="FILE")
    p.add_argument("--case", action="append", required=True, metavar="C", help="a ranked case: '#7', b640-n512-mixed")
    p.set_defaults(run=run)
