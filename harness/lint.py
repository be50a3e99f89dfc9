"""What can be said about a submission by reading it. Needs no torch and runs nothing of it.

An *error* is a rule of the server, or of its guard, that is certain to refuse or break the file. A *flag* is a static
sign of a file that fools a benchmark (found by harness/signs.py and dataflow.py): a sign, not a proof, so a person
decides. A *notice* says what could not be looked at, or what is only good to know.
"""
from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.errors import EXIT_USAGE, UserError

BOARD, GPU = "qr_v2", "B200"  # the one board that this kit is for, and the one card that it offers
MAX_BYTES = 1_000_000
HEADER = f"begin the file with '#!POPCORN leaderboard {BOARD}' and '#!POPCORN gpu {GPU}', no blank line before"
INSTALLED = {"torch", "triton", "task", "cuda"}  # on the server besides the standard library; cuda: cuda-bindings
EVALUATOR = {"reference", "eval", "utils"}  # there too, but the evaluator's own: QR105


class Rule(NamedTuple):
    severity: str
    reason: str
    fix: str


RULES = {
    # What the server refuses, or what cannot run there.
    "QR001": Rule("error", "the server takes 1 to 1,000,000 bytes", "drop what the file does not need"),
    "QR002": Rule("error", "the server takes UTF-8 only", "save the file as UTF-8"),
    "QR003": Rule("error", "the server refuses these letters anywhere, comments and identifiers included",
                  "use another word; launch on the default queue, without the argument"),
    "QR004": Rule("error", "the server refuses a directive that it cannot read", HEADER),
    "QR005": Rule("error", "directives count only in the comment block that begins on the first line", HEADER),
    "QR006": Rule("error", "the server takes Python files only on this board", "name the file vNN_idea.py"),
    "QR007": Rule("error", "the file is not Python", "correct the line; python -m py_compile FILE shows it again"),
    "QR008": Rule("error", "the evaluator calls custom_kernel(data)", "define custom_kernel at the top level"),
    "QR009": Rule("error", "the server has torch, triton, cuda-bindings, the standard library and task only",
                  "do without it, or guard it with try/except ImportError"),
    "QR010": Rule("error", "KernelGuard, which the server runs, rejects this",
                  "rewrite the passage; text in strings and docstrings counts too"),
    # Signs of a file that fools a benchmark.
    "QR101": Rule("flag", "frames lead to the evaluator's variables", "take what you need as an argument"),
    "QR102": Rule("flag", "gc finds the evaluator's objects", "drop it: nothing in a kernel needs it"),
    "QR103": Rule("flag", "this reaches into or replaces another function's code or globals", "call the function"),
    "QR104": Rule("flag", "sys.modules and __main__ lead to the evaluator", "import what you need by name"),
    "QR105": Rule("flag", "reference, eval and utils belong to the evaluator", "write what you need into the file"),
    "QR106": Rule("flag", "/proc shows the evaluator's environment and files", "read what you need from torch.cuda"),
    "QR107": Rule("flag", "this starts or ends a process behind the evaluator's back", "drop it"),
    "QR108": Rule("flag", "POPCORN_ variables carry the evaluator's seed and result channel", "drop it"),
    "QR109": Rule("flag", "shared memory keeps outputs from one process to the next", "compute them in the call"),
    "QR110": Rule("flag", "what a thread, a process or a hook computes, the clock may not see",
                  "finish the work in the call; compile at import"),
    "QR111": Rule("flag", "this changes a module that the evaluator uses too, its clock and checker included",
                  "wrap it in a function of your own"),
    "QR112": Rule("flag", "a tensor whose method is replaced can compute after the clock has stopped",
                  "return plain tensors"),
    "QR113": Rule("flag", "an object that computes when it is looked at does so after the clock has stopped",
                  "return a plain tuple of plain tensors"),
    "QR114": Rule("flag", "code that is built at run time cannot be reviewed", "write it out"),
    "QR115": Rule("flag", "a result that was stored in an earlier call is returned",
                  "store compiled code and workspaces by shape, never results"),
    "QR116": Rule("flag", "remembering an input by its address or identity saves time on reused inputs only",
                  "key by shape, dtype and device"),
    "QR117": Rule("flag", "the evaluator's arguments say whether the run is a test", "drop it"),
    "QR118": Rule("flag", "this is the name of one of the evaluator's modes", "use another word"),
    "QR119": Rule("flag", "KernelGuard finds this suspicious, though the server does not refuse it", "rewrite it"),
    # What was not looked at, and good manners.
    "QR201": Rule("notice", "what KernelGuard says is unknown", "pip install kernelguard==0.3.2"),
    "QR202": Rule("notice", "this project puts the directives on the first two lines", "move them up"),
}


