"""compare: the statistics against tables and closed forms, their error rate by simulation, verdicts, formats."""
import argparse
import csv
import dataclasses
import io
import json
import math
import random
import re
import subprocess
import sys
import time

import pytest
from fake_runs import H200, TASK, session

from harness import compare as tool
from harness import noise, pick, render, stats
from harness.compare import VERDICTS, compare, decided, default_rounds, rounds_needed
from harness.errors import UserError
from harness.pick import group, name_apart
from harness.results import append_runs, geomean


def pair(runs, **options):
    base, new = name_apart(group(runs))
    return compare(base, new, **options)


def by_case(comparison):
    return {r.case: r for r in comparison.rows}


LABELS = [c.label for c in TASK.benchmarks]


# ---------------------------------------------------------------- statistics against an outside authority

@pytest.mark.parametrize(("level", "df", "table"), [  # Student's t, two-sided, as printed in any statistics book
    (0.05, 1, 12.706), (0.05, 2, 4.303), (0.05, 9, 2.262), (0.01, 10, 3.169), (0.001, 3, 12.924), (0.05, 120, 1.980),
    (0.01, 7, 3.499), (0.001, 30, 3.646)])
def test_t_quantiles_are_those_of_the_tables(level, df, table):
    assert stats.t_quantile(level, df) == pytest.approx(table, abs=6e-4)


@pytest.mark.parametrize("t", [0.1, 1.0, 5.0, 300.0])
def test_t_tail_has_its_closed_forms(t):
    assert stats.t_two_sided(t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(t), abs=1e-12)  # Cauchy
    assert stats.t_two_sided(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-12)
    if t < 6:
        assert stats.t_two_sided(t, 100_000) == pytest.approx(math.erfc(t / math.sqrt(2)), abs=1e-5)  # normal


def test_paired_and_welch_agree_with_worked_examples():
    sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]  # Student 1908, difference of two drugs: t 4.0621, df 9
    e = stats.paired(sleep)
    assert (e.mean / e.error, e.df, e.p) == (pytest.approx(4.0621, abs=1e-4), 9, pytest.approx(0.002833, abs=1e-6))
    one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    w = stats.apart(one, two)  # R: t.test(extra ~ group, sleep): t = -1.8608, df = 17.776
    assert (w.mean / w.error, w.df) == (pytest.approx(-1.8608, abs=1e-4), 17)


def test_holm_stops_at_the_first_that_fails():
    n = len(stats.LOOKS) + 1

    def with_p(p):  # an estimate that has this p-value
        return stats.Estimate(stats.t_quantile(p, 9), 1.0, 9)

    # at 0.05: 0.01 <= 0.05/4, 0.013 <= 0.05/3, 0.03 > 0.05/2, so 0.04 <= 0.05 is not looked at
    result = stats.holm([with_p(p / n) for p in (0.04, 0.01, 0.03, 0.013)])
    assert [significant for significant, _ in result] == [False, True, False, True]


# ---------------------------------------------------------------- the error rate that the docstring states

def bench(rng, spread, most=12, **how):
    """What ./kit bench does: rounds until all is decided, at most `most`."""
    runs = []
    for number in range(most):
        runs += session(rounds=1, first=number, noise=spread, rng=rng, **how)
        if decided(runs):
            break
    return pair(runs)


@pytest.mark.parametrize("spread", [0.03, 0.003])
def test_a_file_against_its_copy_is_never_called_faster_or_slower(spread):
    rng = random.Random(20261130)
    called = sum(bool(bench(rng, spread).verdicts() & {"faster", "slower"}) for _ in range(200))
    assert called <= stats.ALPHA * 200


def test_a_planted_two_percent_on_one_case_is_found_at_half_a_percent_of_noise():
    rng, found = random.Random(7), 0
    for _ in range(50):
        c = bench(rng, 0.005, factor=lambda file, case: 0.98 if (file, case) == ("v02_b.py", 3) else 1.0)
        found += by_case(c)[LABELS[3]].verdict == "faster"
        assert not {r.verdict for r in c.rows if r.case != LABELS[3]} & {"faster", "slower"}
    assert found >= 49


