"""One family's sources, without what stands in the prelude. What happens to its CUDA string, in this order:

  1 EDITS      exact replacements: signatures that differ, code that no route reaches
  2 SETTINGS   which class the source is to serve; FACTS: what is decided in every route is folded
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
ONE_MACRO = re.compile(r"#if.*\n#define (\w+) .*\n#else\n#define \1 .*\n#endif")
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
    """What a fact decides, replaced by what is left of it: `if`s on it, `F ? a : b`, `F && x` where F is true, `F || x`
    where it is not."""
    for fact, value in facts.items():
        f, at = re.escape(fact), 0
        while m := _in_code(r"if (?:constexpr )?(?=\()", text, at):
            end, at = cxx.bracket_end(text, m.end()), m.end()
            condition = text[m.end() + 1:end - 1]
            left = decided(condition, fact, value) if fact in condition else condition
            if left in ("true", "false"):
                text, at = _without_if(text, m.start(), end, left == "true"), m.start()
            elif left != condition:
                text = f"{text[:m.start()]}if ({left}){text[end:]}"
        at = 0
        while m := _in_code(rf"(?<![\w.:>]){f}\s*\?", text, at):
            at = m.end()
            before = text[:m.start()].rstrip()
            if re.search(r"[(,\[{?]$|(?<!:):$|(?<![=<>!])=$|\breturn$", before):
                then = _operand_end(text, m.end(), ":")
                stop = _operand_end(text, then + 1, ",;)]}:")
                kept = (text[m.end():then] if value else text[then + 1:stop]).strip()
                start = m.start()
                if before[-1] == "(" and text[stop] == ")" and re.fullmatch(r"[\w.]+", kept) and not re.search(
                        r"\w\s*\($", before):  # brackets of its own
                    start, stop = len(before) - 1, stop + 1
                text, at = text[:start] + kept + text[stop:], start
        operator = "&&" if value else r"\|\|"
        while m := _in_code(rf"(?<![=!<>]= )(?<![<>] )(?<![\w.:>!]){f} {operator} ", text):
            text = text[:m.start()] + text[m.end():]
    return text


def decided(condition: str, fact: str, value: bool) -> str:
    """A condition without what the fact decides; "true" or "false" where that is all."""
    for operator, decisive in ((" || ", "true"), (" && ", "false")):
        terms, depth, last = [], 0, 0
        for m in re.finditer(r"[(\[{]|[)\]}]|" + re.escape(operator), condition):
            depth += (m[0] in "([{") - (m[0] in ")]}")
            if m[0] == operator and depth == 0:
                terms.append(condition[last:m.start()])
                last = m.end()
        if terms:
            terms = [decided(t, fact, value) for t in [*terms, condition[last:]]]
            neutral = "false" if decisive == "true" else "true"
            left = [t for t in terms if t != neutral]
            return decisive if decisive in terms else operator.join(left) if left else neutral
    condition = condition.strip()
    if condition in (fact, f"!{fact}"):
        return str(value == (condition == fact)).lower()
    if condition.startswith("(") and cxx.bracket_end(condition, 0) == len(condition):
        inner = decided(condition[1:-1], fact, value)
        return inner if re.fullmatch(r"[\w.>!-]+", inner) else f"({inner})"
    return condition


def _in_code(pattern: str, text: str, at: int = 0) -> re.Match[str] | None:
    """The first match that is in no comment."""
    for m in re.compile(pattern).finditer(text, at):
        line = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
        if "//" not in line:
            return m
    return None


def _operand_end(text: str, at: int, ends: str) -> int:
    """Where an operand of ?: ends."""
    depth = nested = 0
    for m in cxx.TOKEN.finditer(text, at):
        t = m.group()
        if m.lastgroup != "op":
            continue
        if depth == 0 and t in ends and not (t == ":" and nested):
            return m.start()
        depth += (t in "({[") - (t in ")}]")
        nested += depth == 0 and (t == "?") - (t == ":")
    raise ValueError(f"no end of an operand: {text[at:at + 80]!r}")


def _block_start(text: str, at: int) -> int:
    """Behind the { of the block that `at` stands in; 0 outside of all."""
    depth = [0]
    for m in cxx.TOKEN.finditer(text, 0, at):
        if m.group() == "{" and m.lastgroup == "op":
            depth.append(m.end())
        elif m.group() == "}" and m.lastgroup == "op" and len(depth) > 1:
            depth.pop()
    return depth[-1]


def _block_end(text: str, at: int) -> int:
    """Before the } that closes the block that `at` stands in."""
    depth = 0
    for m in cxx.TOKEN.finditer(text, at):
        if m.lastgroup == "op":
            depth += (m.group() == "{") - (m.group() == "}")
            if depth < 0:
                return m.start()
    return len(text)


def _without_if(text: str, start: int, end: int, value: bool) -> str:
    """`if (...)` stands from start to end and is decided."""
    then = cxx.statement_end(text, end)
    more = re.match(r"\s*else\b", text[then:])
    stop = cxx.statement_end(text, then + more.end()) if more else then
    body = (text[end:then] if value else text[then + more.end():stop] if more else "").strip()
    before = re.search(r"[ \t]*\Z", text[:start])
    indent = before.group() if before else ""
    around = cxx.identifiers(text[_block_start(text, start):start] + " " + text[stop:_block_end(text, stop)])
    controlled = re.search(r"(\)|\belse|\bdo)\s*\Z", text[:start])  # by an if, a loop or an else in front of it
    if controlled and not body:
        if controlled[1] != "else":
            return text[:start] + ";" + text[stop:]
        before_else = text[:controlled.start()].rstrip()
        return before_else + text[stop:]
    if body.startswith("{") and not controlled and not cxx.declared(body[1:-1]) & around:  # without them
        lines = body[1:-1].strip("\n").rstrip().split("\n")
        cut = min((len(x) - len(x.lstrip()) for x in lines if x.strip() and x[0] != "#"), default=0)
        body = "\n".join(x if x[:1] == "#" else indent + x[min(cut, len(x)):] for x in lines)
        body = body.removeprefix(indent)
    if body:
        return text[:start] + body + text[stop:]
    behind = re.match(r"[ \t]*(//[^\n]*)?\n?", text[stop:])  # the whole line goes, with what is said about it
    return text[:start - len(indent)] + text[stop + (behind.end() if behind else 0):]


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


def settle(family: str, text: str, kind: str, notes: list[str]) -> str:
    """The source with what SETTINGS gives it in this file."""
    for name, value in rules.SETTINGS.get(kind, {}).get(family, {}).items():
        optional, name = name.endswith("?"), name.rstrip("?")
        text, count = re.subn(rf"(?m)^((?:static )?constexpr \w+ {name} = )[^;]*;", rf"\g<1>{value};", text)
        if count != 1 and not (count == 0 and optional):
            raise UserError(f"{family}: its file has `constexpr ... {name} = ...;` {count} times, wanted once: "
                            f"{kind} sets it to {value}", f"SETTINGS in {RULES}, or the file", EXIT_WRONG)
        if not count:
            notes.append(f"{family}: has no {name} to set")
    return text


def fingerprint(name: str, text: str) -> str:
    """A definition's key in EQUIVALENT: stays the same as long as the definition says the same."""
    return f"{name} {hashlib.sha256(cxx.canonical(text).encode()).hexdigest()[:8]}"


