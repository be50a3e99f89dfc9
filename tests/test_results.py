"""Runs on disk: what a crash leaves is read up to the torn line, and nothing measured is lost."""
import json
import math
import subprocess
import sys

import pytest

from harness.cases import ROOT
from harness.errors import UserError
from harness.results import Run, append_runs, differs, geomean, new_session, read_runs, saved_runs


def run(**fields):
    return Run(**{"file": "v01.py", "sha": "ab", "case": "b20 n32 dense", "spec": "batch: 20; n: 32; cond: 1; seed: 1",
                  "status": "pass", "samples_ns": [1.0, 3.0], "device": {"name": "X", "driver": "1"}, **fields})


def test_round_trip(tmp_path):
    path = tmp_path / "a.jsonl"
    append_runs(path, [run()])
    append_runs(path, [run(round=1, status="wrong", samples_ns=[])])
    first, second = read_runs(path)
    assert first == run() and first.ok and first.mean_ns == 2.0
    assert not second.ok and math.isnan(second.mean_ns)
    assert all(json.loads(line)["v"] == 1 for line in path.read_text().splitlines())


def test_a_torn_last_line_costs_itself_alone(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    append_runs(path, [run(), run(round=1)])
    path.write_bytes(path.read_bytes()[:-30])
    assert [r.round for r in read_runs(path)] == [0]
    assert f"{path}:2: not a run" in capsys.readouterr().err
    append_runs(path, [run(round=2)])  # the next line does not join the torn one
    assert [r.round for r in read_runs(path, warn=False)] == [0, 2]


def test_files_that_hold_no_run(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_runs(tmp_path / "nope.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(UserError, match="holds no run"):
        read_runs(tmp_path / "empty.jsonl")
    (tmp_path / "newer.jsonl").write_text('{"v": 99}\n')
    with pytest.raises(UserError, match="newer kit"):
        read_runs(tmp_path / "newer.jsonl")


def test_a_full_disk_is_said_in_one_line():
    with pytest.raises(UserError, match="could not save results: No space left") as e:
        from pathlib import Path
        append_runs(Path("/dev/full"), [run()])
    assert e.value.exit_code == 3


@pytest.mark.parametrize("change, says", [
    ({}, ""), ({"protocol": "contest"}, "protocol: strict and contest"), ({"cut": True}, "cut: False and True"),
    ({"device": {"name": "X", "driver": "2"}}, "device.driver: 1 and 2"), ({"task": "t2"}, "task:  and t2")])
def test_what_cannot_be_compared_is_named(change, says):
    assert differs(run(), run(**change)) == says


def test_sessions_sort_by_time(tmp_path):
    assert new_session() != new_session()
    for name in ("20260101-000000-aaaa", "20270101-000000-aaaa"):
        append_runs(tmp_path / f"{name}.jsonl", [run()])
    assert [p.stem[:4] for p in saved_runs(tmp_path)] == ["2027", "2026"]


def test_geomean():
    assert geomean([1.0, 100.0]) == pytest.approx(10.0)
    assert math.isnan(geomean([]))


def test_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None\nfrom harness.cli import parser\nparser()"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