def test_bench_stops_early_only_when_all_is_decided():
    how = {"noise": 0.001, "factor": lambda file, case: 0.5 if file == "v02_b.py" else 1}
    fast = session(rounds=3, **how)
    assert decided(fast) and rounds_needed(fast) == 0
    assert not decided(fast + session(rounds=1, first=3, **how))  # four rounds are none of the looks
    near = {"v01_a.py": 1.0, "v02_b.py": 0.5, "v03_c.py": 0.505}  # far from the first, one percent from each other
    assert not decided(session(list(near), rounds=3, noise=0.002, factor=lambda f, i: near[f]))
    assert decided(session(rounds=2, protocol="contest", name="c") + fast)  # of the protocol at hand
    loud = session(rounds=3, noise=0.03)
    assert not decided(loud) and rounds_needed(loud) > 0
    assert not decided(session(("v01_a.py",), rounds=3))  # one file: nothing to decide


# ---------------------------------------------------------------- verdicts

def test_size_and_noise_must_both_be_passed():
    def change(by, spread, rounds=12):
        c = pair(session(rounds=rounds, noise=spread, factor=lambda f, i: by if f == "v02_b.py" else 1.0, seed=3))
        return {r.verdict for r in c.rows}

    assert change(0.95, 0.002) == {"faster"}
    assert change(1.05, 0.002) == {"slower"}
    assert change(0.995, 0.0002) == {"same"}  # certain, and too small to matter
    assert change(1.0, 0.002) == {"same"}
    assert change(1.0, 0.05) == {"unclear"}


def test_unclear_says_how_many_rounds_settle_it():
    c = pair(session(rounds=8, noise=0.006, seed=5))
    add = max(r.add_rounds for r in [*c.rows, c.total])
    assert add > 0 and all((r.add_rounds > 0) == (r.verdict == "unclear") for r in c.rows)
    later = pair(session(rounds=8 + 2 * add, noise=0.006, seed=5))  # the spread was an estimate: twice as many do
    assert "unclear" not in later.verdicts()
    assert pair(session(rounds=1)).rows[0].add_rounds == stats.LOOKS[0] - 1


def test_broken_fixed_missing():
    runs = session(rounds=4)
    for r in runs:
        bad = {"v01_a.py": (LABELS[1], LABELS[2]), "v02_b.py": (LABELS[0], LABELS[2])}[r.file]
        if r.case in bad:
            r.status, r.message, r.samples_ns = "wrong", "factor residual 31.2, allowed 20", []
    runs = [r for r in runs if not (r.file == "v02_b.py" and r.case == LABELS[3])]
    rows = by_case(c := pair(runs))
    assert [rows[LABELS[i]].verdict for i in range(4)] == ["broken", "fixed", "broken", "missing"]
    assert "31.2" in rows[LABELS[0]].reason
    assert c.common == 8 and not c.score
    assert {"2 cases broken", "1 case fixed", "1 case missing"} <= set(c.notes)


def test_a_second_try_is_said():
    runs = session(rounds=4)
    again = next(r for r in runs if r.file == "v02_b.py" and r.case == LABELS[0] and r.round == 2)
    again.message = "a first try was refused: late"
    elsewhere = session(("v01_a.py",), rounds=1, name="other")  # a session that they do not share
    for run in elsewhere:
        run.message = "a first try was refused: elsewhere"
    runs += elsewhere
    c = pair(runs)
    rows = by_case(c)
    assert rows[LABELS[0]].verdict in ("same", "unclear") and rows[LABELS[0]].rounds == 4
    assert {r.case: r.reason for r in c.rows if r.reason} == {LABELS[0]: f"v02_b.py: {again.message}"}
    assert f"{LABELS[0]}: {rows[LABELS[0]].verdict}: v02_b.py: {again.message}" in render.terminal([c])
    both = next(r for r in runs if r.file == "v01_a.py" and r.case == LABELS[0] and r.round == 3)
    both.message = again.message
    assert by_case(pair(runs))[LABELS[0]].reason == f"v01_a.py: {again.message}; v02_b.py: {again.message}"


