"""Lint: a minimal bad file for each rule, and silence on honest files."""
import builtins
import importlib.util
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.lint import MAX_BYTES, RULES, lint

ROOT = Path(__file__).resolve().parent.parent
HEADER = "#!POPCORN leaderboard qr_v2\n#!POPCORN gpu B200\n"
IMPORTS = "import functools, os, sys, time\nimport torch\n"
KERNEL = "def custom_kernel(data):\n    h, tau = torch.geqrf(data)\n    return h, tau\n"
WORD = "str" + "eam"
GUARD = importlib.util.find_spec("kernelguard") is not None  # a rented GPU box may lack it: lint says so, and goes on
needs_guard = pytest.mark.skipif(not GUARD, reason="kernelguard is not installed")


def ours(found):
    """Without the notice that kernelguard is missing, where it is."""
    return found if GUARD else [f for f in found if f.rule != "QR201"]


def write(tmp_path, text, name="v99_x.py"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def no_guard(monkeypatch):
    """As on a machine without kernelguard."""
    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", lambda name, *rest: (_ for _ in ()).throw(ImportError(name))
                        if name == "kernelguard" else real(name, *rest))


# ---------------------------------------------------------------- rules of the server

LINE = {  # name: (rule, text, line, col, words of the message)
    "size": ("QR001", HEADER + IMPORTS + KERNEL + "#" * MAX_BYTES, 1, 1, "bytes"),
    "empty": ("QR001", "", 1, 1, "0 bytes"),
    "latin-1": ("QR002", (HEADER + IMPORTS + KERNEL + "# caf").encode() + b"\xe9", 8, 6, "0xe9"),
    "the letters": ("QR003", HEADER + IMPORTS + KERNEL + f"# an up{WORD} idea", 8, 8, f"up{WORD}"),
    "the letters in capitals": ("QR003", HEADER + IMPORTS + KERNEL + f"x = 'cuda{WORD.title()}_t'", 8, 10, "cuda"),
    "unknown key": ("QR004", "#!POPCORN mode test\n" + HEADER + IMPORTS + KERNEL, 1, 1, "'mode'"),
    "no key": ("QR004", HEADER + "#!POPCORN\n" + IMPORTS + KERNEL, 3, 1, "no key"),
    "repeated": ("QR004", HEADER + "#!POPCORN gpu B200\n" + IMPORTS + KERNEL, 3, 1, "on line 2 already"),
    "gpus is gpu": ("QR004", HEADER + "//!POPCORN GPUS B200\n" + IMPORTS + KERNEL, 3, 1, "already"),
    "no value": ("QR004", "#!POPCORN leaderboard\n#!POPCORN gpu B200\n" + IMPORTS + KERNEL, 1, 1, "without a value"),
    "case counts": ("QR004", HEADER.replace("qr_v2", "QR_V2") + IMPORTS + KERNEL, 1, 1, "'QR_V2'"),
    "two GPUs": ("QR004", HEADER.replace("B200", "B200 H100") + IMPORTS + KERNEL, 2, 1, "'B200 H100'"),
    "blank line before": ("QR005", "\n" + HEADER + IMPORTS + KERNEL, 2, 1, "after the first comment block"),
    "blank line between": ("QR005", HEADER.replace("\n#", "\n\n#") + IMPORTS + KERNEL, 3, 1, "'#!POPCORN gpu B200'"),
    "none": ("QR005", IMPORTS + KERNEL, 1, 1, "no 'leaderboard' directive"),
    "not at column 0": ("QR005", HEADER.replace("\n#", "\n #") + IMPORTS + KERNEL, 1, 1, "no 'gpu' directive"),
    "syntax": ("QR007", HEADER + IMPORTS + KERNEL + "def f(:\n", 8, 7, "not Python"),
    "a NUL": ("QR007", HEADER + IMPORTS + KERNEL + "x = '\0'", 1, 1, "null"),
    "no custom_kernel": ("QR008", HEADER + IMPORTS + KERNEL.replace("custom_kernel", "kernel"), 1, 1, "custom_kernel"),
    "a package": ("QR009", HEADER + IMPORTS + KERNEL + "import cupy.cuda\n", 8, 1, "'cupy.cuda'"),
    "a sibling": ("QR009", HEADER + IMPORTS + KERNEL + "from .v01 import geqr2\n", 8, 1, "'.v01'"),
    "the harness": ("QR009", HEADER + IMPORTS + KERNEL + "from harness.cases import Case\n", 8, 1, "'harness.cases'"),
    "guard": ("QR010", HEADER + IMPORTS + KERNEL + "torch.cuda.synchronize = print\n", 8, 1, "TIMER_MONKEYPATCH"),
    "moved down": ("QR202", "# idea\n" + HEADER + IMPORTS + KERNEL, 3, 1, "'gpu' stands on line 3"),
}


