"""The loop: assignment, agent, gates, decision, again; outside of any agent, and killed at any point it goes on.

Every stage writes its file whole before its line in the ledger. At a start the ledger is folded, and an attempt that
was under way continues after its last complete stage: a captured submission is never paid for twice, a half-finished
measurement counts for nothing.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness import stats
from harness.cases import ROOT
from harness.errors import UserError
from harness.research import agents, choose, evaluators, gates, prompt, spread
from harness.research.agents import Agent
from harness.research.decide import Rule, calibration, percent, rounds_of, score_ns
from harness.research.evaluators import Evaluator
from harness.research.folder import PROGRAM, attempt_dir
from harness.research.gates import Job, Step
from harness.research.ledger import BASELINE, Attempt, Event, Ledger, State, write_whole
from harness.results import Run, read_runs

REJECTED = ("same", "slower", "wrong", "broken", "flagged", "rejected")  # a diff like theirs is a repeat
ALIKE = 0.95
NOISY = 0.05  # an A/A margin above it hides what most changes bring


class Loop:
    """One call of `./kit research run`. `executor` None: judged in this process, stage by stage."""

    def __init__(self, folder: Path, agent: Agent, evaluator_spec: str, config: dict[str, Any], *,
                 executor: Executor | None = None, width: int = 1, say: Callable[[str], None] = lambda text: None):
        self.folder, self.agent, self.config, self.say = folder, agent, config, say
        self.executor, self.width = executor, width
        self.spec = evaluator_spec
        self.evaluator: Evaluator = spread.OnExecutor(executor, self.spec, config) if executor else \
            evaluators.make(self.spec, config)
        self.ledger = Ledger(folder / "ledger.jsonl", folder.name)
        self.begin = time.monotonic()
        self.signals = 0
        self.warned = False  # that costs are unknown
        self.stopping: tuple[str, str] | None = None
        self.floors: dict[str, float] = {}

    @property
    def state(self) -> State:
        return self.ledger.state

    def run(self) -> tuple[str, str]:
        """(rule, why). The ledger ends with a stop event, whatever the rule."""
        (self.folder / "STOP").unlink(missing_ok=True)
        with self._interrupts():
            self._start()
            self._work()
            assert self.stopping  # what ends the work says why
            rule, why = self.stopping
            if rule not in ("person", "evaluator", "infra storm") and self._worth_an_audit():
                self.audit()
        self.ledger.append("stop", rule=rule, why=why, best=self.state.best)
        return rule, why

    def retime(self) -> None:
        """An audit now, and the epoch that it may begin."""
        self._start()
        if self.state.calibration is None:
            self.calibrate()
        self.audit()

    @contextlib.contextmanager
    def _interrupts(self) -> Iterator[None]:
        """The first Ctrl-C ends the loop after the gate at hand, the second breaks off the agent, the third all."""
        def on_signal(*_: object) -> None:
            self.signals += 1
            if self.signals > 2:
                raise KeyboardInterrupt
            self.say("stopping after the gate at hand" if self.signals == 1 else "breaking off the agent")
        try:
            before = signal.signal(signal.SIGINT, on_signal)
        except ValueError:  # not the main thread
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _start(self) -> None:
        env = self.evaluator.env()
        self.floors = self.evaluator.floors()
        sha = hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()[:12]
        earlier = next((e["config"] for e in reversed(self.ledger.events) if "config" in e), self.config)
        fresh = not self.state.epoch
        changed = {k: v for k, v in self.config.items() if earlier.get(k) != v}
        self.ledger.append("start", epoch=self.state.epoch or "e1", env=env, config_sha=sha, seed=self.config["seed"],
                           agent=self.agent.name, evaluator=self.spec, config=self.config)
        if changed:
            self.ledger.append("config", config_sha=sha, changed=changed)
        if not fresh and env != self.state.env:
            why = ", ".join(f"{k}: {self.state.env.get(k)}, now {env.get(k)}" for k in sorted(env | self.state.env)
                            if env.get(k) != self.state.env.get(k))
            self.say(f"a new epoch: {why}")
            self.ledger.append("epoch", epoch=f"e{int(self.state.epoch[1:]) + 1}", why=why, env=env)
        if not self.state.base_ns:
            self._check_parent()
        for a in self.state.undecided:
            stage = next(reversed([*((a.called and ["agent"]) or ["prompt"]), *a.gates, *a.measures]))
            self.ledger.append("recover", attempt=a.number, stage=stage)

    def _check_parent(self) -> None:
        def complain(r: Run) -> None:
            if not r.ok:
                raise UserError(f"the parent fails: {r.status} on {r.case}: {r.message}",
                                f"./kit check {self.config['parent']}", 1)
        with self._files([BASELINE]) as (file,):
            self.evaluator.check(file, complain)

    # ---- what is tried

    def _work(self) -> None:
        if self.executor:
            from harness.tune.execute import run_all
            for job, steps in run_all(self.executor, self.width, spread.judged, self._jobs(), spread.lost):
                for step in steps:
                    self._record(job.attempt, step)
            return
        for job in self._jobs():
            for step in gates.judge(job, self.evaluator):
                self._record(job.attempt, step)
                if step.event != "decision" and self._asked():
                    return

    def _jobs(self) -> Iterator[Job]:
        """Candidates to be judged, one at a time, until a rule ends it. Sets `stopping`."""
        for a in list(self.state.undecided):
            if not self._upkeep():
                return
            yield from self._proposed(a)
        while self._upkeep():
            left = None if self.agent.steps is None else self.agent.steps - self._step()
            rule = choose.stop_rule(self.state, self.config["limits"], time.monotonic() - self.begin, self.floors, left)
            if rule and rule[0] == "gain" and not self.state.pivoted:
                self.say(f"pivot: {rule[1]}")
                self.ledger.append("pivot", why=rule[1])
                continue
            if rule:
                self.stopping = rule
                return
            yield from self._proposed(self._assign())

    def _step(self) -> int:
        """How many steps of this agent's plan were given out: an interrupted one is given again."""
        return sum(a.agent_name == self.agent.name and a.verdict != "interrupted" for a in self.state.attempts.values())

    def _upkeep(self) -> bool:
        """Calibrations, re-timings and audits that are due. False where the loop is to end; `stopping` says why."""
        if self._asked():
            return False
        n = len(self.state.attempts)
        last = self.state.calibration
        due = last is None or last["verdict"] != "ok" or (
            n - self.state.calibrated_at >= self.config["recalibrate_every"])
        if due and not self.calibrate():
            self.stopping = ("evaluator", "a file is called faster or slower than itself, twice in a row")
            return False
        if self.state.needs_retime or len(self.state.kept) - self.state.audited_keeps >= self.config["audit_every"]:
            self.audit()
        return True

    def _asked(self) -> bool:
        """Has a person asked for an end?"""
        if self.signals or (self.folder / "STOP").exists():
            self.stopping = ("person", "Ctrl-C" if self.signals else "the file STOP")
        return self.stopping is not None

    def _assign(self) -> Attempt:
        number = len(self.state.attempts) + 1
        a = choose.assign(self.state, number, self.floors)
        log = attempt_dir(self.folder, number)
        idea = self._idea()
        text = self._prompt(a, number, idea)
        write_whole(log / "prompt.md", text)
        self.ledger.append("attempt", attempt=number, parent=a.parent, other=a.other, mode=a.mode, family=a.family,
                           focus=a.focus, agent=self.agent.name, idea=idea, prompt_bytes=len(text.encode()),
                           prompt_sha=hashlib.sha256(text.encode()).hexdigest()[:12])
        return self.state.attempts[number]

    def _read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _idea(self) -> str:
        """The first unchecked line of the backlog that no attempt was handed; the file is its owner's, and stays."""
        given = {e.get("idea") for e in self.ledger.events if e["event"] == "attempt"}
        lines = [x[6:].strip() for x in self._read("ideas.md").splitlines() if x.startswith("- [ ] ")]
        return next((x for x in lines if x not in given), "")

    def _prompt(self, a: choose.Assignment, number: int, idea: str) -> str:
        program = self._read("program.md").removeprefix(PROGRAM)
        remote = [g["detail"] for x in self.state.attempts.values() for n, g in x.gates.items()
                  if n == "remote" and not g["ok"]]
        return prompt.render(self.state, a, number, program=program, idea=idea, margin=self._rule().margin,
                             floors=self.floors, margins=self._margins(a.parent), remote=remote,
                             profile=self._profile(a.parent, a.focus) if self.agent.steps is None else [])

    def _margins(self, number: int) -> dict[str, str]:
        """Worst residuals of a file by shape, as text."""
        path = self.folder / "calibrations" / "0001.jsonl"
        if number != BASELINE:
            path = attempt_dir(self.folder, number) / "runs.jsonl"
        if not path.exists():
            return {}
        found: dict[str, str] = {}
        for r in read_runs(path, warn=False):
            if r.file == f"a{number:04d}.py" and r.margin:
                found[r.case] = f"{r.margin.get('factor', 0):.2g} / {r.margin.get('orth', 0):.2g}"
        return found

    def _profile(self, number: int, case: str) -> list[dict[str, Any]]:
        source = attempt_dir(self.folder, number) / "submission.py"
        key = hashlib.sha256(source.read_bytes() + case.encode()).hexdigest()[:12]
        path = self.folder / "profiles" / f"{key}.json"
        if not path.exists():
            with TemporaryDirectory(prefix="qrkit-profile-") as d:
                write_whole(path, json.dumps(self.evaluator.profile(source, case, Path(d)) if case else []))
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return found

    # ---- the agent, and what needs no evaluator

    def _proposed(self, a: Attempt) -> Iterator[Job]:
        """The agent's candidate as a job, unless it falls before it costs anything."""
        log = attempt_dir(self.folder, a.number)
        if not (log / "agent.json").exists():
            if (log / "calling").exists():  # killed while the agent was at work
                agents.end_orphan(log, self.folder / "work")
                self._record(a.number, Step("decision", {"verdict": "interrupted", "reason": "killed during the call"}))
                return
            self._call(a, log)
        told = json.loads((log / "agent.json").read_text(encoding="utf-8"))
        if a.called is None:
            self.ledger.append("agent", attempt=a.number, **told)
        if "new" not in a.gates:
            for step in self._entry_gates(a, told, log):
                if step.fields["gate"] not in a.gates:
                    self._record(a.number, step)
        if fall := next((g for g in a.gates.values() if not g["ok"] and g["gate"] in ("capture", "new")), None):
            self._record(a.number, Step("decision", {"verdict": fall["verdict"], "reason": fall["detail"]}))
            return
        runs = read_runs(log / "runs.jsonl", warn=False) if (log / "runs.jsonl").exists() else []
        wanted = {f"{self.folder.name}-{a.number:04d}-{stage}" for stage in a.measures}
        yield Job(self.folder.name, a.number, a.parent, (log / "submission.py").read_bytes(),
                  (attempt_dir(self.folder, a.parent) / "submission.py").read_bytes(), self.spec, self.config,
                  self._rule(), self.state.env, {k: g for k, g in a.gates.items() if k not in ("capture", "new")},
                  dict(a.measures), tuple(r for r in runs if r.session in wanted))

    def _call(self, a: Attempt, log: Path) -> None:
        """One call in a fresh folder. Afterwards attempts/NNNN holds what it gave, agent.json last."""
        work = self.folder / "work"
        parent = attempt_dir(self.folder, a.parent) / "submission.py"
        self._prepare(work, a, parent)
        self.say(f"{a.number:4d}  {a.mode:8s} of {a.parent}: {self.agent.name}")
        write_whole(log / "calling", "")
        usd = self.config["limits"]["usd"]
        call = agents.call(
            self.agent, work, log, log / "prompt.md", iteration=a.number, step=self._step() - 1,
            seed=self.state.seed + a.number, usd_left=None if usd is None else max(0.01, usd - self.state.usd),
            timeout_s=self.config["agent"]["timeout_s"], config=self.config, stop=lambda: self.signals > 1)
        error, content = "", b""
        try:
            content = agents.take(work / "submission.py", gates.MAX_BYTES)
        except ValueError as e:
            error = str(e)
        try:
            idea = agents.idea_of(agents.take(work / "idea.json", agents.IDEA_BYTES))
        except ValueError:
            idea = {}
        if not error:
            write_whole(log / "submission.py", content)
        diff = gates.changed(parent.read_text(encoding="utf-8"), content.decode()) if not error else []
        write_whole(log / "diff.patch", "\n".join(diff) + "\n")
        write_whole(log / "idea.json", json.dumps(idea))
        family = idea.get("family", "")
        family = family if family in choose.FAMILIES or not family else "other"
        default = self.config["agent"]["usd_per_call_default"]
        unknown = call.usd is None and not default and self.agent.steps is None
        if unknown and self.config["limits"]["usd"] is not None and not self.warned:
            self.warned = True
            self.say("warning: what a call costs is unknown, so limits.usd does not bind; next: set "
                     "agent.usd_per_call_default in config.yml")
        last = (log / "agent.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        write_whole(log / "agent.json", json.dumps({
            "rc": call.rc, "wall_s": round(call.wall_s, 2), "timed_out": call.timed_out, "tokens": call.tokens,
            "usd": default if call.usd is None else call.usd, "capture": error, "broken_off": self.signals > 1,
            "sha": hashlib.sha256(content).hexdigest()[:12] if not error else "",
            "changed_lines": sum(x[:1] in "+-" and x[:3] not in ("+++", "---") for x in diff),
            "hunks": sum(x.startswith("@@") for x in diff), "title": idea.get("title", ""),
            "family": family, "said": "" if call.rc == 0 else "".join(last)[:300]}))
        shutil.rmtree(work, ignore_errors=True)

    def _prepare(self, work: Path, a: Attempt, parent: Path) -> None:
        """A folder with what the agent may read; only submission.py and idea.json are taken from it."""
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        shutil.copyfile(parent, work / "submission.py")
        for name in ("task.yml", "task.py", "reference.py"):
            shutil.copyfile(ROOT / name, work / name)
            (work / name).chmod(0o444)
        shutil.copyfile(attempt_dir(self.folder, a.number) / "prompt.md", work / "prompt.md")
        if a.other is not None:
            shutil.copyfile(attempt_dir(self.folder, a.other) / "submission.py", work / "other.py")
        history = [f"{x.number} {x.title}: {x.verdict}. {x.lesson}" for x in self.state.attempts.values() if x.verdict]
        (work / "HISTORY.md").write_text("\n".join(history) + "\n", encoding="utf-8")
        (work / "try").write_text(f'#!/bin/sh\nexec "{ROOT / "kit"}" check "{work / "submission.py"}" --case b20-n32\n')
        (work / "try").chmod(0o755)
        if shutil.which("git") and self.agent.steps is None:  # a plan needs none; an agent's tools look for one
            with contextlib.suppress(OSError):
                subprocess.run(["git", "init", "-q"], cwd=work, capture_output=True, timeout=10)

    def _entry_gates(self, a: Attempt, told: Event, log: Path) -> Iterator[Step]:
        """Capture, then no-op and duplicate; nothing is spent on what falls here."""
        how = "timed out" if told["timed_out"] else f"exit status {told['rc']}"
        said = how + (f": {told['said']}" if told["said"] else "")
        if told["broken_off"]:
            yield gates.failed("capture", "interrupted", "broken off by a person")
            return
        if told["capture"]:
            yield gates.failed("capture", "agent_error" if told["rc"] else "broken",
                            told["capture"] + (f" ({said})" if told["rc"] else ""))
            return
        source = (log / "submission.py").read_text(encoding="utf-8")
        parent = (attempt_dir(self.folder, a.parent) / "submission.py").read_text(encoding="utf-8")
        own = gates.fingerprint(source)
        if own == gates.fingerprint(parent):
            yield gates.failed("capture", "agent_error", said) if told["rc"] else \
                gates.failed("new", "noop", "the code is the parent's")
            return
        yield gates.passed("capture")
        diff = gates.shingles(gates.changed(parent, source))
        for earlier in self.state.finished:
            path = attempt_dir(self.folder, earlier.number)
            if not (path / "submission.py").exists():
                continue
            if gates.fingerprint((path / "submission.py").read_text(encoding="utf-8")) == own:
                yield gates.failed("new", "duplicate", f"the code is attempt {earlier.number}'s ({earlier.verdict})")
                return
            if earlier.verdict in REJECTED and diff and gates.alike(diff, gates.shingles(
                    (path / "diff.patch").read_text(encoding="utf-8").splitlines())) >= ALIKE:
                yield gates.failed("new", "duplicate", f"the change is attempt {earlier.number}'s ({earlier.verdict})")
                return
        yield gates.passed("new")

    # ---- what is written down

    def _record(self, number: int, step: Step) -> None:
        """A stage's files, then its line."""
        log = attempt_dir(self.folder, number)
        if step.runs:
            path, sessions = log / "runs.jsonl", {r.session for r in step.runs}
            before = [r for r in read_runs(path, warn=False) if r.session not in sessions] if path.exists() else []
            write_whole(path, _lines([*before, *step.runs]))
        fields = dict(step.fields)
        a = self.state.attempts[number]
        if step.event == "decision":
            if fields["verdict"] == "kept" and self.config["remote"] and "remote" not in a.gates \
                    and self.state.remote < self.config["remote_budget"]:
                self._record(number, self._remote(log / "submission.py"))
            remote = a.gates.get("remote")
            if remote and not remote["ok"]:
                fields["reason"] += "; remote: refused"
            fields["lesson"] = lesson(fields)
            write_whole(log / "gates.json", json.dumps(list(a.gates.values()), indent=1))
            write_whole(log / "note.md", f"# {number} {a.title}\n\n{fields['verdict']}: {fields['reason']}\n\n"
                        f"{fields['lesson']}\n")
            why = " ".join(fields["reason"].split())[:150]
            self.say(f"{number:4d}  {fields['verdict']:11s} {a.title or '-'}: {why}")
        self.ledger.append(step.event, attempt=number, **fields)

    def _remote(self, file: Path) -> Step:
        """Send a kept file to the leaderboard. A refusal is quoted, with what our own lint finds: never as a rule."""
        from harness.lint import lint
        from harness.popcorn import store
        from harness.popcorn.submit import submit
        start = time.monotonic()
        try:
            code = submit(file, self.config["remote"], None, None, wait=False)
            entry = next(iter(store.entries()), None)
            text = str(entry.state.get("why", "")) if entry else ""
        except UserError as e:
            code, text = e.exit_code, e.what
        ms = 1e3 * (time.monotonic() - start)
        if code == 0:
            return gates.passed("remote", ms)
        causes = [f for f in lint(file) if f.severity != "notice"]
        ours = f"our lint says {causes[0].rule}, line {causes[0].line}: {causes[0].message}" if causes else \
            "our lint finds no cause"
        return gates.failed("remote", "kept", f"server said {text!r}; {ours}", ms)

    def _rule(self) -> Rule:
        c, config = self.state.calibration or {}, self.config
        return Rule(margin=max(config["min_gain"], c.get("aa_geo_p90", 0.0)), aa=c.get("aa_shape_p90", {}),
                    shape_loss=config["shape_loss"], allow_shape_loss=config["allow_shape_loss"],
                    price_lines=config["price_lines"], price_gain=config["price_gain"])

    # ---- what is timed besides candidates

    @contextlib.contextmanager
    def _files(self, numbers: Sequence[int]) -> Iterator[list[Path]]:
        with TemporaryDirectory(prefix="qrkit-research-") as d:
            paths = [Path(d) / f"a{n:04d}.py" for n in numbers]
            for path, n in zip(paths, numbers, strict=True):
                shutil.copyfile(attempt_dir(self.folder, n) / "submission.py", path)
            yield paths

    def _time(self, files: Sequence[Path], kind: str) -> tuple[list[Run], Path, float]:
        """Confirm rounds of some files, saved in <kind>/NNNN.jsonl; their failure is an error of the set-up."""
        count = sum(e["event"] == {"calibrations": "calibrate", "audits": "audit"}[kind] for e in self.ledger.events)
        runs: list[Run] = []

        def collect(r: Run) -> None:
            runs.append(r)
            if not r.ok:
                raise UserError(f"{kind[:-1]}: {r.file} on {r.case}: {r.status}: {r.message}",
                                f"./kit check {self.config['parent']}", 1)
        start = time.monotonic()
        session = f"{self.folder.name}-{kind}-{count + 1:04d}"
        self.evaluator.rounds(files, 2, self.config["confirm_rounds"] // 2, session, collect)
        path = self.folder / kind / f"{count + 1:04d}.jsonl"
        write_whole(path, _lines(runs))
        return runs, path, time.monotonic() - start

    def calibrate(self) -> bool:
        """The incumbent against a copy of itself: what this machine calls a difference. False where it calls two
        equal files different twice in a row."""
        number = self.state.best
        per_pair = self.config["confirm_rounds"] // 2
        for _ in range(2):
            with self._files([number]) as (file,):
                copy = file.with_name("copy.py")
                shutil.copyfile(file, copy)
                runs, path, s = self._time([file, copy], "calibrations")
            rounds = rounds_of(runs, copy.name, file.name, per_pair)
            if len(rounds.d) < 2:
                raise UserError("calibration: fewer than two rounds at a steady clock",
                                "see that nothing else runs on this device", 3)
            geo, shapes, verdict = calibration(rounds, self.config["min_gain"])
            if not self.state.base_ns:  # then nothing is better yet, and the file is the baseline
                score, times = score_ns(runs, file.name)
                self.ledger.append("baseline", attempt=BASELINE, sha=runs[0].sha, score_ns=score, shapes=times)
            self.ledger.append("calibrate", epoch=self.state.epoch, rounds=len(rounds.d), aa_geo_p90=geo,
                               aa_shape_p90=shapes, verdict=verdict, s=round(s, 2),
                               file=str(path.relative_to(self.folder)))
            self.say(f"A/A: a margin of {100 * self._rule().margin:.2f} % from {len(rounds.d)} rounds")
            if geo > NOISY:
                self.say("warning: this machine calls two equal files that far apart; next: see that nothing else runs "
                         "here, or raise confirm_rounds in config.yml")
            if verdict == "ok":
                return True
        return False

    def _worth_an_audit(self) -> bool:
        last = self.state.audits[-1] if self.state.audits else None
        current = last is not None and last["epoch"] == self.state.epoch and str(self.state.best) in last["rel"] \
            and len(self.state.kept) == self.state.audited_keeps
        return bool(self.state.kept) and not current

    def audit(self) -> None:
        """Time the baseline, the best, the next best and each epoch's best together: the figures that count."""
        state = self.state
        top = sorted((n for n in state.rel if n != BASELINE), key=lambda n: state.rel[n])[:3]
        by_epoch: dict[str, Attempt] = {}
        for a in sorted(state.kept, key=lambda a: -(a.score_ns or 0)):
            by_epoch[a.epoch] = a  # the quickest of each comes last
        if state.needs_retime:
            top = [a.number for a in sorted(state.kept, key=lambda a: a.score_ns or float("inf"))[:3]]
        numbers = list(dict.fromkeys([BASELINE, *top, *(a.number for a in by_epoch.values())]))
        per_pair = self.config["confirm_rounds"] // 2
        with self._files(numbers) as files:
            runs, path, s = self._time(files, "audits")
        base = files[0].name
        rel, shapes, hi, score = {BASELINE: 0.0}, {BASELINE: dict.fromkeys(state.base_ns, 0.0)}, {}, {}
        for n, f in zip(numbers, files, strict=True):
            score[n] = score_ns(runs, f.name)[0]
            if n == BASELINE:
                continue
            rounds = rounds_of(runs, f.name, base, per_pair)
            e = stats.paired(rounds.g)
            rel[n], shapes[n] = statistics.median(rounds.g), rounds.shape_means()
            hi[n] = e.mean + e.half_width(0.10)
        self.ledger.append("audit", epoch=state.epoch, rounds=self.config["confirm_rounds"], rel=rel, shapes=shapes,
                           ci95_hi=hi, score_ns=score, file=str(path.relative_to(self.folder)), s=round(s, 2))
        best = self.state.best
        self.say(f"audit: attempt {best} is best, {percent(self.state.rel[best])} on the baseline")


def lesson(fields: Event) -> str:
    """One sentence for the next prompt."""
    if fields.get("shapes"):
        case, x = max(fields["shapes"].items(), key=lambda kv: abs(kv[1]))
        return f"Moved most on {case}: {percent(x)}."
    return " ".join(fields["reason"].split())[:160]


def _lines(runs: Sequence[Run]) -> str:
    return "".join(json.dumps(asdict(r), separators=(",", ":")) + "\n" for r in runs)


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