def defined(pieces: list[Part]) -> set[str]:
    """Names that pieces define, those inside #if blocks included."""
    out: set[str] = set()
    for p in pieces:
        if p.kind == "item":
            out |= defined(cxx.inside(p.text)) if p.text.startswith("#if") else set() if p.directive else {p.name}
    return out


def twins(text: str, prelude: list[Part]) -> str:
    """A family's functions that say what one of the prelude says get its name, as long as that says what it said."""
    items = [p for p in prelude if p.kind == "item" and not p.directive]
    while True:
        pieces = [p for p in cxx.parts(text) if p.kind == "item" and not p.directive]
        known = frozenset({p.name for p in items + pieces})
        bodies = {cxx.canonical(p.text, known - {p.name}): p.name for p in items
                  if p.text.startswith(("DEVICE", "template"))}
        names: dict[str, set[str]] = {}
        for p in pieces:
            names.setdefault(p.name, set()).add(bodies.get(cxx.canonical(p.text, known - {p.name}), ""))
        used = cxx.identifiers(text)
        new = {old: next(iter(found)) for old, found in names.items()
               if len(found) == 1 and "" not in found and old not in found and not found & used}
        if not new:
            return text
        text = cxx.rename(text, new)


def duplicates(family: str, pieces: list[Part], prelude: list[Part], notes: list[str]) -> list[Part]:
    """The pieces without what the prelude defines."""
    items = [p for p in prelude if p.kind == "item"]
    known = frozenset({p.name for p in items} | {p.name for p in pieces if p.kind == "item" and not p.directive})
    have: dict[str, set[str]] = {}
    for p in [*items, *(q for b in items if b.text.startswith("#if") for q in cxx.inside(b.text) if q.kind == "item")]:
        have.setdefault(p.name, set()).add(cxx.canonical(p.text, known))
    blocks = {cxx.canonical(p.text, known) for p in items if p.text.startswith("#if")}
    includes = {p.text for p in items if p.text.startswith("#include")}
    macros = {m for p in items if p.directive for m in re.findall(r"#define (\w+)", p.text)}
    inside, builtin = defined(prelude), set(rules.RENAMES.get(family, {}).values()) - defined(prelude)
    out = []
    for p in pieces:
        name = p.name.split("<")[0]
        if p.kind != "item":
            pass
        elif p.name in builtin and [t for _, t in cxx.tokens(p.text)].count(p.name) > 1:
            continue  # a wrapper of what RENAMES calls directly: it would now call itself
        elif p.text.startswith("#include"):
            if p.text in includes:
                if p.comment:  # the family's page, often
                    out.append(Part("comment", p.comment))
                continue
        elif p.text.startswith("#define"):
            if p.text.split()[1] in MACROS:
                continue
        elif p.text.startswith("#if"):
            names, key = defined(cxx.inside(p.text)), fingerprint("#if", p.text)
            if cxx.canonical(p.text, known) in blocks or key in rules.EQUIVALENT:
                continue
            if names & inside:
                notes.append(f"{family}: a block with {min(names & inside)} stays; {key!r} in EQUIVALENT drops it")
                text = p.text
                for q in cxx.inside(p.text):
                    if q.kind == "item" and (cxx.canonical(q.text, known) in have.get(q.name, ())
                                             or fingerprint(q.name, q.text) in rules.EQUIVALENT):
                        text = text.replace(f"{q}\n", "")
                    elif q.name in have:
                        notes.append(f"{family}: {q.name}, in a block, is not the prelude's and hides it; "
                                     f"{fingerprint(q.name, q.text)!r} in EQUIVALENT drops it")
                p = Part("item", text, p.comment)
            elif (m := ONE_MACRO.fullmatch(p.text)) and m[1] in macros:
                out += [Part("comment", p.comment)] if p.comment else []
                continue
        elif name in have:
            key = fingerprint(name, p.text)
            if cxx.canonical(p.text, known) in have[name] or key in rules.EQUIVALENT:
                continue
            notes.append(f"{family}: {name} is not the prelude's and hides it; {key!r} in EQUIVALENT drops it")
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


def adapt(family: str, source: Source, prelude: list[Part], kind: str = "all_shapes") -> Adapted:
    notes: list[str] = []
    binding = edit(family, source.binding, rules.BINDING_EDITS.get(family, ()), notes)
    if not re.search(rf"\bgeqrf_{family}\(", binding):
        raise UserError(f"{family}: the binding of its file defines no geqrf_{family}(a)",
                        f"BINDING_EDITS in {RULES}, or the file", EXIT_WRONG)
    text = edit(family, source.cuda.strip("\n") + "\n", rules.EDITS.get(family, ()), notes)
    text = fold(settle(family, text, kind, notes), rules.FACTS.get(kind, {}).get(family, {}))
    names, present = rules.RENAMES.get(family, {}), cxx.identifiers(text)
    for old, new in names.items():
        if {old, new} <= present and new not in names and new in defined(prelude):
            raise UserError(f"{family}: {old} becomes {new}, a name that its file uses already", f"RENAMES in {RULES}",
                            EXIT_WRONG)
    text = style(cxx.rename(text, names))
    try:
        text = twins(text, prelude)
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