@pytest.mark.parametrize("name", LINE)
def test_rule_with_its_place(tmp_path, name):
    rule, text, line, col, says = LINE[name]
    if rule == "QR010" and not GUARD:
        pytest.skip("kernelguard is not installed")
    found = lint(write(tmp_path, text))
    hits = [f for f in found if f.rule == rule and says in f.message]
    assert hits, found
    assert (line, col) in {(f.line, f.col) for f in hits}
    assert all(f.severity == RULES[rule].severity and f.fix for f in hits)


def test_every_place_of_the_letters_is_named(tmp_path):
    found = lint(write(tmp_path, HEADER + IMPORTS + KERNEL + f"# {WORD}{WORD} a {WORD.upper()}"))
    assert [(f.line, f.col) for f in ours(found)] == [(8, 3), (8, 9), (8, 18)]


def test_extension(tmp_path):
    assert [f.rule for f in ours(lint(write(tmp_path, HEADER + IMPORTS + KERNEL, "v99_x.cu")))] == ["QR006"]


def test_a_limit_is_not_exceeded_at_the_limit(tmp_path, no_guard):
    text = HEADER + IMPORTS + KERNEL
    assert [f.rule for f in lint(write(tmp_path, text.ljust(MAX_BYTES, "#")))] == ["QR201"]
    assert [f.rule for f in lint(write(tmp_path, text.ljust(MAX_BYTES + 1, "#")))] == ["QR001"]


def test_a_missing_guard_is_said(tmp_path, no_guard):
    (found,) = lint(write(tmp_path, HEADER + IMPORTS + KERNEL))
    assert (found.rule, found.severity) == ("QR201", "notice") and "not installed" in found.message


@needs_guard
def test_a_failing_guard_is_said(tmp_path, monkeypatch):
    import kernelguard
    monkeypatch.setattr(kernelguard, "analyze_code", lambda *a, **k: 1 / 0)
    (found,) = lint(write(tmp_path, HEADER + IMPORTS + KERNEL))
    assert found.rule == "QR201" and "ZeroDivisionError" in found.message


def test_a_missing_file_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        lint(tmp_path / "none.py")


# ---------------------------------------------------------------- signs of a file that fools a benchmark

