"""Signs that span functions: what custom_kernel reaches, what it keeps from call to call, and what it returns.

Rules QR110 (work beside the call), QR115 (a stored result is returned) and QR116 (an input known by its address) of
harness/lint.py. Data flow by names, without control flow: enough for what people and programs write, no proof.
"""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

from harness.signs import Function, Names, Sign

BESIDE_IN_A_CALL = re.compile(r"(concurrent\.futures\.(\w+\.)?\w+Executor|subprocess\.\w+|"
                              r"os\.(system|popen|spawn\w+))\Z")
COPIES = {"get", "setdefault", "pop", "clone", "detach", "contiguous", "view", "view_as", "reshape", "to", "copy",
          "values", "items", "__getitem__"}
WRITES = {"append", "appendleft", "setdefault", "update", "add", "insert", "extend", "put", "__setitem__"}
SHAPE_ONLY = {"shape", "device", "dtype", "ndim", "is_cuda", "layout", "size", "dim", "numel", "stride",
              "element_size", "is_contiguous", "get_device", "empty_like", "zeros_like", "ones_like", "full_like",
              "new_empty", "new_zeros", "new_ones", "new_full"}


class Flow:
    """What custom_kernel reaches, what it stores from call to call, and what it returns."""

    def __init__(self, tree: ast.Module, names: Names):
        self.names = names
        self.functions: dict[str, list[Function]] = {}
        for node in ast.walk(tree):
            if isinstance(node, Function):
                self.functions.setdefault(node.name, []).append(node)
        values: dict[str, list[ast.AST]] = {}  # what a top-level name is made of
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for n in ast.walk(target):
                        if isinstance(n, ast.Name):
                            values.setdefault(n.id, []).append(node.value)
            elif isinstance(node, ast.ClassDef):
                values.setdefault(node.name, []).append(node)
        self.reached: list[Function] = []
        todo, seen = ["custom_kernel"], set[str]()
        while todo:  # every name that is mentioned counts as used: tables of routes hold functions
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for node in (*self.functions.get(name, ()), *values.get(name, ())):
                if isinstance(node, Function):
                    self.reached.append(node)
                if isinstance(node, ast.ClassDef):
                    todo += [m.name for m in node.body if isinstance(m, Function)]
                todo += [n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node)
                         if isinstance(n, ast.Name | ast.Attribute)]
        self.entries = list(self.functions.get("custom_kernel", ()))
        if not self.entries and "custom_kernel" in values:  # custom_kernel = Solver(), or = another function
            mentioned = {n.id for v in values["custom_kernel"] for n in ast.walk(v) if isinstance(n, ast.Name)}
            self.entries = [f for name in mentioned | {"__call__", "forward"} for f in self.functions.get(name, ())]
        self.data = self._data()

    def signs(self) -> Iterator[Sign]:
        yield from self.beside()
        yield from self.stored()
        yield from self.identity()

    def memoised(self, f: Function) -> bool:
        decorators = (d.func if isinstance(d, ast.Call) else d for d in f.decorator_list)
        return any(self.names.full(d) in ("functools.cache", "functools.lru_cache") for d in decorators)

    # ---- threads and processes in the call

    def beside(self) -> Iterator[Sign]:
        for f in self.reached:
            if self.memoised(f):
                continue
            once = {id(n) for i in _nodes(f) if isinstance(i, ast.If) and _asks_whether_made(i.test)
                    for s in i.body for n in ast.walk(s)}
            for node in _nodes(f):
                if isinstance(node, ast.Call) and id(node) not in once:
                    full = self.names.full(node.func)
                    if BESIDE_IN_A_CALL.match(full):
                        yield "QR110", node, f"{full}() in {f.name}, which custom_kernel reaches"

    # ---- results kept from an earlier call

    def _data(self) -> dict[int, set[str]]:
        """For each reached function, the local names that hold something computed from the input's values."""
        data: dict[int, set[str]] = {id(f): set() for f in self.reached}
        for f in self.entries:
            params = [a.arg for a in f.args.args if a.arg not in ("self", "cls")]
            data.setdefault(id(f), set()).update(params[:1])
        for _ in range(4):  # calls of calls of calls: deeper chains than any submission has
            before = sum(map(len, data.values()))
            for f in self.reached:
                have = data[id(f)]
                _spread(f, have, partial(_depends, have=have))
                for call in (n for n in _nodes(f) if isinstance(n, ast.Call)):
                    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
                    for g in self.functions.get(name, ()):
                        params = [a.arg for a in g.args.args if a.arg not in ("self", "cls")]
                        if id(g) in data:
                            data[id(g)] |= {p for p, arg in zip(params, call.args, strict=False)
                                            if _depends(arg, have)}
            if sum(map(len, data.values())) == before:
                break
        return data

    def stored(self) -> Iterator[Sign]:
        kept: set[str] = set()  # names outside a call that a call puts results into: `CACHE`, `self.last`
        for f in self.reached:
            have, local = self.data[id(f)], _locals(f)
            for place, value in _stores(f):
                if place and (place.split(".")[0] not in local or place.startswith("self.")
                              or place in _mutable_defaults(f)) and _depends(value, have):
                    kept.add(place)
            for call in (n for n in _nodes(f) if isinstance(n, ast.Call)):
                name = call.func.id if isinstance(call.func, ast.Name) else ""
                if any(map(self.memoised, self.functions.get(name, ()))) and any(
                        isinstance(a, ast.Name) and _depends(a, have) for a in call.args):
                    yield "QR115", call, f"{name}, which remembers its results, is given the input"
        for f in self.entries:
            if self.memoised(f):
                yield "QR115", f, f"{f.name} remembers its results"
            for node in self._returns_kept(f, kept, frozenset()):
                yield "QR115", node, f"{ast.unparse(node)!r} comes from what an earlier call may have stored"

    def _returns_kept(self, f: Function, kept: set[str], above: frozenset[int]) -> Iterator[ast.AST]:
        if id(f) in above or len(above) > 8:
            return
        above |= {id(f)}
        mine = {k for k in kept if "." in k or k not in _locals(f) or k in _mutable_defaults(f)}

        def is_kept(e: ast.AST | None) -> bool:
            if isinstance(e, ast.Name):
                return e.id in mine
            if isinstance(e, ast.Attribute):
                return ast.unparse(e) in mine or is_kept(e.value)
            if isinstance(e, ast.Subscript | ast.Starred | ast.NamedExpr | ast.Await):
                return is_kept(e.value)
            if isinstance(e, ast.Call):
                if isinstance(e.func, ast.Attribute) and e.func.attr in COPIES:
                    return is_kept(e.func.value)
                name = e.func.id if isinstance(e.func, ast.Name) else getattr(e.func, "attr", "")
                if name in ("tuple", "list", "next", "iter", "reversed"):
                    return any(map(is_kept, e.args))
                return any(True for g in self.functions.get(name, ()) for _ in self._returns_kept(g, kept, above))
            if isinstance(e, ast.Tuple | ast.List):
                return any(map(is_kept, e.elts))
            if isinstance(e, ast.IfExp):
                return is_kept(e.body) or is_kept(e.orelse)
            if isinstance(e, ast.BoolOp):
                return any(map(is_kept, e.values))
            if isinstance(e, ast.GeneratorExp | ast.ListComp):
                return any(is_kept(g.iter) for g in e.generators)
            return False

        _spread(f, mine, is_kept)
        for node in _nodes(f):
            if isinstance(node, ast.Return) and is_kept(node.value):
                yield node

    # ---- inputs remembered by identity

    def identity(self) -> Iterator[Sign]:
        for f in self.reached:
            keys: set[str] = set()

            def is_identity(e: ast.AST | None, keys: set[str] = keys) -> bool:
                if isinstance(e, ast.Name):
                    return e.id in keys
                if isinstance(e, ast.Tuple | ast.List):
                    return any(map(is_identity, e.elts))
                if not isinstance(e, ast.Call):
                    return False
                return (self.names.builtin(e.func) == "id" or getattr(e.func, "attr", "") == "data_ptr"
                        or (self.names.builtin(e.func) in ("hash", "str") and any(map(is_identity, e.args))))

            _spread(f, keys, is_identity)
            for node in _nodes(f):
                if ((isinstance(node, ast.Subscript) and is_identity(node.slice))
                        or (isinstance(node, ast.Compare) and any(map(is_identity, (node.left, *node.comparators))))
                        or (isinstance(node, ast.Call) and any(map(is_identity, node.args[:1]))
                            and getattr(node.func, "attr", "") in ("get", "setdefault", "pop"))):
                    yield "QR116", node, f"{ast.unparse(node)!r} looks an input up by address or identity"
                elif isinstance(node, ast.Compare) and any(isinstance(o, ast.Is) for o in node.ops) and not any(
                        isinstance(c, ast.Constant) for c in (node.left, *node.comparators)) and any(
                        _depends(c, self.data[id(f)]) for c in (node.left, *node.comparators)):
                    yield "QR116", node, f"{ast.unparse(node)!r} asks whether this is an input seen before"


