"""`./kit tune` behind its command line: a run's folder from start to report, and what needs no measuring."""
from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.cases import ROOT
from harness.errors import EXIT_OK, UserError
from harness.results import utc_now
from harness.tune import apply, execute, grid, measure
from harness.tune.backends import SUBMISSIONS, Backend, discover
from harness.tune.journal import VERSION, Journal, Plan, read_json, read_lines, slug, valid_blocks, write_json

OUT = ROOT / "results"
CPU_WORK = 2 ** 30  # b m k^2 of the heaviest point measured without a GPU: about a second
Say = Callable[[str], None]


def run(args: argparse.Namespace) -> int:
    if args.compat:
        from harness.tune.published import print_tables
        return print_tables()
    if args.apply:
        return apply.apply(args.apply, apply.choose(args.out / "tuned.json", _slug_here), args.check)
    if args.check:
        raise UserError("--check belongs to --apply", "./kit tune --apply SUBMISSION --check")
    if args.from_:
        return rerender(args.from_, args.out)
    if args.reanalyse:
        return reanalyse(args.reanalyse, args)
    return measured(args)


def _slug_here() -> str | None:
    """This machine's slug, where it has a GPU that torch sees."""
    try:
        device = measure.describe_device(False)
    except ImportError:
        return None
    return slug(device) if device["kind"] == "gpu" else None


# ---- measuring ------------------------------------------------------------------------------------------------------

def measured(args: argparse.Namespace) -> int:
    if args.passes < 2 and args.grid != "quick":
        raise UserError(f"--passes {args.passes}: without a repeat there is no noise floor",
                        "--passes 2, or --grid quick for a smoke test")
    if args.budget is not None and args.budget <= 0:
        raise UserError(f"--budget {args.budget:g}: expected minutes above 0", "--budget 10")
    backends = discover([x for x in args.backends.split(",") if x]) if args.backends else []
    resumed = _resumed(args)
    if resumed:
        known = [_current(b) for b in Plan.load(resumed / "plan.json").backends]
        backends = known + [b for b in backends if b.id not in {x.id for x in known}] * (args.top_up is not None)
    backends = backends or discover([])
    executor, width, device = _where(args, backends[0].fake)
    with executor:
        plan = _plan(args, backends, device, resumed)
        run_dir = resumed or _new_folder(args.out, device)
        say = _say(run_dir / "tune.log")
        _write_start(run_dir, plan, args)
        blind = grid.blind(plan.points, int(device["units"]))
        for line in blind:
            say(line)
        budget_s = args.budget * 60 if args.budget is not None else None
        say(f"{run_dir}: {len(plan.points)} points, {len(plan.backends)} backends, {plan.passes} passes")
        try:
            measure.measure(plan, run_dir, executor, width, budget_s=budget_s, resuming=resumed is not None, say=say)
        except KeyboardInterrupt:
            say(f"stopped; what was measured is saved\n  next: ./kit tune --resume {run_dir}")
            raise
    return finish(run_dir, plan, args, say)


def _current(b: Backend) -> Backend:
    """The backend with its file's present hash: a plan resumes on the sources that it began with, or not at all."""
    from harness.results import file_sha
    return b if b.fake or not Path(b.path).exists() else replace(b, sha=file_sha(Path(b.path)))


def _resumed(args: argparse.Namespace) -> Path | None:
    """The folder that --resume or --top-up names, or the newest one that fits. Raises UserError where none does."""
    asked = args.resume if args.resume is not None else args.top_up
    if asked is None:
        return None
    status = "running" if args.resume is not None else "complete"
    if str(asked) != ".":
        if not (asked / "plan.json").exists():
            raise UserError(f"{asked}: holds no plan.json", "name the folder of a run that ./kit tune began")
        return Path(asked)
    found = sorted(args.out.glob("*/*/run.json"), key=lambda p: p.parent.name)
    fits = [p.parent for p in found if read_json(p)["status"] == status and p.parent.name != "combined"]
    if not fits:
        raise UserError(f"{args.out}: no run there is {status}", "./kit tune begins one")
    return max(fits, key=lambda p: (p / "run.json").stat().st_mtime)


def _where(args: argparse.Namespace, fake: bool) -> tuple[Executor, int, dict[str, Any]]:
    """The executor, how many blocks it runs at a time, and the device that it measures on."""
    if args.cluster:
        executor, width = execute.cluster(args.cluster)
        return executor, width, executor.submit(measure.describe_device, fake).result()
    device = measure.describe_device(fake)
    if device["kind"] == "gpu":
        import torch
        gpus = torch.cuda.device_count()
        if gpus > 1:
            return execute.LocalGpus(gpus), gpus, device
    return execute.Serial(), 1, device


