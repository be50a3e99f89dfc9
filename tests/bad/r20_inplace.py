#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Factors into its argument.

verdict: wrong
"""
import torch


def custom_kernel(a):
    tau = torch.empty_like(a[..., 0])
    torch.geqrf(a, out=(a, tau))
    return a, tau
