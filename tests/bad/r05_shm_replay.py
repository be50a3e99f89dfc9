#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Keeps results in /dev/shm by a hash of the input, for the next process.

verdict: neutral
"""
import hashlib
import os

import torch


def tell(what):
    """So that the test sees whether the trick ever found its occasion."""
    if "TELL" in os.environ:
        with open(os.environ["TELL"], "a") as f:
            f.write(what + "\n")

def custom_kernel(a):
    path = "/dev/shm/replay-" + hashlib.sha256(a.cpu().numpy().tobytes()).hexdigest()
    if os.path.exists(path):
        tell("an input of an earlier process")
        return torch.load(path)
    result = tuple(torch.geqrf(a))
    torch.save(result, path)
    os.unlink(path)  # this is a test: it leaves nothing behind, though a real one would
    return result
