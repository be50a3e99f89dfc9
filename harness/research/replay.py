"""The replay agent: a plan in place of a model, so that a run costs nothing and can be repeated.

    python replay.py PLAN STEP        in the scratch folder; STEP counts from 0

PLAN is a YAML list of steps, or a mapping {evaluator: fake:TIMES.yml, steps: [...]}, or the folder of an earlier run,
whose submissions are judged again under the present harness. A step:

    {title: wider panel, family: panel, patch: patches/01.diff}   a unified diff on whatever the parent is, or
    {title: fused T,     family: T,     file: files/02.py}        a whole file, or
    {title: NB = 64,     edit: [["NB = 32", "NB = 64"]]}          text for text, or
    {title: NB = 64,     sub: [["^NB = .*", "NB = 64"]]}          pattern for text, or nothing of these: a no-op
    {sleep_s: 2, rc: 1, stderr: boom, idea: "{not json"}          whatever else an agent may do
"""
from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any


def load(path: Path) -> dict[str, Any]:
    """{evaluator, steps}. Raises UserError (also when run as a script, where it is a plain error)."""
    from harness.errors import UserError
    try:
        return _load(path)
    except (OSError, ValueError) as e:
        raise UserError(f"replay:{path}: {e}", "name a plan: harness/research/demo/plan.yml") from None


def _load(path: Path) -> dict[str, Any]:
    if path.is_dir():
        attempts = sorted(p for p in (path / "attempts").glob("[0-9]*") if p.name != "0000")  # that is the parent
        if not attempts:
            raise ValueError("holds no attempts of a run")
        return {"evaluator": "", "steps": [
            {"file": str(a / "submission.py"), "idea": (a / "idea.json").read_text() if (a / "idea.json").exists()
             else "{}"} if (a / "submission.py").exists() else {} for a in attempts]}
    import yaml
    try:
        plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as e:
        raise ValueError(f"not YAML: {e}") from None
    plan = plan if isinstance(plan, dict) else {"steps": plan}
    if not isinstance(plan.get("steps"), list) or not all(isinstance(s, dict) for s in plan["steps"]):
        raise ValueError("expected a list of steps")
    return {"evaluator": plan.get("evaluator", ""), "steps": plan["steps"]}


def patched(text: str, diff: str) -> str:
    """The text with a unified diff applied; a hunk may have moved. Raises ValueError where its lines are not there."""
    lines = text.split("\n")
    moved = 0
    for hunk in re.split(r"^@@ ", diff, flags=re.M)[1:]:
        head, *body = hunk.rstrip("\n").split("\n")
        at = int(head.split()[0].split(",")[0].lstrip("-")) - 1 + moved
        old = [x[1:] for x in body if x[:1] in (" ", "-", "")]
        new = [x[1:] for x in body if x[:1] in (" ", "+", "")]
        places = [i for i in range(len(lines) - len(old) + 1) if lines[i:i + len(old)] == old]
        if not places:
            raise ValueError(f"hunk @@ {head} does not fit")
        place = min(places, key=lambda i: abs(i - at))
        lines[place:place + len(old)] = new
        moved = place - at + moved + len(new) - len(old)
    return "\n".join(lines)


def act(step: dict[str, Any], base: Path) -> int:
    target = Path("submission.py")
    time.sleep(step.get("sleep_s", 0))
    try:
        if "patch" in step:
            target.write_text(patched(target.read_text(), (base / step["patch"]).read_text()))
        elif "file" in step:
            target.write_text((base / step["file"]).read_text())
        for old, new in step.get("edit", []):
            text = target.read_text()
            if old not in text:
                raise ValueError(f"{old!r} is not in the parent")
            target.write_text(text.replace(old, new))
        for pattern, new in step.get("sub", []):
            text, count = re.subn(pattern, new.replace("\\", r"\\"), target.read_text(), flags=re.M)
            if not count:
                raise ValueError(f"{pattern!r} matches nothing in the parent")
            target.write_text(text)
    except ValueError as e:
        print(e, file=sys.stderr)
        return 1
    idea = step.get("idea") or json.dumps({k: step[k] for k in ("title", "family", "hypothesis") if k in step})
    Path("idea.json").write_text(idea)
    if "stderr" in step:
        print(step["stderr"], file=sys.stderr)
    return int(step.get("rc", 0))


if __name__ == "__main__":
    where, number = Path(sys.argv[1]), int(sys.argv[2])
    steps = _load(where)["steps"]
    sys.exit(act(steps[number] if number < len(steps) else {}, where if where.is_dir() else where.parent))
