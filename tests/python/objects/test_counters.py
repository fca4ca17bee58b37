"""A Counter is a dict with methods and operators of its own."""

from collections import Counter

import pytest
from differential import Program, differential

import torch


def joined(x):
    counts = Counter("aab")
    counts |= Counter("abb")
    return x * 2, counts


def deleted(x):
    counts = Counter("aab")
    del counts["missing"]
    del counts["a"]
    return x * 2, counts


def deleted_of_a_given_one(x, counts):
    del counts["missing"]
    counts["b"] = 1
    return x * 2


def compared(x):
    return x * 2, Counter(a=1, b=0) == Counter(a=1), Counter(a=1) != Counter(a=1)


@differential(reasons=["expression"])
def test_in_place_operators():
    return Program(joined, [(torch.randn(3),) for _ in range(6)])


@pytest.mark.parametrize("program", [deleted])
@differential()
def test_what_is_missing(program):
    return Program(program, [(torch.randn(3),) for _ in range(6)])


@differential()
def test_what_is_missing_of_a_given_one():
    return Program(deleted_of_a_given_one, [(torch.randn(3), Counter("aab")) for _ in range(6)])
