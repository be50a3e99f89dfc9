"""v00, v01 and v02 on the CPU, against the contest's checker, float64 and torch.geqrf; v02's kernel in the interpreter.

The interpreter reads TRITON_INTERPRET when Triton is imported: its checks run in a process of their own.
"""
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import reference
from harness.residuals import residuals

ROOT = Path(__file__).resolve().parent.parent
FILES = ["v00_geqrf", "v01_compact_wy", "v02_triton_panel"]


def load(stem):
    spec = importlib.util.spec_from_file_location(stem, ROOT / "submissions" / f"{stem}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def on_one_core_of_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small matrices: threads that wait for each other cost more than they bring
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=FILES)
def kernel(request):
    return load(request.param).custom_kernel


def run(kernel, a):
    """The kernel's output, after the checks that hold for every input."""
    before, version = a.clone(), a._version
    out = kernel(a)
    assert type(out) is tuple and all(type(t) is torch.Tensor for t in out)
    assert torch.equal(a, before) and a._version == version, "the input was modified"
    h, tau = out
    n = a.shape[-1]
    assert h.shape == a.shape and tau.shape == (a.shape[0], n) and h.dtype == tau.dtype == torch.float32
    assert h.untyped_storage().data_ptr() != a.untyped_storage().data_ptr() or a.numel() == 0
    return h, tau


def assert_right(a, out, zero_taus=True):
    """The contest's verdict; half of its allowance, also column by column, and no reflector left out, in float64."""
    ok, message = reference.check_implementation(a, out)
    assert ok, message
    worst = residuals(a, *out)
    assert float(worst.factor.max()) <= 10 and float(worst.orth.max()) <= 50
    assert float(worst.column.max()) <= 10
    if zero_taus:
        assert torch.equal(worst.zero_taus, (torch.geqrf(a)[1] == 0).sum(1))


@pytest.mark.parametrize("n", [1, 2, 5, 31, 32, 33, 100])
@pytest.mark.parametrize("case", reference.PROFILES)
def test_every_profile(kernel, case, n):
    a = reference.generate_input(3, n, n % 3, 1000 + n, case)
    assert_right(a, run(kernel, a))


@pytest.mark.parametrize("case", ["dense", "mixed"])
def test_a_large_one(kernel, case):
    a = reference.generate_input(2, 515, 4, 9, case)
    assert_right(a, run(kernel, a))


@pytest.mark.parametrize("stem", FILES)
def test_same_factors_as_lapack(stem):
    """The same algorithm and signs, so the same numbers to rounding: H and tau are unique where A has full rank."""
    a = reference.generate_input(4, 70, 0, 5)
    got, want = run(load(stem).custom_kernel, a), torch.geqrf(a.double())
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g.double(), w, rtol=0, atol=2e-4)


def scaled(power):
    a = reference.generate_input(2, 40, 1, 3)
    return a * 10.0 ** power


def mixed_scales():
    """A zero matrix, a tiny and a huge one side by side: nothing may leak from one to the next."""
    a = reference.generate_input(4, 40, 1, 3)
    return a * torch.tensor([1, 0, 1e-30, 1e30])[:, None, None]


def graded():
    """Columns over 60 decades."""
    return reference.generate_input(2, 60, 0, 4) * torch.logspace(-30, 30, 60)


def zero_columns():
    a = reference.generate_input(2, 40, 0, 3)
    a[:, :, ::3] = 0
    return a


ODD = {"zeros": lambda: torch.zeros(2, 40, 40), "identity": lambda: torch.eye(40).repeat(2, 1, 1),
       "minus identity": lambda: -torch.eye(40).repeat(2, 1, 1), "ones": lambda: torch.ones(2, 40, 40),
       "lower": lambda: torch.tril(reference.generate_input(2, 40, 0, 3)), "1e-30": lambda: scaled(-30),
       "1e30": lambda: scaled(30), "denormals": lambda: scaled(-42), "mixed scales": mixed_scales, "graded": graded,
       "zero columns": zero_columns}


@pytest.mark.parametrize("name", ODD)
def test_odd_matrices(kernel, name):
    a = ODD[name]().contiguous()
    h, tau = run(kernel, a)
    assert torch.isfinite(h).all() and torch.isfinite(tau).all()
    if name == "denormals":  # a few bits are left: the reflectors are still orthogonal
        assert float(residuals(a, h, tau).orth.max()) <= 50
        assert_norms(a, h, ulps=2.0 ** -149 * 40)
    else:
        assert_right(a, (h, tau), zero_taus=name not in ("ones",))


def assert_norms(a, h, ulps):
    """Columns of R are as long as those of A."""
    gap = torch.linalg.vector_norm(torch.triu(h).double(), dim=1) - torch.linalg.vector_norm(a.double(), dim=1)
    assert float(gap.abs().max()) <= ulps


