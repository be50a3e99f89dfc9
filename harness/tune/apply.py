"""tuned.json, one row a device, and the ROUTES block of a submission that is generated from it.

A submission that takes generated routes names its parts once and leaves the table to this file:

    BACKENDS = {"v12_small": geqrf_small, "geqrf": torch.geqrf}
    # BEGIN GENERATED
    ROUTES = (...)
    # END GENERATED

    def custom_kernel(a):
        batch, n = a.shape[0], a.shape[-1]
        return next(BACKENDS[name] for n_max, batch_max, multiple, name in ROUTES if (n_max is None or n <= n_max)
                    and (batch_max is None or batch <= batch_max) and n % multiple == 0)(a)
"""
from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import EXIT_OK, EXIT_WRONG, UserError
from harness.tune.journal import read_json, write_json

BEGIN, END = "# BEGIN GENERATED", "# END GENERATED"
FIELDS = ("n_max", "batch_max", "multiple_of", "backend")


def export(path: Path, entry: dict[str, Any], runs: list[str], sources: dict[str, str]) -> bool:
    """Put a device's row into tuned.json; False, and nothing written, where the row is indicative only."""
    if entry["indicative_only"]:
        return False
    tuned = read_json(path) if path.exists() else {}
    used = {r[3] for r in entry["rows"]}
    tuned[entry["slug"]] = {
        "device": entry["device"], "units": entry["units"],
        "rows": [dict(zip(FIELDS, r, strict=True)) for r in entry["rows"]], "runs": runs,
        "sources": {b: s for b, s in sorted(sources.items()) if b in used}, "geomean": entry["geomean"],
        "ci": entry["ci"], "held_out": entry["held_out"]}
    write_json(path, dict(sorted(tuned.items())))
    return True


def row_of(path: Path, slug: str | None) -> dict[str, Any] | None:
    """This device's row, if there is one."""
    return read_json(path).get(slug) if path.exists() else None


def incumbent(path: Path, slug: str) -> list[list[Any]] | None:
    row = row_of(path, slug)
    return [[r[k] for k in FIELDS] for r in row["rows"]] if row else None


def choose(path: Path, this_device: Callable[[], str | None]) -> dict[str, Any]:
    """The only row, or this device's (which is asked, through torch, only then). Raises UserError where that leaves a
    choice."""
    if not path.exists():
        raise UserError(f"{path}: no such file: nothing is tuned yet", "./kit tune --grid square", 3)
    tuned = read_json(path)
    if len(tuned) == 1:
        return next(iter(tuned.values()))  # type: ignore[no-any-return]
    slug = this_device()
    if slug in tuned:
        return tuned[slug]  # type: ignore[no-any-return]
    raise UserError(f"{path}: rows for {', '.join(tuned) or 'no device'}, none for this machine ({slug or 'no GPU'})",
                    "run this on one of those devices, or ./kit tune here")


def block(row: dict[str, Any]) -> list[str]:
    """The generated lines, markers included."""
    held = f", held out {row['held_out']:.4f}" if row["held_out"] else ""
    lines = [BEGIN, f"# ./kit tune --apply: {row['device']}, {row['units']} units, run {', '.join(row['runs'])};",
             f"# measured regret {row['geomean']:.4f}{held}.",
             "# The first row that holds: n at most, batch at most, n a multiple of, backend (None: no limit).",
             "ROUTES = ("]
    for r in row["rows"]:
        name = r["backend"].removeprefix("sub:")
        lines.append(f'    ({r["n_max"]}, {r["batch_max"]}, {r["multiple_of"]}, "{name}"),')
    return [*lines, ")", END]


def apply(submission: Path, row: dict[str, Any], check: bool) -> int:
    """Rewrite the generated block of a submission (check: only say whether it is stale, exit status 1).

    Raises UserError where a marker is missing, or BACKENDS lacks a backend that the row names.
    """
    try:
        text = submission.read_text(encoding="utf-8")
    except OSError as e:
        raise UserError(f"{submission}: {e.strerror}", "name a submission that holds the markers") from None
    lines = text.split("\n")
    at = [[i for i, line in enumerate(lines) if line.strip() == marker] for marker in (BEGIN, END)]
    if [len(x) for x in at] != [1, 1] or at[0][0] > at[1][0]:
        raise UserError(f"{submission.name}: expected one {BEGIN!r} and after it one {END!r}, found "
                        f"{len(at[0])} and {len(at[1])}", "put the two lines around ROUTES")
    named = {r["backend"].removeprefix("sub:") for r in row["rows"]}
    lacking = sorted(named - _backends(submission, text))
    if lacking:
        raise UserError(f"{submission.name}: BACKENDS has no {', '.join(map(repr, lacking))}, which the row names",
                        f'add "{lacking[0]}": <its function> to BACKENDS in {submission}')
    fresh = [*lines[:at[0][0]], *block(row), *lines[at[1][0] + 1:]]
    if fresh == lines:
        print(f"{submission.name}: ROUTES is up to date")
        return EXIT_OK
    if check:
        print(f"{submission.name}: ROUTES is stale\n  next: ./kit tune --apply {submission}")
        return EXIT_WRONG
    submission.write_text("\n".join(fresh), encoding="utf-8")
    print(f"{submission.name}: ROUTES rewritten, {len(row['rows'])} rows")
    return EXIT_OK


def _backends(submission: Path, text: str) -> set[str]:
    """The constant keys of the file's BACKENDS, read without running it."""
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        raise UserError(f"{submission.name}:{e.lineno}: {e.msg}", f"./kit check {submission}") from None
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and any(
                getattr(t, "id", "") == "BACKENDS" for t in node.targets):
            return {str(k.value) for k in node.value.keys if isinstance(k, ast.Constant)}
    return set()
