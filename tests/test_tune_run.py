"""A run of ./kit tune on fake backends: what is on disk after a kill, what a resume measures, what a budget cuts."""
from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from pathlib import Path

import pytest

from harness import tune
from harness.cases import ROOT
from harness.errors import UserError
from harness.tune import backends, execute, grid, measure, rules
from harness.tune.backends import Visit, fake
from harness.tune.grid import Point
from harness.tune.journal import Journal, Plan, read_lines, valid_blocks, visit_key

SLOW = "fake:geqrf@delay=0.002,fake:small@delay=0.002,fake:large@delay=0.002"
MAIN = """import argparse, sys
from harness import tune
p = argparse.ArgumentParser(); tune.register(p.add_subparsers()); a = p.parse_args(["tune", *sys.argv[1:]])
sys.exit(a.run(a))"""


def kit(*argv):
    p = argparse.ArgumentParser()
    tune.register(p.add_subparsers())
    args = p.parse_args(["tune", *map(str, argv)])
    return args.run(args)


def start(*argv):
    return subprocess.Popen([sys.executable, "-c", MAIN, *map(str, argv)], cwd=ROOT, stderr=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL)


def the_run(out: Path) -> Path:
    return next(out.glob("fake-gpu-132sm/*/plan.json")).parent


def wait_for_lines(path: Path, lines: int):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} did not reach {lines} lines")


def small_plan(**changes):
    points = [Point(b, n, n) for b in (1, 40) for n in (64, 256, 512)]
    args = {"grid": "contest", "points": points,
            "backends": [fake("fake:geqrf"), fake("fake:small"), fake("fake:large")],
            "device": dict(backends.FAKE_DEVICE)}
    return Plan(**args | changes)


def run_plan(plan, folder, **options):
    said = []
    whole = measure.measure(plan, folder, options.pop("executor", execute.Serial()), options.pop("width", 1),
                            say=said.append, **options)
    return whole, said, read_lines(folder / "samples.jsonl")


# ---- TV14

def test_tv14_from_results_gives_the_same_report_byte_for_byte(tmp_path, capsys):
    assert kit("--backends", "fake", "--grid", "contest", "--out", tmp_path) == 0
    folder = the_run(tmp_path)
    before = {p.name: p.read_bytes() for p in (folder / "plots").iterdir()}
    assert {f"{x}.svg" for x in ("regret", "heat", "noise", "times", "speedup", "ecdf", "penalty")} <= before.keys()
    start_s = time.monotonic()
    assert kit("--from", folder / "results.json", "--out", tmp_path / "again" / "report.md") == 0
    assert time.monotonic() - start_s < 3
    assert (tmp_path / "again" / "report.md").read_bytes() == (folder / "report.md").read_bytes()
    assert {p.name: p.read_bytes() for p in (tmp_path / "again" / "plots").iterdir()} == before
    names = {p.name for p in folder.iterdir()}
    assert names == {"run.json", "policy.json", "plan.json", "raw.csv", "samples.jsonl.gz", "results.json", "report.md",
                     "plots", "tune.log"}
    assert json.loads((folder / "run.json").read_text())["status"] == "complete"
    assert "n <= 80: fake:small" in capsys.readouterr().out
    assert not (tmp_path / "tuned.json").exists()  # a fake device's row is for nobody


