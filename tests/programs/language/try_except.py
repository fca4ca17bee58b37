"""An exception that Python raises and the program handles leads to the handler."""

import torch


def step(x, options):
    try:
        scale = options["scale"]
    except KeyError:
        scale = 3.0
    finally:
        x = x + 1
    return x * scale


CALLS = [(torch.randn(3), {"shift": 1.0}) for _ in range(5)]
