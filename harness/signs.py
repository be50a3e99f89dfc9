"""Static signs of a submission that fools a benchmark, place by place: rules QR101 to QR118 of harness/lint.py.

Each sign is one that an honest file has no use for. Compiled code kept in a cache, workspaces kept by shape and tables
of routes are honest, and silent. All of it can be evaded by one who wants to: what a file does is judged by
harness/evaluate.py; this only shows a reader where to look. harness/dataflow.py has the signs that span functions.
"""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

Sign = tuple[str, Any, str]  # rule, the node (for its place), the fact
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Modules, by the rule that their import breaks.
MODULES = {"gc": "QR102", "__main__": "QR104", "reference": "QR105", "eval": "QR105",
           "utils": "QR105", "multiprocessing.shared_memory": "QR109", "asyncio": "QR110", "unittest.mock": "QR111",
           **dict.fromkeys(("base64", "zlib", "lzma", "bz2", "binascii", "marshal"), "QR114")}
# Full names, and the endings of names, by the rule that their use breaks.
NAMES = {"sys._getframe": "QR101", "sys._current_frames": "QR101",
         **dict.fromkeys((f"inspect.{f}" for f in ("currentframe", "stack", "trace", "getouterframes",
                                                   "getinnerframes", "getclosurevars", "*")), "QR101"),
         "globals": "QR103", "sys.modules": "QR104",
         **dict.fromkeys(("os.kill", "os.killpg", "os.fork", "os.forkpty", "os._exit", "os.abort", "os.posix_spawn",
                          "os.execv", "os.execve", "os.execvp", "signal.pthread_kill"), "QR107"),
         **dict.fromkeys(("sys.setprofile", "sys.settrace", "sys.addaudithook", "sys.monitoring", "signal.signal",
                          "signal.setitimer", "signal.alarm", "atexit.register", "weakref.finalize"), "QR110"),
         "sys.argv": "QR117", **dict.fromkeys(("exec", "eval", "compile", "__import__"), "QR114"),
         **dict.fromkeys(("builtins.exec", "builtins.eval", "builtins.compile"), "QR114")}
ATTRIBUTES = {**dict.fromkeys(("f_back", "f_globals", "f_locals", "tb_frame", "gi_frame"), "QR101"),
              **dict.fromkeys(("__globals__", "__code__", "__closure__", "__subclasses__"), "QR103"),
              **dict.fromkeys(("as_subclass", "_make_subclass", "_make_wrapper_subclass"), "QR113"),
              "_version": "QR116"}
LITERALS = ((re.compile(r"(?<!\w)/proc(?=[/'\"]|$)"), "QR106"), (re.compile("POPCORN_"), "QR108"),
            (re.compile("/dev/shm"), "QR109"), (re.compile(r"\A(test|benchmark|leaderboard|profile)\Z"), "QR118"))
ALWAYS_BESIDE = re.compile(r"(threading\.(Thread|Timer)|_thread\.start_new_thread|"
                           r"(torch\.)?multiprocessing\.(\w+\.)*(Process|Pool|spawn|start_processes))\Z")
SETTINGS = ("torch.backends.", "torch._inductor.", "torch._dynamo.", "torch.utils.cpp_extension.", "triton.knobs.")
TENSOR_METHODS = {"double", "float", "half", "detach", "clone", "cpu", "cuda", "to", "numpy", "tolist", "item",
                  "contiguous", "tril", "triu", "__class__"}


def signs(tree: ast.Module, names: Names) -> Iterator[Sign]:
    """Every sign that a place in the module shows by itself, in no order."""
    docstrings = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    for node in ast.walk(tree):
        if id(node) not in docstrings:
            yield from _sign(node, names)