def test_tv14_kill_and_resume_gives_the_same_keys_and_identical_results(tmp_path, capsys):
    argv = ("--backends", SLOW, "--grid", "contest")
    assert kit(*argv, "--out", tmp_path / "whole") == 0
    killed = tmp_path / "killed"
    for lines in (25, 140):  # in the first block of the first pass, and later
        process = start(*argv, "--out", killed, *(["--resume"] if lines > 25 else []))
        while not list(killed.glob("fake-gpu-132sm/*/plan.json")):
            time.sleep(0.01)
        wait_for_lines(the_run(killed) / "samples.jsonl", lines)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert json.loads((the_run(killed) / "run.json").read_text())["status"] == "running"
    with open(the_run(killed) / "samples.jsonl", "ab") as f:
        f.write(b'{"kind":"block","pass":2,"blo')  # what a kill in the middle of a write leaves
    assert kit(*argv, "--out", killed, "--resume") == 0
    one, two = the_run(tmp_path / "whole"), the_run(killed)
    lines = {x: read_lines(x / "samples.jsonl.gz") for x in (one, two)}
    keys = {x: [v["key"] for line in valid_blocks(lines[x]) for v in line["visits"].values()] for x in (one, two)}
    assert len(keys[two]) == len(set(keys[two]))  # nothing is measured twice
    assert set(keys[one]) == set(keys[two])
    assert (one / "results.json").read_bytes() == (two / "results.json").read_bytes()
    assert (one / "report.md").read_bytes() == (two / "report.md").read_bytes()
    assert sum(x["kind"] == "segment" for x in lines[two]) == 3
    assert any(x["kind"] == "again" for x in lines[two])
    assert "agree" in capsys.readouterr().err


# ---- the schedule

@pytest.mark.parametrize("k", range(1, 9))
def test_latin_rows_are_balanced(k):
    rows = measure.latin_rows(k)
    assert all(sorted(r) == list(range(k)) for r in rows)
    for place in range(k):
        assert len({sum(r[place] == x for r in rows) for x in range(k)}) == 1
    pairs = [(a, b) for r in rows for a, b in itertools.pairwise(r)]
    assert len({pairs.count((a, b)) for a in range(k) for b in range(k) if a != b}) <= 1


def test_a_block_holds_all_backends_and_every_point_gets_its_first_block_first(tmp_path):
    plan = small_plan()
    whole, _, lines = run_plan(plan, tmp_path)
    blocks = [x for x in lines if x["kind"] == "block"]
    assert whole and {len(x["order"]) for x in blocks if x["block"] == 0} == {3}
    for pass_ in (1, 2):
        seen = [x["block"] for x in blocks if x["pass"] == pass_]
        assert seen == sorted(seen) and seen.count(0) == len(plan.points)
    assert [x["pass"] for x in blocks] == sorted(x["pass"] for x in blocks)  # a full traversal lies between
    firsts = [x["order"][0] for x in blocks]
    assert all(firsts.count(b.id) > 0 for b in plan.backends)
    assert len({tuple(p.key for p in plan.order(i)) for i in (1, 2)}) == 2  # freshly shuffled
    assert {x["visits"]["fake:geqrf"]["key"] for x in blocks} == {
        visit_key(p, plan.backends[0], i, j) for i in (1, 2) for p in plan.points for j in range(5)
        if any((x["point"], x["pass"], x["block"]) == (p.key, i, j) and "fake:geqrf" in x["order"] for x in blocks)}


def test_losers_get_two_samples_and_no_further_block():
    assert backends.samples_wanted(25.0, 10.0) == 2 and backends.samples_wanted(25.0, 20.0) == 3
    assert backends.samples_wanted(0.01, 0.01) == 9 and backends.samples_wanted(6.0, 6.0) == 5
    assert backends.samples_wanted(19.0, 1.0) == 3  # cheap enough to be measured in full


def test_losers_leave_the_later_blocks(tmp_path):
    plan = small_plan(points=[Point(640, 512, 512)])
    _, _, lines = run_plan(plan, tmp_path)
    blocks = [x for x in lines if x["kind"] == "block"]
    assert "fake:small" in blocks[0]["visits"] and len(blocks[0]["visits"]["fake:small"]["ms"]) <= 3
    assert all("fake:small" not in x["visits"] for x in blocks if x["block"])
    assert all("fake:large" in x["visits"] for x in blocks)


def test_settled_points_get_no_further_blocks(tmp_path):
    quiet = [fake("fake:small@noise=0"), fake("fake:large@noise=0")]
    _, _, lines = run_plan(small_plan(backends=quiet), tmp_path / "a")
    assert max(x["block"] for x in lines if x["kind"] == "block") == measure.SETTLED_BLOCKS - 1
    loud = [fake("fake:large@noise=0.05"), fake("fake:twin@noise=0.05")]
    _, _, lines = run_plan(small_plan(backends=loud), tmp_path / "b")
    assert max(x["block"] for x in lines if x["kind"] == "block") == 4


