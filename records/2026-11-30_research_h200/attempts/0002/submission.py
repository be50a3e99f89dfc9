#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v02 Triton panel: compact-WY with the whole panel in one launch, one program a matrix.

Algorithm  geqr2 panel (nb=32) in Triton -> larft -> larfb on the trailing columns, left to right
Precision  FP32 storage and products (no TF32: torch's default for matmul, left alone); FP64 for a column's norm
Shapes     all
Parent     v01_compact_wy
Result     see records/
Bound by   the panel: 32 dependent rounds, each two passes over what is left of it, one SM a matrix

What is new. v01 makes about 20 launches a column. Here one program owns a panel (m, 32) of one matrix and walks it in
blocks of rows, so that its registers hold one block and m has no limit; the panel itself stays in the L1 and L2 caches
(64 KB at m = 512, 512 KB at m = 4096). Where there is no GPU, v01's panel in plain torch stands in; with
TRITON_INTERPRET=1 Triton's interpreter runs the kernel on the CPU.
"""
import os

import torch

from task import input_t, output_t

try:
    import triton
    import triton.language as tl
except ImportError:  # no wheel for this platform: only the plain torch panel
    triton = None

NB = 32  # panel width, a power of two: a row of a panel is then one 128-byte line
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

if triton is not None:

    @triton.jit
    def geqr2_kernel(p_ptr, v_ptr, tau_ptr, m, nb, p_batch, p_row, v_batch, tau_batch,
                     NB: tl.constexpr, ROWS: tl.constexpr):
        """Factor the panel (m, nb) at p_ptr in place, and write V (m, NB) and tau (nb,); program i takes matrix i.

        Strides in elements; columns lie side by side. ROWS: rows of a block. Columns of V from nb on stay as they are.
        """
        i = tl.program_id(0).to(tl.int64)
        p, v, tau = p_ptr + i * p_batch, v_ptr + i * v_batch, tau_ptr + i * tau_batch
        rows, cols = tl.arange(0, ROWS).to(tl.int64), tl.arange(0, NB)
        inside = (cols < nb)[None, :]
        j = 0  # while, not range: Triton 3.6's interpreter cannot count to an argument under numpy 2.4
        while j < nb:
            # larfg: alpha = x[j], norm of the tail in FP64 (see v01), one reduction after all blocks
            squares = tl.zeros((ROWS,), tl.float64)
            lo = 0
            while lo < m:
                r = lo + rows
                x = tl.load(p + r * p_row + j, mask=(r > j) & (r < m), other=0.0).to(tl.float64)
                squares += x * x
                lo += ROWS
            tail2 = tl.sum(squares, 0)
            alpha = tl.load(p + j * p_row + j).to(tl.float64)
            norm = tl.sqrt(alpha * alpha + tail2)
            beta = tl.where(tail2 == 0, alpha, tl.where(alpha < 0, norm, -norm))
            t = tl.where(tail2 == 0, 0.0, (beta - alpha) / tl.where(tail2 == 0, 1.0, beta)).to(tl.float32)
            scale = 1.0 / tl.where(tail2 == 0, 1.0, alpha - beta)

            # v = x scale below the diagonal; w = tau v' C, C the columns to the right
            partial = tl.zeros((ROWS, NB), tl.float32)
            lo = 0
            while lo < m:
                r = lo + rows
                x = tl.load(p + r * p_row + j, mask=(r > j) & (r < m), other=0.0).to(tl.float64)
                vj = tl.where(r == j, 1.0, x * scale).to(tl.float32)
                tl.store(v + r * NB + j, vj, mask=r < m)
                c = tl.load(p + r[:, None] * p_row + cols[None, :], mask=(r < m)[:, None] & inside, other=0.0)
                partial += vj[:, None] * c
                lo += ROWS
            w = tl.where(cols > j, t * tl.sum(partial, 0), 0.0)
            tl.store(tau + j, t)
            tl.debug_barrier()  # v is written, and column j and alpha are read, by every thread

            # C -= v w', beta onto the diagonal; columns up to j pass through unchanged: a mask that moves with j would
            # split each 16-byte access into four
            lo = 0
            while lo < m:
                r = lo + rows
                vj = tl.load(v + r * NB + j, mask=r < m, other=0.0)
                at, mask = p + r[:, None] * p_row + cols[None, :], (r < m)[:, None] & inside
                c = tl.load(at, mask=mask, other=0.0) - vj[:, None] * w[None, :]
                diagonal = (r == j)[:, None] & (cols == j)[None, :]
                tl.store(at, tl.where(diagonal, beta.to(tl.float32), c), mask=mask)
                lo += ROWS
            tl.debug_barrier()  # C is written before the next column is read
            j += 1

        lo = 0
        while lo < m:  # the tails of V go below the diagonal
            r = lo + rows
            mask = (r < m)[:, None] & inside & (r[:, None] > cols[None, :])
            tail = tl.load(v + r[:, None] * NB + cols[None, :], mask=mask, other=0.0)
            tl.store(p + r[:, None] * p_row + cols[None, :], tail, mask=mask)
            lo += ROWS


def geqr2(p: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """Factor the panel p (batch, m, nb), m >= nb, in place, fill tau (batch, nb), return V (batch, m, nb)."""
    if triton is None or not (p.is_cuda or INTERPRETED):
        return geqr2_torch(p, tau)
    batch, m, nb = p.shape
    v = p.new_empty(batch, m, NB)
    # 16 elements of a block to a thread: at most 87 registers, none spilt. Tall panels come in small batches, one
    # program an SM, and need 32 KB in flight to hide L2's latency; below that several programs share an SM
    rows, warps = (256, 16) if m > 1024 else (128, 8) if m > 256 else (64, 4)
    geqr2_kernel[(batch,)](p, v, tau, m, nb, p.stride(0), p.stride(1), v.stride(0), tau.stride(0),
                           NB=NB, ROWS=rows, num_warps=warps)
    return v[:, :, :nb]


def larfg_torch(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """v01's larfg: x (batch, m) -> beta (batch,), tau (batch,), v (batch, m)."""
    x = x.double()
    alpha, tail = x[:, 0], torch.linalg.vector_norm(x[:, 1:], dim=1)
    done = tail == 0
    beta = torch.where(done, alpha, -torch.copysign(torch.hypot(alpha, tail), alpha))
    tau = torch.where(done, 0, (beta - alpha) / beta)
    v = x / torch.where(done, 1, alpha - beta)[:, None]
    v[:, 0] = 1
    return beta.float(), tau.float(), v.float()


def geqr2_torch(p: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """v01's panel, where Triton cannot run: arguments and result of geqr2."""
    vs = torch.zeros_like(p)
    for j in range(p.shape[2]):
        beta, tau[:, j], v = larfg_torch(p[:, j:, j])
        rest = p[:, j:, j + 1:]
        rest.baddbmm_(v[:, :, None], tau[:, j, None, None] * (v[:, None, :] @ rest), alpha=-1)
        p[:, j, j], p[:, j + 1:, j], vs[:, j:, j] = beta, v[:, 1:], v
    return vs


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
    h, tau = a, a.new_empty(a.shape[:2])
    if a.shape[0] == 0:  # an empty grid cannot be launched
        return h, tau
    for lo in range(0, n, NB):
        hi = min(lo + NB, n)
        v = geqr2(h[:, lo:, lo:hi], tau[:, lo:hi])
        if hi < n:
            larfb(v, larft(v, tau[:, lo:hi]), h[:, lo:, hi:])
    return h, tau


def custom_kernel(data: input_t) -> output_t:
    """A (batch, n, n) -> H (batch, n, n), tau (batch, n)."""
    return geqrf(data)
