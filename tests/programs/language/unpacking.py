"""Starred targets and swaps only give values other names."""

import torch


def step(batch):
    first, *rest, last = batch
    first, last = last, first
    return first - last, sum(rest)


CALLS = [([torch.randn(2) for _ in range(4)],) for _ in range(5)]
