"""One family's sources, without what stands in the prelude. What happens to its CUDA string, in this order:

  1 EDITS      exact replacements: signatures that differ, code that no route reaches
  2 FACTS      `if`s that are decided in every route
  3 RENAMES    its names for what the prelude calls otherwise, token by token
  4 style      `#pragma unroll` before a loop -> UNROLL, DEVICE, asm statements that are a call of the prelude (FORMS)
  5 duplicates a definition that says what one of the prelude says (cxx.canonical) goes; one of the same name that says
               something else stays, hides the prelude's, and is reported with the key that EQUIVALENT takes once
               --prove has shown that the kernels come out the same
  6 unused     what nothing calls any more goes
"""
from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from harness.assemble import cxx, rules
from harness.assemble.cxx import Part
from harness.cases import ROOT
from harness.errors import EXIT_WRONG, UserError

PRELUDE = Path(__file__).with_name("prelude.cuh")
RULES = "harness/assemble/rules.py"
MACROS = ("DEVICE", "NOINLINE", "UNROLL", "ROLL")


@dataclass(frozen=True)
class Source:
    """A family's own file: its CUDA and its binding, as Python values."""
    cuda: str
    binding: str


@dataclass
class Adapted:
    cuda: str
    binding: str
    notes: list[str] = field(default_factory=list)


def read_source(family: str, stem: str) -> Source:
    path = ROOT / "submissions" / f"{stem}.py"
    if not path.is_file():
        raise UserError(f"{family}: submissions/{stem}.py: no such file", "harness/assemble/spec.py names it")
    found: dict[str, list[str]] = {"CUDA": [], "BINDING": []}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and len(value.value) > 400:
            found["BINDING" if "torch/extension.h" in value.value else "CUDA"].append(value.value)
    for kind, texts in found.items():
        if len(texts) != 1:
            what = "with torch/extension.h" if kind == "BINDING" else "without it"
            raise UserError(f"{family}: {path.name} has {len(texts)} long string constants {what}, wanted 1 ({kind})",
                            "a family's file holds its CUDA in one string and its binding in another")
    return Source(found["CUDA"][0], found["BINDING"][0])


# ---------------------------------------------------------------- branches that are decided

def fold(text: str, facts: dict[str, bool]) -> str:
    """`if` on a fact, alone or with && behind it, replaced by what is left of it."""
    for fact, value in facts.items():
        while m := re.search(r"if (?:constexpr )?\(" + re.escape(fact) + r"(?: && |\))", text):
            inside = text.index("(", m.start())
            end = cxx.bracket_end(text, inside)
            rest = text[m.end():end - 1].strip() if text[m.end() - 1] != ")" else ""
            if value and rest:
                rest = rest[1:-1] if rest.startswith("(") and cxx.bracket_end(rest, 0) == len(rest) else rest
                text = text[:m.start()] + f"if ({rest})" + text[end:]
                continue
            then = cxx.statement_end(text, end)
            more = re.match(r"\s*else\b", text[then:])
            stop = cxx.statement_end(text, then + more.end()) if more else then
            body = (text[end:then] if value else text[then + more.end():stop] if more else "").strip()
            before = re.search(r"[ \t]*\Z", text[:m.start()])
            indent = before.group() if before else ""
            if body.startswith("{"):  # its lines, out of the braces
                lines = body[1:-1].strip("\n").rstrip().split("\n")
                cut = min((len(x) - len(x.lstrip()) for x in lines if x.strip() and x[0] != "#"), default=0)
                body = "\n".join(x if x[:1] == "#" else indent + x[min(cut, len(x)):] for x in lines)
                body = body.removeprefix(indent)
            if body:
                text = text[:m.start()] + body + text[stop:]
            else:  # the whole line goes, with what is said about it
                behind = re.match(r"[ \t]*(//[^\n]*)?\n?", text[stop:])
                text = text[:m.start() - len(indent)] + text[stop + (behind.end() if behind else 0):]
    return text


# ---------------------------------------------------------------- one family

def style(text: str) -> str:
    text = text.replace("__device__ __forceinline__", "DEVICE").replace("__device__ __noinline__", "NOINLINE")
    text = re.sub(r"(?m)^[ \t]*#pragma unroll[ \t]*\n([ \t]*)(?=(for|while|do)\b)", r"\1UNROLL ", text)
    return re.sub(r"(?m)^[ \t]*#pragma unroll 1[ \t]*\n([ \t]*)(?=(for|while|do)\b)", r"\1ROLL ", text)


def edit(family: str, text: str, edits: tuple[rules.Edit, ...], notes: list[str]) -> str:
    for e in edits:
        if e.old in text:
            text = text.replace(e.old, e.new)
            continue
        first = e.old.strip().splitlines()[0][:90]
        if e.needed and e.new not in text:
            raise UserError(f"{family}: its file has neither {first!r} nor what replaces it: {e.needed}",
                            f"mend the edit in {RULES}, or the file", EXIT_WRONG)
        notes.append(f"{family}: an edit has nothing to do: {first!r}")
    return text


def fingerprint(family: str, name: str, text: str) -> str:
    """A definition's key in EQUIVALENT: stays the same as long as the definition says the same."""
    return f"{family} {name} {hashlib.sha256(cxx.canonical(text).encode()).hexdigest()[:8]}"


def defined(pieces: list[Part]) -> set[str]:
    """Names that pieces define, those inside #if blocks included."""
    out: set[str] = set()
    for p in pieces:
        if p.kind == "item":
            out |= defined(cxx.inside(p.text)) if p.text.startswith("#if") else set() if p.directive else {p.name}
    return out