def test_one_wrong_round_breaks_a_case_and_the_harness_own_failure_does_not():
    runs = session(rounds=4)
    wrong = next(r for r in runs if r.file == "v02_b.py" and r.case == LABELS[0] and r.round == 2)
    wrong.status, wrong.message = "wrong", "residual"
    lost = next(r for r in runs if r.file == "v02_b.py" and r.case == LABELS[1] and r.round == 2)
    lost.status, lost.samples_ns = "infra", []
    rows = by_case(pair(runs))
    assert rows[LABELS[0]].verdict == "broken" and "1 of 4" in rows[LABELS[0]].reason
    assert rows[LABELS[1]].verdict in ("same", "unclear") and rows[LABELS[1]].rounds == 3


@pytest.mark.parametrize(("field", "value", "says"), [
    ("device", H200 | {"driver": "590.2"}, "device.driver: 580.1 and 590.2"),
    ("device", H200 | {"name": "NVIDIA B200"}, "device.name: NVIDIA H200 and NVIDIA B200"),
    ("task", "other", "task"), ("protocol", "contest", "protocol: strict and contest"), ("where", "popcorn", "where")])
def test_what_cannot_be_compared_is_refused_by_name(field, value, says):
    runs = session(rounds=4, noise=0.0005, factor=lambda f, i: 0.5 if f == "v02_b.py" else 1)
    for r in runs:
        if r.file == "v02_b.py":
            setattr(r, field, value)
    c = pair(runs)
    assert {r.verdict for r in c.rows} == {"incomparable"} == c.verdicts() and c.total.change is None
    assert says in c.rows[0].reason
    assert {r.verdict for r in pair(runs, anyway=True).rows} == {"faster"}


def test_batches_cut_differently_are_not_compared():
    runs = session(rounds=3, cases=[3])
    for r in runs:
        r.cut = True
        if r.file == "v02_b.py":
            r.spec = r.spec.replace("batch: 640", "batch: 33")
    assert "640" in pair(runs).rows[0].reason and pair(runs).rows[0].verdict == "incomparable"


def test_sessions_apart_need_a_larger_difference():
    def apart(by):
        return pair(session(("v01_a.py",), rounds=12, drift=0, name="s1")
                    + session(("v02_b.py",), rounds=12, drift=0, name="s2", seed=9, factor=lambda f, i: by))
    c = apart(0.97)
    assert not c.interleaved and c.rows[0].won is None
    assert not c.verdicts() & {"faster", "slower"}
    assert {r.verdict for r in apart(0.5).rows} == {"faster"}


def test_times_changes_shares_and_the_geometric_mean_belong_together():
    c = pair(session(rounds=8, factor=lambda f, i: 0.9 if (f, i) == ("v02_b.py", 0) else 1.0))
    for r in c.rows:
        assert r.new_ns / r.base_ns - 1 == pytest.approx(r.change)
    total = c.total.change
    assert math.prod(1 + r.share for r in c.rows) == pytest.approx(1 + total)
    assert total == pytest.approx(geomean(r.new_ns for r in c.rows) / geomean(r.base_ns for r in c.rows) - 1)
    assert c.score and c.total.won is not None


def test_failed_tests_and_absent_cases_make_it_no_score():
    runs = session(rounds=3, cases=[0, 1])
    failed = dataclasses.replace(runs[-1], mode="test", protocol="contest", status="wrong", samples_ns=[], session="t")
    c = pair([*runs, failed])
    assert c.notes == ["10 of 12 cases not run", "v02 fails 1 of 1 tests"]


# ---------------------------------------------------------------- noise floor

