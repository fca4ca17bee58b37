"""Leaves that a graph's run makes."""

import torch


def leaf(tensor: torch.Tensor, gradient: torch.Tensor | None = None) -> torch.Tensor:
    """The tensor as one that gradients come to, or have come to."""
    tensor.requires_grad_()
    tensor.grad = gradient
    return tensor