def _asks_whether_made(test: ast.expr) -> bool:
    """`X is None`, `not X`, `key not in X`: what follows is done once."""
    return ((isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.NotIn))
            or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)))


@lru_cache(maxsize=1024)
def _nodes(f: Function) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(f))


@lru_cache(maxsize=65536)
def _uses(node: ast.AST) -> frozenset[str]:
    """The names whose values, and not only their shapes, an expression depends on."""
    if isinstance(node, ast.Name):
        return frozenset([node.id])
    shape = node.func if isinstance(node, ast.Call) else node
    if isinstance(shape, ast.Attribute) and shape.attr in SHAPE_ONLY:
        return frozenset()
    return frozenset().union(*map(_uses, ast.iter_child_nodes(node)))


def _depends(node: ast.AST | None, have: set[str]) -> bool:
    return node is not None and not have.isdisjoint(_uses(node))


def _spread(f: Function, names: set[str], holds: Callable[[ast.AST], bool]) -> None:
    """Add to `names` every local name that is assigned a value of which `holds` is true, until nothing changes."""
    size = -1
    while size < len(names):
        size = len(names)
        for target, value in _assignments(f):
            if target not in names and holds(value):
                names.add(target)


@lru_cache(maxsize=1024)
def _assignments(f: Function) -> list[tuple[str, ast.AST]]:
    """(name, value) of each assignment to a plain name, loops and with included."""
    found: list[tuple[str, ast.AST]] = []
    for node in _nodes(f):
        pairs: Iterable[tuple[ast.AST, ast.AST | None]] = ()
        if isinstance(node, ast.Assign):
            pairs = [(t, node.value) for t in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.For):
            pairs = [(node.target, node.iter)]
        elif isinstance(node, ast.withitem) and node.optional_vars:
            pairs = [(node.optional_vars, node.context_expr)]
        for target, value in pairs:
            parts: list[ast.AST] = list(getattr(target, "elts", [target]))
            values: list[Any] = list(getattr(value, "elts", ())) if isinstance(value, ast.Tuple) else []
            if len(values) != len(parts):  # a, b = c: both hold something of c
                values = [value] * len(parts)
            for part, v in zip(parts, values, strict=True):
                if v is not None and isinstance(part, ast.Name):
                    found.append((part.id, v))
    return found


