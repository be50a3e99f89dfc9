"""research as a whole, on the replay agent and declared times: no GPU, no agent, no network."""
import csv
import json
import os
import shutil
import signal
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from harness import cli, lint
from harness.cases import ROOT
from harness.errors import UserError
from harness.research import agents, evaluators, folder, replay
from harness.research.ledger import Ledger, fold, read
from harness.research.loop import Loop

PARENT = '''#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v90 parent: a file to be improved.

Parent     none
Result     see records/
"""
import torch

NB = 32
MARK = ""


def custom_kernel(data):
    return torch.geqrf(data)
'''
TIMES = {
    "noise": 0.002, "env": {"driver": "1"}, "base_ns": {"b20 n32 dense": 1e6, "b40 n176 dense": 5e6},
    "files": [{"match": "fast1", "factor": 0.97}, {"match": "fast2", "factor": 0.98}, {"match": "slow", "factor": 1.05},
              {"match": "wrong", "check": "wrong", "message": "factor residual 31, allowed 20"},
              {"match": "broken", "check": "import", "message": "NameError: x"},
              {"match": "stale", "bench": "wrong", "message": "input 3 got the output of input 1"},
              {"match": "clock", "bench": "clock", "message": "the worker says 1 ms, the parent 9 ms"},
              {"match": "one_shape", "shapes": {"b20 n32 dense": 0.9}},
              {"match": "other_shape", "shapes": {"b40 n176 dense": 0.93}}]}


def mark(word, title=None, **more):
    """A step that adds a word to the file: what it declares adds up with what the parent has."""
    return {"title": title or word, "family": "panel", "edit": [["MARK = \"", f"MARK = \"{word} "]], **more}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "RESEARCH_DIR", tmp_path / "runs")
    monkeypatch.setattr(lint, "_kernelguard", lambda text: iter(()))  # a tenth of a second a file
    if "research" not in cli.MODULES:
        monkeypatch.setattr(cli, "MODULES", (*cli.MODULES, "research"))


@pytest.fixture
def run(tmp_path):
    """run(steps) -> (rule, state, folder); a second call goes on with the same run."""
    def start(steps, times=TIMES, name="night", config=None, hook=None, **options):
        (tmp_path / "times.yml").write_text(yaml.safe_dump(times))
        (tmp_path / "plan.yml").write_text(yaml.safe_dump({"evaluator": "fake:times.yml", "steps": steps}))
        if not (tmp_path / "runs" / name).exists():
            (tmp_path / "v90_parent.py").write_text(PARENT)
            (tmp_path / "c.yml").write_text(yaml.safe_dump({"cases": ["n32", "n176"]} | (config or {})))
            folder.init(tmp_path / "v90_parent.py", name, tmp_path / "c.yml")
        place = folder.existing(name)
        given = folder.read_config(place)
        agent = options.pop("agent", None) or agents.resolve(f"replay:{tmp_path / 'plan.yml'}", given)
        with folder.locked(place):
            loop = Loop(place, agent, f"fake:{tmp_path / 'times.yml'}", given, **options)
            if hook:
                hook(loop)
            rule, _ = loop.run()
        assert loop.state == fold(read(place / "ledger.jsonl"))
        return rule, loop.state, place
    return start


