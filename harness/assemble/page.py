"""The text of an assembled submission: header, prelude, a string and a binding for each family, host.

header.txt and host.txt hold the words of both files: lines below [all_shapes] or [fp32_class] go into that file alone,
up to [both]. @...@ is filled in from spec.py: @name@, @n512.to@, @mid.from@, @large.v@ (v109), @sources@ ...
"""
from __future__ import annotations

import functools
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from harness.assemble import adapt, cxx, spec
from harness.errors import EXIT_WRONG, UserError

HERE = Path(__file__).parent
RESULT = re.compile(r"(?m)^Result     .*$")  # comes from a record: ./kit record writes it


@dataclass
class Built:
    """One submission: its text, each family's own part, what nvcc gets for it, what adapt.py has to say."""
    text: str
    families: dict[str, str]
    sources: dict[str, str]
    notes: list[str]


@functools.cache
def build(kind: str) -> Built:
    file = spec.FILES[kind]
    check(file)
    prelude_text = adapt.PRELUDE.read_text(encoding="utf-8").strip("\n") + "\n"
    prelude = cxx.parts(prelude_text)
    adapted = {family: adapt.adapt(family, adapt.read_source(family, x.file), prelude,
                                     kind)
               for family, x in file.families.items() if not x.of}
    for family, x in file.families.items():
        for flag in x.flags:
            if (macro := flag.removeprefix("-D").split("=")[0]) not in cxx.identifiers(adapted[x.of or family].cuda):
                raise UserError(f"{family}: the flag {flag} means nothing to its file, which has no {macro}",
                                "harness/assemble/spec.py", EXIT_WRONG)
    for family, a in adapted.items():
        a.cuda = contents(family, a.cuda) + a.cuda
    line = "\n# " + "-" * 64 + " "
    roots = {i for a in adapted.values() for i in cxx.identifiers(a.cuda)}
    prelude_text = cxx.join(adapt.used_only(prelude, roots)[0]).strip("\n") + "\n"
    header = _words("header.txt", kind).rstrip("\n") + "\n"
    out = f'{header}{line}what all families share\n\nPRELUDE = r"""\n{prelude_text}"""\n'
    for family, a in adapted.items():
        name = family.upper()
        out += f'{line}{family}: {_number(file.families[family])}\n\n{name}_CUDA = PRELUDE + r"""\n{a.cuda}"""\n\n'
        out += f'{name}_BINDING = r"""\n{a.binding}"""\n'
    return Built(out + "\n" + _words("host.txt", kind), {f: a.cuda for f, a in adapted.items()},
                 {f: f"\n{prelude_text}\n{a.cuda}" for f, a in adapted.items()},
                 [n for a in adapted.values() for n in a.notes])


def check(file: spec.Assembled) -> None:
    """Is the spec one of a file?"""
    last = 0
    for family, x in file.families.items():
        if x.of and file.families[x.of].file != x.file:
            raise UserError(f"{file.file} {family}: {x.file} is not {x.of}'s file, {file.families[x.of].file}",
                            "harness/assemble/spec.py", EXIT_WRONG)
        if not last < x.least <= x.most:
            raise UserError(f"{file.file} {family}: n from {x.least} to {x.most} does not lie behind {last}, where the "
                            "family before ends", "harness/assemble/spec.py", EXIT_WRONG)
        last = x.most


def contents(family: str, cuda: str) -> str:
    """contents.txt's lines for a family, as a comment."""
    found = re.search(rf"(?ms)^\[{family}\]\n(.*?)(?:\n\n|\Z)", (HERE / "contents.txt").read_text(encoding="utf-8"))
    if not found:
        raise UserError(f"{family}: harness/assemble/contents.txt has no [{family}]", exit_code=EXIT_WRONG)
    have, lines = cxx.bodies(cuda), list[str]()
    for line in found[1].split("\n"):
        head, rest = line[:7], line[7:]
        rest = re.sub(r"`(\w+)\?`(, |; )?", lambda m: m[0] if m[1] in have else "", rest)
        for name in re.findall(r"`(\w+)`", rest):
            if name not in have:
                raise UserError(f"{family}: contents.txt names `{name}`, which its source does not define",
                                "mend its lines in harness/assemble/contents.txt", EXIT_WRONG)
        words = re.sub(r"`(\w+)\??`", r"\1", rest).strip().rstrip(";")
        lines += textwrap.wrap(words, 120, initial_indent=f"//   {head}", subsequent_indent=f"//   {' ' * len(head)}")
    return "// CONTENTS\n" + "\n".join(lines) + "\n//\n"


def _number(family: spec.Family) -> str:
    return family.file.split("_")[0]


def _words(name: str, kind: str) -> str:
    """A template's text for one of the files."""
    text, current = [], "both"
    for line in (HERE / name).read_text(encoding="utf-8").splitlines(keepends=True):
        if line.strip() in [f"[{k}]" for k in (*spec.FILES, "both")]:
            current = line.strip()[1:-1]
        elif current in (kind, "both"):
            text.append(line)
    values = _values(kind)

    def fill(m: re.Match[str]) -> str:
        if m[1] not in values:
            raise UserError(f"harness/assemble/{name}: {m[0]} is not filled in for {kind}; there is "
                            f"{', '.join(sorted(values))}", exit_code=EXIT_WRONG)
        return values[m[1]]
    return re.sub(r"@([a-z][\w.]*)@", fill, "".join(text))


def _values(kind: str) -> dict[str, str]:
    file = spec.FILES[kind]
    own = {f: x for f, x in file.families.items() if not x.of}  # with a source of their own
    values = {"name": file.name, "file": file.file, "parent": file.parent, "first": file.first}
    for other, x in spec.FILES.items():
        values |= {other: x.name, f"{other}_file": x.file}
        values |= {f"{other}.{f}.v": _number(y) for f, y in x.families.items()}
    for f, y in file.families.items():
        values |= {f"{f}.from": str(y.least), f"{f}.to": str(y.most), f"{f}.v": _number(y), f"{f}.file": y.file}
    rows = [f'    ({x.most}, None, 1, "{x.file}"),' for x in own.values()]
    rows[-1] = re.sub(r"\(\d+", "(None", rows[-1])
    values["routes"] = "\n".join(rows)
    values["limits"] = ", ".join(f'"{f}": ({x.least}, {x.most})' for f, x in file.families.items())
    values["sources"] = "\n".join(_source(f, x) for f, x in file.families.items())
    values["backends"] = _wrapped([f'"{x.file}": "{f}"' for f, x in own.items()], len("BACKENDS = {"))
    return values


def _source(family: str, x: spec.Family) -> str:
    flags = "(" + "".join(f'"{flag}",' for flag in x.flags) + ")"
    of = (x.of or family).upper()
    binding = f'{of}_BINDING.replace("geqrf_{x.of}", "geqrf_{family}")' if x.of else f"{of}_BINDING"
    return f'    "{family}": ({of}_CUDA, {binding}, {flags}),'


def _wrapped(words: list[str], indent: int, width: int = 106) -> str:
    lines = [words[0]]
    for word in words[1:]:
        if indent + len(lines[-1]) + len(word) + 2 > width:
            lines.append(word)
        else:
            lines[-1] += ", " + word
    return (",\n" + " " * indent).join(lines)


def same(text: str, other: str) -> bool:
    """Apart from what a record says."""
    return RESULT.sub("", text, count=1) == RESULT.sub("", other, count=1)