def duplicates(family: str, pieces: list[Part], prelude: list[Part], notes: list[str]) -> list[Part]:
    """The pieces without what the prelude defines."""
    items = [p for p in prelude if p.kind == "item"]
    known = frozenset({p.name for p in items} | {p.name for p in pieces if p.kind == "item" and not p.directive})
    have: dict[str, set[str]] = {}
    for p in items:
        have.setdefault(p.name, set()).add(cxx.canonical(p.text, known))
    blocks = {cxx.canonical(p.text, known) for p in items if p.text.startswith("#if")}
    includes = {p.text for p in items if p.text.startswith("#include")}
    bodies = {cxx.canonical(p.text, known - {p.name}): p.name for p in items
              if p.text.startswith(("DEVICE", "template"))}
    inside, builtin = defined(prelude), rules.RENAMES.get(family, {}).values()
    out = []
    for p in pieces:
        name = p.name.split("<")[0]
        if p.kind != "item":
            pass
        elif p.name.startswith("__") and p.name in builtin:
            continue  # a wrapper of an intrinsic that RENAMES calls directly: it would now call itself
        elif p.text.startswith("#include"):
            if p.text in includes:
                continue
        elif p.text.startswith("#define"):
            if p.text.split()[1] in MACROS:
                continue
        elif p.text.startswith("#if"):
            names = defined(cxx.inside(p.text))
            if names and names <= inside:
                key = fingerprint(family, "#if", p.text)
                if cxx.canonical(p.text, known) in blocks or key in rules.EQUIVALENT:
                    continue
                notes.append(f"{family}: a block {sorted(names)} is not the prelude's; {key!r} in EQUIVALENT drops it")
        elif name in have:
            plain = re.sub(r"\b" + name + r"<\w+>(?=\s*\()", name, p.text, count=1)
            key = fingerprint(family, name, p.text)
            if cxx.canonical(plain, known) in have[name] or key in rules.EQUIVALENT:
                continue
            if f"{family} {name}" not in rules.OWN:
                notes.append(f"{family}: {name} is not the prelude's and hides it; {key!r} in EQUIVALENT drops it")
        elif twin := bodies.get(cxx.canonical(p.text, known - {p.name})):
            notes.append(f"{family}: {p.name} says what the prelude's {twin} says: RENAMES could take it")
        out.append(p)
    return out


def forms(pieces: list[Part]) -> list[Part]:
    """asm statements for which the prelude has a function"""
    out = []
    for p in pieces:
        text = p.text
        for pattern, call in rules.FORMS if p.kind == "item" else ():
            text = re.sub(pattern, call, text)
        out.append(p if text == p.text else Part("item", text, p.comment))
    return out


def constants(text: str) -> set[str]:
    """All names of `constexpr int A = 1, B = 2;`"""
    return set(re.findall(r"(\w+)\s*=(?!=)", text)) if text.startswith("constexpr") else set()


def used_only(pieces: list[Part], roots: set[str]) -> tuple[list[Part], list[str]]:
    """The pieces without the definitions that neither `roots` nor anything that is kept mentions; what went."""
    lost: list[str] = []
    while True:
        items = [p for p in pieces if p.kind == "item"]
        names = [p.name for p in items]
        used = set(roots)
        for p in items:
            overload = names.count(p.name) > 1 and p.text.count(p.name) > 1  # may call another one of its name
            used |= p.ids if p.directive or overload else p.ids - {p.name}
        gone = [p for p in items if not p.text.startswith(("#", "static_assert", "enum", "extern", "template <> "))
                and p.name not in used and not p.name.startswith("__") and not constants(p.text) & used]
        if not gone:
            return pieces, lost
        lost += [p.name for p in gone]
        pieces = [p for p in pieces if p not in gone]


def adapt(family: str, source: Source, prelude: list[Part]) -> Adapted:
    notes: list[str] = []
    binding = edit(family, source.binding, rules.BINDING_EDITS.get(family, ()), notes)
    if not re.search(rf"\bgeqrf_{family}\(", binding):
        raise UserError(f"{family}: the binding of its file defines no geqrf_{family}(a)",
                        f"BINDING_EDITS in {RULES}, or the file", EXIT_WRONG)
    text = edit(family, source.cuda.strip("\n") + "\n", rules.EDITS.get(family, ()), notes)
    text = fold(text, rules.FACTS.get(family, {}))
    names, present = rules.RENAMES.get(family, {}), cxx.identifiers(text)
    for old, new in names.items():
        if {old, new} <= present and new not in names and not new.startswith("__") and "<" not in new:
            raise UserError(f"{family}: {old} becomes {new}, a name that its file uses already", f"RENAMES in {RULES}",
                            EXIT_WRONG)
    text = style(cxx.rename(text, names))
    text = re.sub(r"(?m)^(DEVICE [\w ]*?)(\w+)<\w+>\(", r"\1\2(", text)  # `barrier_wait<false>` is for calls
    try:
        pieces = forms(duplicates(family, cxx.parts(text), prelude, notes))
    except (ValueError, IndexError) as e:
        raise UserError(f"{family}: its CUDA cannot be taken apart: {e}", "harness/assemble/cxx.py",
                        EXIT_WRONG) from None
    code = re.sub(r"(?m)^#.*$", "", binding)
    pieces, unused = used_only(pieces, cxx.identifiers(code))
    if unused:
        notes.append(f"{family}: unused: {', '.join(unused)}")
    text = cxx.join(pieces).strip("\n") + "\n"
    text = re.sub(r"(?m)^(namespace (\w+) \{)\n", r"\1\nusing namespace qr;\n", text, count=1)
    return Adapted(text, binding.strip("\n") + "\n", notes)
