#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Works twice, then returns the last result for ever.

verdict: wrong
"""
import torch

LAST = []


def custom_kernel(a):
    if len(LAST) < 2:
        LAST.append(tuple(torch.geqrf(a)))
    return LAST[-1]
