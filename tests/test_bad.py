"""The adversarial suite: every file in tests/bad/ gets the verdict that its docstring names, and gains nothing.

verdict: one or more of results.STATUSES; `neutral` (it passes, and its trick never found an occasion: it would have
told through $TELL); `killed` (it takes the parent down, and no result of it is left).

The table of this machine:  python tests/test_bad.py [r24 ...]   (Markdown; both protocols)
"""
import ast
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
from harness import bench
from harness.bench import check, measure
from harness.cases import ROOT, Case
from harness.evaluate import Schedule
from harness.lint import lint
from harness.results import Run

FILES = sorted((Path(__file__).parent / "bad").glob("r*.py"))
SCHEDULE = Schedule(max_inputs=3, min_repeats=4, max_repeats=4, settle_s=0)


def header(path):
    """The docstring's first line, and its `key: value` lines."""
    doc = ast.get_docstring(ast.parse(path.read_text()))
    return doc.splitlines()[0], dict(line.split(": ", 1) for line in doc.splitlines()[2:] if ": " in line)


def needs_gpu(path):
    return header(path)[1].get("where") == "gpu"


def case(kind="dense"):
    return Case("benchmark", 0, f"b3 n64 {kind}", 3, 64, 1, random.getrandbits(20), kind, kind != "dense")


KILLS = """import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from harness.bench import check
from harness.cases import Case
from harness.results import append_runs
check(Path(sys.argv[2]), [Case("test", 0, "b1 n4", 1, 4, 1, 1)], on_run=lambda r: append_runs(Path(sys.argv[3]), [r]))
"""


def attack(path, protocol, scratch):
    """(verdict, message) of a file under a protocol, and what it told."""
    told = scratch / f"{path.stem}-{protocol}"
    os.environ["TELL"] = str(told)
    try:
        where = header(path)[1].get("where", "")
        if header(path)[1]["verdict"] == "killed":
            saved = scratch / "runs.jsonl"
            p = subprocess.run([sys.executable, "-c", KILLS, str(ROOT), str(path), str(saved)])
            return ("killed" if p.returncode == -9 and not saved.exists() else "pass"), "no result is left", ""
        kind = where if where in ("clustered",) else "dense"
        runs: list[Run] = measure([path], [case(kind)], protocol=protocol, schedule=SCHEDULE)
        if where == "probe":
            runs += check(path, [case()], probe=True, on_run=lambda r: None)
        bad = next((r for r in runs if not r.ok), runs[0])
        message = bad.message.splitlines()[-1] if bad.message else ""
        return bad.status, message, told.read_text() if told.exists() else ""
    finally:
        del os.environ["TELL"]


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem, marks=[pytest.mark.gpu] * needs_gpu(p)) for p in FILES])
def test_gains_nothing(path, tmp_path, monkeypatch):
    monkeypatch.setattr(bench.tempfile, "gettempdir", lambda: str(tmp_path))
    wanted = header(path)[1]["verdict"].split()
    got, message, told = attack(path, "strict", tmp_path)
    assert not told
    assert got in (["pass"] if wanted == ["neutral"] else wanted), message


def test_every_row_of_guards_has_its_file():
    """36 rows, and two ways around the clock that the list does not have: work after the call and work before it."""
    assert [p.name[:3] for p in FILES] == [f"r{i:02}" for i in range(1, 39)]


QUIET = {"r01", "r04", "r12", "r16", "r20", "r21", "r22", "r27", "r30", "r31", "r32", "r33", "r34", "r35"}


def test_lint_shows_the_signs_that_stand_in_the_text():
    """Behaviour decides; what lint can see it says. QUIET files look like honest ones, by and large."""
    silent = {p.name[:3] for p in FILES if all(f.severity == "notice" for f in lint(p))}
    assert silent <= QUIET


def table(rows):
    """Markdown: each row, lint, both protocols, on this machine."""
    from harness.machine import device_kind, fingerprint
    if not rows:
        print(f"{fingerprint()}\n\n| file | what it does | contest | strict | lint |\n|---|---|---|---|---|")
    for path in FILES:
        if (rows and path.name[:3] not in rows) or (needs_gpu(path) and device_kind() == "cpu"):
            continue
        cells = []
        for protocol in ("contest", "strict"):
            with tempfile.TemporaryDirectory() as scratch:
                got, message, told = attack(path, protocol, Path(scratch))
            found = f" (found {told.splitlines()[0]})" if told else ""
            cells.append(got + (f": {message}" if message else "") + found)
        signs = ", ".join(sorted({f.rule for f in lint(path) if f.severity != "notice"})) or "-"
        print(f"| {path.stem} | {header(path)[0]} | {cells[0]} | {cells[1]} | {signs} |".replace("\n", " "), flush=True)


if __name__ == "__main__":
    table(sys.argv[1:])