@pytest.fixture(autouse=True)
def folders(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()


def test_budget_cuts_repeats_before_points_and_is_kept(tmp_path, monkeypatch):
    now = [0.0]
    plain = backends.FakeLane.visit

    def visit(self, *args, **kwargs):
        now[0] += 1.0  # a visit takes a second
        return plain(self, *args, **kwargs)
    monkeypatch.setattr(backends.FakeLane, "visit", visit)
    plan = small_plan(backends=[fake("fake:small@noise=0.05"), fake("fake:large@noise=0.05")])
    whole, said, lines = run_plan(plan, tmp_path, budget_s=60.0, clock=lambda: now[0])  # of 120 s that all blocks take
    assert 50 < now[0] <= 62 and not whole and "budget of 1 min spent" in said[-1]
    blocks = {i: [x["block"] for x in lines if x["kind"] == "block" and x["pass"] == i] for i in (1, 2)}
    assert all(b.count(0) == len(plan.points) and 2 in b and 4 not in b for b in blocks.values())


def test_a_budget_that_ends_in_the_first_pass_keeps_the_ranked_points_and_repeats_them(tmp_path):
    points = grid.contest(132)
    clock = iter(range(10 ** 6))  # every look at the clock is a second later
    plan = Plan("contest", points, [fake("fake:small"), fake("fake:large")], device=dict(backends.FAKE_DEVICE))
    _, _, lines = run_plan(plan, tmp_path, budget_s=90.0, clock=lambda: float(next(clock)))
    by_pass = [{x["point"] for x in lines if x["kind"] == "block" and x["pass"] == i} for i in (1, 2)]
    ranked = {p.key for p in points if grid.is_ranked(p)}
    assert len(by_pass[0]) >= 12 and ranked <= by_pass[0] and by_pass[1] <= by_pass[0]


def test_the_anchor_is_timed_every_minute(tmp_path):
    clock = iter(x * 5.0 for x in range(10 ** 6))
    _, _, lines = run_plan(small_plan(), tmp_path, clock=lambda: next(clock))
    probes = [x for x in lines if x["kind"] == "probe"]
    assert len(probes) > 4 and {tuple(x["order"]) for x in probes} == {("fake:geqrf",)}


# ---- failures

def test_failures_are_recorded_and_cost_the_backend_its_point_only(tmp_path):
    plan = small_plan(backends=[fake("fake:small"), fake("fake:large@fail=wrong"), fake("fake:mid@fail=timeout")])
    _, _, lines = run_plan(plan, tmp_path)
    blocks = [x for x in lines if x["kind"] == "block"]
    failed = [v for x in blocks for v in x["visits"].values() if v["status"] != "ok"]
    assert len(failed) == 2 * len(plan.points)  # once each: neither is asked again at the same point
    assert {v["status"] for v in failed} == {"wrong", "timeout"} and all(v.get("tries", 1) == 1 for v in failed)


def test_a_crash_is_tried_again_at_once(tmp_path):
    backends._CRASHED.clear()
    _, _, lines = run_plan(small_plan(backends=[fake("fake:small@crash=1.0"), fake("fake:large")]), tmp_path)
    visits = [x["visits"]["fake:small@crash=1.0"] for x in lines if x["kind"] == "block"]
    assert all(v["status"] == "ok" for v in visits)
    assert sum(v["tries"] == 2 for v in visits) >= len(visits) - 2  # the probe took the anchor's crash upon itself


def test_resume_tries_a_timeout_again_and_not_a_wrong_answer(tmp_path, monkeypatch):
    plan = small_plan(backends=[fake("fake:small"), fake("fake:mid@fail=timeout"), fake("fake:large@fail=wrong")])
    run_plan(plan, tmp_path)
    asked = []
    plain = backends.FakeLane.visit

    def healed(self, p, seed, fastest_ms, gate):
        asked.append((self.id, p.key))
        self.params.pop("fail", None)
        return plain(self, p, seed, fastest_ms, gate)
    monkeypatch.setattr(backends.FakeLane, "visit", healed)
    run_plan(plan, tmp_path, resuming=True)
    retried = {p for name, p in asked if "timeout" in name}
    assert retried == {p.key for p in plan.points} and not [x for x in asked if "wrong" in x[0]]
    state = measure.State.of(plan, Journal(tmp_path))
    assert not [x for x in state.failed if "timeout" in x[1]]


def test_failing_backends_are_infinitely_slow_and_never_dropped(tmp_path):
    assert kit("--backends", "fake:geqrf,fake:small,fake:large@fail=wrong", "--grid", "contest", "--out", tmp_path) == 0
    r = json.loads((the_run(tmp_path) / "results.json").read_text())
    row = next(x for x in r["rules"] if x["label"] == "always fake:large@fail=wrong")
    assert row["failed"] == r["n_points"] == 34 and row["geomean"] >= 10
    assert all(p["pick"] != "fake:large@fail=wrong" for p in r["points"])
    rows = (the_run(tmp_path) / "raw.csv").read_text().splitlines()
    assert sum(",wrong," in x for x in rows) == 34 * 2 or sum(",wrong," in x for x in rows) == 34


def test_a_changed_machine_discards_what_was_measured_before(tmp_path, monkeypatch):
    plan = small_plan()
    run_plan(plan, tmp_path)
    monkeypatch.setitem(backends.FAKES, "geqrf", lambda p: 1.2)
    monkeypatch.setitem(backends.FAKES, "small", lambda p: 3.0)
    monkeypatch.setitem(backends.FAKES, "large", lambda p: 2.0)
    _, said, lines = run_plan(plan, tmp_path, resuming=True)
    assert "discarded" in said[0] and [x["segment"] for x in lines if x["kind"] == "discard"] == [0]
    assert {x["segment"] for x in valid_blocks(lines)} == {1}
    assert len({x["point"] for x in valid_blocks(lines)}) == len(plan.points)


def test_resume_refuses_another_device_and_says_which_part(tmp_path, monkeypatch):
    process = start("--backends", SLOW, "--grid", "contest", "--out", tmp_path)
    while not list(tmp_path.glob("fake-gpu-132sm/*/samples.jsonl")):
        time.sleep(0.01)
    wait_for_lines(the_run(tmp_path) / "samples.jsonl", 5)
    process.kill()
    process.wait()
    monkeypatch.setitem(backends.FAKE_DEVICE, "driver", "2")
    with pytest.raises(UserError, match="begun under another driver: 1, now 2"):
        kit("--resume", "--out", tmp_path)


def test_top_up_adds_a_backend_to_a_complete_run(tmp_path):
    assert kit("--backends", "fake:geqrf,fake:small", "--grid", "contest", "--out", tmp_path) == 0
    before = {v["key"] for line in valid_blocks(read_lines(the_run(tmp_path) / "samples.jsonl.gz"))
              for v in line["visits"].values()}
    assert kit("--backends", "fake:large", "--grid", "contest", "--out", tmp_path, "--top-up") == 0
    lines = read_lines(the_run(tmp_path) / "samples.jsonl.gz")
    keys = [v["key"] for line in valid_blocks(lines) for v in line["visits"].values()]
    assert before < set(keys) and len(keys) == len(set(keys))
    assert json.loads((the_run(tmp_path) / "results.json").read_text())["backends"] == [
        "fake:geqrf", "fake:large", "fake:small"]


# ---- executors

class Flaky(Executor):
    """Loses the machine of every third job, the first time."""

    def __init__(self):
        self.seen = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        self.seen.append(args)
        if self.seen.count(args) == 1 and len(self.seen) % 3 == 0:
            future.set_exception(BrokenExecutor("gone"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_lost_machine_costs_nothing_but_time(tmp_path):
    plain = run_plan(small_plan(), tmp_path / "a")[2]
    flaky = run_plan(small_plan(), tmp_path / "b", executor=Flaky(), width=3)[2]

    def content(lines):
        return sorted((x["pass"], x["block"], x["point"], json.dumps(x["visits"], sort_keys=True))
                      for x in lines if x["kind"] == "block")
    assert len(content(plain)) > 30
    assert content(flaky) == content(plain)


def test_a_machine_lost_again_and_again_is_recorded_as_a_crash():
    class Gone(Flaky):
        def submit(self, fn, /, *args, **kwargs):
            future: Future = Future()
            future.set_exception(BrokenExecutor("gone"))
            return future
    got = list(execute.run_all(Gone(), 2, int, ["1", "2"], lambda job, why: (job, why)))
    assert sorted(x[0] for x in got) == ["1", "2"] and "lost 3 times" in got[0][1]


def test_errors_of_the_tool_itself_are_raised():
    class Broken(Flaky):
        def submit(self, fn, /, *args, **kwargs):
            future: Future = Future()
            future.set_exception(ZeroDivisionError("ours"))
            return future
    with pytest.raises(ZeroDivisionError):
        list(execute.run_all(Broken(), 1, int, ["1"], lambda job, why: None))


def test_local_gpus_replace_a_process_that_dies():
    with execute.LocalGpus(2) as pool:
        pids = {pool.submit(os.getpid).result() for _ in range(4)}
        assert os.getpid() not in pids
        with pytest.raises(BrokenExecutor):
            pool.submit(os._exit, 1).result()
        assert {pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result() for _ in range(4)} <= {"0", "1"}


def test_cluster_of_two_workers_one_killed_in_the_middle(tmp_path):
    distributed = pytest.importorskip("distributed")
    import dask
    settings = {"distributed.dashboard.link": "", "distributed.worker.daemon": True,
                "distributed.scheduler.worker-ttl": "10s", "temporary-directory": str(tmp_path / "dask")}
    with dask.config.set(settings), distributed.LocalCluster(
            2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, resources={"GPU": 1},
            silence_logs=50) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        executor, width = execute.cluster(cluster.scheduler_address)
        assert width == 2
        victim = next(iter(client.run(os.getpid).values()))
        killed = []
        plan = small_plan(backends=[fake("fake:small@delay=0.01"), fake("fake:large@delay=0.01")])
        take = measure._Run.take

        def kill_one(self, line):
            take(self, line)
            if self.progress.done == 5 and not killed:
                killed.append(victim)
                os.kill(victim, signal.SIGKILL)
        with pytest.MonkeyPatch.context() as patch, executor:
            patch.setattr(measure._Run, "take", kill_one)
            whole, _, lines = run_plan(plan, tmp_path / "a", executor=executor, width=width)
    assert whole and killed
    blocks = [x for x in lines if x["kind"] == "block"]
    assert all(v["status"] == "ok" for x in blocks for v in x["visits"].values())
    keys = [v["key"] for x in blocks for v in x["visits"].values()]
    assert len(keys) == len(set(keys))
    alone = [x for x in run_plan(plan, tmp_path / "b")[2] if x["kind"] == "block"]
    assert {v["key"] for x in alone for v in x["visits"].values()} == set(keys)


def test_cluster_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match="needs dask and distributed") as e:
        execute.cluster("tcp://127.0.0.1:1")
    assert e.value.exit_code == 3


# ---- what a user gets wrong

@pytest.mark.parametrize("argv, text", [
    (("--passes", "1"), "without a repeat there is no noise floor"),
    (("--budget", "0"), "--budget 0: expected minutes above 0"),
    (("--backends", "nonsense"), "no backend 'nonsense'"),
    (("--backends", "fake:nonsense"), "no fake 'nonsense'"),
    (("--backends", "geqrf,fake:small"), "cannot be compared with real ones"),
    (("--check",), "--check belongs to --apply"),
    (("--resume", "--backends", "fake"), "no run there is running"),
    (("--from", "absent.json"), "absent.json"),
    (("--reanalyse", "absent.csv"), "absent.csv")])
def test_errors_are_one_line_with_the_next_step(tmp_path, argv, text):
    with pytest.raises(UserError) as e:
        kit(*argv, "--out", tmp_path)
    assert text in e.value.what and "\n" not in e.value.what and e.value.next_step


def test_quick_is_a_smoke_test_and_never_gives_a_row(tmp_path):
    assert kit("--backends", "fake", "--grid", "quick", "--out", tmp_path) == 0
    text = (the_run(tmp_path) / "report.md").read_text()
    assert "Smoke test" in text and "do not paste" in text and "no difference can be told from noise" in text
    r = json.loads((the_run(tmp_path) / "results.json").read_text())
    assert r["n_points"] == 12 and "single pass" in r["trust"]["why"][0]


def test_a_backend_may_be_limited_to_a_range_of_n(tmp_path):
    only, everywhere = backends.discover(["fake:small/64-256", "fake:large"])
    _, _, lines = run_plan(small_plan(backends=[fake("fake:geqrf"), only, everywhere]), tmp_path)
    timed = {line["point"]: set(line["visits"]) for line in lines if line["kind"] == "block"}
    assert len(timed) == 6 and all(("fake:small" in v) == ("n512" not in p) for p, v in timed.items())
    assert Plan(**(vars(small_plan()) | {"backends": [only]})).backends[0].n_range == (64, 256)


def test_no_limit_lies_beyond_what_a_backend_takes(tmp_path):
    limited = "fake:geqrf,fake:small/1-384,fake:large/513-4096"
    assert kit("--grid", "square", "--backends", limited, "--out", tmp_path) == 0
    rows = json.loads(next(tmp_path.glob("*/*/results.json")).read_text())["rule"]["rows"]
    by_name = {name: n_max for n_max, _, _, name in rows}
    assert by_name["fake:small"] <= 384 and by_name["fake:large"] == 4096
    assert rows[-1] == [None, None, 1, "fake:geqrf"]
    assert next(r[3] for r in rows if r[0] >= 512) == "fake:geqrf", "n from 385 to 512 belong to nobody else"
    a, b, c = (rules.Row(n, None, 1, name) for n, name in ((432, "a"), (624, "b"), (None, "c")))
    assert rules.within([a, b, c], {"a": (1, 384), "b": (400, 512), "c": (513, 1 << 30)}, "geqrf") == [
        replace(a, n_max=384), rules.Row(399, None, 1, "geqrf"), replace(b, n_max=512), replace(c, n_max=1 << 30),
        rules.Row(None, None, 1, "geqrf")]
    assert rules.within([a, b, c], {}, "geqrf") == [a, b, c]


def test_declared_variants_are_found_without_running_the_file(tmp_path, monkeypatch):
    (tmp_path / "v07_wide.py").write_text('TUNE_PARAMS = {"nb": [16, 32]}\nraise RuntimeError("imported")\n')
    (tmp_path / "v08_odd.py").write_text("TUNE_PARAMS = 3 + x\n")
    found = backends.discover(["v07"], tmp_path)
    assert [b.id for b in found] == ["geqrf", "sub:v07_wide", "sub:v07_wide@nb=16", "sub:v07_wide@nb=32"]
    assert found[2].params == (("nb", "16"),) and found[2].default == "sub:v07_wide"
    assert [b.id for b in backends.discover(["v07_wide@nb=32"], tmp_path)] == ["geqrf", "sub:v07_wide@nb=32"]
    with pytest.raises(UserError, match=r"v08_odd\.py:1: TUNE_PARAMS: expected a literal dict"):
        backends.discover(["v08"], tmp_path)
    assert "unsupported" in backends.STATUSES and not found[1].supports(Point(1, 64, 32))


def test_fakes_repeat_themselves_whenever_they_are_asked():
    p, b = Point(4, 256, 256), fake("fake:small")
    one = backends.FakeLane(b, 1).visit(p, 7, 1e9, True)
    assert one == backends.FakeLane(b, 1).visit(p, 7, 1e9, False)
    assert one != backends.FakeLane(b, 2).visit(p, 7, 1e9, True)
    assert Visit().to_json() == {"status": "ok", "ms": [], "tries": 1}