def test_noise_floor_is_derived_kept_and_measured_again_when_the_machine_changes(tmp_path):
    runs = session(("v00_geqrf.py", "v00_copy.py"), rounds=10, noise=0.001, seed=4,
                   shas={"v00_geqrf.py": "a", "v00_copy.py": "a"}, factor=lambda f, i: 1.03 if "copy" in f else 1.0)
    found = noise.derive(runs)
    assert found.floor(LABELS[0]) == pytest.approx(0.03, abs=0.004)  # systematic, so rounds do not help
    noise.write(found, tmp_path)
    assert noise.read(H200, "strict", TASK.sha, tmp_path) == found
    assert noise.read(H200 | {"driver": "590"}, "strict", TASK.sha, tmp_path) is None
    assert noise.read(H200, "contest", TASK.sha, tmp_path) is None
    assert noise.read(H200, "strict", "another", tmp_path) is None
    real = session(rounds=12, noise=0.001, factor=lambda f, i: 0.98 if f == "v02_b.py" else 1.0)
    assert {r.verdict for r in pair(real).rows} == {"faster"}
    assert {r.verdict for r in pair(real, noise=found).rows} == {"same"}  # 2 % is under this machine's 3 %


def test_noise_floor_wants_two_names_of_one_file():
    with pytest.raises(UserError, match="two names of one file"):
        noise.derive(session(rounds=3))


def test_default_rounds_follow_the_machine():
    def aa(spread):
        return noise.derive(session(("a.py", "b.py"), rounds=20, noise=spread, shas={"a.py": "x", "b.py": "x"}))
    quiet, loud = default_rounds(aa(0.0005)), default_rounds(aa(0.05))
    assert quiet < default_rounds(None) < loud == stats.LOOKS[-1]


# ---------------------------------------------------------------- which runs a name means

@pytest.fixture
def saved(tmp_path):
    """Directory of runs: an old session of v01 on another driver, one with v01 and v02, one with v03 alone."""
    runs = tmp_path / "runs"
    append_runs(runs / "20261128-000000-a.jsonl", session(
        ("v01_a.py", "v03_c.py"), rounds=3, name="old", device=H200 | {"driver": "570"}, t="2026-11-28T00:00:00Z"))
    append_runs(runs / "20261129-000000-b.jsonl", session(
        rounds=3, name="mid", t="2026-11-29T00:00:00Z", factor=lambda f, i: 0.5 if "v02" in f else 1))
    append_runs(runs / "20261130-000000-c.jsonl", session(
        ("v04_d.py",), rounds=3, name="new", t="2026-11-30T00:00:00Z", factor=lambda f, i: 0.7))
    return runs


def find(saved, *names):
    return pick.pick(names, runs_dir=saved, records=saved.parent / "records")


def test_a_name_means_the_newest_runs_that_all_share(saved):
    assert [s.last.session for s in find(saved, "submissions/v01_a.py", "v02_b")] == ["mid", "mid"]
    assert [s.last.session for s in find(saved, "v01", "v03")] == ["old", "old"]  # v03 ran on the old driver only
    assert [s.last.session for s in find(saved, "v02", "v03")] == ["mid", "old"]  # nothing shared: incomparable
    with pytest.raises(UserError, match="no saved run of v09"):
        find(saved, "v09")


def test_best_is_computed_from_runs_and_is_another_file(saved):
    assert [s.name for s in find(saved, "v01", "best")] == ["v01", "v02"]
    assert [s.name for s in find(saved, "v02", "best")] == ["v02", "v04"]
    runs = session(("v05_wrong.py",), rounds=3, name="w", factor=lambda f, i: 0.01)
    runs[5].status = "wrong"
    append_runs(saved / "20261130-000001-d.jsonl", runs)
    assert [s.name for s in find(saved, "v01", "best")] == ["v01", "v02"]


def test_changed_bytes_are_another_file_and_copies_in_records_count_once(saved):
    again = session(("v01_a.py",), rounds=3, name="mid2", shas={"v01_a.py": "new"}, t="2026-11-29T10:00:00Z")
    append_runs(saved / "20261129-100000-d.jsonl", again)
    append_runs(saved.parent / "records" / "x" / "runs.jsonl", again)
    (side,) = find(saved, "v01")
    assert side.sha == "new" and len(side.benchmarks) == len(again)