AT_TOP = {  # the passage stands above an honest kernel
    "QR101": ["f = sys._getframe(1)", "import inspect\nf = inspect.currentframe()",
              "from inspect import stack as s", "from sys import _getframe", "x = getattr(sys, '_getframe')",
              "def g(e):\n    return e.tb_frame.f_back"],
    "QR102": ["import gc", "m = __import__('gc')", "import importlib; m = importlib.import_module('gc')"],
    "QR103": ["torch.geqrf.__globals__", "def g(f): return f.__code__", "globals()['x'] = 1"],
    "QR104": ["m = sys.modules", "import __main__", "from sys import modules"],
    "QR105": ["import reference", "from utils import clear_l2_cache", "import eval as e"],
    "QR106": ["p = '/proc/%d/environ' % 1", "p = '/pr' + 'oc/self/maps'", "p = f'/proc/{1}/fd'",
              "CUDA = r'''fopen(\"/proc/self/mem\", \"w\")'''"],
    "QR107": ["os.kill(1, 9)", "if os.fork() == 0: pass", "import os as o\no._exit(0)"],
    "QR108": ["s = os.environ.get('POPCORN_SEED')", "s = os.getenv('POPCORN' + '_FD')"],
    "QR109": ["p = '/dev/shm/x'", "from multiprocessing import shared_memory\nimport multiprocessing.shared_memory"],
    "QR110": ["import threading\nthreading.Thread(target=print).start()", "import asyncio", "sys.setprofile(print)",
              "import signal\nsignal.setitimer(0, 1e-3)", "import atexit\natexit.register(print)",
              "from multiprocessing import Process\nProcess(target=print).start()"],
    "QR111": ["torch.cuda.Event.elapsed_time = None", "setattr(torch.linalg, 'mat' + 'rix_norm', None)",
              "time.perf_counter = None", "E = torch.cuda.Event\nE.record = None", "sys.stdout = None",
              "import torch.linalg as tl\ntl.norm, x = None, 1", "vars(torch)['triu'] = None",
              "torch.__dict__['triu'] = None", "del torch.triu", "from unittest.mock import patch"],
    "QR112": ["def g(h):\n    h.double = lambda: h", "def g(h):\n    setattr(h, 'clone', None)"],
    "QR113": ["class T(torch.Tensor): pass", "class P(tuple):\n    def __iter__(self): return iter(())",
              "class X:\n    def __torch_function__(self): pass", "def g(a): return a.as_subclass(None)"],
    "QR114": ["exec('x = 1')", "x = eval('1')", "import base64", "import zlib",
              "x = getattr(torch.cuda, 'Ev' + 'ent')", "m = __import__('o' + sys.platform)"],
    "QR117": ["a = sys.argv", "from sys import argv"],
    "QR118": ["def g(mode): return mode == 'benchmark'", "M = ('leaderboard',)"],
}


@pytest.mark.parametrize("rule, passage", [(r, p) for r, ps in AT_TOP.items() for p in ps])
def test_sign(tmp_path, rule, passage):
    found = lint(write(tmp_path, HEADER + IMPORTS + passage + "\n" + KERNEL))
    hits = [f for f in found if f.rule == rule]
    assert hits, found
    assert all(f.severity == "flag" and 5 <= f.line < 5 + len(passage.splitlines()) for f in hits)


