"""Leaf tensors among the results of graphs."""

import torch


def leaf(tensor: torch.Tensor, gradient: torch.Tensor | None = None) -> torch.Tensor:
    """Makes the tensor a leaf that requires a gradient, with `gradient` as its .grad."""
    tensor.requires_grad_()
    tensor.grad = gradient
    return tensor