class Names:
    """What a name stands for: `tc.Event` after `import torch.cuda as tc` is `torch.cuda.Event`."""

    def __init__(self, tree: ast.Module):
        self.of: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for a in node.names:
                    self.of[a.asname or a.name.split(".")[0]] = a.name if a.asname else a.name.split(".")[0]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for a in node.names:
                    self.of[a.asname or a.name] = f"{node.module}.{a.name}"
        for node in tree.body:  # Event = torch.cuda.Event
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and self.full(node.value):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.of[target.id] = self.full(node.value)
        self.own = {n.name for n in ast.walk(tree) if isinstance(n, Function | ast.ClassDef)}
        self.own |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.own |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}

    def full(self, node: ast.AST) -> str:
        """The full name of an imported thing, "" for anything else."""
        if isinstance(node, ast.Name):
            return self.of.get(node.id, "")
        if isinstance(node, ast.Attribute):
            base = self.full(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def builtin(self, node: ast.AST) -> str:
        """The name of a builtin that is not shadowed, "" for anything else."""
        return node.id if isinstance(node, ast.Name) and node.id not in self.own and node.id not in self.of else ""


def text_of(node: ast.AST, known: Mapping[str, str] | None = None) -> str | None:
    """The text of a literal, also of one that is put together by + from literals and the names in `known`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    if isinstance(node, ast.Name):
        return (known or {}).get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left, known), text_of(node.right, known)
        return None if left is None or right is None else left + right
    return None


def _module_rule(name: str) -> str | None:
    """The rule that importing a module, or something of it, breaks."""
    parts = name.split(".")
    return next((MODULES[m] for m in (".".join(parts[:k]) for k in range(1, len(parts) + 1)) if m in MODULES), None)


def _sign(node: ast.AST, names: Names) -> Iterator[Sign]:
    """The signs that one node shows by itself."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        given = [a.name for a in node.names]
        if isinstance(node, ast.ImportFrom):
            given = [f"{node.module}.{a}" for a in given] if node.module and not node.level else []
        for name in given:
            rule = _module_rule(name) or NAMES.get(name)
            if rule:
                yield rule, node, f"import of {name!r}"
    elif isinstance(node, ast.Attribute):
        rule = NAMES.get(names.full(node)) or ATTRIBUTES.get(node.attr)
        if rule:
            yield rule, node, f"{ast.unparse(node)!r}"
    elif isinstance(node, ast.Constant | ast.BinOp):
        text = text_of(node)
        for pattern, rule in LITERALS if text else ():
            hit = pattern.search(text or "")
            if hit:
                yield rule, node, f"{hit[0]!r} in a literal"
    elif isinstance(node, ast.Call):
        yield from _call(node, names)
    elif isinstance(node, ast.ClassDef):
        bases = [names.full(b) or ast.unparse(b) for b in node.bases]
        methods = {n.name for n in node.body if isinstance(n, Function)}
        if any(b.endswith("Tensor") or b.endswith("nn.Parameter") for b in bases):
            yield "QR113", node, f"class {node.name} is a tensor subclass"
        if {"tuple", "list"} & set(bases) and {"__iter__", "__getitem__", "__len__"} & methods:
            yield "QR113", node, f"class {node.name} computes when it is unpacked"
    elif isinstance(node, Function) and node.name in ("__torch_function__", "__torch_dispatch__"):
        yield "QR113", node, node.name
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
        for target in [t for whole in targets for t in getattr(whole, "elts", [whole])]:
            yield from _target(target, names)


def _call(node: ast.Call, names: Names) -> Iterator[Sign]:
    builtin, full = names.builtin(node.func), names.full(node.func)
    if builtin in NAMES:
        yield NAMES[builtin], node, f"{builtin}()"
    first = node.args[0] if node.args else None
    if full in ("importlib.import_module", "importlib.__import__") or builtin == "__import__":
        name = text_of(first) if first else None
        rule = _module_rule(name) if name else "QR114"
        if rule:
            yield rule, node, f"import of {name or 'a computed name'!r}"
    if builtin in ("getattr", "setattr", "delattr", "vars") and first is not None:
        base = names.full(first)
        attr = text_of(node.args[1]) if len(node.args) > 1 else None
        if builtin == "vars" or builtin == "getattr":
            rule = NAMES.get(f"{base}.{attr}") or ATTRIBUTES.get(attr or "")
            if rule:
                yield rule, node, f"{attr!r} by getattr"
            if base and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant | ast.Name):
                yield "QR114", node, f"an attribute of {base} by an assembled name"
        elif base and not f"{base}.".startswith(SETTINGS):
            yield "QR111", node, f"{builtin} on {base}"
        elif attr in TENSOR_METHODS:
            yield "QR112", node, f"{builtin} of {attr!r}"
    if ALWAYS_BESIDE.match(full):
        yield "QR110", node, f"{full}()"


def _target(target: ast.AST, names: Names) -> Iterator[Sign]:
    """An attribute that is assigned or deleted."""
    if isinstance(target, ast.Subscript):  # torch.__dict__["x"] = ..., vars(torch)["x"] = ...
        inner = target.value
        if isinstance(inner, ast.Call) and names.builtin(inner.func) == "vars" and inner.args:
            base = names.full(inner.args[0])
        else:
            base = names.full(inner).removesuffix(".__dict__") if names.full(inner).endswith(".__dict__") else ""
        if base:
            yield "QR111", target, f"{ast.unparse(target)!r} is assigned"
    elif isinstance(target, ast.Attribute):
        full = names.full(target)
        if full and not full.startswith(SETTINGS):
            yield "QR111", target, f"{full} is assigned"
        elif not full and target.attr in TENSOR_METHODS and ast.unparse(target.value) not in ("self", "cls"):
            yield "QR112", target, f"{ast.unparse(target)!r} is assigned"
