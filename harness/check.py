"""`./kit check`: lint, then the 22 tests with the contest's seeds, with secret seeds, and the probes."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from harness.cases import load_task, select
from harness.errors import EXIT_CANNOT_RUN, EXIT_OK, EXIT_WRONG, UserError
from harness.results import Run
from harness.show import Progress, table, warn

INTERPRETED_N = 176  # a few seconds a matrix in Triton's interpreter, which walks every element in Python


def register(verbs: Any) -> None:
    p = verbs.add_parser(
        "check", help="lint a submission, then run the contest's tests on it",
        description="Lint each FILE, then run the 22 tests with the contest's seeds, once more with secret seeds, and "
                    "batches that catch decisions taken for a whole batch from a part of it.",
        epilog="example: ./kit check submissions/v01_compact_wy.py --case mixed --dump bad.pt")
    p.add_argument("files", nargs="+", type=Path, metavar="FILE")
    p.add_argument("--case", action="append", default=[], metavar="C",
                   help="only the cases that C names: '#7', a label, or words of one (512, mixed); may be repeated")
    p.add_argument("--dump", type=Path, metavar="PT", help="save input and output of the first wrong case (torch.load)")
    p.add_argument("--lint", action="store_true", help="lint only (needs no torch)")
    p.add_argument("--limit", type=float, metavar="S", help="seconds a case may take (default: the contest's 240)")
    p.set_defaults(run=run)


def existing(files: list[Path]) -> list[Path]:
    """Raises UserError for a file that is not there."""
    for f in files:
        if not f.is_file():
            raise UserError(f"{f}: no such file", "name a submission, for example submissions/v00_geqrf.py")
    return files


def lint_file(path: Path, out: Any = None) -> bool:
    """Print the findings; True where none is an error."""
    from harness.lint import lint
    findings = lint(path)
    for f in findings:
        print(f"{path}:{f.line}:{f.col}: {f.rule} {f.severity}: {f.message}" + (f"\n  next: {f.fix}" if f.fix else ""),
              file=out or sys.stdout)
    return not any(f.severity == "error" for f in findings)


def margins(run: Run) -> list[str]:
    """Worst scaled residuals as text: factor, orthogonality, column-wise."""
    return [f"{run.margin[k]:.3g}" if k in run.margin else "-" for k in ("factor", "orth", "column")]


def complain(run: Run, path: Path, index: int | None) -> None:
    """One case's failure on stdout: what, where, and the command that shows it again."""
    first, *rest = run.message.splitlines() or [""]
    print(f"{run.status}: {run.file} on {run.case}: {first}")
    for line in rest:
        print(f"    {line}")
    if index is not None:
        print(f"  next: ./kit check {path} --case '#{index}' --dump bad.pt")


def run(args: argparse.Namespace) -> int:
    existing(args.files)
    clean = {f: lint_file(f) for f in args.files}
    if args.lint:
        return EXIT_OK if all(clean.values()) else EXIT_WRONG
    tests = select(load_task().tests, args.case)
    fine = all(clean.values())
    for path in args.files:
        fine &= check_file(path, tests, dump=args.dump, limit_s=args.limit)
    return EXIT_OK if fine else EXIT_WRONG


def check_file(path: Path, tests: list[Any], dump: Path | None = None, limit_s: float | None = None,
               at_most: int | None = None) -> bool:
    """All passes of one file, batches cut to at_most; prints a table and what failed. True where all passed."""
    from harness.bench import check
    from harness.compilecheck import compile_check
    from harness.evaluate import Outcome
    from harness.machine import device_kind
    progress = Progress()
    index = {c.label: c.index for c in tests}

    def save(run: Run, outcome: Outcome) -> None:
        nonlocal dump
        if dump and outcome.failing:
            import torch
            torch.save(dict(zip(("A", "H", "tau"), outcome.failing, strict=True)) | {"case": run.spec}, dump)
            warn(f"saved A, H and tau of {run.case} in {dump}")
            dump = None

    compiled = compile_check(path, progress) if device_kind() == "cpu" else []
    runs: dict[str, list[Run]] = {}
    for seeds, probe in (("contest", False), ("secret", True)):
        runs[seeds] = check(path, tests, seeds=seeds, probe=probe, at_most=at_most, on_run=lambda r: None,
                            limit_s=limit_s, keep_failing=save, progress=progress)
    small = [c for c in tests if c.n <= INTERPRETED_N]
    if device_kind() == "cpu" and small and "import triton" in path.read_text(encoding="utf-8"):
        runs["interpreted"] = check(path, small, at_most=1, interpret=True, on_run=lambda r: None, progress=progress)
    progress.clear()
    contest = {r.case: r for r in runs["contest"]}
    secret = {r.case: r for r in runs["secret"] if r.case in contest}
    cut = f"  (cut to b{at_most})"
    rows = [[r.case + cut * r.cut, r.status, secret[r.case].status, *(f"{a} / {b}" for a, b in zip(
        margins(r), margins(secret[r.case]), strict=True))] for r in contest.values()]
    print(table(["case", "contest", "secret", "factor (20)", "orth (100)", "column (100)"], rows))
    bad = [r for rs in runs.values() for r in rs if not r.ok]
    for r in bad:
        complain(r, path, index.get(r.case))
    extra = [r for r in runs["secret"] if r.case not in contest]
    for line in compiled:
        print(line)
    if "interpreted" in runs:
        right = sum(r.ok for r in runs["interpreted"])
        print(f"{path.name}: {right} of {len(small)} tests of n up to {INTERPRETED_N} pass in Triton's interpreter, "
              "one matrix each; the others ran without Triton")
    where = "" if device_kind() == "cuda" else " on the CPU"
    print(f"{path.name}{where}: {sum(r.ok for r in contest.values())} of {len(contest)} tests pass, "
          f"{sum(r.ok for r in secret.values())} of {len(secret)} with secret seeds, "
          f"{sum(r.ok for r in extra)} of {len(extra)} probes")
    if any(r.status == "infra" for r in bad):
        raise UserError("the harness could not run some cases", "see above", EXIT_CANNOT_RUN)
    return not bad and not any("failed" in line for line in compiled)
