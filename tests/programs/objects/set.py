"""A set of names decides what is computed; adding to it is a write behind the run."""

import torch

done = {"warmup"}


def step(x):
    if "warmup" in done:
        x = x * 2
    done.add("train")
    return x


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [done]
