"""The message of a failed assumption: it says what was assumed and what was found."""

import pytest

import torch
import torchjanus
from torch import nn


def strided():
    return torch.randn(3, 2).t()


DIFFERENCES = {
    "layout": (lambda: torch.randn(2, 3), strided, "strides"),
    "requires_grad": (
        lambda: torch.randn(2, 3),
        lambda: torch.randn(2, 3, requires_grad=True),
        "requires grad",
    ),
    "class": (lambda: torch.randn(2, 3), lambda: nn.Parameter(torch.randn(2, 3)), "Parameter"),
    "dtype": (lambda: torch.randn(2, 3), lambda: torch.randn(2, 3).half(), "f16"),
    "rank": (lambda: torch.randn(2, 3), lambda: torch.randn(6), "f32[6]"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_message_says_what_differs(name):
    before, after, expected = DIFFERENCES[name]
    f = torchjanus.function(lambda x: x + 1)
    for _ in range(5):
        f(before())
    f(after())
    check_message(f, expected)


def check_message(f, expected):
    (sentence,) = (r["sentence"] for r in f.stats()["reasons"] if r["code"] == "guard_failed")
    assumed, found = sentence.split(", found ")
    assert expected in found, sentence
    assert assumed.rpartition(": ")[2] != found and not assumed.endswith(found), sentence


def test_message_of_another_object():
    def one(x):
        return x + 1

    def two(x):
        return x + 2

    def call(x):
        return chosen[0](x)

    chosen = [one]
    f = torchjanus.function(call)
    for _ in range(5):
        f(torch.ones(2))
    one.__code__ = two.__code__
    assert f(torch.ones(2)).tolist() == [3, 3]
    check_message(f, "")
