"""The docstring that opens a submission: its title and its fields (Algorithm, Parent, Result, Bound by ...).

Read without importing the file: a submission may compile for a minute, or do worse.
"""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

FIELDS = ("Algorithm", "Precision", "Shapes", "Parent", "Result", "Bound by")
_RESULT = re.compile(rb"^Result {2,}.*(?:\r?\n[ \t]+\S.*)*$", re.MULTILINE)  # with its continuation lines


@dataclass(frozen=True)
class Header:
    title: str  # "v07 compact-WY: blocked Householder QR with a Triton panel."; "" where there is no docstring
    fields: dict[str, str]

    @property
    def parent(self) -> str:
        """The stem of the parent's file, "" where there is none or it is no submission."""
        word = self.fields.get("Parent", "").split(" ")[0].rstrip(".,:;").removesuffix(".py")
        return word if re.fullmatch(r"v\d+\w*", word) else ""


def read_header(path: Path) -> Header:
    """Empty where the file is no Python or has no docstring."""
    try:
        text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    except (SyntaxError, ValueError):
        text = ""
    title, _, rest = text.partition("\n")
    fields: dict[str, str] = {}
    last = ""
    for line in rest.lstrip("\n").split("\n"):
        name = next((f for f in FIELDS if re.match(rf"{f} {{2,}}|{f} +\S", line)), "")
        if name:
            fields[name] = line.removeprefix(name).strip()
        elif line.startswith(" ") and last:
            fields[last] += " " + line.strip()
        elif not line.strip():
            break  # the fields end at the first blank line
        last = name or last
    return Header(title.strip(), fields)


def with_result(source: bytes, result: str) -> bytes | None:
    """The source with its Result line replaced; None where the file's docstring has no such line."""
    found = _RESULT.search(source)
    if not found:
        return None
    return source[:found.start()] + b"Result     " + result.encode() + source[found.end():]
