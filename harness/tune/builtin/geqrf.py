"""torch.geqrf in submission form: the reference backend of ./kit tune, always measured."""
import torch


def custom_kernel(a):
    return torch.geqrf(a)