@dataclass(frozen=True, order=True)
class Finding:
    """One finding. line and col count from 1."""

    line: int
    col: int
    rule: str
    severity: str  # error, flag or notice
    message: str  # the fact, then the reason
    fix: str

    def __str__(self) -> str:
        return f"{self.line}:{self.col}: {self.rule} {self.severity}: {self.message}\n  next: {self.fix}"


def finding(rule: str, line: int, col: int, fact: str, fix: str = "") -> Finding:
    severity, reason, usual = RULES[rule]
    return Finding(line, col, rule, severity, f"{fact}: {reason}", fix or usual)


def lint(path: Path) -> list[Finding]:
    """All findings for a file, in the order of its lines. Raises UserError where it cannot be read."""
    try:
        raw = path.read_bytes()
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "name a submission, for example submissions/v00_geqrf.py",
                        EXIT_USAGE) from None
    found = [] if path.suffix == ".py" else [finding("QR006", 1, 1, f"{path.name!r}")]
    if not 0 < len(raw) <= MAX_BYTES:
        return [*found, finding("QR001", 1, 1, f"{len(raw):,} bytes")]
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        before = raw[:e.start]
        return [*found, finding("QR002", before.count(b"\n") + 1, e.start - before.rfind(b"\n"),
                                f"byte 0x{raw[e.start]:02x}")]
    found += [*_banned_letters(text), *_directives(text)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a CUDA string is not our affair
            tree = ast.parse(text)
    except SyntaxError as e:
        found.append(finding("QR007", e.lineno or 1, e.offset or 1, e.msg))
    except (ValueError, RecursionError, MemoryError) as e:  # a NUL byte, or nesting that no parser survives
        found.append(finding("QR007", 1, 1, str(e)))
    else:
        from harness.dataflow import Flow
        from harness.signs import Names, signs
        tree.body = [s for s in tree.body if not _is_main(s)]  # the evaluator imports the file: never run there
        found += [*_entry(tree), *_imports(tree)]
        names = Names(tree)
        found += [finding(rule, node.lineno, node.col_offset + 1, fact)
                  for rule, node, fact in (*signs(tree, names), *Flow(tree, names).signs())]
    found += _kernelguard(text)
    return sorted(set(found))


# ---------------------------------------------------------------- rules of the server

def _banned_letters(text: str) -> Iterator[Finding]:
    word = "str" + "eam"  # assembled so that this file, copied into a submission, would pass its own rule
    for number, line in enumerate(text.split("\n"), 1):
        for m in re.finditer(rf"\w*{word}\w*", line, re.I):
            for hit in re.finditer(word, m[0], re.I):
                yield finding("QR003", number, m.start() + hit.start() + 1, f"the letters {word!r} in {m[0]!r}")


def _directives(text: str) -> Iterator[Finding]:
    """The server's parser: lines `#!POPCORN key value` (or `//!POPCORN`) of the first comment block; a key once."""
    in_block, seen = True, dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        in_block = in_block and line.startswith(("#", "//"))
        words = line.split() if line[:1] in "#/" else []
        if not words or words[0] not in ("#!POPCORN", "//!POPCORN"):
            continue
        key, values = (words[1].lower() if len(words) > 1 else ""), words[2:]
        key = "gpu" if key == "gpus" else key
        wrong = ""
        if not in_block:
            yield finding("QR005", number, 1, f"{line.strip()!r} comes after the first comment block")
        elif not key:
            wrong = "no key"
        elif key not in ("leaderboard", "gpu"):
            wrong = f"unknown key {words[1]!r}"
        elif key in seen:
            wrong = f"{key!r} is given on line {seen[key]} already"
        elif not values:
            wrong = f"{key!r} without a value"
        elif key == "leaderboard" and values != [BOARD]:
            wrong = f"leaderboard {' '.join(values)!r}, expected {BOARD!r} (case counts)"
        elif key == "gpu" and values != [GPU]:
            wrong = f"gpu {' '.join(values)!r}, expected {GPU!r}, the one card of this board"
        if wrong:
            yield finding("QR004", number, 1, wrong)
        if in_block and key:
            seen.setdefault(key, number)
            if number > 2 and key in ("leaderboard", "gpu"):
                yield finding("QR202", number, 1, f"{key!r} stands on line {number}")
    for key in ("leaderboard", "gpu"):
        if key not in seen:
            yield finding("QR005", 1, 1, f"no {key!r} directive in the first comment block")


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "'__main__' == __name__")


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run at import, those inside if, try and with included."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers"):
            inner = getattr(node, part, [])
            if inner and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for child in inner:
                    yield from top_level(child.body if isinstance(child, ast.ExceptHandler) else [child])


