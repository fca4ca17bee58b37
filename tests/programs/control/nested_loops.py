"""A loop whose length varies within one that is unrolled."""

import torch


def step(x, n):
    for scale in (0.5, 2.0):
        for _ in range(n):
            x = x.sin() * scale
    return x


CALLS = [(torch.randn(3), 2 + i % 3) for i in range(8)]