@lru_cache(maxsize=1024)
def _locals(f: Function) -> set[str]:
    shared = {n for node in _nodes(f) if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
    args = f.args
    params = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if a}
    stored = {n.id for n in _nodes(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return (params | stored) - shared


def _mutable_defaults(f: Function) -> set[str]:
    args = f.args.args[len(f.args.args) - len(f.args.defaults):]
    pairs = [*zip(args, f.args.defaults, strict=True), *zip(f.args.kwonlyargs, f.args.kw_defaults, strict=True)]
    return {a.arg for a, d in pairs if isinstance(d, ast.Dict | ast.List | ast.Set | ast.Call)}


def _place(target: ast.AST) -> str:
    """The thing outside that an assignment to `target` changes: `C[k]` changes C, `self.x[k]` changes self.x."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return f"self.{target.attr}" if target.value.id == "self" else target.value.id
    return target.id if isinstance(target, ast.Name) else ""


def _stores(f: Function) -> Iterator[tuple[str, ast.AST | None]]:
    """(place, value) of everything that a function assigns, or puts into a container."""
    if f.name == "__init__":  # runs at import, or for each object, not for each call
        return
    for node in _nodes(f):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in getattr(target, "elts", [target]):
                    yield _place(part), node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            yield _place(node.target), node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
            for arg in (*node.args, *(k.value for k in node.keywords)):
                yield _place(node.func.value), arg
