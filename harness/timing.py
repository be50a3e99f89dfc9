"""`./kit bench`: check, then time; two or more files are interleaved case by case, and every case is saved at once."""
from __future__ import annotations

import argparse
import math
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import roofline
from harness.cases import ROOT, Case, load_task, select
from harness.check import check_file, complain, existing
from harness.errors import EXIT_OK, EXIT_WRONG, UserError
from harness.results import RUNS_DIR, Run, append_runs, file_sha, geomean, new_session, read_runs, saved_runs
from harness.show import Progress, duration, table, warn

BASELINE = ROOT / "submissions" / "v00_geqrf.py"
CPU_BATCH = 4  # matrices a test, on a CPU, before a file is timed
COPY = "itself.py"  # the name under which a file runs against itself
REUSE_GAP = 0.05  # strict over contest: below it caches and clocks explain the difference


def register(verbs: Any) -> None:
    p = verbs.add_parser(
        "bench", help="check submissions, then time them on the ranked shapes",
        description="Check each FILE, then time it on the twelve ranked shapes, v00_geqrf beside it. Two or more files "
                    "take turns case by case; with --rounds each round is a fresh process for each file.",
        epilog="example: ./kit bench submissions/v00_geqrf.py submissions/v01_compact_wy.py --case 512")
    p.add_argument("files", nargs="+", type=Path, metavar="FILE")
    p.add_argument("--case", action="append", default=[], metavar="C",
                   help="only the cases that C names: '#7', a label, or words of one (512, mixed); may be repeated")
    p.add_argument("--protocol", choices=("strict", "contest", "both"), default="strict",
                   help="strict: every timed call sees new data; contest: inputs are reused, as the contest does")
    p.add_argument("--rounds", type=int, metavar="N",
                   help="at most N rounds, each a fresh process; stops when every case is decided (default: on a GPU "
                        "with two files or more, what a verdict needs; else 1)")
    p.add_argument("--resume", action="store_true", help="go on with the last run of these files that was broken off")
    p.add_argument("--no-check", action="store_true", help="time at once (every timed output is checked all the same)")
    p.add_argument("--no-baseline", action="store_true", help="without v00_geqrf beside it")
    p.add_argument("--limit", type=float, metavar="S", help="seconds a case may take (default: the contest's 480)")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from harness import noise
    from harness.bench import measure
    from harness.compare import compare_sides, decided, default_rounds
    from harness.machine import device_kind, fingerprint
    from harness.pick import group, name_apart
    from harness.render import terminal

    cases = select(load_task().benchmarks, args.case)
    files = list(dict.fromkeys(f.resolve() for f in existing(args.files)))
    fine = True
    if not args.no_check:
        passing = [f for f in files if _checked(f, device_kind() == "cpu")]
        fine, files = passing == files, passing
        if not files:
            return EXIT_WRONG
    named = {file_sha(f) for f in files}
    if not args.no_baseline and file_sha(BASELINE) not in named:
        files = [BASELINE, *files]  # in the first round only, three repeats
    if device_kind() == "cpu":
        warn(f"{fingerprint()['name']}: no GPU; batches are cut, CPU timers, never ranked against a GPU's times")

    protocols = ("contest", "strict") if args.protocol == "both" else (args.protocol,)
    shas = {file_sha(f) for f in files}
    session, done = _broken_off(shas, protocols) if args.resume else (new_session(), [])
    path = RUNS_DIR / f"{session}.jsonl"
    have = {(r.sha, r.protocol, r.case, r.round) for r in done}
    runs: list[Run] = list(done)
    again: list[Run] = []  # of a copy of the last file: what this machine calls a difference between a file and itself
    progress = Progress()

    def keep(r: Run) -> None:
        if r.file == COPY:
            append_runs(noise.NOISE_DIR / f"{session}-itself.jsonl", [r])
            again.append(r)
            return
        append_runs(path, [r])
        runs.append(r)
        if not r.ok:
            progress.clear()
            complain(r, Path(r.file), None)

    try:
        for protocol in protocols:
            known = noise.read(fingerprint(), protocol, load_task().sha)
            rounds = args.rounds or (default_rounds(known) if len(named) > 1 and device_kind() == "cuda" else 1)
            with tempfile.TemporaryDirectory() as scratch:
                arms = files
                if known is None and rounds > 1 and not have:
                    arms = [*files, Path(shutil.copyfile(files[-1], Path(scratch) / COPY))]
                measure(arms, cases, protocol=protocol, rounds=rounds, on_run=keep, session=session,
                        skip=lambda f, case, n, protocol=protocol: (  # type: ignore[misc]
                            (file_sha(f), protocol, case, n) in have or (n > 0 and file_sha(f) not in named)),
                        stop=lambda rounds=rounds, known=known: rounds > 1 and decided(  # type: ignore[misc]
                            [r for r in runs if r.sha in named], known),
                        short=None if file_sha(BASELINE) in named else BASELINE, limit_s=args.limit, progress=progress)
    finally:
        progress.clear()
        _keep_floor(runs, again)
        for protocol in protocols:
            mine = [r for r in runs if r.protocol == protocol]
            if mine:
                print(report(mine, cases, files))
                sides = name_apart(group(r for r in mine if r.sha in named))
                if len({r.round for r in mine}) > 1 and len(sides) > 1:
                    print(terminal(compare_sides(sides)))
        if len(protocols) == 2 and runs:
            print(reuse(runs))
        if runs:
            warn(f"saved in {path}")
    return EXIT_OK if fine and all(r.ok for r in runs) else EXIT_WRONG