KERNELS = {  # the passage is the kernel
    "QR110": ["""
import subprocess
def custom_kernel(data):
    subprocess.run(["true"])
    return torch.geqrf(data)
""", """
from concurrent.futures import ThreadPoolExecutor
def later(data):
    return ThreadPoolExecutor().submit(torch.geqrf, data)
def custom_kernel(data):
    return later(data)
"""],
    "QR115": ["""
CACHE = {}
def custom_kernel(data):
    key = data.shape
    if key not in CACHE:
        CACHE[key] = torch.geqrf(data)
    return CACHE[key]
""", """
_last = None
def custom_kernel(data):
    global _last
    if _last is None:
        h, tau = torch.geqrf(data)
        _last = (h, tau)
    return tuple(t.clone() for t in _last)
""", """
CACHE = {}
def solve(a):
    out = CACHE.get(a.shape)
    if out is None:
        out = torch.geqrf(a)
        CACHE.setdefault(a.shape, out)
    return out
def custom_kernel(data):
    h, tau = solve(data)
    return h, tau
""", """
def custom_kernel(data, memo={}):
    if data.shape not in memo:
        memo[data.shape] = torch.geqrf(data)
    h, tau = memo[data.shape]
    return h, tau
""", """
class Solver:
    def __call__(self, data):
        if not hasattr(self, "out"):
            self.out = torch.geqrf(data)
        return self.out
custom_kernel = Solver()
""", """
def custom_kernel(data):
    if not hasattr(custom_kernel, "out"):
        custom_kernel.out = torch.geqrf(data)
    return custom_kernel.out
""", """
OUT = []
def custom_kernel(data):
    if len(OUT) < 3:
        OUT.append(torch.geqrf(data))
    return OUT[-1]
""", """
@functools.lru_cache
def solve(a):
    return torch.geqrf(a)
def custom_kernel(data):
    return solve(data)
""", """
@functools.cache
def custom_kernel(data):
    return torch.geqrf(data)
"""],
    "QR116": ["""
SEEN = {}
def custom_kernel(data):
    key = (data.data_ptr(), data.shape)
    if key in SEEN:
        return SEEN[key]
    return torch.geqrf(data)
""", """
SEEN = {}
def custom_kernel(data):
    plan = SEEN.get(id(data))
    return torch.geqrf(data)
""", """
def custom_kernel(data):
    v = data._version
    return torch.geqrf(data)
""", """
_seen = None
def custom_kernel(data):
    global _seen
    fresh = not (data is _seen)
    _seen = data
    return torch.geqrf(data)
"""],
}


@pytest.mark.parametrize("rule, kernel", [(r, k) for r, ks in KERNELS.items() for k in ks])
def test_sign_in_the_kernel(tmp_path, no_guard, rule, kernel):
    found = lint(write(tmp_path, HEADER + IMPORTS + kernel))
    assert [f for f in found if f.rule == rule and f.severity == "flag"], found


@needs_guard
def test_what_the_guard_only_suspects_is_a_flag(tmp_path):
    found = lint(write(tmp_path, HEADER + IMPORTS + "from utils import clear_l2_cache\n" + KERNEL))
    assert {f.rule for f in found} == {"QR105", "QR119"}
    assert all(f.line == 5 for f in found)


# ---------------------------------------------------------------- silence

