"""research without a loop: the ledger's fold, the decision, assignments, stop rules, the prompt."""
import json
import math
import random

import pytest

from harness import lint
from harness.errors import UserError
from harness.research import choose, prompt
from harness.research.decide import Rounds, Rule, calibration, decide
from harness.research.evaluators import Fake
from harness.research.folder import DEFAULTS
from harness.research.gates import Job, alike, changed, fingerprint, judge, shingles
from harness.research.ledger import Ledger, State, fold, read

SHAPES = [f"s{i}" for i in range(12)]


def rounds(rng, change=0.0, noise=0.01, count=8, shapes=None):
    """Log ratios of a candidate whose geometric mean changes by `change`, or by shape; noise is one time's."""
    d = [{s: (shapes or {}).get(s, change) + rng.gauss(0, noise) - rng.gauss(0, noise) for s in SHAPES}
         for _ in range(count)]
    return Rounds(d, [i // (count // 2) for i in range(count)])


# ---------------------------------------------------------------- the ledger

def begun(ledger, **shapes):
    ledger.append("start", epoch="e1", env={"name": "x"}, config_sha="c", seed=1, agent="a", evaluator="e", config={})
    ledger.append("calibrate", epoch="e1", rounds=8, aa_geo_p90=0.001, aa_shape_p90={}, verdict="ok")
    ledger.append("baseline", attempt=0, sha="b", score_ns=100.0, shapes=shapes or {"s0": 100.0, "s1": 100.0})


def attempt(ledger, number, verdict, gain=None, parent=0, family="panel", shapes=None, title="", **told):
    ledger.append("attempt", attempt=number, parent=parent, other=None, mode="exploit", family=family, focus="s0",
                  agent="a")
    ledger.append("agent", attempt=number, rc=0, wall_s=1.0, sha=f"{number}", title=title or f"idea {number}",
                  family=family, **({"usd": 0.5, "tokens": {"in": 10, "cached": 4, "out": 1}} | told))
    ledger.append("decision", attempt=number, verdict=verdict, reason="r", gain=gain,
                  shapes=shapes or dict.fromkeys(("s0", "s1"), gain or 0.0))


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl", "r")
    begun(ledger)
    return ledger


def test_a_torn_last_line_is_cut_off_and_any_other_bad_line_is_named(ledger, capsys):
    attempt(ledger, 1, "kept", -0.02)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + b'{"v":1,"event":"att')
    assert len(read(ledger.path)) == len(ledger.events)
    assert ledger.path.read_bytes() != whole, "a reader leaves alone what may be just being written"
    assert Ledger(ledger.path, "r").state == ledger.state
    assert "torn by a crash" in capsys.readouterr().err
    assert ledger.path.read_bytes() == whole
    lines = whole.splitlines(keepends=True)
    ledger.path.write_bytes(b"".join([lines[0], b"oops\n", *lines[1:]]))
    with pytest.raises(UserError, match=r"ledger\.jsonl:2: not an event"):
        read(ledger.path)


def test_the_state_is_what_the_file_says_and_nothing_else(ledger):
    attempt(ledger, 1, "kept", -0.02)
    attempt(ledger, 2, "slower", 0.01, parent=1)
    again = fold(read(ledger.path))
    assert again == ledger.state
    assert again.best == 1 and again.usd == 1.0 and again.tokens == 22 and again.attempts[2].verdict == "slower"


def test_best_moves_when_files_are_timed_together(ledger):
    attempt(ledger, 1, "kept", -0.02)
    attempt(ledger, 2, "kept", -0.01, parent=1)
    assert ledger.state.best == 2 and ledger.state.rel[2] == pytest.approx(-0.03)
    flat = dict.fromkeys(("s0", "s1"), 0.0)
    ledger.append("audit", epoch="e1", rounds=8, rel={0: 0.0, 1: -0.025, 2: -0.01}, shapes={0: flat, 1: flat, 2: flat},
                  ci95_hi={}, score_ns={0: 100.0, 1: 97.0, 2: 99.0})
    assert ledger.state.best == 1
    attempt(ledger, 3, "kept", -0.01, parent=1)
    assert ledger.state.rel[3] == pytest.approx(-0.035) and ledger.state.best == 3


def test_no_ratio_survives_an_epoch(ledger):
    attempt(ledger, 1, "kept", -0.02)
    ledger.append("attempt", attempt=2, parent=1, other=None, mode="exploit", family="", focus="s0", agent="a")
    ledger.append("measure", attempt=2, against=1, stage="screen", s=1.0)
    ledger.append("epoch", epoch="e2", why="driver", env={"name": "y"})
    s = ledger.state
    assert s.best == 0 and not s.rel and s.calibration is None and s.needs_retime
    assert not s.attempts[2].measures and s.attempts[2].epoch == "e2"
    assert [a.number for a in s.kept] == [1]


# ---------------------------------------------------------------- the decision

def test_200_equal_files_are_kept_at_most_four_times(tmp_path, monkeypatch):
    monkeypatch.setattr(lint, "lint", lambda path: [])
    (tmp_path / "t.yml").write_text("noise: 0.01\n")
    config = DEFAULTS | {"seed": 5}
    fake = Fake(tmp_path / "t.yml", config)
    kept = 0
    for n in range(1, 201):
        job = Job("null", n, 0, b"a\n", b"b\n", "", config, Rule())
        *_, last = judge(job, fake)
        assert last.event == "decision"
        kept += last.fields["verdict"] == "kept"
    assert kept <= 4


def test_a_gain_on_one_shape_of_twelve_is_found():
    rng = random.Random(1)
    found = [decide(rounds(rng, shapes={"s3": math.log(0.9)}), Rule()).verdict for _ in range(50)]
    assert found.count("kept") >= 48


def test_noise_of_shapes_is_not_the_noise_of_rounds():
    """Every round agrees to the digit while the shapes differ widely: a sure gain."""
    d = [{s: -0.02 + 0.15 * (-1) ** i for i, s in enumerate(SHAPES)}] * 8
    assert decide(Rounds(d, [0] * 4 + [1] * 4), Rule(allow_shape_loss=True)).verdict == "kept"


def test_what_a_keep_asks_for():
    rng = random.Random(2)
    fine = rounds(rng, -0.02, noise=0.002)
    assert decide(fine, Rule()).verdict == "kept"
    assert decide(rounds(rng, +0.02, noise=0.002), Rule()).verdict == "slower"
    assert decide(fine, Rule(margin=0.03)).verdict == "same"
    split = Rounds(fine.d[:4] + [{s: 0.001 for s in SHAPES}] * 4, fine.pair)
    assert decide(split, Rule()).verdict == "same", "the two pairs of processes disagree"
    lossy = rounds(rng, -0.02, noise=0.002, shapes={s: -0.03 for s in SHAPES} | {"s5": 0.05})
    assert decide(lossy, Rule()).verdict == "same" and "s5 is slower" in decide(lossy, Rule()).reason
    assert decide(lossy, Rule(allow_shape_loss=True)).verdict == "kept"
    assert decide(lossy, Rule(aa={"s5": 0.08})).verdict == "kept", "an A/A run shows as much on that shape"
    small = rounds(rng, -0.006, noise=0.001)
    assert decide(small, Rule(), more_lines=20).verdict == "kept"
    assert decide(small, Rule(), more_lines=150).verdict == "same"
    null = rounds(rng, 0.0, noise=0.001)
    assert decide(null, Rule(), more_lines=-30).verdict == "kept" and "simpler" in decide(null, Rule(), -30).reason
    near = Rounds([{s: x for s in SHAPES} for x in (-.004, -.003, -.001, -.0025, -.002, .004, -.003, -.0015)],
                  [0] * 4 + [1] * 4)
    assert decide(near, Rule()).extend


def test_calibration_bounds_what_equal_files_show_and_notices_a_bias():
    rng = random.Random(3)
    geo, shapes, verdict = calibration(rounds(rng, noise=0.01), 0.003)
    assert verdict == "ok" and 0.001 < geo < 0.02 and all(x > geo for x in shapes.values())
    assert calibration(rounds(rng, -0.02, noise=0.001), 0.003)[2] == "faster"
    assert calibration(rounds(rng, +0.02, noise=0.001), 0.003)[2] == "slower"


# ---------------------------------------------------------------- repeats

def test_the_same_code_in_other_words():
    code = 'import torch\nSRC = """\n__global__ void f() { g(1); }\n"""\ndef f(a):\n    return a + 1\n'
    same = ('import torch\nSRC = """\n// why\n__global__  void f()\n{ g(1); }\n"""\n\n\ndef f(a):  # hello\n'
            '    """Doc."""\n    return (a + 1)\n')
    assert fingerprint(code) == fingerprint(same)
    assert fingerprint(code) != fingerprint(code.replace("g(1)", "g(2)"))
    assert fingerprint(code) != fingerprint(code.replace("a + 1", "a + 2"))


def test_diffs_that_differ_in_one_number_are_not_alike():
    base = "\n".join(f"line {i}" for i in range(9)) + "\nNB = 32\n"
    a, b, c = (shingles(changed(base, base.replace("NB = 32", f"NB = {n}"))) for n in ("64", "128", "64 "))
    assert alike(a, b) < 0.95 <= alike(a, c)


# ---------------------------------------------------------------- what next, and when to stop

def test_assignments_are_drawn_from_the_seed_and_follow_the_state(ledger):
    attempt(ledger, 1, "kept", -0.02, shapes={"s0": -0.04, "s1": 0.0})
    attempt(ledger, 2, "kept", -0.001, shapes={"s0": 0.03, "s1": -0.032})
    s = ledger.state
    drawn = [choose.assign(s, n, {}) for n in range(3, 300)]
    assert drawn == [choose.assign(s, n, {}) for n in range(3, 300)]
    modes = {m: sum(a.mode == m for a in drawn) for m in choose.MODES}
    assert all(modes.values()) and modes["exploit"] == max(modes.values())
    assert {a.parent for a in drawn if a.mode == "fork"} == {2}, "the fastest on s1, and not the best"
    assert {(a.parent, a.other) for a in drawn if a.mode == "merge"} == {(1, 2)}
    ledger.append("pivot", why="w")
    assert {choose.assign(s, n, {}).mode for n in range(3, 99)} == {"explore", "fork"}


def test_a_family_cools_after_three_misses_for_six_attempts(ledger):
    for n in (1, 2, 3):
        attempt(ledger, n, "same", 0.0, family="precision")
    assert ledger.state.cooling() == {"precision"}
    for n in range(4, 10):
        assert ledger.state.cooling() == {"precision"}
        attempt(ledger, n, "kept", -0.001, family="panel")
    assert ledger.state.cooling() == set()


def test_the_focus_is_the_shape_furthest_above_its_floor(ledger):
    assert choose.focus(ledger.state, 0, {"s0": 90.0, "s1": 10.0}) == "s1"


def test_an_interrupted_assignment_is_given_again_once(ledger):
    attempt(ledger, 1, "interrupted")
    ledger.state.attempts[1].focus = "s1"
    assert choose.assign(ledger.state, 2, {}).focus == "s1"


LIMITS = DEFAULTS["limits"]


def rule(state, left=None, wall_s=0.0, floors=None, **limits):
    found = choose.stop_rule(state, LIMITS | limits, wall_s, floors or {}, left)
    return found and found[0]


def test_each_stop_rule_names_itself(ledger):
    s = ledger.state
    assert rule(s) is None
    assert rule(s, iterations=0) == "iterations" and rule(s, left=0) == "plan" and rule(s, wall_s=9e9) == "wall"
    attempt(ledger, 1, "same", 0.0)
    assert rule(s, usd=0.5) == "usd" and rule(s, tokens=11) == "tokens"
    assert rule(s, usd=0.6) is None
    ledger.append("measure", attempt=1, stage="screen", s=3600.0)
    assert rule(s, gpu_h=1.0) == "gpu"
    assert rule(s, floors={"s0": 90.0, "s1": 85.0}) == "roofline"
    assert rule(s, floors={"s0": 90.0, "s1": 50.0}) is None
    ledger.append("audit", epoch="e1", rounds=8, rel={0: 0.0}, shapes={0: {}}, ci95_hi={}, score_ns={0: 2000.0})
    assert rule(s, target_us=2.0) == "target" and rule(s, target_us=1.9) is None


@pytest.mark.parametrize(("verdicts", "expected"), [
    (["noop", "duplicate", "noop"], "repeats"), (["same", "noop", "noop"], None),
    (["noop", "kept", "noop", "kept", "noop", "kept", "duplicate", "kept", "noop"], "repeats"),
    (["agent_error"] * 5, "agent storm"), (["agent_error"] * 4 + ["same"], None), (["infra"] * 3, "infra storm"),
    (["same"] * 12, "stall"), (["same"] * 7, None), (["same"] * 8, "gain"),
    (["kept"] + ["infra"] * 2 + ["same"] * 6, None)])
def test_stop_rules_of_verdicts(ledger, verdicts, expected):
    for n, v in enumerate(verdicts, 1):
        attempt(ledger, n, v, -0.03 if v == "kept" else 0.0, parent=ledger.state.best)
    assert rule(ledger.state, gain=0.05 if expected == "gain" else None) == expected


def test_gain_counts_what_moved_the_best_in_the_last_eight(ledger):
    for n in range(1, 9):
        attempt(ledger, n, "kept", -0.01, parent=ledger.state.best)
    assert rule(ledger.state) is None, "eight times 1 % is more than 5 %"
    for n in range(9, 13):
        attempt(ledger, n, "slower", 0.01)
    assert rule(ledger.state) == "gain"
    ledger.append("pivot", why="w")
    assert rule(ledger.state) is None, "the window begins anew"


# ---------------------------------------------------------------- the prompt

def test_the_prompt_holds_what_it_must_and_stays_under_its_limit(ledger):
    for n in range(1, 200):
        attempt(ledger, n, "same", 0.001, family=f"family {n}", title="x" * 90 + str(n))
    attempt(ledger, 200, "wrong", family="panel", title="last")
    ledger.state.attempts[200].reason = "tests: b16 n512 band: factor 27.1 > 20 " + "y" * 5000
    a = choose.assign(ledger.state, 201, {})
    text = prompt.render(ledger.state, a, 201, program="aim high\n" * 2000, idea="try warps", margin=0.004,
                         floors={"s0": 50.0}, margins={"s0": "3.1 / 12"}, profile=[{"kernel": "k" * 70}] * 100,
                         remote=["server said 'work on another queue'; our lint says QR003, line 7"])
    assert len(text.encode()) <= prompt.MOST
    for wanted in ("# Assignment 201", f"Focus: {a.focus}", "idea.json", "Exactly one change", "0.40 %", "try warps",
                   "aim high", "3.1 / 12", "50 %", "factor 27.1 > 20"):
        assert wanted in text, wanted


def test_the_prompt_of_a_fresh_run_and_of_one_that_pivoted(ledger):
    fresh = prompt.render(State(), choose.Assignment("exploit", 0, "", ""), 1, program="", idea="", margin=0.003,
                          floors={}, margins={}, profile=[], remote=[])
    assert "last attempts" not in fresh and "Assignment 1" in fresh
    attempt(ledger, 1, "same", 0.0, title="an old idea")
    ledger.append("pivot", why="w")
    after = prompt.render(ledger.state, choose.assign(ledger.state, 2, {}), 2, program="", idea="", margin=0.003,
                          floors={}, margins={}, profile=[], remote=[])
    assert "- an old idea" in after and "# The last attempts" not in after, "titles only: fresh eyes"


def test_events_are_one_json_object_a_line(ledger):
    lines = ledger.path.read_text().splitlines()
    assert all({"v", "t", "run", "event"} <= json.loads(line).keys() for line in lines)