def test_rounds_of_several_sessions_are_put_together(saved):
    append_runs(saved / "20261129-000001-e.jsonl", session(
        rounds=5, name="more", t="2026-11-29T00:00:01Z", factor=lambda f, i: 0.5 if "v02" in f else 1))
    c = compare(*find(saved, "v01", "v02"))
    assert c.rows[0].rounds == 8 and c.interleaved


def test_a_file_of_runs_stands_for_all_files_in_it_and_names_tell_them_apart(saved):
    assert [s.name for s in find(saved, str(saved / "20261129-000000-b.jsonl"))] == ["v01", "v02"]
    for protocol in ("strict", "contest"):
        append_runs(saved / "both.jsonl", session(("v01_a.py",), rounds=1, protocol=protocol))
    assert [s.name for s in find(saved, str(saved / "both.jsonl"))] == ["v01_a@strict", "v01_a@contest"]
    assert [s.name for s in find(saved, f"{saved / 'both.jsonl'}@contest")] == ["v01"]


def test_local_stands_beside_remote(saved):
    append_runs(saved / "20261130-900000-p.jsonl", session(
        ("v01_a.py", "v02_b.py"), rounds=1, name="p", where="popcorn", protocol="contest", device={"name": "B200"},
        t="2026-11-30T09:00:00Z"))
    assert [s.last.where for s in find(saved, "v01", "v02")] == ["local", "local"]
    assert [s.last.where for s in find(saved, "v01@popcorn", "v02@popcorn")] == ["popcorn", "popcorn"]
    c = compare(*find(saved, "v01", "v01@popcorn"))
    assert c.verdicts() == {"incomparable"} and c.rows[0].base_ns and c.rows[0].new_ns
    assert [s.name for s in find(saved, "v01", "v01@popcorn")] == ["v01_a@strict", "v01_a@contest"]
    with pytest.raises(UserError, match="no saved run of v04@popcorn") as e:
        find(saved, "v04@popcorn")
    assert e.value.next_step == "scripts/submit v04"


# ---------------------------------------------------------------- formats

def widest():
    """Every column as wide as it gets: slow files, factors, unclear with a number, large residuals."""
    return session(("a_long_name_without_number.py", "v02_b.py"), rounds=12, noise=0.03,
                   factor=lambda f, i: {3: 400, 4: 123.45}.get(i, 1.0) if f == "v02_b.py" else 1.0,
                   margin={"factor": 11.2, "orth": 43.5})


def test_terminal_fits_100_columns_and_cuts_no_number():
    c = pair(widest())
    text = render.terminal([c])
    assert max(len(line) for line in text.splitlines() if not line.startswith("  next: ")) <= 100
    for r in c.rows:  # every figure stands there whole
        for cell in render.cells(r):
            assert cell in text


def test_several_files_get_an_overview_that_fits():
    files = [f"v0{i}_x.py" for i in range(8)]
    sides = name_apart(group(session(files, rounds=3)))
    text = render.terminal([compare(sides[0], s) for s in sides[1:]])
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"v0{i}" in text for i in range(8))


def test_in_the_overview_each_pair_keeps_to_its_own_common_cases():
    runs = [r for r in session(["v00_a.py", "v01_b.py", "v02_c.py"], rounds=3, drift=0,
                               factor=lambda f, i: {"v00_a.py": 1.0, "v01_b.py": 0.5}.get(f, 0.25))
            if r.file != "v02_c.py" or r.case in LABELS[:2]]
    sides = name_apart(group(runs))
    header, *rows, last = render.overview([compare(sides[0], s) for s in sides[1:]])
    assert header == ["case", "v00", "v01", "v02"] and len(rows) == 12 and rows[5][3] == "-"
    assert last[:2] == ["geomean", ""] and last[2].startswith(("-50.", "-49."))
    assert last[3].startswith(("-75.", "-74."))


