"""From a run to a submission: the file under its name, timed beside the file that the run began with, and recorded by
the same code as `./kit record`. And the runs of a run by name, for `./kit compare`."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness import results
from harness.cases import ROOT
from harness.errors import UserError
from harness.research.decide import percent
from harness.research.evaluators import Evaluator
from harness.research.folder import attempt_dir
from harness.research.ledger import BASELINE, State
from harness.results import Run, append_runs, read_runs

SUBMISSIONS = ROOT / "submissions"


def next_number(folder: Path) -> int:
    """Numbers are never reused."""
    return 1 + max((int(m[1]) for p in folder.glob("v*.py") if (m := re.match(r"v(\d+)_", p.name))), default=-1)


def with_header(source: str, title: str, parent: str) -> str:
    """The source with title, Parent and Result of its own; the fields that say what it does are the agent's affair."""
    source = re.sub(r'^"""v\d+ ([^\n]*)', lambda m: f'"""{title}: {m[1]}', source, count=1, flags=re.M)
    source = re.sub(r"^Parent {2,}.*$", f"Parent     {parent}", source, count=1, flags=re.M)
    return re.sub(r"^Result {2,}.*(?:\n[ \t]+\S.*)*$", "Result     see records/", source, count=1, flags=re.M)


def promote(folder: Path, state: State, number: int, evaluator: Evaluator, config: dict[str, Any],
            submissions: Path | None = None, runs_dir: Path | None = None,
            records: Path | None = None) -> tuple[Path, Path]:
    """(submissions/vNN_idea.py, its record). Raises UserError where the attempt was not kept, the evaluator is a fake,
    or the file that the run began with has changed since."""
    from harness.record import make_record
    submissions = submissions or SUBMISSIONS
    a = state.attempts.get(number)
    if a is None or a.verdict != "kept":
        raise UserError(f"attempt {number} of {folder.name} was not kept", f"./kit research status {folder.name}")
    parent = Path(config["parent"])
    if not parent.is_file() or parent.read_bytes() != (attempt_dir(folder, BASELINE) / "submission.py").read_bytes():
        raise UserError(f"{parent} is not the file any more that the run began with",
                        f"git checkout {parent}, or begin a new run on it")
    if parent.parent.resolve() != submissions.resolve():
        raise UserError(f"{parent} does not lie in {submissions}", "a record compares two files of submissions/")
    slug = re.sub(r"[^a-z0-9]+", "_", (a.title or a.family or "research").lower()).strip("_")[:30].rstrip("_")
    stem = f"v{next_number(submissions):02d}_{slug}"
    file = submissions / f"{stem}.py"
    source = (attempt_dir(folder, number) / "submission.py").read_text(encoding="utf-8")
    file.write_text(with_header(source, f"{stem[:stem.index('_')]} {a.title or slug}", parent.stem), encoding="utf-8")
    try:
        session = results.new_session()
        path = (runs_dir or results.RUNS_DIR) / f"{session}.jsonl"

        def keep(r: Run) -> None:
            append_runs(path, [r])
            if not r.ok:
                raise UserError(f"audit: {r.file} on {r.case}: {r.status}: {r.message}", f"./kit check {file}", 1)
        evaluator.check(file, keep)
        evaluator.rounds([parent, file], 2, config["confirm_rounds"] // 2, session, keep)
        record = make_record(file, f"{a.title or slug} (research run {folder.name}, attempt {number}: {a.reason})",
                             runs_dir=runs_dir, records=records)
    except BaseException:
        file.unlink()  # a submission without its record is no version
        raise
    lines = (folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    chain = {number} | state.ancestors(number)
    mine = [line for line, e in zip(lines, _events(lines), strict=False)
            if e.get("attempt") in chain or e["event"] in ("start", "epoch", "calibrate", "audit")]
    (record / "ledger.jsonl").write_text("".join(mine), encoding="utf-8")
    return file, record


def _events(lines: list[str]) -> list[dict[str, Any]]:
    import json
    return [json.loads(line) for line in lines]


def resolve(name: str) -> list[Run]:
    """Runs of `.research/NAME:best`, `:baseline`, `:keeps` or `:0007`, as bench would have saved them.

    Raises UserError where the run or the attempt is not there.
    """
    from harness.research.ledger import fold, read
    where, _, what = name.rpartition(":")
    folder = Path(where)
    state = fold(read(folder / "ledger.jsonl")) if (folder / "ledger.jsonl").exists() else None
    if state is None:
        raise UserError(f"{folder}: holds no ledger", "./kit research run makes one")
    numbers = {"best": [state.best], "baseline": [BASELINE], "keeps": [a.number for a in state.kept]}.get(
        what, [int(what)] if what.isdigit() else [])
    if not numbers or not all(n == BASELINE or n in state.attempts for n in numbers):
        raise UserError(f"{name}: expected best, baseline, keeps or an attempt's number, got {what!r}",
                        f"./kit research status {folder.name}")
    found: list[Run] = []
    for path in [*sorted((folder / "audits").glob("*.jsonl")), *sorted((folder / "calibrations").glob("*.jsonl")),
                 *(attempt_dir(folder, n) / "runs.jsonl" for n in state.attempts)]:
        if path.exists():
            found += [r for r in read_runs(path, warn=False) if r.file in {f"a{n:04d}.py" for n in numbers}]
    if not found:
        raise UserError(f"{name}: was never timed", f"./kit research retime {folder.name}")
    return found


def summary(folder: Path, state: State) -> dict[str, Any]:
    """What `status` prints and `--json` gives."""
    verdicts: dict[str, int] = {}
    for a in state.attempts.values():
        verdicts[a.verdict or "undecided"] = verdicts.get(a.verdict or "undecided", 0) + 1
    return {"run": folder.name, "attempts": len(state.attempts), "verdicts": verdicts, "best": state.best,
            "gain": percent(state.rel.get(state.best, 0.0)), "epoch": state.epoch, "usd": round(state.usd, 2),
            "gpu_s": round(state.gpu_s, 1), "audits": len(state.audits), "cooling": sorted(state.cooling()),
            "stopped": None if state.stopped is None else {k: state.stopped[k] for k in ("rule", "why")}}


