"""A generator that is a context manager has two halves around what it surrounds."""

import contextlib

import torch

settings = {"scale": 1.0}


@contextlib.contextmanager
def scaled(scale):
    before = settings["scale"]
    settings["scale"] = scale
    try:
        yield
    finally:
        settings["scale"] = before


def step(x):
    with scaled(3.0):
        y = x * settings["scale"]
    return y + settings["scale"]


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [settings]
