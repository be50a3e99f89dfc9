"""The contest's inputs and verdicts, against the vectors taken from the contest's own code (tests/data)."""
import json
from pathlib import Path

import pytest
import torch

import reference

DATA = Path(__file__).parent / "data"
INPUTS = json.loads((DATA / "input_vectors.json").read_text())["inputs"]
VERDICTS = json.loads((DATA / "verdict_vectors.json").read_text())["verdicts"]


def spec_id(v):
    return "-".join(str(v[k]) for k in ("batch", "n", "cond", "seed", "case"))


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """The vectors were drawn by the CPU's generator."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_there_are_50_inputs_and_237_verdicts():
    assert (len(INPUTS), len(VERDICTS)) == (50, 237)


@pytest.mark.parametrize("want", INPUTS, ids=spec_id)
def test_input(want):
    a = reference.generate_input(*(want[k] for k in ("batch", "n", "cond", "seed", "case")))
    assert a.shape == (want["batch"], want["n"], want["n"]) and a.dtype == torch.float32 and a.is_contiguous()
    flat = a.flatten().double()
    index = torch.tensor([i for i, _ in want["samples"]])
    values = torch.tensor([x for _, x in want["samples"]], dtype=torch.float64)
    torch.testing.assert_close(flat[index], values, rtol=1e-5, atol=0)
    l1 = a.double().abs().sum(1).amax(1)
    torch.testing.assert_close(l1, torch.tensor(want["l1"], dtype=torch.float64), rtol=1e-5, atol=0)
    assert flat.abs().sum().item() == pytest.approx(want["abs_sum"], rel=1e-5)
    assert flat.sum().item() == pytest.approx(want["sum"], abs=1e-5 * want["abs_sum"])
    assert (a == 0).sum() == want["zeros"]


def make_output(name, a):
    """The output that the vector's recipe describes."""
    h, tau = (t.clone() for t in torch.geqrf(a))
    kind, _, power = name.rpartition("-2^")
    if kind == "r-scaled":
        h = torch.tril(h, -1) + torch.triu(h) * (1 + 2.0 ** int(power))
    elif kind == "tau-scaled":
        tau = tau * (1 + 2.0 ** int(power))
    elif name == "sign-flipped-r":
        h = torch.tril(h, -1) - torch.triu(h)
    elif name == "identity-q":
        h, tau = torch.triu(a), torch.zeros_like(tau)
    elif name == "nan-in-h":
        h[-1, 0, 0] = float("nan")
    elif name == "inf-in-tau":
        tau[0, -1] = float("inf")
    elif name == "zeros":
        h, tau = torch.zeros_like(h), torch.zeros_like(tau)
    elif name == "last-matrix-wrong":
        h[-1], tau[-1] = h[0], tau[0]
    elif name == "float64":
        h, tau = h.double(), tau.double()
    elif name == "tau-shape":
        tau = tau[..., None]
    elif name == "not-contiguous":
        h = h.mT.contiguous().mT
    elif name.startswith("output-"):
        return {"list": [h, tau], "three": (h, tau, tau), "none": None}[name.removeprefix("output-")]
    else:
        assert name == "geqrf", f"no recipe for {name}"
    return h, tau


SAYS = {"pass": "scaled residuals", "factor residual": "factor residual too large", "orthogonality": "orthogonality",
        "non-finite: H": "H holds values", "non-finite: tau": "tau holds values", "dtype": "dtype", "shape": "shape",
        "not a pair": "must be a tuple"}
FIGURES = {"scaled_factor_residual": "factor", "scaled_reconstruction_residual": "reconstruction",
           "scaled_triangular_residual": "triangular", "scaled_orthogonality_residual": "orthogonality"}


@pytest.mark.parametrize("want", VERDICTS, ids=lambda v: f"{v['name']}-{spec_id(v['input'])}")
def test_verdict(want):
    a = reference.generate_input(**want["input"])
    ok, message = reference.check_implementation(a, make_output(want["name"], a))
    assert ok == want["ok"], message
    assert SAYS[want["kind"]] in message
    if want["kind"] == "factor residual":
        figures = want["figures"]
        assert f"matrix {figures['matrix']:.0f} of" in message
        got = {k: float(message.split(k)[1].replace(",", " ").split()[0]) for k in ("allowed", "scaled")}
        assert got["allowed"] == pytest.approx(figures["allowed"], rel=0.05)
        assert got["scaled"] == pytest.approx(figures["scaled"], rel=0.05)
    if want["name"].startswith("r-scaled") and want["ok"]:  # dominated by what was done, not by rounding
        for key, word in FIGURES.items():
            got = float(message.split(word)[1].replace(",", " ").split()[0])
            assert got == pytest.approx(want["figures"][key], rel=0.05) or want["figures"][key] < 1


def test_chunks_do_not_change_the_verdict(monkeypatch):
    a = reference.generate_input(7, 24, 1, 3)
    h, tau = reference.ref_kernel(a)
    h[5, 0, 0] *= 2
    whole = reference.check_implementation(a, (h, tau))
    monkeypatch.setattr(reference, "_FP64_BYTES", 1)
    assert reference.check_implementation(a, (h, tau)) == whole
    assert "matrix 5 of 7" in whole[1]


@pytest.mark.parametrize("bad, says", [
    (dict(case="nope"), "case"), (dict(batch=0), "positive"), (dict(n=0), "positive"), (dict(cond=-1), "negative")])
def test_bad_arguments(bad, says):
    with pytest.raises(ValueError, match=says):
        reference.generate_input(**{"batch": 2, "n": 4, "cond": 1, "seed": 0, "case": "dense", **bad})


def test_mixed_is_never_of_one_kind():
    for seed in range(60):
        labels = reference.mixed_labels(2, torch.Generator().manual_seed(seed))
        assert (labels == 0).any() and (labels != 0).any()
