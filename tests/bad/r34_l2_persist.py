#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""Asks the driver to keep what it reads in L2 beyond the flush.

verdict: neutral
where: gpu
"""
import ctypes

import torch


def custom_kernel(a):
    ctypes.CDLL("libcuda.so.1").cuCtxSetLimit(6, ctypes.c_size_t(32 << 20))  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
    return tuple(torch.geqrf(a))