def test_colour_means_better_or_worse_only():
    runs = session(rounds=8, noise=0.0005, factor=lambda f, i: 1 if "v01" in f else {0: 0.5, 1: 2.0}.get(i, 1.0))
    text = render.terminal([pair(runs)], colour=True)
    green, red = (re.findall(rf"\x1b\[{n}m\s*([^\x1b]+?)\s*\x1b", text) for n in (32, 31))
    assert "faster" in green and "slower" in red
    assert "same" not in "".join(green + red)
    assert "\x1b" not in render.terminal([pair(runs)])


def test_json_is_versioned_and_strict_and_csv_has_the_same_figures():
    runs = session(rounds=8)
    runs[0].margin = {"factor": math.inf, "orth": math.nan}
    c = pair(runs)
    data = json.loads(render.to_json([c]), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (data["kind"], data["v"]) == ("qrkit.compare", 1)
    rows = data["comparisons"][0]["rows"]
    assert [r["case"] for r in rows] == LABELS and all(r["verdict"] in VERDICTS for r in rows)
    table = list(csv.DictReader(io.StringIO(render.csv([c]))))
    assert len(table) == 13
    for line, row in zip(table, [*rows, data["comparisons"][0]["total"]], strict=True):
        assert float(line["new_ns"]) == row["new_ns"] and line["verdict"] == row["verdict"]


def test_markdown_is_a_table():
    lines = [x for x in render.markdown([pair(session(rounds=4))]).splitlines() if x.startswith("|")]
    assert len(lines) == 14 and {line.count("|") for line in lines} == {10}


# ---------------------------------------------------------------- the verb

@pytest.fixture
def kit(saved, monkeypatch):
    """Calls ./kit compare as cli.py does; nothing but `saved` is seen."""
    monkeypatch.setattr("harness.results.RUNS_DIR", saved)
    monkeypatch.setattr("harness.pick.RECORDS_DIR", saved.parent / "records")
    monkeypatch.setattr("harness.noise.NOISE_DIR", saved.parent / "noise")
    monkeypatch.setattr("harness.roofline.CEILINGS_FILE", saved.parent / "ceilings.json")

    def call(*argv):
        parser = argparse.ArgumentParser()
        tool.register(parser.add_subparsers())
        args = parser.parse_args(["compare", *argv])
        return args.run(args)
    return call


def test_fail_on_is_exit_1(kit, capsys):
    assert kit("v02", "v01", "--fail-on", "broken") == 0
    assert kit("v02", "v01", "--fail-on", "broken,slower") == 1
    assert kit("v02", "v01") == 0
    with pytest.raises(UserError, match="no such verdict") as e:
        kit("v01", "v02", "--fail-on", "worse")
    assert e.value.exit_code == 2
    assert "of floor" in capsys.readouterr().out


def test_no_argument_means_the_newest_session(kit):
    with pytest.raises(UserError, match="only v04 to compare"):
        kit()


def test_incomparable_needs_anyway(kit, capsys):
    assert kit("v02", "v03", "--fail-on", "incomparable") == 1
    assert "device.driver: 580.1 and 570" in capsys.readouterr().out
    assert kit("v02", "v03", "--anyway", "--fail-on", "incomparable") == 0


def test_a_thousand_saved_runs_take_less_than_a_second(kit, saved, capsys):
    runs = session(rounds=42, seed=2)
    for r in runs:
        r.samples_ns = r.samples_ns * 50
    for i in range(42):
        append_runs(saved / f"20261130-1{i:05d}-x.jsonl", [r for r in runs if r.round == i])
    start = time.process_time()
    assert kit("v01", "v02", "best") == 0
    assert time.process_time() - start < 1
    assert "42 rounds" in capsys.readouterr().out.replace("45 rounds", "42 rounds")


def test_it_needs_no_torch_and_answers_at_once():
    code = ("import sys, harness.compare, harness.render, harness.report, harness.record, harness.roofline\n"
            "print([m for m in ('torch', 'numpy', 'matplotlib', 'rich', 'httpx') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=TASK_ROOT).stdout.strip() == "[]"


TASK_ROOT = tool.noise_floor.ROOT
