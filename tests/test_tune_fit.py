"""The fit against brute force, planted truths and rivals; the report's sentences against what they claim."""
from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
import time

import numpy as np
import pytest

from harness.cases import KINDS, ROOT, load_task
from harness.errors import UserError
from harness.tune import apply, grid, refine, report, routing, rules, run, threshold, timings
from harness.tune.analyse import analyse, tidy
from harness.tune.grid import Point
from harness.tune.rules import Row, Rule
from harness.tune.score import Study
from harness.tune.timings import Table, from_times

META = {"device": {"name": "Fake GPU", "units": 132, "slug": "fake", "kind": "fake"}, "grid": "square"}


def study_of(times, points, stats="robust", **options):
    return Study(from_times(points, times, stats), 132, **{"resamples": 300} | options)


def noisy(points, models, *, noise=0.004, blocks=3, passes=2, seed=0):
    """A table of models (functions of a point) with block and pass noise."""
    rng = np.random.default_rng(seed)
    base = np.array([[math.log(f(p)) for f in models.values()] for p in points])
    logs = base[:, :, None, None] + rng.normal(0, noise, (*base.shape, passes, 1))
    return Table(list(points), list(models), logs + rng.normal(0, noise, (*base.shape, passes, blocks)), [0] * passes)


SQUARE = grid.square(132)
MODELS = {"geqrf": lambda p: 0.05 * p.batch + p.batch * p.n ** 3 / 2e9,
          "sub:a": lambda p: 0.01 + p.batch * p.n ** 3 / 4e9 * (1 + (p.n / 200) ** 2),
          "sub:b": lambda p: 0.2 + p.batch * p.n ** 3 / 2e10}


# ---- grids

def test_contest_grid_is_the_tasks_34_specs():
    task = load_task()
    assert len(grid.contest(132)) == 34 == len({p.key for p in grid.contest(132)})
    assert sorted((p.batch, p.n, p.cond, p.seed, p.case) for p in grid.contest(132)) == sorted(
        (c.batch, c.n, c.cond, c.seed, c.case) for c in task.benchmarks + task.tests)
    assert sum(map(grid.is_ranked, SQUARE)) == 12


def test_square_grid_covers_every_role_and_a_square_only_one_is_called_blind():
    assert grid.blind(SQUARE, 132) == []
    assert max(p.batch * p.n ** 2 for p in SQUARE) <= 2 ** 28
    for anchor in {(p.batch, p.n) for p in grid.quick(132)} | {(16, 1536)}:
        assert {p.case for p in SQUARE if (p.batch, p.n) == anchor} == set(KINDS)
    dense = [p for p in SQUARE if p.case == "dense" and p.cond <= 2]
    assert any("case stress has only 0 points" in x for x in grid.blind(dense, 132))


def test_memory_limit_and_its_override(monkeypatch):
    few = grid.make("square", 132, 4 << 30)
    assert 0 < len(few) < len(SQUARE) and max(p.peak_bytes for p in few) <= 0.35 * (4 << 30)
    monkeypatch.setenv("KIT_TUNE_MEMORY_GB", "140")
    assert len(grid.make("square", 132, 4 << 30)) == len(SQUARE)
    monkeypatch.setenv("KIT_TUNE_MEMORY_GB", "much")
    with pytest.raises(UserError, match="KIT_TUNE_MEMORY_GB"):
        grid.make("square", 132, 4 << 30)


@pytest.mark.parametrize("point, expected", [
    (Point(640, 512, 512, "mixed", 2), {"mixed", "case stress", "many waves"}),
    (Point(2, 4096, 4096, "dense", 1), {"dense", "under-filled"}),
    (Point(40, 176, 176, "dense", 1), {"dense", "unaligned"}),
    (Point(100, 512, 512, "dense", 4), {"scaled", "case stress", "one wave"}),
    (Point(16, 512, 512, "band"), {"structured", "case stress", "under-filled"})])
def test_tags(point, expected):
    assert grid.tags(point, 132) == expected


