#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Leaves a child process that goes on computing.

verdict: flagged
"""
import os
import time

import torch


def custom_kernel(a):
    result = tuple(torch.geqrf(a))
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    return result