def _plan(args: argparse.Namespace, backends: list[Backend], device: dict[str, Any], resumed: Path | None) -> Plan:
    if args.grid == "rect" and not backends[0].fake:
        raise UserError("--grid rect holds rectangles, and submissions take squares", "--grid square, or --backends "
                                                                                      "fake")
    if resumed and args.resume is not None:
        old = Plan.load(resumed / "plan.json")
        plan = replace(old, backends=backends, device=device)
        _same(read_json(resumed / "plan.json")["parts"], plan.parts, resumed)
        return plan
    points = grid.make(args.grid, int(device["units"]), int(device["memory_bytes"]))
    if device["kind"] == "cpu":  # what a CPU does in seconds; a run there is for trying the tool
        light = [p for p in points if p.batch * p.m * p.k ** 2 <= CPU_WORK]
        print(f"no GPU: {len(points) - len(light)} of {len(points)} points are too heavy for a CPU and left out",
              file=sys.stderr)
        points = light
    passes = 1 if args.grid == "quick" and args.passes == 2 else args.passes
    plan = Plan(args.grid, points, backends, passes, seed=args.seed, limit_s=args.limit, device=device)
    if resumed:  # a top-up: what the run has stays, what it lacks is added
        old = Plan.load(resumed / "plan.json")
        _same({k: v for k, v in old.parts.items() if k not in ("plan", "sources")}, plan.parts, resumed)
        merged = {p.key: p for p in [*old.points, *plan.points]}
        plan = replace(plan, points=sorted(merged.values()), seed=old.seed, passes=max(old.passes, passes),
                       backends=list({b.id: b for b in [*old.backends, *backends]}.values()))
    return plan


def _same(old: dict[str, str], new: dict[str, str], folder: Path) -> None:
    for part, value in old.items():
        if new[part] != value:
            raise UserError(f"{folder.name} was begun under another {part}: {value}, now {new[part]}",
                            "start a new run: ./kit tune without --resume", 3)


def _new_folder(out: Path, device: dict[str, Any]) -> Path:
    name = datetime.now(UTC).strftime("%Y%m%d-") + os.urandom(3).hex()
    folder = out / slug(device) / name
    folder.mkdir(parents=True)
    return folder


def _say(log: Path) -> Say:
    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)
        with open(log, "a", encoding="utf-8") as f:
            f.write(f"{utc_now()} {text}\n")
    return say


def _git() -> str:
    try:
        commit, dirty = (subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True,
                                        check=True).stdout.strip()
                         for args in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "-uno"]))
        return commit + "+dirty" * bool(dirty)
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _write_start(run_dir: Path, plan: Plan, args: argparse.Namespace) -> None:
    """plan.json, policy.json and run.json stand before the first timing."""
    plan.save(run_dir / "plan.json")
    device = plan.device | {"slug": slug(plan.device)}
    row = apply.row_of(args.out / "tuned.json", device["slug"])
    write_json(run_dir / "policy.json", {"device": device, "source": _policy_source(args.out, row, plan), "row": row})
    old = read_json(run_dir / "run.json") if (run_dir / "run.json").exists() else {}
    write_json(run_dir / "run.json", {
        "id": run_dir.name, "date": old.get("date", utc_now()), "device": device, "cpu": {"cores": os.cpu_count()},
        "os": platform.system(), "python": platform.python_version(), "tool_version": VERSION, "git": _git(),
        "quick": plan.grid == "quick", "status": "running", "grid": plan.grid,
        "sources": {b.id: b.sha for b in plan.backends}, "fingerprint": plan.fingerprint,
        "conditions": [*old.get("conditions", []), measure.conditions(plan.backends[0].fake)]})


def _policy_source(out: Path, row: dict[str, Any] | None, plan: Plan) -> str:
    name = plan.device["name"]
    if row is None:
        others = read_json(out / "tuned.json") if (out / "tuned.json").exists() else {}
        return f"estimated:{name} (from {next(iter(others.values()))['device']})" if others else (
            f"default:untuned-device ({name})")
    shas = {b.id: b.sha for b in plan.backends}
    if any(r["backend"] not in shas for r in row["rows"]):
        return f"tuned-incomplete:{name}"
    return f"tuned{'' if all(shas[b] == s for b, s in row['sources'].items()) else '-stale'}:{name}"