@pytest.mark.parametrize("shape", [(0, 0, 0), (0, 7, 7), (3, 0, 0), (1, 1, 1)])
def test_empty_and_single(kernel, shape):
    a = torch.full(shape, -2.0)
    h, tau = run(kernel, a)
    assert torch.equal(h, a) and torch.equal(tau, torch.zeros(shape[:2]))


@pytest.mark.parametrize("view", [lambda a: a.mT, lambda a: a[::2, 1:, :-1], lambda a: a.expand(3, -1, -1, -1)[1],
                                  lambda a: a[:1].expand(3, -1, -1)])
def test_any_strides(kernel, view):
    a = view(reference.generate_input(4, 40, 1, 8))
    assert_right(a, run(kernel, a))


def test_a_result_survives_the_next_call(kernel):
    a, b = (reference.generate_input(2, 40, 1, seed) for seed in (1, 2))
    first = run(kernel, a)
    kept = [t.clone() for t in first]
    run(kernel, b)
    assert all(torch.equal(x, y) for x, y in zip(first, kept, strict=True))


def test_matrices_of_a_batch_do_not_meet(kernel):
    a = reference.generate_input(5, 40, 0, 6)
    order = torch.tensor([3, 0, 4, 1, 2])
    for whole, parts in zip(run(kernel, a), run(kernel, a[order]), strict=True):
        torch.testing.assert_close(whole[order], parts, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("power", [-20, 20])
def test_a_power_of_two_scales_r_alone(kernel, power):
    a = reference.generate_input(2, 40, 0, 6)
    (h, tau), (h2, tau2) = run(kernel, a), run(kernel, a * 2.0 ** power)
    torch.testing.assert_close(torch.triu(h2) * 2.0 ** -power, torch.triu(h), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.tril(h2, -1), torch.tril(h, -1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(tau2, tau, rtol=1e-5, atol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("n", [1, 2, 31, 33, 176, 257, 515, 1024, 1100, 2050])
def test_on_the_gpu(kernel, n):
    """All block sizes of v02's kernel. Three runs agree bit for bit: a race between its threads would show."""
    a = reference.generate_input(40 if n < 600 else 2, n, 1, 1000 + n, "mixed").cuda()
    first = run(kernel, a)
    assert_right(a, first, zero_taus=False)  # cuSOLVER's taus are not LAPACK's where a column is rounding noise
    for _ in range(2):
        assert all(torch.equal(x, y) for x, y in zip(first, run(kernel, a), strict=True))


# ---------------------------------------------------------------- v02's kernel

def triton_ready():
    return importlib.util.find_spec("triton") is not None


INTERPRETED = """
import json, sys
import torch
sys.path[:0] = ["tests"]
import test_submissions as t
import reference
torch.set_num_threads(1)
module = t.load("v02_triton_panel")
assert module.INTERPRETED
calls = []
launch = module.geqr2_kernel.run
module.geqr2_kernel.run = lambda *a, **k: (calls.append(1), launch(*a, **k))
def check(a, **k):
    before = len(calls)
    out = t.run(module.custom_kernel, a)
    assert len(calls) - before == -(-a.shape[-1] // module.NB) * (a.numel() > 0), "the kernel did not run"
    if k.pop("right", True):
        t.assert_right(a, out, **k)
    assert all(torch.isfinite(x).all() for x in out)
part = sys.argv[1]
if part == "profiles":
    for case in reference.PROFILES:
        check(reference.generate_input(2, 13, 1, 7, case))
elif part == "sizes":
    for batch, n in ((2, 1), (3, 2), (1, 31), (1, 33), (1, 65), (1, 96)):
        check(reference.generate_input(batch, n, 1, 7))
    for shape in ((0, 0, 0), (0, 7, 7), (3, 0, 0)):
        check(torch.zeros(shape), right=False)
    check(reference.generate_input(2, 20, 1, 7).mT)
elif part == "odd":
    for name, make in t.ODD.items():
        check(make().contiguous()[:, :24, :24], zero_taus=name != "ones", right=name != "denormals")
    check(t.mixed_scales()[:, :12, :12].contiguous())
elif part == "tall":  # more blocks of rows than one, by both block sizes; one panel, as a whole matrix takes minutes
    for m in (150, 300, 1100):
        p = torch.randn(2, m, 5, generator=torch.Generator().manual_seed(m))
        h, tau = p.clone(), torch.empty(2, 5)
        v = module.geqr2(h, tau)
        want = torch.geqrf(p.double())
        torch.testing.assert_close(h.double(), want[0], rtol=0, atol=1e-4)
        torch.testing.assert_close(tau.double(), want[1], rtol=0, atol=1e-5)
        assert torch.equal(v, torch.tril(h, -1) + torch.eye(m, 5))
print(json.dumps(len(calls)))
"""


@pytest.mark.skipif(not triton_ready(), reason="Triton has no wheel for this platform")
@pytest.mark.parametrize("part", ["profiles", "sizes", "odd", "tall"])
def test_triton_kernel_in_the_interpreter(part):
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", INTERPRETED, part], cwd=ROOT, env=env, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > 0
