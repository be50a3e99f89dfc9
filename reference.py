"""The contest's contract in code: inputs, reference and checker of `qr_v2`.

generate_input        the same matrices as the contest, bit for bit, for a given device
ref_kernel            torch.geqrf
check_implementation  the same verdict as the contest: (ok, message)

Try it:  python -c "import reference as r; a = r.generate_input(2, 64, 1, 7); print(r.judge(a, r.ref_kernel(a)))"
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

EPS32 = torch.finfo(torch.float32).eps  # 2**-23
FACTOR_RTOL = 20  # allowed ||R - Q'A||_1 in units of n eps32 ||A||_1
ORTH_RTOL = 100  # allowed ||Q'Q - I||_1 in units of n eps32
# Ours, not the contest's: a column's own residual, in units of n eps32 times its own norm. FP32 stays below 0.2,
# products of half-precision terms below 60 (measured, triangular matrices), columns left out begin at 200.
COLUMN_RTOL = 100
_FP64_BYTES = 2 << 30  # float64 working set of one chunk of the checker; six arrays of that shape live at once

# ---------------------------------------------------------------- inputs

MIXED_PROFILES = ("dense", "rankdef", "nearrank", "clustered", "band", "rowscale", "nearcollinear")
MIXED_WEIGHTS = (6, 1, 1, 1, 1, 1, 1)


def _decades(top: float, n: int, device: torch.device) -> torch.Tensor:
    """n factors from 1 down to 10**-top, equally spaced in the exponent."""
    return torch.logspace(0, -top, n, dtype=torch.float32, device=device)


def _scale_columns(a: torch.Tensor, cond: int) -> torch.Tensor:
    return a * _decades(cond, a.shape[-1], a.device) if cond else a


def _rank(n: int) -> int:
    return max(1, 3 * n // 4)


# Each profile takes a (m, n, n), already drawn, and may draw more from the generator: the order of the draws is
# part of the contract.

def _dense(a, cond, gen):
    return _scale_columns(a, cond)


def _upper(a, cond, gen):
    a = torch.triu(a)
    a.diagonal(dim1=-2, dim2=-1).add_(torch.linspace(1, 0.25, a.shape[-1], device=a.device))
    return _scale_columns(a, cond)


def _diagonal(a, cond, gen):
    m, n = a.shape[:2]
    sign = torch.randn(m, n, generator=gen, device=a.device).sign().clamp(min=0) * 2 - 1
    return torch.diag_embed(sign * _decades(max(cond, 2), n, a.device))


def _rankdef(a, cond, gen):
    a = a.clone()
    a[:, :, _rank(a.shape[-1]):] = 0
    return _scale_columns(a, cond)


def _nearrank(a, cond, gen):
    a = a.clone()
    m, n = a.shape[:2]
    tail = n - _rank(n)
    if tail > 0:
        noise = torch.randn(m, n, tail, generator=gen, device=a.device)
        a[:, :, n - tail:] = a[:, :, :tail] + 1e-5 * noise
    return _scale_columns(a, cond)


def _clustered(a, cond, gen):
    n = a.shape[-1]
    scale = torch.ones(n, device=a.device)
    scale[n // 2:] = 4 * EPS32
    if n >= 8:
        scale[max(0, n // 2 - 2):min(n, n // 2 + 2)] = EPS32 ** 0.5
    return a * scale


def _band(a, cond, gen):
    n = a.shape[-1]
    width = max(2, min(32, n // 32))
    i = torch.arange(n, device=a.device)
    a = a * ((i[:, None] - i[None, :]).abs() <= width)
    a.diagonal(dim1=-2, dim2=-1).add_(torch.linspace(1, 0.5, n, device=a.device))
    return _scale_columns(a, cond)


def _rowscale(a, cond, gen):
    return a * _decades(max(cond, 4), a.shape[-1], a.device)[:, None]


def _nearcollinear(a, cond, gen):
    m, n = a.shape[:2]
    base = torch.randn(m, n, 1, generator=gen, device=a.device)
    noise = torch.randn(m, n, n, generator=gen, device=a.device)
    return _scale_columns(base + 1e-4 * noise, cond)


def _mixed(a, cond, gen):
    labels = mixed_labels(a.shape[0], gen)
    out = torch.empty_like(a)
    for k, profile in enumerate(MIXED_PROFILES):
        mask = labels == k
        if mask.any():
            out[mask] = PROFILES[profile](a[mask], cond, gen)
    return out


def mixed_labels(batch: int, gen: torch.Generator) -> torch.Tensor:
    """(batch,) indices into MIXED_PROFILES; at least one dense and, from batch 2, at least one that is not."""
    device = gen.device
    weights = torch.tensor(MIXED_WEIGHTS, dtype=torch.float32, device=device)
    labels = torch.multinomial(weights, batch, replacement=True, generator=gen)
    if batch >= 2:
        if not (labels == 0).any():
            labels[torch.randint(0, batch, (1,), generator=gen, device=device)] = 0
        elif (labels == 0).all():
            where = torch.randint(0, batch, (1,), generator=gen, device=device)
            labels[where] = torch.randint(1, len(MIXED_PROFILES), (1,), generator=gen, device=device)
    return labels


PROFILES: dict[str, Callable[[torch.Tensor, int, torch.Generator], torch.Tensor]] = {
    "dense": _dense, "upper": _upper, "diagonal": _diagonal, "rankdef": _rankdef, "nearrank": _nearrank,
    "clustered": _clustered, "band": _band, "rowscale": _rowscale, "nearcollinear": _nearcollinear, "mixed": _mixed,
}


def generate_input(batch: int, n: int, cond: int, seed: int, case: str = "dense") -> torch.Tensor:
    """A (batch, n, n) float32, contiguous, on CUDA where there is one, else on the CPU.

    `cond` spreads the columns' scales over that many decades. Raises ValueError for a case that is not in PROFILES,
    batch or n below 1, or a negative cond.
    """
    case = case.lower()
    if case not in PROFILES:
        raise ValueError(f"case: expected one of {', '.join(PROFILES)}; got {case!r}")
    if batch < 1 or n < 1:
        raise ValueError(f"batch and n must be positive; got batch {batch}, n {n}")
    if cond < 0:
        raise ValueError(f"cond must not be negative; got {cond}")
    gen = torch.Generator("cuda" if torch.cuda.is_available() else "cpu")
    gen.manual_seed(seed)
    a = torch.randn(batch, n, n, generator=gen, device=gen.device, dtype=torch.float32)
    return PROFILES[case](a, cond, gen).contiguous()


def ref_kernel(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The contest's baseline."""
    h, tau = torch.geqrf(a)
    return h, tau


