"""task.yml says what the contest says, and a wrong one is refused by file, key, expected and got."""
import pytest
import yaml

import reference
from harness.cases import KINDS, TASK_FILE, load_task, secret_seed, select
from harness.errors import UserError

# `batch n cond seed case`, as spec/task.md lists them; no case means dense and an unnamed spec line
TESTS = """20 32 1 53124 · 40 176 1 3321 · 40 352 1 1200 · 16 512 2 32523 · 4 1024 2 4327 · 1 4096 1 75342 ·
    16 512 4 32524 dense · 16 512 0 32525 rankdef · 16 512 0 32526 clustered · 16 512 0 32527 band ·
    16 512 0 32528 rowscale · 16 512 0 32529 nearcollinear · 4 1024 4 4328 dense · 4 1024 0 4329 rankdef ·
    4 1024 0 4330 nearrank · 4 1024 0 4331 clustered · 2 2048 2 224466 dense · 2 2048 0 224467 rankdef ·
    1 4096 0 75343 upper · 16 512 2 32530 mixed · 4 1024 2 4332 mixed · 2 2048 2 224468 mixed"""
BENCHMARKS = """20 32 1 43214 · 40 176 1 423011 · 40 352 1 123456 · 640 512 2 1029 · 60 1024 2 75342 ·
    8 2048 1 224466 · 2 4096 1 32412 · 640 512 2 770001 mixed · 60 1024 2 770002 mixed · 640 512 0 770003 rankdef ·
    640 512 0 770004 clustered · 60 1024 0 770005 nearrank"""


@pytest.mark.parametrize("text, mode, count", [(TESTS, "tests", 22), (BENCHMARKS, "benchmarks", 12)])
def test_the_contest_s_cases(text, mode, count):
    cases = getattr(load_task(), mode)
    want = [line.split() for line in text.split("·")]
    assert len(cases) == len(want) == count
    for c, (batch, n, cond, seed, *case) in zip(cases, want, strict=True):
        assert (c.batch, c.n, c.cond, c.seed) == (int(batch), int(n), int(cond), int(seed))
        line = f"batch: {batch}; n: {n}; cond: {cond}; seed: {seed}" + (f"; case: {case[0]}" if case else "")
        assert c.spec == line
    assert len({c.label for c in cases}) == count


def test_limits_and_ranking():
    task = load_task()
    assert (task.test_timeout, task.benchmark_timeout, task.ranked_timeout) == (240, 480, 900)
    assert (task.ranking_by, task.gpus) == ("geom", ("B200",))
    raw = yaml.safe_load(TASK_FILE.read_text())
    assert raw["lang"] == "py" and raw["config"]["main"] == "eval.py"
    assert {"name": "submission.py", "source": "@SUBMISSION@"} in raw["files"]


def test_secret_seeds_are_paired_by_hand():
    assert secret_seed(0, 0) == 0
    assert secret_seed(1, 2) == 1 + 3 * 4 // 2 == 7
    assert secret_seed(53124, 10) == 53124 + 53134 * 53135 // 2


def test_the_tolerances():
    assert (reference.FACTOR_RTOL, reference.ORTH_RTOL, reference.EPS32) == (20, 100, 2.0 ** -23)


def test_kinds_are_the_reference_s():
    assert tuple(reference.PROFILES) == KINDS


@pytest.mark.parametrize("pattern, labels", [
    ("#7", ["b640 n512 mixed"]), ("b640-n512-mixed", ["b640 n512 mixed"]), ("b2 n4096 dense", ["b2 n4096 dense"]),
    ("mixed", ["b640 n512 mixed", "b60 n1024 mixed"]), ("4096", ["b2 n4096 dense"]),
    ("n1024 nearrank", ["b60 n1024 nearrank"])])
def test_select(pattern, labels):
    assert [c.label for c in select(load_task().benchmarks, [pattern])] == labels


def test_select_says_what_there_is():
    with pytest.raises(UserError, match="'nope' names none of 12 cases") as e:
        select(load_task().benchmarks, ["nope"])
    assert "#7 b640-n512-mixed" in e.value.next_step


@pytest.mark.parametrize("change, says", [
    (lambda d: d.update(test_timeout="4 min"), "test_timeout: expected an integer of at least 1, got '4 min'"),
    (lambda d: d["tests"][3].pop("seed"), r"tests\[3\].seed: expected an integer, got None"),
    (lambda d: d["tests"][0].update(batch=0), r"tests\[0\].batch: expected an integer of at least 1, got 0"),
    (lambda d: d["benchmarks"][7].update(case="mixd"), r"benchmarks\[7\].case: expected one of dense.*got 'mixd'"),
    (lambda d: d["tests"][1].update(seeds=1), r"tests\[1\].seeds: expected no such key"),
    (lambda d: d.update(ranking_by="mean"), "ranking_by: expected 'geom', got 'mean'"),
    (lambda d: d.update(gpus=[]), "gpus: expected a list of names"),
    (lambda d: d.update(tests={}), "tests: expected a list of cases")])
def test_a_wrong_field_is_named(tmp_path, change, says):
    data = yaml.safe_load(TASK_FILE.read_text())
    change(data)
    path = tmp_path / "task.yml"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(UserError, match="task.yml: " + says):
        load_task(path)


def test_not_yaml_and_not_there(tmp_path):
    (tmp_path / "task.yml").write_text("a: [")
    with pytest.raises(UserError, match="not YAML"):
        load_task(tmp_path / "task.yml")
    with pytest.raises(UserError, match="no such file"):
        load_task(tmp_path / "nope.yml")
