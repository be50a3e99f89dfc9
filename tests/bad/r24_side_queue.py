#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Launches on a CUDA queue that nobody waits for.

verdict: clock wrong
where: gpu
"""
import torch

SIDE = []


def custom_kernel(a):
    SIDE or SIDE.append(torch.cuda.Stream())
    with torch.cuda.stream(SIDE[0]):
        big = torch.ones(4096, 4096, device="cuda")
        for _ in range(10):  # what a slow kernel would take: some 30 ms that the default queue does not see
            big = big @ big
        return tuple(torch.geqrf(a))
