#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Writes a full result, then kills the parent.

verdict: killed
"""
import os
import signal

import torch


def custom_kernel(a):
    print("benchmark.0.mean: 1\ncheck: pass")
    os.kill(os.getppid(), signal.SIGKILL)
    return torch.zeros_like(a), torch.zeros_like(a[..., 0])
