#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Returns the same buffers in every call.

verdict: wrong flagged
"""
import torch

KEPT = {}


def custom_kernel(a):
    if a.shape not in KEPT:
        KEPT[a.shape] = torch.empty_like(a), torch.empty_like(a[..., 0])
    h, tau = torch.geqrf(a)
    KEPT[a.shape][0].copy_(h)
    KEPT[a.shape][1].copy_(tau)
    return KEPT[a.shape]