# ---------------------------------------------------------------- checker

def _wrong_tensor(name: str, t: object, shape: tuple[int, ...], like: torch.Tensor) -> str | None:
    if not isinstance(t, torch.Tensor):
        return f"{name} must be a torch.Tensor, got {type(t).__name__}"
    if tuple(t.shape) != shape:
        return f"{name} has shape {tuple(t.shape)}, expected {shape}"
    if t.dtype != torch.float32:
        return f"{name} has dtype {t.dtype}, expected torch.float32"
    if t.device != like.device:
        return f"{name} is on {t.device}, expected {like.device}"
    if not torch.isfinite(t).all():
        return f"{name} holds values that are not finite"
    return None


def _norm1(x: torch.Tensor) -> torch.Tensor:
    """(m, n, n) -> (m,): the largest absolute column sum."""
    return x.abs().sum(dim=-2).amax(dim=-1)


@dataclass
class Judgement:
    """What the checker found. The tensors are (batch,), float64, absolute; None where the verdict fell before them."""

    ok: bool
    message: str
    a1: torch.Tensor | None = None  # ||A||_1
    factor: torch.Tensor | None = None  # ||R - Q'A||_1
    orth: torch.Tensor | None = None  # ||Q'Q - I||_1
    column: torch.Tensor | None = None  # largest ||column of R - Q'A||_1 over that column's own norm in A
    bad_columns: torch.Tensor | None = None  # int64: columns whose own residual exceeds COLUMN_RTOL n eps32


