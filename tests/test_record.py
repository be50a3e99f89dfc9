"""record and tables: evidence from saved runs, and the two generated tables."""
import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from fake_runs import H200, session

from harness import pick, record
from harness.compare import compare, register
from harness.errors import UserError
from harness.header import read_header, with_result
from harness.record import make_record, read_record
from harness.results import append_runs, file_sha, read_runs

ROOT = Path(__file__).resolve().parent.parent

HEADER = '''#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""{stem} {what}.

Algorithm  geqr2 panel (nb=32) -> larft
           -> larfb on the trailing columns
Precision  FP32
Shapes     all
Parent     {parent}
Result     see records/
Bound by   the panel: many launches
"""
{code}
'''
FILES = {"v00_geqrf": ("none", "what torch does", "x = 1"),
         "v01_wy": ("v00_geqrf", "compact WY: panels", "x = 1\ny = 2"),
         "v02_panel": ("v01_wy.py, the panel of it", "one launch a panel", "x = 1\n" * 4)}
SPEED = {"v00_geqrf.py": 1.0, "v01_wy.py": 0.5, "v02_panel.py": 0.1}


@pytest.fixture
def tree(tmp_path):
    """submissions/ with three versions, a README with markers, one session in which all three ran interleaved."""
    (tmp_path / "submissions").mkdir()
    for stem, (parent, what, code) in FILES.items():
        (tmp_path / "submissions" / f"{stem}.py").write_text(
            HEADER.format(stem=stem.split("_")[0], parent=parent, what=what, code=code))
    (tmp_path / "README.md").write_text("# kit\n<!-- table:results -->\n<!-- /table:results -->\nend\n")
    measure(tmp_path)
    return tmp_path


def measure(tree, name="20261130-030000-aaaa", files=FILES, factor=lambda file, case: SPEED[file], **fields):
    runs = session([f"{f}.py" for f in files], rounds=6, name=name, factor=factor,
                   shas={f"{f}.py": file_sha(tree / "submissions" / f"{f}.py") for f in files}, **fields)
    append_runs(tree / "runs" / f"{name}.jsonl", runs)
    return runs


def make(tree, stem, idea="fewer launches"):
    return make_record(tree / "submissions" / f"{stem}.py", idea, runs_dir=tree / "runs", records=tree / "records")


def test_a_record_holds_the_exact_file_and_raw_runs_of_parent_file_and_baseline(tree):
    measured = (tree / "submissions" / "v02_panel.py").read_bytes()
    folder = make(tree, "v02_panel")
    assert folder.name == "2026-11-30_v02_panel"
    assert (folder / "submission.py").read_bytes() == measured
    runs = read_runs(folder / "runs.jsonl")
    assert list(dict.fromkeys(r.file for r in runs)) == ["v01_wy.py", "v02_panel.py", "v00_geqrf.py"]
    raw = {(r.file, r.case, r.round): r.samples_ns for r in read_runs(tree / "runs" / "20261130-030000-aaaa.jsonl")}
    assert {(r.file, r.case, r.round): r.samples_ns for r in runs} == raw
    back = read_record(folder)
    assert (back.own.file, back.parent.file, back.baseline.file) == ("v02_panel.py", "v01_wy.py", "v00_geqrf.py")
    text = (folder / "README.md").read_text()
    for part in ("Idea: fewer launches", "the panel: many launches", "## Cost", "Kept: the geometric mean is faster",
                 "## Surprises", "| b640 n512 mixed |"):
        assert part in text, part


def test_the_result_line_is_filled_and_nothing_else_changes(tree):
    file = tree / "submissions" / "v01_wy.py"
    before = file.read_text().splitlines()
    make(tree, "v01_wy")
    after = file.read_text().splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert len(changed) == 1 and changed[0][0] == "Result     see records/"
    score = pick.score(read_record(tree / "records" / "2026-11-30_v01_wy").own) / 1e3
    assert changed[0][1] == f"Result     geomean {score:.1f} µs, 12/12 pass, NVIDIA H200, records/2026-11-30_v01_wy"


def test_compare_reads_a_record_as_parent_against_file(tree):
    folder = make(tree, "v02_panel")
    sides = pick.pick([str(folder)], runs_dir=tree / "none", records=tree / "records")
    assert [s.name for s in sides] == ["v01", "v02"]
    other = make(tree, "v01_wy")
    assert [s.name for s in pick.pick([str(other), str(folder)])] == ["v01", "v02"]


