#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v01 compact-WY: LAPACK's blocked Householder QR, the whole batch in each torch operation.

Algorithm  geqr2 panel (nb=32) -> larft -> larfb on the trailing columns, left to right
Precision  FP32 storage and products (no TF32: torch's default for matmul, left alone); FP64 for a column's norm
Shapes     all
Parent     v00_geqrf
Result     see records/
Bound by   the panel: about 20 small launches a column, the memory hardly used

The idea. A reflector H = I - tau v v' maps a column onto a multiple of e1. A panel of nb columns is reduced one
reflector at a time, which is slow, but it is narrow. Its nb reflectors are then multiplied together,
H_1 H_2 ... H_nb = I - V T V' with V (m, nb) unit lower triangular and T (nb, nb) upper triangular, so that all columns
to the right are updated by three matrix products (Schreiber and Van Loan, 1989).
"""
import torch

from task import input_t, output_t

NB = 32  # panel width, LAPACK's own choice: narrower makes the products thin, wider makes the slow panel wide


def larfg(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One reflector for each column x (batch, m): (I - tau v v') x = beta e1, v[0] = 1.

    Returns beta (batch,), tau (batch,) and v (batch, m). Where x is already a multiple of e1, tau = 0 and v = e1.
    The norm is taken in FP64, in which no FP32 number's square over- or underflows: LAPACK rescales instead.
    """
    x = x.double()
    alpha, tail = x[:, 0], torch.linalg.vector_norm(x[:, 1:], dim=1)
    done = tail == 0
    # beta has the sign opposite to alpha's, so that alpha - beta does not cancel
    beta = torch.where(done, alpha, -torch.copysign(torch.hypot(alpha, tail), alpha))
    tau = torch.where(done, 0, (beta - alpha) / beta)
    v = x / torch.where(done, 1, alpha - beta)[:, None]
    v[:, 0] = 1
    return beta.float(), tau.float(), v.float()


def geqr2(p: torch.Tensor) -> torch.Tensor:
    """Factor the panel p (batch, m, nb), m >= nb, in place: R above, the tails of V below the diagonal.

    Returns tau (batch, nb).
    """
    taus = []
    for j in range(p.shape[2]):
        beta, tau, v = larfg(p[:, j:, j])
        rest = p[:, j:, j + 1:]
        w = tau[:, None, None] * (v[:, None, :] @ rest)  # (batch, 1, nb - j - 1)
        rest.baddbmm_(v[:, :, None], w, alpha=-1)  # rest -= tau v (v' rest)
        p[:, j, j], p[:, j + 1:, j] = beta, v[:, 1:]
        taus.append(tau)
    return torch.stack(taus, dim=1)


def larft(v: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """T (batch, nb, nb), upper triangular, with H_1 ... H_nb = I - V T V' for V (batch, m, nb).

    inv(T) = inv(D) + U, D = diag(tau), U = strict upper triangle of V'V (Puglisi, 1992); times D from the left,
    (I + D U) T = D, which also holds where tau = 0 and H is the identity.
    """
    u = torch.triu(v.mT @ v, 1)
    return torch.linalg.solve_triangular(tau[:, :, None] * u, torch.diag_embed(tau), upper=True, unitriangular=True)


def larfb(v: torch.Tensor, t: torch.Tensor, c: torch.Tensor) -> None:
    """C -= V (T' (V' C)) in place: H_nb ... H_1 applied to C (batch, m, k)."""
    c.baddbmm_(v, t.mT @ (v.mT @ c), alpha=-1)


def geqrf(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A (batch, n, n), any strides, left as it is -> H (batch, n, n), tau (batch, n)."""
    n = a.shape[-1]
    h, tau = a.clone(memory_format=torch.contiguous_format), a.new_empty(a.shape[:2])
    for lo in range(0, n, NB):
        hi = min(lo + NB, n)
        panel = h[:, lo:, lo:hi]
        tau[:, lo:hi] = geqr2(panel)
        if hi < n:
            v = torch.tril(panel, -1)
            v.diagonal(dim1=1, dim2=2).fill_(1)
            larfb(v, larft(v, tau[:, lo:hi]), h[:, lo:, hi:])
    return h, tau


def custom_kernel(data: input_t) -> output_t:
    """A (batch, n, n) -> H (batch, n, n), tau (batch, n)."""
    return geqrf(data)
