"""Type names that a submission may import, here as on the server (`from task import input_t, output_t`)."""
from typing import TypeAlias

import torch

input_t: TypeAlias = torch.Tensor
"""A: float32, (batch, n, n), contiguous, on the device."""

output_t: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""(H, tau): float32, (batch, n, n) and (batch, n), in torch.geqrf's convention."""
