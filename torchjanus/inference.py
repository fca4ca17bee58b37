"""Tensors of inference mode that a graph's run gives: the run itself is outside of it."""

import torch


def made_in_inference_mode(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as an operator in inference mode would have made it."""
    with torch.inference_mode():
        return tensor.clone()