def judge(data: torch.Tensor, output: object) -> Judgement:
    """check_implementation with its figures, and a column-wise residual that the contest has not.

    Passes when Q = householder_product(H, tau) and R = triu(H) satisfy, per matrix and in float64,
    ||R - Q'A||_1 <= 20 n eps32 ||A||_1, and ||Q'Q - I||_1 <= 100 n eps32 over the batch. The first failure decides.
    """
    batch, n = data.shape[0], data.shape[-1]
    if not isinstance(output, tuple) or len(output) != 2:
        got = f"a tuple of {len(output)}" if isinstance(output, tuple) else type(output).__name__
        return Judgement(False, f"output must be a tuple (H, tau), got {got}")
    h, tau = output
    problem = _wrong_tensor("H", h, (batch, n, n), data) or _wrong_tensor("tau", tau, (batch, n), data)
    if problem:
        return Judgement(False, problem)

    step = max(1, _FP64_BYTES // (6 * 8 * n * n))  # results are per matrix: chunks bound the memory, not the verdict
    unit = n * EPS32
    parts: list[torch.Tensor] = []
    eye = torch.eye(n, dtype=torch.float64, device=data.device)
    for lo in range(0, batch, step):
        hc, a = h[lo:lo + step], data[lo:lo + step].double()
        q = torch.linalg.householder_product(hc, tau[lo:lo + step])
        r = torch.triu(hc)
        if not torch.isfinite(q).all():
            return Judgement(False, "Q = householder_product(H, tau) holds values that are not finite")
        q, r = q.double(), r.double()
        p = q.mT @ a
        if not torch.isfinite(p).all():
            return Judgement(False, "Q'A holds values that are not finite")
        columns = (r - p).abs().sum(dim=-2)
        own = torch.where(columns == 0, 0.0, columns / (unit * a.abs().sum(dim=-2)))
        parts.append(torch.stack([
            _norm1(a), columns.amax(dim=-1), _norm1(q.mT @ q - eye), _norm1(q @ r - a), _norm1(torch.tril(p, -1)),
            own.amax(dim=-1), (own > COLUMN_RTOL).sum(dim=-1)]))
    a1, factor, orth, recon, lower, column, bad_columns = torch.cat(parts, dim=1)
    figures = (a1, factor, orth, column, bad_columns.long())

    scaled = factor / (unit * a1.clamp(min=1e-30))
    bad = factor > FACTOR_RTOL * unit * a1
    if bad.any():
        worst = int(torch.where(bad, scaled, -1.0).argmax())
        return Judgement(False, (
            f"factor residual too large: matrix {worst} of {batch}, residual {factor[worst]:.3g}, allowed "
            f"{FACTOR_RTOL * unit * a1[worst]:.3g}, scaled {scaled[worst]:.3g}"), *figures)
    worst_orth = orth.max()
    if worst_orth > ORTH_RTOL * unit:
        return Judgement(False, (
            f"orthogonality residual too large: matrix {int(orth.argmax())} of {batch}, residual {worst_orth:.3g}, "
            f"allowed {ORTH_RTOL * unit:.3g}, scaled {worst_orth / unit:.3g}"), *figures)
    over = 1 / (unit * a1.clamp(min=1e-30))
    return Judgement(True, (
        f"scaled residuals: factor {scaled.max():.3g}, reconstruction {(recon * over).max():.3g}, "
        f"triangular {(lower * over).max():.3g}, orthogonality {worst_orth / unit:.3g}"), *figures)


def check_implementation(data: torch.Tensor, output: object) -> tuple[bool, str]:
    """The contest's verdict on `output` for the input `data`: (ok, message). See judge."""
    j = judge(data, output)
    return j.ok, j.message