def gone(pid):
    """No such process, or one that nobody has reaped."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().split()[2] == "Z"


def verdicts(state):
    return [a.verdict for a in state.attempts.values()]


# ---------------------------------------------------------------- verdicts

def test_a_plan_of_everything_is_judged_rightly(run):
    steps = [
        (mark("fast1"), "kept"), (mark("plain"), "same"), (mark("slow"), "slower"), (mark("wrong"), "wrong"),
        (mark("broken"), "broken"), (mark("stale"), "wrong"), (mark("clock"), "rejected"),
        ({"title": "words only", "edit": [["NB = 32", "NB = 32  # wide"]]}, "noop"),
        (mark("fast2", idea="{not json"), "kept"), (mark("slow"), "slower"),
        ({"title": "refused", "edit": [["MARK = ", "stream = "]]}, "rejected"),
        ({"title": "peeps", "edit": [["import torch", "import gc\nimport torch"]]}, "flagged"),
        ({"title": "crash", "rc": 1, "stderr": "boom"}, "agent_error"), ({"title": "slow", "sleep_s": 0.2}, "noop"),
        ({"title": "hangs", "sleep_s": 999}, "agent_error"), (mark("one_shape"), "kept")]
    rule, state, place = run([s for s, _ in steps], config={
        "limits": {"gain": None}, "agent": {"timeout_s": 3}})
    assert verdicts(state) == [v for _, v in steps]
    assert rule == "plan" and state.best == 16
    assert "boom" in state.attempts[13].reason and "timed out" in state.attempts[15].reason
    assert state.attempts[9].title == "", "an idea that is not JSON costs its title, not the attempt"
    assert state.attempts[3].parent == 1 and state.attempts[10].parent == 9, "the best is the next parent"
    assert state.audits and state.rel[16] == pytest.approx(-0.103, abs=0.01)  # ln .97 + ln .98 + ln .9 / 2
    assert {p.name for p in (place / "attempts" / "0001").iterdir()} >= {
        "prompt.md", "idea.json", "submission.py", "diff.patch", "agent.log", "gates.json", "runs.jsonl", "note.md"}
    assert not (place / "work").exists()


def test_a_repeat_is_seen_before_it_costs_anything(run):
    _, state, place = run([mark("slow"), mark("plain"), mark("slow"), mark("slow  "), mark("fast1")])
    assert verdicts(state) == ["slower", "same", "duplicate", "duplicate", "kept"]
    for n in (3, 4):
        assert list(state.attempts[n].gates) == ["capture", "new"]
        assert not (place / f"attempts/{n:04d}/runs.jsonl").exists()


def test_a_file_faster_than_the_card_is_rejected_and_a_jump_is_for_review(run):
    times = TIMES | {"floor": 0.5, "files": [{"match": "magic", "factor": 0.4}]}
    _, state, _ = run([mark("magic")], times)
    assert verdicts(state) == ["rejected"] and "the card needs at least" in state.attempts[1].reason
    times = TIMES | {"files": [{"match": "leap", "factor": 0.3}]}
    _, state, place = run([mark("leap")], times, name="jump")
    assert verdicts(state) == ["kept"] and state.attempts[1].review
    from harness.research import report
    report.write(place, state, {}, None, "v90")
    assert "For a person to look at" in (place / "report.md").read_text()


def test_the_harness_s_own_failure_is_tried_again_and_blames_nobody(run, monkeypatch):
    calls = []
    check = evaluators.Fake.check

    def flaky(self, file, on_run):
        calls.append(file.name)
        if "a0001" in file.name and (len(calls) < 3 or "twice" in file.read_text()):
            on_run(self._run(file.name, "sha", "b20 n32 dense", "batch: 20; n: 32", "infra", "out of memory"))
        check(self, file, on_run)
    monkeypatch.setattr(evaluators.Fake, "check", flaky)
    _, state, _ = run([mark("fast1")])
    assert verdicts(state) == ["kept"] and calls == ["a0000.py", "a0001.py", "a0001.py"]
    _, state, _ = run([mark("twice")], name="second")
    assert verdicts(state) == ["infra"] and not state.finished


def test_equal_files_called_different_stop_the_run(run, monkeypatch):
    rounds = evaluators.Fake.rounds

    def biased(self, files, pairs, per_pair, session, on_run):
        def turn(r):
            r.samples_ns = [x * (0.98 if r.file == "copy.py" else 1) for x in r.samples_ns]
            on_run(r)
        rounds(self, files, pairs, per_pair, session, turn)
    monkeypatch.setattr(evaluators.Fake, "rounds", biased)
    rule, state, _ = run([mark("fast1")])
    assert rule == "evaluator" and not state.attempts
    rule, state, _ = run([mark("fast1")])
    assert rule == "evaluator" and not state.attempts, "as long as it lasts"
    from harness.research.choose import EXIT_OF
    assert EXIT_OF[rule] == 4


def test_the_same_seed_gives_the_same_ledger(run):
    steps = [mark("fast1"), mark("slow"), {"title": "nothing"}]
    ledgers = []
    for _ in range(2):
        *_, place = run(steps)
        events = read(place / "ledger.jsonl")
        for e in events:
            for key in ("t", "s", "ms", "wall_s"):
                e.pop(key, None)
        ledgers.append(events)
        shutil.rmtree(place)
    assert ledgers[0] == ledgers[1]


# ---------------------------------------------------------------- stopping and going on

STEPS = [mark("fast1"), mark("wrong"), mark("slow"), {"title": "nothing"}, mark("fast2")]


def settled(place):
    """What must not depend on how often the run was killed."""
    s = fold(read(place / "ledger.jsonl"))
    return (verdicts(s), s.rel, s.shapes, s.best, [a.parent for a in s.attempts.values()],
            [sorted(a.measures) for a in s.attempts.values()], [a.sha for a in s.attempts.values()],
            {p.parent.name: len(p.read_text().splitlines()) for p in place.glob("attempts/*/runs.jsonl")})


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_stage_it_ends_as_if_nothing_had_been(run, tmp_path, moment):
    """SIGKILL before or after each line of the ledger; every life gets one line further."""
    plan = tmp_path / "plan.yml"
    count = [sys.executable, str(ROOT / "harness/research/replay.py"), str(plan), "{step}"]
    agent = agents.Agent("counted", ["/bin/sh", "-c", f"echo {{iter}} >> {tmp_path}/calls; exec " + " ".join(count)],
                         steps=len(STEPS))
    run(STEPS, name="whole", agent=agent)
    expected = settled(tmp_path / "runs" / "whole")
    (tmp_path / "calls").unlink()
    os.rename(tmp_path / "runs" / "whole", tmp_path / "whole")  # names of a run are part of its declared noise
    lives = 0
    while True:
        lives += 1
        child = os.fork()
        if child == 0:
            original, written = Ledger.append, []

            def append(self, event, written=written, original=original, **fields):
                die = len(written) >= (2 if moment == "before" else 1) and event not in ("start", "recover")
                if die and moment == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                e = original(self, event, **fields)
                if event not in ("start", "recover"):
                    written.append(event)
                if written and moment == "after" and event != "stop":
                    os.kill(os.getpid(), signal.SIGKILL)
                return e
            Ledger.append = append
            try:
                run(STEPS, name="whole", agent=agent)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        assert lives < 100
    assert lives > 10
    assert settled(tmp_path / "runs" / "whole") == expected
    assert (tmp_path / "calls").read_text().split() == ["1", "2", "3", "4", "5"], "a paid call is never repeated"


def test_killed_during_the_call_the_assignment_is_given_once_more(run, tmp_path):
    """The supervisor dies while the agent is at work: the agent is ended, the attempt is void, its step comes again."""
    slow = [mark("fast1", sleep_s=60), mark("fast2")]
    child = os.fork()
    if child == 0:
        call = agents.call

        def die(*args, **options):
            import threading
            threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
            return call(*args, **options)
        agents.call = die
        run(slow)
    os.waitpid(child, 0)
    pid = int((tmp_path / "runs/night/attempts/0001/agent.pid").read_text())
    assert not gone(pid), "still at work"
    _, state, _ = run([mark("fast1"), mark("fast2")])
    assert verdicts(state) == ["interrupted", "kept", "kept"]
    assert gone(pid)


def test_a_person_stops_it_and_it_goes_on(run, tmp_path):
    def after_first(loop):
        say = loop.say

        def stop(text):
            if "kept" in text:
                (loop.folder / "STOP").touch()
            say(text)
        loop.say = stop
    rule, state, _ = run(STEPS, hook=after_first)
    assert rule == "person" and verdicts(state) == ["kept"]
    rule, state, _ = run(STEPS)
    assert rule == "plan" and len(state.attempts) == 5


def test_ctrl_c_ends_it_after_the_gate_at_hand(run):
    def interrupt(loop):
        append = loop.ledger.append

        def on_screen(event, **fields):
            if event == "measure" and fields["stage"] == "screen":
                os.kill(os.getpid(), signal.SIGINT)
            return append(event, **fields)
        loop.ledger.append = on_screen
    rule, state, _ = run(STEPS, hook=interrupt)
    assert rule == "person" and verdicts(state) == [""] and list(state.attempts[1].measures) == ["screen"]
    _, state, _ = run(STEPS)
    assert verdicts(state)[0] == "kept" and state.rel[1] < 0


def test_one_supervisor_a_run(run):
    *_, place = run([])
    with folder.locked(place), pytest.raises(UserError, match="is being run by process") as e, folder.locked(place):
        pass
    assert e.value.exit_code == 6


def test_money_is_capped_before_a_call(run, tmp_path):
    told = json.dumps({"total_cost_usd": 0.4, "usage": {"input_tokens": 5, "output_tokens": 7}})
    script = tmp_path / "agent.sh"
    script.write_text(f"echo '{told}'; echo {{}} > idea.json; echo \"# $1\" >> submission.py\n"
                      f"echo $2 >> {tmp_path}/left")
    agent = agents.Agent("paid", ["/bin/sh", "-c", f"sh {script} {{iter}} {{usd_left}}"], usage="claude-json")
    rule, state, _ = run([], agent=agent, config={"limits": {"usd": 1.0}})
    assert rule == "usd" and state.usd == pytest.approx(1.2) and len(state.attempts) == 3
    assert (tmp_path / "left").read_text().split() == ["1.00", "0.60", "0.20"]


def test_another_driver_is_another_epoch(run):
    run([mark("fast1"), mark("fast2")])
    other = TIMES | {"env": {"driver": "2"},
                     "files": [{"match": "fast2", "factor": 1.3}, {"match": "fast1", "factor": .9}]}
    _, state, place = run([mark("fast1"), mark("fast2"), mark("plain")], other)
    events = [e["event"] for e in read(place / "ledger.jsonl")]
    again = events[events.index("epoch"):]
    assert state.marks[0] == (2, "epoch e2")
    assert again.index("audit") < again.index("attempt"), "timed again before anything else"
    assert state.epoch == "e2" and state.best == 1, "attempt 2 was best under the old driver"
    assert state.attempts[3].parent == 1


def test_a_changed_setting_is_an_event(run):
    *_, place = run([mark("fast1")])
    config = yaml.safe_load((place / "config.yml").read_text())
    (place / "config.yml").write_text(yaml.safe_dump(config | {"min_gain": 0.01}))
    run([mark("fast1"), mark("plain")])
    told = [e["changed"] for e in read(place / "ledger.jsonl") if e["event"] == "config"]
    assert told == [{"min_gain": 0.01}]
    (place / "config.yml").write_text("mingain: 1\n")
    with pytest.raises(UserError, match="mingain: no such setting"):
        folder.read_config(place)


def test_every_so_many_keeps_and_before_the_end_there_is_an_audit(run):
    times = TIMES | {"files": [{"match": f"step{i}", "factor": 0.98} for i in range(1, 4)]}
    _, state, _ = run([mark(f"step{i}") for i in range(1, 4)], times, config={"audit_every": 2})
    assert verdicts(state) == ["kept"] * 3 and len(state.audits) == 2
    assert list(state.audits[0]["rel"]) == ["0", "2", "1"] and "3" in state.audits[-1]["rel"]


def test_an_old_run_is_judged_anew(run, tmp_path):
    *_, place = run([mark("fast1"), {"title": "nothing"}, mark("slow")])
    given = folder.read_config(place)
    agent = agents.resolve(f"replay:{place}", given)
    new = TIMES | {"files": [{"match": "fast1", "factor": 1.1}, {"match": "slow", "factor": 0.8}]}
    _, state, _ = run([], new, name="again", agent=agent)
    assert verdicts(state) == ["slower", "duplicate", "kept"] and state.attempts[3].title == "slow"


def test_a_person_s_directions_and_ideas_reach_the_agent(run):
    *_, place = run([])
    (place / "program.md").write_text("Mind the small shapes.\n")
    (place / "ideas.md").write_text("- [x] done\n- [ ] warps\n- [ ] shared memory\n")
    _, state, _ = run([mark("plain"), mark("slow", family="made up"), mark("fast1")])
    prompts = [(place / f"attempts/{n:04d}/prompt.md").read_text() for n in (1, 2, 3)]
    assert all("Mind the small shapes." in p for p in prompts)
    handed = [next((x for x in p.splitlines() if "backlog" in x), "").partition(": ")[2] for p in prompts]
    assert handed == ["warps", "shared memory", ""], "each once"
    assert state.attempts[2].family == "other", "the list of families is closed"


# ---------------------------------------------------------------- side by side

def test_candidates_are_judged_side_by_side(run):
    steps = [mark("fast1"), mark("wrong"), mark("slow"), mark("fast2"), {"title": "nothing"}, mark("one_shape")]
    with ThreadPoolExecutor(3) as executor:
        _, state, _ = run(steps, executor=executor, width=3)
    found = verdicts(state)
    assert sorted(found) == sorted(["kept", "wrong", "slower", "kept", "noop", "kept"]) and not state.undecided
    assert all(m["against"] == a.parent for a in state.attempts.values() for m in a.measures.values())
    assert state.best in (1, 4, 6) and state.audits


def test_a_dask_cluster_judges_as_this_machine_does(run):
    distributed = pytest.importorskip("distributed")
    from harness.tune import execute
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, resources={"GPU": 2},
                                  dashboard_address=None) as local:
        executor, width = execute.cluster(local.scheduler_address)
        assert width == 2
        with executor:
            _, state, _ = run([mark("fast1"), mark("wrong"), mark("slow")], executor=executor, width=width)
    assert verdicts(state) == ["kept", "wrong", "slower"] and state.best == 1


def test_a_machine_that_differs_is_not_mixed_in(run, monkeypatch):
    env = evaluators.Fake.env
    seen = []

    def changing(self):
        seen.append(1)
        return env(self) | ({"driver": "9"} if len(seen) > 1 else {})
    monkeypatch.setattr(evaluators.Fake, "env", lambda self: env(self))
    run([])
    monkeypatch.setattr(evaluators.Fake, "env", changing)
    seen.clear()
    _, state, _ = run([mark("fast1")])
    assert verdicts(state) == ["infra"] and "driver: 9, the epoch's is 1" in state.attempts[1].reason


# ---------------------------------------------------------------- the report, the verbs

def test_the_report_counts_and_the_picture_parses(run):
    steps = [mark("fast1"), mark("slow"), mark("wrong"), mark("plain"), {"title": "n"}, mark("clock"), mark("fast2")]
    _, state, place = run(steps)
    from harness.research import report
    report.write(place, state, {"b20 n32 dense": 1e5, "b40 n176 dense": 5e5}, 2000.0, "v90_parent.py")
    rows = list(csv.DictReader((place / "progress.csv").open()))
    assert [r["verdict"] for r in rows] == verdicts(state)
    svg = "{http://www.w3.org/2000/svg}"
    root = ET.parse(place / "progress.svg").getroot()
    marks = [g.get("class").split()[1] for g in root.iter(f"{svg}g")]
    assert marks == verdicts(state)
    titles = [t.text for t in root.iter(f"{svg}title")]
    assert len(titles) == len(steps) and titles[0].startswith("1 fast1: kept, -2.9")
    words = " ".join(t.text or "" for t in root.iter(f"{svg}text"))
    assert "baseline" in words and "target" in words and "floor" in words
    assert sum("n32" in (t.text or "") or "n176" in (t.text or "") for t in root.iter(f"{svg}text")) == 2
    text = (place / "report.md").read_text()
    assert "in an audit of 8 rounds" in text and "7 attempts: 2 kept, 1 same" in text
    for a in state.attempts.values():
        assert f"| {a.number} | {a.parent} |" in text


def test_the_demo_of_the_readme(tmp_path, capsys):
    """Also the verbs, from init to stop."""
    assert cli.main(["research", "init", str(ROOT / "submissions/v01_compact_wy.py"), "--name", "demo"]) == 0
    plan = f"replay:{ROOT / 'harness/research/demo/plan.yml'}"
    assert cli.main(["research", "run", "demo", "--agent", plan, "--json"]) == 0
    told = json.loads(capsys.readouterr().out.split("\n", 2)[2])
    assert {"kept", "noop", "wrong", "slower", "rejected", "duplicate", "agent_error", "same"} <= {
        *told["verdicts"], "same", "flagged", "rejected"}
    assert told["verdicts"]["kept"] == 3 and told["stopped"]["rule"] == "plan" and told["attempts"] == 12
    place = tmp_path / "runs" / "demo"
    assert (place / "report.md").exists() and (place / "progress.svg").exists()
    for verb in ("status", "report", "retime", "stop"):
        assert cli.main(["research", verb, "demo"]) == 0
    assert (place / "STOP").exists()
    assert cli.main(["research", "promote", "demo"]) == 2
    assert "declared times" in capsys.readouterr().err
    assert cli.main(["research", "init", str(ROOT / "submissions/v01_compact_wy.py"), "--name", "demo"]) == 2
    assert cli.main(["research", "run", "nobody", "--agent", plan]) == 2


def test_a_kept_attempt_becomes_a_submission_with_its_record(run, tmp_path):
    from harness.research.promote import promote, resolve
    _, state, place = run([mark("fast1", "A faster panel!"), mark("slow")])
    config = folder.read_config(place)
    fake = evaluators.make(f"fake:{tmp_path / 'times.yml'}", config)
    paths = {"submissions": tmp_path, "runs_dir": tmp_path / "kit", "records": tmp_path / "records"}
    file, record = promote(place, state, 1, fake, config, **paths)
    assert file == tmp_path / "v91_a_faster_panel.py"
    text = file.read_text()
    assert "Parent     v90_parent\n" in text and f"records/{record.name}" in text and "geomean" in text
    assert {p.name for p in record.iterdir()} == {"README.md", "runs.jsonl", "submission.py", "ledger.jsonl"}
    assert '"attempt":1' in (record / "ledger.jsonl").read_text()
    with pytest.raises(UserError, match="was not kept"):
        promote(place, state, 2, fake, config, **paths)
    for what, file in (("best", "a0001.py"), ("baseline", "a0000.py"), ("0002", "a0002.py"), ("keeps", "a0001.py")):
        assert {r.file for r in resolve(f"{place}:{what}")} == {file}
    with pytest.raises(UserError, match="expected best"):
        resolve(f"{place}:worst")


def test_a_refusal_of_the_server_is_quoted_and_never_a_rule(run, monkeypatch):
    from harness.popcorn import submit

    def refuse(file, mode, *args, **options):
        assert mode == "test"
        raise UserError("work on another queue", "", 13)
    monkeypatch.setattr(submit, "submit", refuse)
    _, state, place = run([mark("fast1"), mark("fast2")], config={"remote": "test", "remote_budget": 1})
    assert verdicts(state) == ["kept", "kept"], "kept here"
    assert state.attempts[1].reason.endswith("remote: refused") and "remote" not in state.attempts[2].gates
    prompt = (place / "attempts" / "0002" / "prompt.md").read_text()
    assert "server said 'work on another queue'; our lint finds no cause" in prompt


def test_times_of_the_leaderboard_stand_beside_ours(run, monkeypatch, tmp_path):
    from harness import results
    from harness.popcorn import submit
    from harness.research import report
    monkeypatch.setattr(results, "RUNS_DIR", tmp_path / "kit")

    def accept(file, *args, **options):
        results.append_runs(tmp_path / "kit" / "s.jsonl", [results.Run(
            file.name, results.file_sha(file), "b20 n32 dense", "batch: 20; n: 32", "pass", where="popcorn",
            samples_ns=[485e3])])
        return 0
    monkeypatch.setattr(submit, "submit", accept)
    _, state, place = run([mark("fast1")], config={"remote": "benchmark"})
    report.write(place, state, {}, None, "v90")
    row = next(x for x in (place / "report.md").read_text().splitlines() if x.startswith("| 1 | b20 n32 dense |"))
    assert "485.0 µs" in row and abs(float(row.split("|")[-2]) - 2.0) < 0.02


# ---------------------------------------------------------------- the adapter

@pytest.fixture
def call(tmp_path):
    def start(command, timeout_s=20.0, agent=None, **options):
        for name in ("work", "log"):
            (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / "prompt.md").write_text("the prompt")
        agent = agent or agents.Agent("x", ["/bin/sh", "-c", command], **options)
        done = agents.call(agent, tmp_path / "work", tmp_path / "log", tmp_path / "prompt.md", iteration=7, step=6,
                           seed=3, usd_left=1.5, timeout_s=timeout_s, config=folder.DEFAULTS)
        return done, (tmp_path / "log" / "agent.out").read_text(), tmp_path
    return start


def test_the_prompt_comes_on_standard_input_which_ends(call):
    done, out, _ = call("cat; echo .", stdin="{prompt}")
    assert out == "the prompt.\n" and done.rc == 0
    _, out, _ = call("cat; echo nothing")
    assert out == "nothing\n"


def test_placeholders_are_filled_and_quoted(call):
    _, out, place = call("echo {iter} {seed} {usd_left} {work} {log} {prompt}; pwd")
    assert out.split() == ["7", "3", "1.50", str(place / "work"), str(place / "log"), str(place / "prompt.md"),
                           str(place / "work")]


def test_the_environment_is_a_list_of_names(call, monkeypatch):
    for name in ("POPCORN_API_URL", "AWS_SECRET_ACCESS_KEY", "SOME_KEY", "OTHER_KEY"):
        monkeypatch.setenv(name, "secret")
    _, out, _ = call("env", keys=["SOME_KEY"])
    names = {line.split("=")[0] for line in out.splitlines()}
    assert "SOME_KEY" in names and not names & {"POPCORN_API_URL", "AWS_SECRET_ACCESS_KEY", "OTHER_KEY"}
    home = next(line for line in out.splitlines() if line.startswith("HOME="))
    assert home != f"HOME={os.environ.get('HOME')}", "the popcorn id lies there"


def test_all_that_it_started_ends_with_it(call, tmp_path):
    done, *_ = call(f"sleep 300 & echo $! > {tmp_path}/pid; sleep 300", timeout_s=0.5)
    assert done.timed_out and done.rc == -signal.SIGKILL and done.wall_s < 5
    call(f"sleep 300 & echo $! >> {tmp_path}/pid")
    assert all(map(gone, (tmp_path / "pid").read_text().split()))


def test_a_log_is_capped_and_its_end_still_read(call):
    done, out, _ = call("head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo '{\"total_cost_usd\": 0.25}'",
                        usage="claude-json")
    assert len(out) == agents.LOG_BYTES and done.usd == 0.25


def test_only_one_regular_file_is_taken(tmp_path):
    file = tmp_path / "submission.py"
    with pytest.raises(ValueError, match="missing"):
        agents.take(file, 100)
    (tmp_path / "secret").write_text("x")
    file.symlink_to(tmp_path / "secret")
    with pytest.raises(ValueError, match="no regular file"):
        agents.take(file, 100)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ValueError, match="no regular file"):
        agents.take(file, 100)
    file.unlink()
    for content, why in ((b"x" * 2_000_000, "larger"), (b"\xff\xfe", "UTF-8")):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=why):
            agents.take(file, 1_000_000)
    file.write_text("fine")
    assert agents.take(file, 100) == b"fine"


CODEX = '\n'.join(json.dumps(d) for d in (
    {"type": "thread.started"}, {"type": "item.completed", "item": {"type": "agent_message"}},
    {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 9}},
    {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 1}}))
CLAUDE = {"type": "result", "total_cost_usd": 0.5, "usage": {"input_tokens": 3, "cache_read_input_tokens": 20,
                                                            "cache_creation_input_tokens": 7, "output_tokens": 4}}
GEMINI = {"response": "x", "stats": {"models": {"m": {"tokens": {"prompt": 50, "cached": 5, "candidates": 6}}}}}


@pytest.mark.parametrize(("parser", "text", "tokens", "usd"), [
    ("codex-jsonl", CODEX, {"in": 110, "cached": 40, "out": 10}, None),
    ("claude-json", json.dumps(CLAUDE), {"in": 30, "cached": 20, "out": 4}, 0.5),
    ("claude-json", json.dumps([{"type": "system"}, CLAUDE]), {"in": 30, "cached": 20, "out": 4}, 0.5),
    ("claude-json", '{"type": "system"}\n' + json.dumps(CLAUDE), {"in": 30, "cached": 20, "out": 4}, 0.5),
    ("gemini-json", "warning\n" + json.dumps(GEMINI, indent=1), {"in": 50, "cached": 5, "out": 6}, None),
    ("none", json.dumps(CLAUDE), {}, None), ("claude-json", "no json at all", {}, None)])
def test_usage_is_read_from_every_form(parser, text, tokens, usd):
    assert agents.usage(parser, text) == (tokens, usd)


def test_an_agent_is_a_preset_a_name_or_a_command(monkeypatch):
    config = {"agents": {"mine": {"shell": "my-agent < {prompt}", "usage": "none"}}}
    assert agents.resolve("mine", config).cmd == ["/bin/sh", "-c", "my-agent < {prompt}"]
    assert agents.resolve("cat {prompt}", config).cmd[-1] == "cat {prompt}"
    monkeypatch.setattr(agents.shutil, "which", lambda name: f"/bin/{name}" if name in ("codex", "claude") else None)
    assert agents.resolve("codex", config).cmd[-1] == "-" and agents.resolve("codex", config).stdin == "{prompt}"
    assert "{usd_left}" in agents.resolve("claude", config).cmd
    for wrong in ("gemini", "nobody", "replay:/nowhere.yml"):
        with pytest.raises(UserError):
            agents.resolve(wrong, config)


def test_a_patch_may_have_moved_but_must_fit(tmp_path):
    text = "\n".join("abcdefghij") + "\n"
    diff = "--- a\n+++ b\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n@@ -7,2 +7,3 @@\n g\n+new\n h\n"
    assert replay.patched(text, diff) == text.replace("c", "C").replace("g\n", "g\nnew\n")
    assert replay.patched("0\n0\n" + text, diff) == "0\n0\n" + text.replace("c", "C").replace("g\n", "g\nnew\n")
    with pytest.raises(ValueError, match="does not fit"):
        replay.patched(text.replace("d", "x"), diff)


# ---------------------------------------------------------------- the harness itself, on the CPU

@pytest.fixture
def local():
    config = folder.DEFAULTS | {"cases": ["b20-n32-dense"], "tests": ["b20-n32-dense"],
                                "schedule": {"max_repeats": 2, "settle_s": 0, "wall_s": 1}}
    return evaluators.make("local", config)


def test_bad_files_fall_at_the_gates(local, submission):
    from harness.research.gates import check_gates
    scratch = "h, t = torch.geqrf(a)\n"
    small_only = submission("bad", scratch + "return h, t if a.abs().max() < 1e6 else 0 * t")
    *fine, last = [s.fields for s in check_gates(small_only, local)]
    assert [(s["gate"], s["ok"]) for s in fine] == [("build", True), ("tests", True)]
    assert (last["gate"], last["verdict"]) == ("probes", "wrong"), last
    gone = submission("gone", "return a", top="import nowhere\n")
    assert next(iter(check_gates(gone, local))).fields["verdict"] == "broken"


def test_the_kernels_of_one_call(local, submission, tmp_path, monkeypatch):
    from harness import profiling
    monkeypatch.setattr(profiling.shutil, "which", lambda name: None)
    file = submission("two", "b = a.clone()\nfor _ in range(9):\n    b = b @ a\nreturn torch.geqrf(a)")
    found = {k["kernel"]: k for k in local.profile(file, "b20 n32 dense", tmp_path)}
    assert found["aten::bmm"]["calls"] == 9 and "aten::geqrf" in found
    assert 99 < sum(k["time_pct"] for k in found.values()) <= 100.5 or len(found) == 8
    assert local.profile(submission("bad", "raise ValueError"), "b20 n32 dense", tmp_path) == []


def test_rounds_of_the_harness_are_numbered_through_pairs_of_processes(local, submission, monkeypatch):
    import inspect

    from harness import bench
    from harness.results import Run
    signature = inspect.signature(bench.measure)

    def measure(*args, **given):
        """Its order and numbering, without its workers; test_bench.py holds the real one to them."""
        b = signature.bind(*args, **given).arguments
        for number in range(b["rounds"]):
            for c in b["cases"]:
                for f in b["files"][::1 if number % 2 == 0 else -1]:
                    b["on_run"](Run(f.name, "x", c.label, c.spec, "pass", round=number, samples_ns=[1.0]))
    monkeypatch.setattr(bench, "measure", measure)
    files = [submission(n, f"return torch.geqrf(a)  # {n}") for n in ("a0001", "a0000")]
    runs = []
    local.rounds(files, 2, 2, "s", runs.append)
    assert [(r.file[:5], r.round) for r in runs] == [
        ("a0001", 0), ("a0000", 0), ("a0001", 1), ("a0000", 1), ("a0000", 2), ("a0001", 2), ("a0000", 3), ("a0001", 3)]
    from harness.research.decide import rounds_of
    seen = rounds_of(runs, "a0001.py", "a0000.py", 2)
    assert seen.pair == [0, 0, 1, 1] and len(seen.g) == 4


@pytest.mark.gpu
def test_a_replay_on_a_gpu(tmp_path):
    place = ROOT / "records" / "2026-11-30_research_h200" / "plan"
    config = yaml.safe_load((place / "config.yml").read_text())
    (tmp_path / "c.yml").write_text(yaml.safe_dump(config | {"confirm_rounds": 4}))
    assert cli.main(["research", "init", str(ROOT / "submissions/v02_triton_panel.py"), "--name", "g", "--config",
                     str(tmp_path / "c.yml")]) == 0
    assert cli.main(["research", "run", "g", "--agent", f"replay:{place / 'plan.yml'}", "--iterations", "4"]) == 0
