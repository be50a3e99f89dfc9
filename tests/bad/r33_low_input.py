#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Rounds the input to bfloat16 once.

verdict: wrong
"""
import torch


def custom_kernel(a):
    return tuple(torch.geqrf(a.bfloat16().float()))