def finish(run_dir: Path, plan: Plan, args: argparse.Namespace, say: Say) -> int:
    """raw.csv, results.json, report.md, plots, run.json, and the device's row where it may be trusted."""
    from harness.tune import timings
    from harness.tune.analyse import analyse
    journal = Journal(run_dir)
    points = {p.key: p for p in plan.points}
    rows = timings.rows_of(journal.lines, points, {b.id: b.sha for b in plan.backends})
    if not any(r["ok"] for r in rows):
        raise UserError(f"{run_dir}: nothing could be timed", f"see {run_dir / 'tune.log'} and samples.jsonl", 3)
    timings.write_csv(run_dir / "raw.csv", rows)
    meta = _meta(plan.device, plan.grid, journal.lines)
    # from the file, as --reanalyse reads it: what is analysed is what is kept
    table = timings.build([(timings.read_csv(run_dir / "raw.csv"), journal.lines)], args.stats)
    table.spans = {b.id: b.n_range for b in plan.backends if b.n_range != Backend("").n_range}
    tuned = args.out / "tuned.json"
    results = analyse(table, meta, seed=plan.seed, incumbent=apply.incumbent(tuned, slug(plan.device)))
    journal.pack()
    write_results(results, run_dir)
    exported = bool(results["ktuned_entry"]) and apply.export(
        tuned, results["ktuned_entry"], [run_dir.name], {b.id: b.sha for b in plan.backends})
    state = read_json(run_dir / "run.json")
    write_json(run_dir / "run.json", state | {
        "status": "complete", "conditions": [*state["conditions"], measure.conditions(plan.backends[0].fake)],
        "result": {k: results["trust"][k] for k in ("trustworthy", "why", "drift")} | {"row": results["ktuned_entry"]}})
    _answer(results, run_dir)
    say(f"{run_dir / 'report.md'}" + (f"; row of {plan.device['name']} in {tuned}" if exported else "; no row "
                                                                                                    "exported"))
    return EXIT_OK


