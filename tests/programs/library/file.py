"""Refused: the program opens a file; the statements around it keep graphs of their own."""

import os

import torch


def step(x):
    with open(os.devnull) as file:
        text = file.read()
    return x * 2 + len(text)


CALLS = [(torch.randn(3),) for _ in range(16)]