GOOD = {
    "compile cache": """
_ext = None
def extension():
    global _ext
    if _ext is None:
        from torch.utils.cpp_extension import load_inline
        _ext = load_inline(name="qr", cpp_sources="", cuda_sources="int a = b /procs; // a test, /process")
    return _ext
def custom_kernel(data):
    h, tau = extension().geqrf(data)
    return h, tau
""",
    "memoised build with nvcc": """
import ctypes, subprocess, tempfile
@functools.cache
def library():
    subprocess.run(["nvcc", "-o", "x.so"], check=True)
    return ctypes.CDLL("x.so")
def custom_kernel(data):
    h, tau = torch.empty_like(data), data.new_empty(data.shape[:2])
    library().geqrf.argtypes = [ctypes.c_void_p]
    library().geqrf(ctypes.c_void_p(data.data_ptr()), ctypes.c_void_p(h.data_ptr()))
    assert data.data_ptr() % 16 == 0
    return h, tau
""",
    "build on first use": """
import subprocess
_LIB = {}
def library(arch):
    if arch not in _LIB:
        subprocess.run(["nvcc"], check=True)
        _LIB[arch] = object()
    return _LIB[arch]
def custom_kernel(data):
    return library("sm_90a").geqrf(data)
""",
    "workspace by shape": """
WORKSPACES = {}
def workspace(a):
    key = (a.shape, a.device)
    if key not in WORKSPACES:
        WORKSPACES[key] = torch.empty_like(a), a.new_empty(a.shape[0], 32, 32)
    return WORKSPACES[key]
def custom_kernel(data):
    v, t = workspace(data)
    h, tau = torch.geqrf(data)
    v.copy_(h)
    return h, tau
""",
    "graph by shape": """
GRAPHS = {}
def capture(shape, like):
    a = torch.empty_like(like)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = torch.geqrf(a)
    return graph, a, out
def custom_kernel(data):
    if data.shape not in GRAPHS:
        GRAPHS[data.shape] = capture(data.shape, data)
    graph, a, (h, tau) = GRAPHS[data.shape]
    a.copy_(data)
    graph.replay()
    return h.clone(), tau.clone()
""",
    "routes": """
def small(a): return torch.geqrf(a)
def large(a): return torch.geqrf(a)
ROUTES = {32: small, 512: large}
def custom_kernel(data):
    return ROUTES.get(data.shape[-1], large)(data)
""",
    "routes with limits": """
def small(a, nb): return torch.geqrf(a)
ROUTES = ((176, small, 16), (512, small, 32))
def custom_kernel(data):
    for limit, geqrf, nb in ROUTES:
        if data.shape[-1] <= limit:
            return geqrf(data, nb)
    return torch.geqrf(data)
""",
    "plan object": """
class Plan:
    def __init__(self, n):
        self.work, self.calls = torch.empty(n, n), 0
    def run(self, a):
        self.calls += 1
        h, tau = torch.geqrf(a)
        return h, tau
PLANS = {}
@functools.lru_cache(maxsize=None)
def plan(n): return Plan(n)
def custom_kernel(data):
    if data.shape[-1] not in PLANS:
        PLANS[data.shape[-1]] = plan(data.shape[-1])
    return PLANS[data.shape[-1]].run(data)
""",
    "warn once": """
import warnings
_warned = False
def custom_kernel(data):
    global _warned
    if not data.is_cuda and not _warned:
        warnings.warn("no CUDA device: torch.geqrf", stacklevel=1)
        _warned = True
    return torch.geqrf(data)
""",
    "settings and environment": """
import re
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0a")
torch.backends.cuda.matmul.allow_tf32 = False
torch.set_float32_matmul_precision("highest")
PATTERN = re.compile("x")
import inspect
NEW = "no_implicit_headers" in inspect.signature(torch.geqrf.__call__).parameters
fused = torch.compile(lambda a: a + 1)
dtype = getattr(torch, "float32")
try:
    import numpy
except ImportError:
    numpy = None
def custom_kernel(data):
    if data.shape[0] == 0:
        return data.clone(), data.new_empty(data.shape[:2])
    return torch.geqrf(data)
""",
    "a test of its own": KERNEL + """
if __name__ == "__main__":
    import inspect
    print(inspect.stack(), "test", open("/proc/self/status").read())
""",
    "docstring": '"""How this does on the benchmark: see /proc, sys.modules, exec(), gc."""\n' + KERNEL,
}


@pytest.mark.parametrize("name", GOOD)
def test_honest_files_are_silent(tmp_path, name):
    assert ours(lint(write(tmp_path, HEADER + IMPORTS + GOOD[name]))) == []


@pytest.mark.parametrize("path", sorted((ROOT / "submissions").glob("v*.py")), ids=lambda p: p.stem)
def test_shipped_submissions_are_silent(path):
    assert ours(lint(path)) == []


# ---------------------------------------------------------------- the table, and the cost

def test_every_rule_is_shown_to_act():
    shown = {v[0] for v in LINE.values()} | AT_TOP.keys() | KERNELS.keys() | {"QR006", "QR119", "QR201"}
    assert shown == RULES.keys()
    for rule, (severity, reason, fix) in RULES.items():
        assert severity == {"0": "error", "1": "flag", "2": "notice"}[rule[2]]
        assert reason and fix


def test_it_is_quick_and_needs_no_torch():
    code = ("import sys; from pathlib import Path; from harness.lint import lint\n"
            "lint(Path('submissions/v01_compact_wy.py'))\n"
            "assert not {'torch', 'numpy', 'triton'} & sys.modules.keys()")
    spent = []
    for _ in range(2):  # processor time: the suite shares two cores
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 1.0  # 0.4 s on an idle machine, the start of Python included