def test_w_is_an_exact_integer_root():
    assert Point(1, 10 ** 9 + 7, 10 ** 9 + 7).w == 10 ** 9 + 7 and Point(1, 200, 50).w == 100


# ---- segments

@pytest.mark.parametrize("seed", range(20))
def test_dynamic_programming_finds_what_brute_force_finds(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([32, 64, 128, 256, 512, 1024], 30).astype(float)
    cost = rng.random((30, 3))
    found = rules.segment(values, cost, 3)
    distinct = sorted(set(values))
    for s, cuts in found.items():
        total = sum(cost[(values > (cuts[k - 1][0] if k else 0)) & (values <= last), x].sum()
                    for k, (last, x) in enumerate(cuts))
        best = math.inf
        for inner in itertools.combinations(distinct[:-1], s - 1):
            ends = [*inner, distinct[-1]]
            best = min(best, sum(cost[(values > low) & (values <= high)].sum(0).min()
                                 for low, high in zip([0, *ends[:-1]], ends, strict=True)))
        assert total == pytest.approx(best)


def test_the_number_of_segments_is_not_more_than_the_data_support():
    s = Study(noisy(SQUARE, MODELS), 132, resamples=300)
    everything = np.ones(len(SQUARE), bool)
    count, cv = rules.choose_count(s, everything, [0, 1, 2])
    assert count == 2 and cv[2] < cv[1]
    one = Study(noisy(SQUARE, {"x": MODELS["sub:b"], "y": lambda p: 2 * MODELS["sub:b"](p)}), 132, resamples=300)
    assert rules.choose_count(one, everything, [0, 1])[0] == 1


def test_rows_hold_in_order_and_limits_lie_between_measured_values():
    s = Study(noisy(SQUARE, MODELS), 132, resamples=300)
    rows = rules.fit_segments(s, np.ones(len(SQUARE), bool), 2, [0, 1, 2])
    assert [r.backend for r in rows] == ["sub:a", "sub:b"] and rows[1].n_max is None
    sizes = sorted({p.n for p in SQUARE})
    below = max(n for n in sizes if n <= rows[0].n_max)
    assert below < rows[0].n_max < sizes[sizes.index(below) + 1] or rows[0].n_max == below
    rule = Rule((Row(64, 16, 1, "sub:a"), Row(512, None, 64, "geqrf"), Row(None, None, 1, "sub:b")))
    picks = rule.picks(s)
    assert [s.table.backends[x] for x in picks] == [rule.backend(p) for p in SQUARE]
    assert rule.backend(Point(40, 176, 176)) == "sub:b" and rule.backend(Point(40, 256, 256)) == "geqrf"


def test_a_variant_replaces_its_default_only_for_more_than_one_per_cent():
    points = [Point(b, n, n) for b in (1, 2, 4, 8) for n in (64, 128)]
    for gain, expected in ((0.995, "sub:a"), (0.97, "sub:a@nb=32")):
        s = study_of({"sub:a": [[1.0, 1.0]] * 8, "sub:a@nb=32": [[gain, gain]] * 8}, points)
        assert [r.backend for r in rules.fit_segments(s, np.ones(8, bool), 1, [0, 1])] == [expected]


def test_rules_never_see_the_kind_of_input():
    assert {f.name for f in Row.__dataclass_fields__.values()} == {"n_max", "batch_max", "multiple_of", "backend"}
    a, b = Point(40, 512, 512, "dense", 2), Point(40, 512, 512, "rankdef")
    for f in threshold.features(True, 132).values():
        assert f(a) == f(b)


# ---- refinements

def test_a_needed_batch_split_is_adopted_and_a_needless_one_is_not():
    split = {"x": lambda p: 1.0 if p.batch < 30 else 1.5, "y": lambda p: 1.4 if p.batch < 30 else 1.0}
    for models, adopted in ((split, True), ({"x": lambda p: 1.0, "y": lambda p: 1.3}, False)):
        s = Study(noisy(SQUARE, models), 132, resamples=300)
        plain = Rule(tuple(rules.fit_segments(s, np.ones(len(SQUARE), bool), 1, [0, 1])))
        row = next(r for r in refine.refinements(s, 1, [0, 1], plain) if r["name"] == "batch split")
        assert row["justified"] is adopted and (adopted or "no leverage" in row["reasons"])
        if adopted:
            assert row["rows"] == [[None, 19, 1, "x"], [None, None, 1, "y"]] or row["rows"][0][1] in range(20, 40)


def test_unaligned_sizes_get_their_own_backend_where_it_pays():
    models = {"x": lambda p: 1.0 if p.n <= 64 or p.n % 64 == 0 else 2.0, "y": lambda p: 1.4}
    s = Study(noisy(SQUARE, models), 132, resamples=300)
    rule = Rule(tuple(rules.unaligned(s, np.ones(len(SQUARE), bool), 1, [0, 1])))
    assert [rule.backend(Point(1, n, n)) for n in (32, 96, 128, 176, 512)] == ["x", "y", "x", "y", "x"]


def test_held_out_folds_never_score_what_they_fitted_on():
    s = Study(noisy(SQUARE, MODELS), 132, resamples=100)
    folds = [*rules.group_folds([p.n for p in SQUARE]), *rules.group_folds([p.batch for p in SQUARE]),
             *rules.stratified_folds(s)]
    assert all(not (train & test).any() and (train | test).all() for train, test in folds)
    by_n = rules.group_folds([p.n for p in SQUARE])
    sizes = [{p.n for p, t in zip(SQUARE, test, strict=True) if t} for _, test in by_n]
    assert all(len(x) == 1 for x in sizes)
    seen = []
    rules.held_out(s, folds[:3], lambda st, train: seen.append(train) or Rule.always("geqrf"))
    assert all((a == b[0]).all() for a, b in zip(seen, folds, strict=False))


# ---- routing

def test_routing_recovers_a_planted_window_and_clause():
    points = grid.rect(20)
    truth = routing.Boundary(16, 128, 20480, 1, 768, 4)
    heavy = truth.heavy(points)
    rng = np.random.default_rng(1)
    cpu = np.zeros(len(points)) + rng.normal(0, 0.01, len(points))
    gpu = np.where(heavy, -0.7, 0.9) + rng.normal(0, 0.01, len(points))
    fit = routing.Routing(points, gpu, cpu, np.minimum(gpu, cpu), "k")
    start = time.monotonic()
    found = fit.fit()
    assert time.monotonic() - start < 20
    assert (found.heavy(points) == heavy).all()
    assert fit.of(found)["geomean"] == pytest.approx(1.0, abs=1e-9)
    assert fit.of(fit.fit_without_large())["geomean"] > fit.of(found)["geomean"]
    assert fit.of(routing.CPU_ONLY)["over10"] == int(heavy.sum())


def test_share_and_cpu_are_fitted_where_they_were_timed():
    points = [Point(b, n, n) for b in (1, 4, 16, 64, 256, 1024) for n in (64, 128, 256, 512)]
    times = {"geqrf": [1.0 if p.batch * p.n >= 4096 else 3.0 for p in points], "sub:x": [2.0] * 24,
             "cpu": [2.0 if p.batch * p.n >= 4096 else 1.0 for p in points],
             "share:cpu+geqrf": [0.6 if p.batch >= 256 else None for p in points]}
    r = analyse(from_times(points, {k: [None if t is None else [t, t] for t in v] for k, v in times.items()}), META,
                resamples=200)
    assert r["routing"]["share_min_batch"] == 256
    assert 0 < r["routing"]["cpu_fastest"] < 24
    assert r["routing"]["chosen"]["geomean"] <= r["routing"]["cpu_always"]["geomean"]
    text = report.render(r)
    assert "Sharing a batch between two engines pays from batch 256." in text and "HEAVY iff" in text


# ---- scores

def test_a_failed_pick_costs_ten_or_the_worst_measured():
    points = [Point(1, 64, 64), Point(2, 64, 64)]
    s = study_of({"x": [1.0, None], "y": [30.0, 1.0]}, points)
    x = s.score(np.array([0, 0]), False)
    assert (x["failed"], x["worst"]) == (1, pytest.approx(30.0))
    s = study_of({"x": [1.0, None], "y": [2.0, 1.0]}, points)
    assert s.score(np.array([0, 0]), False)["worst"] == pytest.approx(10.0)


def test_combining_passes_and_runs():
    points = [Point(1, 64, 64)]
    logs = np.log(np.array([[[[1.2], [1.0], [3.0], [2.0], [5.0], [4.0]]]]))
    assert math.exp(Table(points, ["x"], logs, [0, 0, 1, 1, 2, 2], "compat").lt[0, 0]) == pytest.approx(2.0)
    assert math.exp(Table(points, ["x"], logs, [0, 0, 1, 1, 2, 2]).lt[0, 0]) == pytest.approx(math.sqrt(6.0))
    # noise stays within a run
    ratios = timings.Noise.of(Table(points, ["x"], logs, [0, 0, 1, 1, 2, 2], "compat")).all
    assert sorted(ratios) == [pytest.approx(1.2), pytest.approx(1.25), pytest.approx(1.5)]


def test_the_bootstrap_interval_of_a_mean_regret_has_its_coverage():
    covered, points = 0, [Point(b, 64, 64) for b in range(1, 101)]
    for seed in range(100):
        rng = np.random.default_rng(seed)
        z = np.exp(np.abs(rng.normal(0.1, 0.1, 100)))  # y is always slower, by |N(0.1, 0.1)|
        s = study_of({"x": [1.0] * 100, "y": list(z)}, points, seed=seed, stats="robust")
        low, high = s.score(np.ones(100, int))["ci"]
        truth = math.exp(0.1 * math.erf(1 / math.sqrt(2)) + 0.1 * math.sqrt(2 / math.pi) * math.exp(-0.5))
        covered += low <= truth <= high
    assert 88 <= covered <= 100


def test_runs_that_disagree_are_flagged():
    points = [Point(b, 64, 64) for b in range(1, 21)]
    rng = np.random.default_rng(0)
    logs = rng.normal(0, 0.01, (20, 2, 4, 1))
    assert not timings.disagreement(Table(points, ["x", "y"], logs, [0, 0, 1, 1]))["flagged"]
    logs[:, :, 2:] += 0.3
    assert timings.disagreement(Table(points, ["x", "y"], logs, [0, 0, 1, 1]))["flagged"]


# ---- trust

@pytest.mark.parametrize("change, why", [
    ({"probes": [[1.0, "0"], [1.3, "0"]]}, "the anchor drifted by a factor of 1.300"),
    ({"conditions": [{"load": 9.0, "cpus": 4}] * 3}, "the median load average is 9.0 on 4 cores"),
    ({"conditions": [{"load": 0.1, "cpus": 4, "throttle": "hw_slowdown"}] * 3}, "throttled during 3 of 3 blocks")])
def test_untrustworthy_runs_give_no_row(change, why):
    r = analyse(noisy(SQUARE[::3], MODELS), META | {"device": META["device"] | {"kind": "gpu"}} | change, resamples=100)
    assert why in r["trust"]["why"][0] and why in r["ktuned_entry"]["indicative_only"][0]
    assert "do not paste" in report.render(r)


def test_two_probes_on_two_gpus_are_no_drift():
    r = analyse(noisy(SQUARE[::6], MODELS), META | {"probes": [[1.0, "0"], [1.3, "1"], [1.0, "0"]]}, resamples=100)
    assert r["trust"]["trustworthy"]


# ---- results, report

@pytest.fixture(scope="module")
def results():
    return analyse(noisy(SQUARE, MODELS), META, resamples=300)


def test_analysis_is_deterministic_and_holds_no_infinity(results):
    again = analyse(noisy(SQUARE, MODELS), META, resamples=300)
    assert json.dumps(results, allow_nan=False) == json.dumps(again, allow_nan=False)
    assert tidy({"a": [1 / 3, math.inf, np.float64(2), True]}) == {"a": [0.333333333333, None, 2.0, True]}


def test_report_finds_the_crossover_and_says_so_in_computed_sentences(results):
    text = report.render(json.loads(json.dumps(results)))
    assert [r[3] for r in results["rule"]["rows"]] == ["sub:a", "sub:b"]
    assert "b*n^3" in text and "Rule: sub:b iff n >= T, else sub:a." in text
    cost = {r["threshold"]: r["excess_pct"] for r in results["cost_of_missing"]}
    classes = results["equivalence_classes"]
    at = next(i for i, g in enumerate(classes) if results["fit"]["best"] in g)
    low, high = cost[classes[at - 1][0]], cost[classes[at + 1][0]]
    said = "erring low is the cheaper side" in text
    assert said is (low < high)
    for key in ("noise", "folds", "refinements", "leverage", "surface", "routing", "contest"):
        assert report.render({k: v for k, v in results.items() if k != key})  # a missing key omits a section


@pytest.mark.parametrize("points", [1, 2, 3, 9])
@pytest.mark.parametrize("stats", ["robust", "compat"])
@pytest.mark.parametrize("models", [["geqrf"], ["geqrf", "sub:b"], ["sub:a", "sub:b", "geqrf"]])
def test_however_little_was_measured_there_is_a_report(tmp_path, points, stats, models):
    table = noisy(SQUARE[::31][:points], {m: MODELS[m] for m in models})
    table.stats = stats
    table.L[0, 0] = np.nan  # and one backend failed at one point
    if points == len(models) == 1:
        with pytest.raises(UserError, match="nothing has a time"):
            analyse(table, META, resamples=20)
        return
    r = analyse(table, META, resamples=20)
    run.write_results(r, tmp_path)
    assert (tmp_path / "report.md").read_text().startswith("# Which backend serves which shape")
    assert "No row is exported" in (tmp_path / "report.md").read_text()


def test_the_wrong_form_of_rule_is_called_structural():
    work = {"x": lambda p: 1.0, "y": lambda p: (3e6 / (p.batch * p.n ** 2)) ** 0.5}
    r = analyse(noisy(SQUARE, work), META, resamples=300)
    assert r["features"][0]["feature"] == "b*n^2" and "STRUCTURAL WARNING: b*n^2" in report.render(r)


def test_an_idle_limit_is_called_so():
    s = Study(noisy(SQUARE, MODELS), 132, resamples=100)
    rule = Rule((Row(16, None, 1, "sub:a"), Row(None, None, 1, "sub:b")))
    from harness.tune.analyse import _leverage
    rows = _leverage(s, Rule((Row(100, 0, 1, "sub:a"), *rule.rows[1:])), rule.picks(s))
    assert {x["points"] for x in rows} == {0}
    assert "No leverage: n <= 100" in "\n".join(report._leverage({"leverage": rows}))


def test_the_incumbent_stays_on_noise_and_goes_when_it_loses(results):
    near = [[results["rule"]["rows"][0][0] + 1, None, 1, "sub:a"], [None, None, 1, "sub:b"]]
    kept = analyse(noisy(SQUARE, MODELS), META, resamples=100, incumbent=near)
    assert kept["rule"]["rows"] == near and "not better by 0.5 %" in kept["rule"]["kept_incumbent"]
    lost = analyse(noisy(SQUARE, MODELS), META, resamples=100, incumbent=[[None, None, 1, "geqrf"]])
    assert lost["rule"]["rows"] == results["rule"]["rows"]


def test_identical_backends_tie_nearly_everywhere_and_the_rule_gains_nothing():
    same = {"x": MODELS["sub:b"], "y": MODELS["sub:b"]}
    r = analyse(noisy(SQUARE, same, noise=0.02), META, resamples=300)
    tied = sum(len(p["tied"]) > 1 for p in r["points"])
    assert tied >= 0.97 * len(SQUARE) and r["chosen"]["over10_real"] == 0
    assert r["chosen"]["crossfit"][1] <= 1 <= r["chosen"]["crossfit"][2]
    assert len(r["rule"]["rows"]) == 1 and "the rule gains nothing over it" in report.render(r)


def test_fitting_200_points_with_6_backends_and_2000_resamples_takes_less_than_20_s():
    models = MODELS | {f"sub:c{i}": lambda p, i=i: 0.03 * i + p.batch * p.n ** 3 / 1e10 * (1 + p.n / (300 * i))
                       for i in (1, 2, 3)}
    table = noisy(SQUARE[:200], models, blocks=5)
    start = time.process_time()
    assert analyse(table, META)["resamples"] == 2000
    assert time.process_time() - start < 40  # two cores


# ---- raw.csv

def test_published_columns_come_first_and_are_enough(tmp_path):
    assert timings.COLUMNS[:10] == ["pass", "batch", "M", "N", "backend", "ok", "ms", "p25", "p75", "reps"]
    lines = ["pass,batch,M,N,backend,ok,ms,p25,p75,reps"]
    for i in (1, 2):
        for p in grid.crossover_rect():
            lines += [f"{i},{p.batch},{p.m},{p.n},A,1,1.0,1.0,1.0,25",
                      f"{i},{p.batch},{p.m},{p.n},Z,1,{400 / p.m},0,0,25"]
    lines.append("1,1,64,64,broken,0,0,0,0,0")
    (tmp_path / "raw.csv").write_text("\n".join(lines) + "\n")
    table = timings.build([(timings.read_csv(tmp_path / "raw.csv"), [])], "compat")
    r = analyse(table, META)
    assert r["band"]["chosen"] in (416, 448) and r["band"]["inside"] == [416, 448]
    assert r["baseline_held_out"]["train"] == 72 and r["n_pairs"] == 286
    assert [x["name"] for x in r["refinements"]] == ["batch split", "narrow-n"]
    assert not any(x["justified"] for x in r["refinements"])
    assert "which is one rule listed more than once" in report.render(r)


@pytest.mark.parametrize("text, message", [
    ("a,b\n1,2\n", "no column 'pass'"),
    ("pass,batch,M,N,backend,ok,ms,p25,p75,reps\n1,x,1,1,A,1,1,1,1,1\n", ":2: not a"),
    ("pass,batch,M,N,backend,ok,ms,p25,p75,reps\n", "holds no timing")])
def test_damaged_csv_is_named_with_its_line(tmp_path, text, message):
    (tmp_path / "raw.csv").write_text(text)
    with pytest.raises(UserError, match=message):
        timings.read_csv(tmp_path / "raw.csv")


# ---- apply

ENTRY = {"device": "NVIDIA H200", "units": 132, "slug": "nvidia-h200-132sm", "geomean": 1.01, "ci": [1.0, 1.02],
         "held_out": 1.03, "indicative_only": [],
         "rows": [[64, None, 1, "sub:v12_small"], [432, 16, 64, "sub:v21@nb=32"], [None, None, 1, "geqrf"]]}
FILE = """import torch
BACKENDS = {"v12_small": torch.geqrf, "v21@nb=32": torch.geqrf, "geqrf": torch.geqrf}
# BEGIN GENERATED
ROUTES = ()
# END GENERATED


def custom_kernel(a):
    batch, n = a.shape[0], a.shape[-1]
    return next(BACKENDS[name] for n_max, batch_max, multiple, name in ROUTES if (n_max is None or n <= n_max)
                and (batch_max is None or batch <= batch_max) and n % multiple == 0)(a)
"""


def test_apply_writes_routes_that_run_and_check_sees_them_stale(tmp_path, capsys):
    tuned, file = tmp_path / "tuned.json", tmp_path / "v60.py"
    assert apply.export(tuned, ENTRY, ["20261130-abcdef"], {"geqrf": "1", "sub:v12_small": "2", "sub:other": "3"})
    row = apply.choose(tuned, lambda: "nvidia-h200-132sm")
    assert row["sources"] == {"geqrf": "1", "sub:v12_small": "2"} and row["runs"] == ["20261130-abcdef"]
    assert apply.incumbent(tuned, "nvidia-h200-132sm") == ENTRY["rows"]
    file.write_text(FILE)
    assert apply.apply(file, row, check=True) == 1 and file.read_text() == FILE
    assert apply.apply(file, row, check=False) == 0
    assert apply.apply(file, row, check=True) == 0
    space: dict = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    rule = Rule.from_json(ENTRY["rows"])
    for b, n in itertools.product((1, 16, 17), (32, 64, 96, 128, 432, 512)):
        name = next(x[3] for x in space["ROUTES"] if (x[0] is None or n <= x[0]) and (x[1] is None or b <= x[1])
                    and n % x[2] == 0)
        assert name == rule.backend(Point(b, n, n)).removeprefix("sub:")
    text = file.read_text()
    assert text.replace(text[text.index("# BEGIN"):text.index("# END")], "") == FILE.replace(
        "# BEGIN GENERATED\nROUTES = ()\n", "")
    file.write_text(text.replace("(64,", "(80,"))
    assert apply.apply(file, row, check=True) == 1
    assert "stale" in capsys.readouterr().out


@pytest.mark.parametrize("change, message", [
    (("# END GENERATED\n", ""), "expected one '# BEGIN GENERATED' and after it one '# END GENERATED', found 1 and 0"),
    (("# BEGIN GENERATED\n", ""), "found 0 and 1"),
    (('"v12_small": torch.geqrf, ', ""), "BACKENDS has no 'v12_small'"),
    (("import torch", "import torch("), ":1: ")])
def test_apply_refuses_a_file_that_cannot_take_the_routes(tmp_path, change, message):
    apply.export(tmp_path / "tuned.json", ENTRY, ["r"], {})
    (tmp_path / "v60.py").write_text(FILE.replace(*change))
    with pytest.raises(UserError) as e:
        apply.apply(tmp_path / "v60.py", apply.choose(tmp_path / "tuned.json", lambda: None), False)
    assert message in e.value.what


def test_an_indicative_row_is_not_exported_and_two_devices_need_a_choice(tmp_path):
    tuned = tmp_path / "tuned.json"
    assert not apply.export(tuned, ENTRY | {"indicative_only": ["smoke test"]}, ["r"], {}) and not tuned.exists()
    with pytest.raises(UserError, match="nothing is tuned yet"):
        apply.choose(tuned, lambda: None)
    apply.export(tuned, ENTRY, ["r"], {})
    apply.export(tuned, ENTRY | {"slug": "nvidia-b200-148sm"}, ["r"], {})
    assert apply.choose(tuned, lambda: "nvidia-b200-148sm")
    with pytest.raises(UserError, match="none for this machine"):
        apply.choose(tuned, lambda: "nvidia-l4-58sm")


# ---- several runs

def a_run(folder, seed, **about):
    points = SQUARE[::4]
    table = noisy(points, MODELS, seed=seed, blocks=1)
    rows = [{c: "" for c in timings.COLUMNS} | {
        "pass": i + 1, "batch": p.batch, "M": p.m, "N": p.n, "backend": b, "ok": 1, "ms": math.exp(table.L[k, x, i, 0]),
        "case": p.case, "cond": p.cond, "seed": p.seed, "status": "ok"}
        for i in range(2) for k, p in enumerate(points) for x, b in enumerate(table.backends)]
    folder.mkdir(parents=True)
    timings.write_csv(folder / "raw.csv", rows)
    device = {"name": "Fake GPU", "units": 132, "kind": "fake", "driver": "1", "torch": "none"}
    (folder / "run.json").write_text(json.dumps({
        "id": folder.name, "device": device, "grid": "square", "status": "complete", "sources": {"sub:a": "1"},
        "date": folder.name, "quick": False} | about))
    return folder / "raw.csv"


def test_runs_combine_and_what_may_not_is_skipped_with_its_reason(tmp_path, capsys):
    import argparse
    good = [a_run(tmp_path / f"20261130-{i}", i) for i in (1, 2)]
    bad = [a_run(tmp_path / "20261130-3", 3, quick=True), a_run(tmp_path / "20261130-4", 4, status="running"),
           a_run(tmp_path / "20261130-5", 5, result={"trustworthy": False, "why": ["noise"]}),
           a_run(tmp_path / "20261129-6", 6, sources={"sub:a": "0"})]
    kept, state = run.eligible([*good, *bad])
    assert kept == good and state == "incomplete"  # no geqrf among what they timed
    err = capsys.readouterr().err
    for reason in ("smoke test", "interrupted", "untrustworthy: noise", "other versions"):
        assert f"skipped: {reason}" in err
    args = argparse.Namespace(stats="robust", seed=0, out=tmp_path / "combined")
    assert run.reanalyse(good, args) == 0
    r = json.loads((tmp_path / "combined" / "results.json").read_text())
    assert r["runs_agree"]["runs"] == 2 and not r["runs_agree"]["flagged"]
    summary = json.loads((tmp_path / "combined" / "summary.json").read_text())
    assert [x["run"] for x in summary] == ["20261130-1", "20261130-2"]
    assert not (tmp_path / "combined" / "samples.jsonl.gz").exists()
    other = a_run(tmp_path / "20261130-7", 7, device={"name": "Other", "units": 1, "kind": "gpu"})
    with pytest.raises(UserError, match="runs of 2 devices"):
        run.eligible([good[0], other])


# ---- the seams

def test_help_and_the_fit_need_no_torch():
    code = ("import sys; sys.modules['torch'] = None; import harness.tune.run, harness.tune.analyse, "
            "harness.tune.report, harness.tune.plots, harness.tune.published")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    code = "import sys; import harness.tune; assert not {'numpy', 'torch', 'distributed'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_harness_lane_times_and_judges_on_the_cpu(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from harness.tune import backends
    (tmp_path / "v01_ok.py").write_text("import os, torch\nassert os.environ['TUNE_NB'] == '16'\n"
                                        "def custom_kernel(a):\n    return torch.geqrf(a)\n")
    (tmp_path / "v02_bad.py").write_text("import torch\ndef custom_kernel(a):\n    h, tau = torch.geqrf(a)\n"
                                         "    h[:, 0, 0] += 5\n    return h, tau\n")
    (tmp_path / "v03_thin.py").write_text(
        "import torch\ndef custom_kernel(a):\n    h, tau = torch.geqrf(a)\n"
        "    h[:, 0, 0] += 14 * 64 * 2.0 ** -23 * a.abs().sum(1).amax(-1)\n    return h, tau\n")
    p = Point(4, 64, 64, "mixed", 2)
    for name, params, status in (
            ("v01_ok", (("nb", "16"),), "ok"), ("v02_bad", (), "wrong"), ("v03_thin", (), "wrong")):
        lane = backends.open_lane(backends.Backend(f"sub:{name}", str(tmp_path / f"{name}.py"), "x", params), 1, 60.0)
        visit = lane.visit(p, 123, 1e9, True)
        lane.close()
        assert visit.status == status, visit.message
        assert len(visit.ms) in range(3, 10) if status == "ok" else "factor residual" in visit.message
        assert ("more than half" in visit.message) == (name == "v03_thin")


def test_a_hopeless_backend_is_timed_on_an_eighth_of_the_inputs(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from harness import evaluate
    from harness.tune import backends
    monkeypatch.setattr(evaluate, "CPU", evaluate.Schedule(max_inputs=16))
    (tmp_path / "v01_slow.py").write_text(
        f"import time, torch\ndef custom_kernel(a):\n    open({str(tmp_path / 'calls')!r}, 'a').write('x')\n"
        "    time.sleep(0.004)\n    return torch.geqrf(a)\n")
    calls = {}
    for fastest_ms in (0.5, 1e9):
        lane = backends.open_lane(backends.Backend("sub:v01_slow", str(tmp_path / "v01_slow.py"), "x"), 1, 60.0)
        visit = lane.visit(Point(1, 32, 32), 123, fastest_ms, True)
        lane.close()
        assert visit.status == "ok" and all(3 < ms < 40 for ms in visit.ms), "a time is one call's, whatever the inputs"
        calls[fastest_ms] = len((tmp_path / "calls").read_text())
        (tmp_path / "calls").unlink()
    assert calls == {0.5: 16 + 3 * 2, 1e9: 16 + 3 * 16}
