"""Inference tensors among the results of graphs. Graphs run outside of inference mode."""

import torch


def made_in_inference_mode(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the tensor as an operator in inference mode makes it."""
    with torch.inference_mode():
        return tensor.clone()