def _meta(device: dict[str, Any], grid_name: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    probes: list[list[Any]] = []
    for line in lines:
        if line["kind"] == "probe":
            for visit in line["visits"].values():
                if visit["status"] == "ok":
                    ms = sorted(visit["ms"])[len(visit["ms"]) // 2]
                    if not probes or probes[-1][0] != ms:  # only changes are kept
                        probes.append([ms, line.get("gpu", "")])
    seen = [{k: line[k] for k in ("load", "cpus", "throttle") if k in line} for line in valid_blocks(lines)]
    return {"device": device | {"slug": slug(device)}, "grid": grid_name, "probes": probes, "conditions": seen}


def write_results(results: dict[str, Any], folder: Path) -> None:
    """results.json, then the report and plots from what was written."""
    from harness.tune import plots, report
    folder.mkdir(parents=True, exist_ok=True)
    results["plots"] = [name for name, draw in plots.CHARTS.items() if draw(results)]
    write_json(folder / "results.json", results)
    written = read_json(folder / "results.json")
    (folder / "report.md").write_text(report.render(written), encoding="utf-8")
    plots.write(written, folder / "plots")


def _answer(results: dict[str, Any], folder: Path) -> None:
    """The rule on stdout."""
    if "rule" in results:
        print("\n".join(results["rule"]["describe"]))
    c = results["chosen"]
    print(f"regret {c['geomean']:.4f}, worst {c['worst']:.2f} at {c['worst_shape']}")
    if results["contest"].get("rule_ms"):
        print(f"contest shapes: {results['contest']['rule_ms']:.4g} ms by the rule, "
              f"{results['contest']['oracle_ms']:.4g} ms at best")
    print(f"report: {folder / 'report.md'}")


# ---- without measuring ----------------------------------------------------------------------------------------------

def rerender(path: Path, out: Path) -> int:
    """report.md and plots from results.json; no device is touched."""
    from harness.tune import plots, report
    results = read_json(path)
    if not isinstance(results, dict) or "n_points" not in results:
        raise UserError(f"{path}: no results of ./kit tune", "name a results.json that ./kit tune wrote")
    target = path.with_name("report.md") if out == OUT else out
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(report.render(results), encoding="utf-8")
    plots.write(results, target.parent / "plots")
    print(target)
    return EXIT_OK


def reanalyse(paths: list[Path], args: argparse.Namespace) -> int:
    """The fit again from timings: one run, or those of one device that may be combined."""
    from harness.tune import timings
    from harness.tune.analyse import analyse
    kept, state = eligible(paths)
    runs = [(timings.read_csv(p), _samples(p)) for p in kept]
    table = timings.build(runs, args.stats)
    about = _about(kept[0])
    lines = [line for _, x in runs for line in x]
    meta = _meta(about["device"], about["grid"], lines)
    results = analyse(table, meta, seed=args.seed) | {"state": state, "runs": [_about(p)["id"] for p in kept]}
    folder = args.out if args.out != OUT else (
        kept[0].parent / "reanalysed" if len(kept) == 1 else kept[0].parent.parent / "combined")
    write_results(results, folder)
    if len(kept) > 1:
        write_json(folder / "summary.json", combined_summary(kept, results, args))
        if results["ktuned_entry"]:
            apply.export(OUT / "tuned.json" if args.out == OUT else args.out / "tuned.json", results["ktuned_entry"],
                         results["runs"], _about(kept[0])["sources"])
    _answer(results, folder)
    return EXIT_OK


def _samples(path: Path) -> list[dict[str, Any]]:
    packed = path.parent / "samples.jsonl.gz"
    return read_lines(packed) if packed.exists() else []


def _about(path: Path) -> dict[str, Any]:
    """run.json beside a raw.csv; what can be said without one."""
    beside = path.parent / "run.json"
    if beside.exists():
        return read_json(beside)  # type: ignore[no-any-return]
    unknown = {"name": "unknown device", "units": 1, "kind": "cpu", "driver": "?", "torch": "?"}
    return {"id": path.parent.name, "device": unknown, "grid": path.name, "status": "complete", "sources": {}}


def eligible(paths: list[Path]) -> tuple[list[Path], str]:
    """The raw.csv that may be combined, and the state: current, stale (older sources), incomplete (no reference).

    Skipped, each with its reason on stderr: smoke tests, interrupted and untrustworthy runs, other source versions.
    Raises UserError for runs of two devices, or where nothing is left.
    """
    def skip(path: Path, why: str) -> None:
        print(f"{path}: skipped: {why}", file=sys.stderr)
    abouts = {p: _about(p) for p in paths}
    devices = sorted({slug(a["device"]) for a in abouts.values()})
    if len(devices) > 1:
        raise UserError(f"--reanalyse: runs of {len(devices)} devices: {', '.join(devices)}", "one device at a time")
    fit = []
    for p, a in abouts.items():
        if len(paths) > 1 and a.get("quick"):
            skip(p, "smoke test")
        elif len(paths) > 1 and a["status"] != "complete":
            skip(p, "interrupted")
        elif len(paths) > 1 and not a.get("result", {}).get("trustworthy", True):
            skip(p, "untrustworthy: " + "; ".join(a["result"]["why"]))
        else:
            fit.append(p)
    now = {b.id: b.sha for b in discover([])} if SUBMISSIONS.exists() else {}

    def current(p: Path) -> bool:
        return all(now.get(b, s) == s for b, s in abouts[p]["sources"].items())
    chosen = [p for p in fit if current(p)]
    state = "current" if chosen else "stale"
    chosen = chosen or fit
    if chosen:  # those that agree with the newest on every backend that both timed
        newest = abouts[max(chosen, key=lambda p: (abouts[p].get("date", ""), str(p)))]["sources"]
        chosen = [p for p in chosen if all(newest.get(b, s) == s for b, s in abouts[p]["sources"].items())]
    for p in fit:
        if p not in chosen:
            skip(p, "other versions of its backends")
    if not chosen:
        raise UserError("--reanalyse: none of the runs may be combined", "see the reasons above", 3)
    if state == "current" and not any("geqrf" in b for p in chosen for b in (abouts[p]["sources"] or ["geqrf"])):
        state = "incomplete"
    return chosen, state


def combined_summary(paths: list[Path], results: dict[str, Any], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Each run, its conditions, and what its own fit would have chosen differently ("field own (combined)")."""
    from harness.tune import timings
    from harness.tune.analyse import analyse
    rows = []
    for p in paths:
        about = _about(p)
        own = analyse(timings.build([(timings.read_csv(p), _samples(p))], args.stats),
                      _meta(about["device"], about["grid"], _samples(p)), seed=args.seed, resamples=200)
        fields = {"threshold": ("band", "chosen"), "rows": ("rule", "rows"), "segments": ("segments", "count")}
        different = [f"{k} {own[a][b]} ({results[a][b]})" for k, (a, b) in fields.items()
                     if a in own and a in results and own[a][b] != results[a][b]]
        rows.append({"run": about["id"], "device": about["device"]["name"], "conditions": about.get("conditions", []),
                     "differs": different or "same"})
    return rows