def test_what_was_not_measured_as_it_stands_is_not_recorded(tree):
    file = tree / "submissions" / "v02_panel.py"
    file.write_text(file.read_text() + "# one more line\n")
    with pytest.raises(UserError, match="changed since it was last measured") as e:
        make(tree, "v02_panel")
    assert "./kit bench" in e.value.next_step and "v01_wy.py" in e.value.next_step
    assert not (tree / "records").exists()


def test_a_name_means_the_bytes_that_stand_there(tree, capsys, monkeypatch):
    file, other = tree / "submissions" / "v02_panel.py", tree / "submissions" / "v01_wy.py"
    old = file.read_bytes()
    file.write_bytes(old + b"# tried\n")
    measure(tree, "20261130-040000-bbbb", t="2026-11-30T04:00:00Z")
    file.write_bytes(old)  # and taken back
    where = {"runs_dir": tree / "runs", "records": tree / "records"}
    assert [s.last.session for s in pick.pick([str(other), str(file)], **where)][1] == "20261130-030000-aaaa"
    make(tree, "v02_panel")  # the Result line is new, the code is not
    assert pick.pick([str(file)], **where)[0].sha in pick.current_shas(file, tree / "records")
    file.write_bytes(old + b"# another\n")
    monkeypatch.setattr("harness.results.RUNS_DIR", tree / "runs")
    monkeypatch.setattr("harness.pick.RECORDS_DIR", tree / "records")
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    args = parser.parse_args(["compare", str(other), str(file)])
    assert args.run(args) == 0
    assert "v02_panel.py has changed since these runs" in (err := capsys.readouterr().err) and "v01_wy" not in err


def test_a_file_is_recorded_beside_its_parent_or_not_at_all(tree):
    (tree / "runs" / "20261130-030000-aaaa.jsonl").unlink()
    measure(tree, "s1", ["v01_wy"])
    measure(tree, "s2", ["v02_panel"])
    with pytest.raises(UserError, match=r"not measured beside its parent v01_wy\.py: they share no round"):
        make(tree, "v02_panel")
    (tree / "runs" / "s2.jsonl").unlink()
    measure(tree, "s3", ["v02_panel"], device=H200 | {"driver": "1"})
    with pytest.raises(UserError, match=r"device\.driver: 580\.1 and 1"):
        make(tree, "v02_panel")


