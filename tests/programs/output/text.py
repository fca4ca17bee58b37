"""A text that is given back is made from results behind the run."""

import torch


def step(x):
    loss = x.square().mean().item()
    return f"{loss:.4f}", "loss: {}".format(loss), "%d elements" % x.numel()


CALLS = [(torch.randn(3),) for _ in range(5)]
