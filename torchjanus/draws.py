"""How torch's random operators behave on this processor, where only a trial tells."""

import torch


def fill_memory_in_order() -> bool:
    """Whether numbers are drawn in the order of elements in memory, not of their indices.

    On some processors, some builds of torch draw flags into other memory and copy them.
    """
    in_order, turned = torch.empty(2, 8, 8, device="cpu", dtype=torch.float32)
    for tensor in (in_order, turned.t()):
        tensor.bernoulli_(0.5, generator=torch.Generator("cpu").manual_seed(1))
    return torch.equal(in_order, turned)