def test_a_record_is_never_overwritten_nor_left_half_made(tree, monkeypatch):
    make(tree, "v01_wy")
    measure(tree, "20261130-040000-bbbb", t="2026-11-30T04:00:00Z")  # with its new Result line
    with pytest.raises(UserError, match="a record is not overwritten"):
        make(tree, "v01_wy")
    monkeypatch.setattr(record, "_readme", lambda *a: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make(tree, "v02_panel")
    assert [p.name for p in (tree / "records").iterdir()] == ["2026-11-30_v01_wy"]
    assert "see records/" in (tree / "submissions" / "v02_panel.py").read_text()


def test_a_first_version_has_no_parent(tree):
    text = (make(tree, "v00_geqrf") / "README.md").read_text()
    assert "No parent: a first version" in text and "| b20 n32 dense |" in text


def judged(factor, more, spoil=None, rounds=12):
    runs = session(rounds=rounds, noise=0.001, factor=lambda f, i: factor(i) if f == "v02_b.py" else 1.0)
    for r in runs:
        if spoil and r.file == "v02_b.py" and spoil in r.case:
            r.status = "wrong"
    return record.judge(compare(*pick.group(runs)), more)


def test_a_version_is_kept_only_if_it_is_worth_its_lines():
    assert judged(lambda i: 0.9, more=200)[0] == "Kept"
    assert judged(lambda i: 0.97, more=900)[0] == "Rejected"  # 3 % for 900 lines
    assert judged(lambda i: 1.0, more=0)[0] == "Rejected"
    assert judged(lambda i: 0.5, more=0, spoil="mixed")[0] == "Rejected"
    assert judged(lambda i: 0.9 if i == 3 else 1.0, more=10)[0] == "Kept"  # one case, at no other's cost
    assert judged(lambda i: {3: 0.97, 4: 1.05}.get(i, 1.0), more=0)[0] == "Rejected"
    assert judged(lambda i: 0.9, more=0, rounds=1)[0] == "Undecided"


def test_surprises_name_what_went_against_the_total_and_thin_margins():
    runs = session(rounds=12, noise=0.001, factor=lambda f, i: 1 if "v01" in f else 1.2 if i == 0 else 0.5)
    for r in runs:
        if r.case == "b640 n512 mixed":
            r.margin = {"factor": 14.5, "orth": 3.0}
    found = record.surprises(compare(*pick.group(runs)))
    assert len(found) == 2 and "b20 n32 dense is slower (+2" in found[0] and "14.5" in found[1]


# ---------------------------------------------------------------- headers

def test_a_header_is_read_without_running_the_file(tree):
    h = read_header(tree / "submissions" / "v02_panel.py")
    assert h.title == "v02 one launch a panel." and h.parent == "v01_wy"
    assert h.fields["Algorithm"] == "geqr2 panel (nb=32) -> larft -> larfb on the trailing columns"
    assert h.fields["Bound by"] == "the panel: many launches"
    assert read_header(tree / "submissions" / "v00_geqrf.py").parent == ""
    (tree / "x.py").write_text("def (")
    assert read_header(tree / "x.py").title == ""


@pytest.mark.parametrize("file", sorted((ROOT / "submissions").glob("v[0-9]*.py")), ids=lambda p: p.stem)
def test_every_submission_has_the_fields_that_record_needs(file):
    h = read_header(file)
    assert h.title.startswith(file.stem.split("_")[0]) and {"Parent", "Result", "Bound by"} <= h.fields.keys()
    assert with_result(file.read_bytes(), "x") is not None


def test_result_with_continuation_lines_is_replaced_whole():
    assert with_result(b'"""t\n\nResult     a,\n           b\nBound by   c\n"""', "new") == \
        b'"""t\n\nResult     new\nBound by   c\n"""'
    assert with_result(b'"""no field"""', "new") is None


# ---------------------------------------------------------------- scripts/tables.py

@pytest.fixture
def tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "scripts" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_generated_from_records_and_stale_ones_are_named(tree, tables, capsys):
    for stem in FILES:
        make(tree, stem)
    assert tables.main(["--check"], tree) == 1
    err = capsys.readouterr().err
    assert "stale: submissions/README.md" in err and "stale: README.md" in err
    assert tables.main([], tree) == 0 and tables.main(["--check"], tree) == 0
    ladder = (tree / "submissions" / "README.md").read_text()
    rows = {line.split(" | ")[0].strip("| "): line for line in ladder.splitlines() if line.startswith("| v0")}
    assert list(rows) == ["v00_geqrf", "v01_wy", "v02_panel"]
    assert "| -50" in rows["v01_wy"] and "faster" in rows["v01_wy"] and "| 2x |" in rows["v01_wy"]
    assert "| -80" in rows["v02_panel"] and "2026-11-30_v02_panel" in rows["v02_panel"]
    readme = (tree / "README.md").read_text()
    assert readme.startswith("# kit\n") and readme.endswith("<!-- /table:results -->\nend\n")
    assert "v02_panel | speed-up" in readme and readme.count("| b640") == 4 and "**10x**" in readme
    (tree / "submissions" / "v03_new.py").write_text(HEADER.format(stem="v03", parent="none", what="w", code=""))
    assert tables.main(["--check"], tree) == 1


def test_cards_are_not_mixed_and_the_later_of_two_records_counts(tree, tables):
    make(tree, "v01_wy")
    measure(tree, "20261201-030000-cccc", device={"name": "NVIDIA B200", "torch": "2.11.0"}, t="2026-12-01T03:00:00Z",
            factor=lambda f, i: SPEED[f] / 7)
    make(tree, "v01_wy")
    text = tables.ladder(tree)
    assert text.index("## NVIDIA B200") < text.index("## NVIDIA H200") and text.count("| v01_wy | compact") == 2
    measure(tree, "20261202-030000-dddd", device=H200, t="2026-12-02T03:00:00Z", factor=lambda f, i: SPEED[f] / 3)
    make(tree, "v01_wy")
    assert "2026-12-02_v01_wy" in (text := tables.ladder(tree)) and "2026-11-30_v01_wy" not in text


def test_a_file_that_fails_a_case_has_no_score_and_is_not_the_best(tree, tables):
    runs = read_runs(tree / "runs" / "20261130-030000-aaaa.jsonl")
    for r in runs:
        if r.file == "v02_panel.py" and r.case == "b8 n2048 dense":
            r.status, r.samples_ns = "wrong", []
    (tree / "runs" / "20261130-030000-aaaa.jsonl").unlink()
    append_runs(tree / "runs" / "a.jsonl", runs)
    for stem in FILES:
        make(tree, stem)
    assert "| 11/12 | - |" in tables.ladder(tree)
    assert "v01_wy | speed-up" in tables.results(tree)


def test_a_file_that_ran_some_cases_only_is_not_the_best(tree, tables):
    runs = read_runs(tree / "runs" / "20261130-030000-aaaa.jsonl")
    (tree / "runs" / "20261130-030000-aaaa.jsonl").unlink()
    append_runs(tree / "runs" / "a.jsonl", [r for r in runs if r.file != "v02_panel.py" or "n512" in r.case])
    for stem in FILES:
        make(tree, stem)
    assert "(4 cases)" in tables.ladder(tree)
    assert "v01_wy | speed-up" in tables.results(tree)


def test_the_result_line_says_what_the_record_holds_not_what_ran_elsewhere(tree):
    measure(tree, "20261130-060000-cccc", files=["v01_wy"], t="2026-11-30T06:00:00Z", factor=lambda f, i: 3.0)  # alone
    folder = make(tree, "v01_wy")
    score = pick.score(read_record(folder).own) / 1e3
    assert f"geomean {score:.1f} µs" in (tree / "submissions" / "v01_wy.py").read_text()
    assert {r.session for r in read_record(folder).own.benchmarks} == {"20261130-030000-aaaa"}


def test_a_session_of_many_files_gives_each_its_rung_while_the_file_stands_as_it_ran(tree, tables):
    make(tree, "v01_wy")
    folder = tree / "records" / "2026-11-30_ladder"
    folder.mkdir()
    append_runs(folder / "runs.jsonl", measure(tree, "20261130-050000-bbbb", t="2026-11-30T05:00:00Z"))
    rows = {line.split(" | ")[0].strip("| "): line for line in tables.ladder(tree).splitlines() if "| v0" in line}
    assert "2026-11-30_v01_wy" in rows["v01_wy"], "a record of its own comes first"
    assert "2026-11-30_ladder" in rows["v02_panel"] and "| -80" in rows["v02_panel"]
    file = tree / "submissions" / "v02_panel.py"
    file.write_text(file.read_text() + "y = 3\n")
    assert "| v02_panel | one launch a panel | v01_wy |" in tables.ladder(tree).split("## Not recorded yet")[1]


def test_a_file_without_a_record_has_its_rung_where_most_cases_of_it_ran_beside_its_parent(tree, tables):
    make(tree, "v02_panel")  # holds v00, v01 and v02 on all cases
    folder = tree / "records" / "2026-12-01_ladder"
    folder.mkdir()
    later = measure(tree, "20261201-050000-bbbb", t="2026-12-01T05:00:00Z")
    append_runs(folder / "runs.jsonl", [r for r in later if "n512" in r.case])
    alone = tree / "records" / "2026-12-02_alone"
    alone.mkdir()
    latest = measure(tree, "20261202-050000-cccc", files=["v01_wy"], t="2026-12-02T05:00:00Z")
    append_runs(alone / "runs.jsonl", latest)
    rows = {line.split(" | ")[0].strip("| "): line for line in tables.ladder(tree).splitlines() if "| v0" in line}
    assert "2026-11-30_v02_panel" in rows["v00_geqrf"] and "12/12" in rows["v00_geqrf"]
    assert "2026-11-30_v02_panel" in rows["v01_wy"] and "| -50" in rows["v01_wy"]
    assert "Not recorded yet" not in tables.ladder(tree)


def test_rungs_are_sorted_by_number(tree, tables):
    for name in ("v100_a", "v99_b", "v9_c"):
        (tree / "submissions" / f"{name}.py").write_text(HEADER.format(stem=name, parent="none", what="w", code=""))
    text = tables.ladder(tree)
    assert text.index("| v9_c ") < text.index("| v99_b ") < text.index("| v100_a ")


def test_notes_without_runs_are_no_record_and_missing_markers_are_said(tree, tables, capsys):
    (tree / "records" / "2026-11-30_dev").mkdir(parents=True)
    assert "No version" in tables.results(tree)
    (tree / "README.md").write_text("# none\n")
    assert tables.main([], tree) == 2
    assert "table:results" in capsys.readouterr().err


def test_the_script_runs_on_its_own():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "tables.py", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--check" in done.stdout
