"""`break` and `continue` by computed tests are flags that the loop carries."""

import torch


def step(x, limit):
    total = torch.zeros(())
    for i in range(x.shape[0]):
        if x[i] < 0:
            continue
        total = total + x[i]
        if total > limit:
            break
    return total


CALLS = [(torch.randn(5), 1.0) for _ in range(8)]
