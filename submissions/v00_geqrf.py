#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v00 geqrf: what torch does, the baseline that every other version is compared with.

Algorithm  torch.geqrf: LAPACK on a CPU, cuSOLVER matrix by matrix on a GPU
Precision  FP32
Shapes     all
Parent     none
Result     see records/
Bound by   launches and latency: the batch is walked one matrix at a time
"""
import torch

from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    """A (batch, n, n) -> H (batch, n, n), tau (batch, n)."""
    h, tau = torch.geqrf(data)
    return h, tau