def _keep_floor(runs: Sequence[Run], again: Sequence[Run]) -> None:
    """The noise floor from what there is of the A/A rounds, also where they were broken off: two rounds of a case."""
    from harness import noise
    for protocol in dict.fromkeys(r.protocol for r in again):
        copies = [r for r in again if r.protocol == protocol]
        try:
            floor = noise.derive([r for r in runs if r.protocol == protocol and r.sha == copies[0].sha] + copies)
        except UserError:
            continue  # no case has two rounds: the next bench measures it
        warn(f"noise floor of this machine, {floor.file} against itself: {100 * floor.typical:.2f} % in the "
             f"middle of the cases; kept in {noise.write(floor)}")


def _checked(path: Path, on_cpu: bool) -> bool:
    """The tests; on a CPU those up to n = 512 in small batches, since each timed output is checked as well."""
    from harness.check import lint_file
    tests = [c for c in load_task().tests if not on_cpu or c.n <= 512]
    if len(tests) < len(load_task().tests):
        warn(f"{path.name}: tests above n = 512, and batches over {CPU_BATCH}, are left to ./kit check")
    return lint_file(path) and check_file(path, tests, at_most=CPU_BATCH if on_cpu else None)


def _broken_off(shas: set[str], protocols: Sequence[str]) -> tuple[str, list[Run]]:
    """The newest session on this device that timed exactly these files; a new one where there is none."""
    from harness.machine import fingerprint
    for path in saved_runs(RUNS_DIR):
        try:
            runs = [r for r in read_runs(path, warn=False) if r.mode == "benchmark" and r.where == "local"]
        except UserError:  # killed before its first case was whole
            continue
        if runs and {r.sha for r in runs} <= shas and {r.protocol for r in runs} <= set(protocols) and all(
                r.device == fingerprint() and r.task == load_task().sha for r in runs):
            warn(f"resuming {path.name}: {len(runs)} measurements are there")
            return path.stem, runs
    warn("nothing to resume: starting anew")
    return new_session(), []


def report(runs: list[Run], cases: Sequence[Case], files: Sequence[Path]) -> str:
    """One table a file: time, spread, speed-up over v00 in the same session, rates, share of the card's floor."""
    base_sha = file_sha(BASELINE)
    base = {c.label: _mean(runs, base_sha, c.label) for c in cases}
    first = runs[0]
    ceilings = roofline.ceilings(first.device["name"])
    parts = [f"{first.device['name']}, torch {first.device['torch']}, {first.protocol} protocol"]
    for f in files:
        sha = file_sha(f)
        rows, means, ratios = [], [], []
        for c in cases:
            mine = [r for r in runs if r.sha == sha and r.case == c.label]
            if not mine:
                continue
            bad = next((r for r in mine if not r.ok), None)
            samples = [s for r in mine for s in r.samples_ns]
            label = c.label + (f"  (cut to b{roofline.shape(mine[0].spec)[0]})" if mine[0].cut else "")
            if bad or not samples:
                rows.append([label, bad.status if bad else "-", *[""] * 7])
                continue
            mean = _mean(runs, sha, c.label)
            means.append(mean)
            batch, n = roofline.shape(mine[0].spec)
            speedup = base[c.label] / mean
            ratios.append(speedup)
            floor = roofline.floor_ns(batch, n, ceilings)[0] / mean if ceilings else math.nan
            rows.append([label, duration(mean), duration(min(samples)), duration(max(samples)), str(len(samples)),
                         "-" if math.isnan(speedup) else f"{speedup:.2f}x",
                         f"{roofline.flops(batch, n) / mean / 1e3:.3g}", f"{roofline.traffic(batch, n) / mean:.3g}",
                         "-" if math.isnan(floor) else f"{100 * floor:.1f} %"])
        total = f"geometric mean over {len(means)} of {len(cases)} cases: {duration(geomean(means))}"
        if ratios and not any(math.isnan(x) for x in ratios) and sha != base_sha:
            total += f", {geomean(ratios):.2f} times v00_geqrf"
        if len(means) < len(cases):
            total += "  (not a score: some cases are missing)"
        if any(r.cut for r in runs):
            total += "  (batches cut: not a score)"
        parts += ["", f.name, table(["case", "mean", "best", "worst", "runs", "speed-up", "TFLOP/s", "GB/s",
                                     "of floor"], rows), total]
    return "\n".join(parts) + "\n"


def _mean(runs: Sequence[Run], sha: str, case: str) -> float:
    """Mean over the rounds of the rounds' means; NaN where a round failed or there is none."""
    mine = [r for r in runs if r.sha == sha and r.case == case]
    return statistics.fmean(r.mean_ns for r in mine) if mine and all(r.ok for r in mine) else math.nan


def reuse(runs: Sequence[Run]) -> str:
    """Which files are slower on data they have not seen, by more than REUSE_GAP and than three standard errors."""
    lines, compared = [], 0
    for sha, case, file in sorted({(r.sha, r.case, r.file) for r in runs if r.ok}):
        times = {p: [s for r in runs if (r.sha, r.case, r.protocol) == (sha, case, p) and r.ok for s in r.samples_ns]
                 for p in ("strict", "contest")}
        if not all(times.values()):
            continue
        compared += 1
        means = {p: statistics.fmean(t) for p, t in times.items()}
        noise = sum(statistics.variance(t) / len(t) for t in times.values() if len(t) > 1) ** 0.5
        if means["strict"] - means["contest"] > max(REUSE_GAP * means["contest"], 3 * noise):
            lines.append(f"{file} lives on reused inputs on {case}: {duration(means['contest'])} on the same data, "
                         f"{duration(means['strict'])} on new data")
    if not compared:
        return "no case passed under both protocols: nothing is known of reused inputs"
    return "\n".join(lines) or "strict and contest agree on every case within the noise"
