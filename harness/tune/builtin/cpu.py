"""LAPACK on the host in submission form: for a CUDA input both copies are inside the timed call."""
import torch


def custom_kernel(a):
    h, tau = torch.geqrf(a.cpu())
    return h.to(a.device), tau.to(a.device)