def _entry(tree: ast.Module) -> Iterator[Finding]:
    names: set[str] = set()
    for node in top_level(tree.body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    if "custom_kernel" not in names:
        yield finding("QR008", 1, 1, "custom_kernel is not defined")


def _imports(tree: ast.Module) -> Iterator[Finding]:
    guarded = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Try)
               and any(h.type is None or re.search(r"Import|ModuleNotFound|\bException", ast.unparse(h.type))
                       for h in node.handlers)
               for child in node.body for inner in ast.walk(child)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom) or id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            names = [a.name for a in node.names]
        for name in names:
            root = name.split(".")[0]
            if root not in INSTALLED | EVALUATOR | sys.stdlib_module_names:
                yield finding("QR009", node.lineno, node.col_offset + 1, f"import of {name!r}")


# ---------------------------------------------------------------- KernelGuard

def _kernelguard(text: str) -> Iterator[Finding]:
    try:
        import kernelguard
    except ImportError:
        yield finding("QR201", 1, 1, "kernelguard is not installed")
        return
    try:
        verdict = kernelguard.analyze_code(text, compute_structural_hash=False)
        outcome = {m["pattern"]: kernelguard.get_rule_policy(m["pattern"]).max_outcome
                   for m in verdict["matched_patterns"]}
    except Exception as e:  # a third party's parser on arbitrary text
        yield finding("QR201", 1, 1, f"kernelguard failed ({type(e).__name__}: {e})")
        return
    for match in verdict["matched_patterns"]:
        rule = {"auto_filter": "QR010", "suspicious": "QR119"}.get(outcome[match["pattern"]])
        if rule == "QR010" and not verdict["should_filter"]:
            rule = "QR119"
        if rule:
            line, col = _locate(text, str(match["evidence"]))
            yield finding(rule, line, col, f"{match['pattern']} ({' '.join(str(match['evidence']).split())[:80]})")


def _locate(text: str, evidence: str) -> tuple[int, int]:
    """Where the guard's evidence stands, as far as it quotes the file; else the first character."""
    for quote in (evidence, *evidence.splitlines(), *re.findall(r"[\w.]{4,}", evidence)):
        at = text.find(quote.strip()) if quote.strip() else -1
        if at >= 0:
            return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return 1, 1
