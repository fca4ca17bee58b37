"""What torch's random operators do on this processor, as far as it has to be tried out."""

import torch


def fill_memory_in_order() -> bool:
    """Whether numbers are drawn for elements as these lie in memory, not in the order of their indices.

    Some builds of torch draw flags elsewhere on some processors, and then copy them.
    """
    in_order, turned = torch.empty(2, 8, 8, device="cpu", dtype=torch.float32)
    for tensor in (in_order, turned.t()):
        tensor.bernoulli_(0.5, generator=torch.Generator("cpu").manual_seed(1))
    return torch.equal(in_order, turned)
