"""`./kit research`: a loop that drives any coding agent through one change after another and keeps what is confirmed.

    loop        the supervisor: state from the ledger, stages, calibrations, audits, epochs
    ledger      events and their fold              choose      the next assignment, and when to stop
    agents      any command, its cost              replay      a plan in place of an agent
    prompt      what it is told                    gates       lint to verdict, one generator
    decide      kept or not: statistics            evaluators  the harness, or declared times
    kernels     a profile by torch, where ncu cannot
    report      report.md, progress.svg            promote     to submissions/ and records/
"""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from harness.errors import EXIT_OK, UserError


def register(verbs: Any) -> None:
    p = verbs.add_parser(
        "research", help="let a coding agent improve a submission, and keep what a fair measurement confirms",
        description="A loop outside any agent: one focused change an attempt, judged by tests, probes and interleaved\n"
                    "timing against its parent; every step in a ledger, so that a run can be stopped, resumed and\n"
                    "replayed.\n\n"
                    "exit codes: 0 stopped by a rule, 2 usage, 3 STOP or Ctrl-C, 4 evaluator broken, 5 agent broken,\n"
                    "            6 another process runs it",
        epilog="example: ./kit research init submissions/v01_compact_wy.py --name demo\n"
               "         ./kit research run demo --agent replay:harness/research/demo/plan.yml",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(metavar="WHAT", required=True)

    def verb(name: str, what: str, example: str) -> argparse.ArgumentParser:
        return sub.add_parser(name, help=what, description=what[0].upper() + what[1:] + ".",
                              epilog=f"example: ./kit research {example}",
                              formatter_class=argparse.RawDescriptionHelpFormatter)

    q = verb("init", "copy a submission and freeze the configuration", "init submissions/v07_x.py --name night1")
    q.add_argument("file", type=Path, metavar="FILE")
    q.add_argument("--name", metavar="NAME", help="default: the file's name")
    q.add_argument("--config", type=Path, metavar="YML", help="settings that differ from the defaults")
    q.set_defaults(run=_init)

    q = verb("run", "run the loop, or go on with it; Ctrl-C is safe", "run night1 --agent codex --iterations 40")
    q.add_argument("name", metavar="NAME")
    q.add_argument("--agent", required=True, metavar="A",
                   help="codex, claude, gemini, opencode, a name in config.yml, replay:PLAN, or a command in quotes")
    q.add_argument("--iterations", type=int, metavar="N", help="at most N attempts in all")
    q.add_argument("--target-us", type=float, metavar="T", help="stop when an audit reaches this geometric mean")
    q.add_argument("--evaluator", metavar="E", help="local, or fake:TIMES.yml (default: the plan's, then config.yml's)")
    q.add_argument("--cluster", metavar="ADDRESS", help="judge candidates on a Dask scheduler's GPU workers")
    q.add_argument("--json", action="store_true", help="print the summary as JSON")
    q.set_defaults(run=_run)

    for name, what, function in (("status", "say where a run stands", _status),
                                 ("report", "write the report again", _report),
                                 ("retime", "time the baseline and the best together, now", _retime),
                                 ("stop", "ask a running loop to stop after the gate at hand", _stop)):
        q = verb(name, what, f"{name} night1")
        q.add_argument("name", metavar="NAME")
        if name == "status":
            q.add_argument("--json", action="store_true", help="print it as JSON")
        q.set_defaults(run=function)

    q = verb("promote", "make a kept attempt a submission, with its record", "promote night1 31")
    q.add_argument("name", metavar="NAME")
    q.add_argument("attempt", nargs="?", type=int, metavar="N", help="default: the best")
    q.set_defaults(run=_promote)


def _init(args: argparse.Namespace) -> int:
    from harness.research.folder import init
    folder = init(args.file, args.name or args.file.stem, args.config)
    print(f"{folder}\n  next: edit program.md and ideas.md there, then ./kit research run {folder.name} --agent codex")
    return EXIT_OK


def _run(args: argparse.Namespace) -> int:
    from harness.research import agents, choose
    from harness.research.folder import existing, locked, read_config
    from harness.research.loop import Loop, tell
    folder = existing(args.name)
    config = read_config(folder)
    config["limits"] |= {k: v for k, v in (("iterations", args.iterations), ("target_us", args.target_us))
                         if v is not None}
    agent = agents.resolve(args.agent, config)
    spec = args.evaluator or agent.evaluator or config["evaluator"]
    with locked(folder):
        executor, width = _executor(args.cluster, spec)
        loop = Loop(folder, agent, spec, config, executor=executor, width=width, say=tell)
        try:
            rule, why = loop.run()
        finally:
            if loop.state.epoch:
                _write_report(folder, loop.state, loop.floors, config)
            if executor:
                executor.shutdown(wait=False, cancel_futures=True)
    tell(f"stopped by the rule {rule}: {why}")
    _show(folder, loop.state, args.json)
    if not args.json:
        print(f"{folder / 'report.md'}\n{folder / 'progress.svg'}")
    return choose.EXIT_OF.get(rule, EXIT_OK)


def _executor(address: str | None, spec: str) -> tuple[Any, int]:
    """(None, 1) for one device: then this process judges, stage by stage."""
    from harness.tune import execute
    if address:
        return execute.cluster(address)
    if spec == "local":
        import torch
        count = torch.cuda.device_count()
        if count > 1:
            return execute.LocalGpus(count), count
    return None, 1


def _write_report(folder: Path, state: Any, floors: dict[str, float], config: dict[str, Any]) -> Path:
    from harness.research.report import write
    return write(folder, state, floors, config["limits"]["target_us"], config["parent"])


def _show(folder: Path, state: Any, as_json: bool) -> None:
    from harness.research.promote import summary
    from harness.research.report import headline
    s = summary(folder, state)
    if as_json:
        print(json.dumps(s, indent=1))
        return
    print(f"{s['run']}: {s['attempts']} attempts: " + ", ".join(f"{n} {v}" for v, n in s["verdicts"].items()))
    print(headline(state))
    print(f"{s['usd']:.2f} dollars, {s['gpu_s']:.0f} s on the device"
          + (f"; stopped: {s['stopped']['rule']}" if s["stopped"] else ""))


def _state(name: str) -> tuple[Path, Any]:
    from harness.research.folder import existing
    from harness.research.ledger import fold, read
    folder = existing(name)
    return folder, fold(read(folder / "ledger.jsonl"))


def _status(args: argparse.Namespace) -> int:
    _show(*_state(args.name), args.json)
    return EXIT_OK


def _report(args: argparse.Namespace) -> int:
    from harness import roofline
    from harness.cases import load_task
    from harness.research.folder import read_config
    folder, state = _state(args.name)
    card = roofline.ceilings(state.env.get("name", ""))  # by name: a report needs no device
    shapes = {c.label: c for c in load_task().benchmarks}
    floors = {c: roofline.floor_ns(shapes[c].batch, shapes[c].n, card)[0] for c in state.base_ns} if card else {}
    print(_write_report(folder, state, floors, read_config(folder)))
    return EXIT_OK


def _stop(args: argparse.Namespace) -> int:
    from harness.research.folder import existing
    (existing(args.name) / "STOP").touch()
    print(f"{args.name} stops after the gate at hand; ./kit research run {args.name} goes on with it")
    return EXIT_OK


def _idle_loop(name: str) -> Any:
    """A loop that calls no agent, for what only measures; under the evaluator that the run used last."""
    from harness.research.agents import Agent
    from harness.research.folder import existing, read_config
    from harness.research.ledger import read
    from harness.research.loop import Loop, tell
    folder = existing(name)
    used = [e["evaluator"] for e in read(folder / "ledger.jsonl") if e["event"] == "start"]
    if not used:
        raise UserError(f"{name} was never run", f"./kit research run {name} --agent codex")
    return Loop(folder, Agent("none", []), used[-1], read_config(folder), say=tell)


def _retime(args: argparse.Namespace) -> int:
    from harness.research.folder import existing, locked
    with locked(existing(args.name)):
        loop = _idle_loop(args.name)
        if not loop.state.kept:
            raise UserError(f"{args.name} has kept nothing yet: there is nothing to time beside the baseline",
                            f"./kit research run {args.name} --agent codex")
        loop.retime()
        _write_report(loop.folder, loop.state, loop.floors, loop.config)
        _show(loop.folder, loop.state, False)
    return EXIT_OK


def _promote(args: argparse.Namespace) -> int:
    from harness.research.folder import existing, locked
    from harness.research.promote import promote
    with locked(existing(args.name)):
        loop = _idle_loop(args.name)
        if loop.spec != "local":
            raise UserError(f"{args.name} was judged by declared times: nothing of it is measured",
                            "./kit research init FILE, and run it under the evaluator local")
        number = loop.state.best if args.attempt is None else args.attempt
        file, record = promote(loop.folder, loop.state, number, loop.evaluator, loop.config)
    print(f"{file}\n{record}")
    return EXIT_OK
