"""Elementwise operators in compiled graphs against eager on every pair of special values: zeros of
both signs, infinities, NaN, numbers that are large, small, halves."""

import math

import pytest
import torch.nn.functional as F
from element_operators import ACTIVATIONS, BINARY, FUNCTIONS, UNARY

import torch
import torchjanus

SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.5, 1e-30, -1e-30, 1e30, -1e30),
    *(math.inf, -math.inf, math.nan, 20.5, -20.5, 3.0, -3.0, 100.0, -100.0, 6.0, 7.0),
]


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def assert_same(ours, theirs):
    assert ours.dtype == theirs.dtype
    ours, theirs, dtype = ours.double(), theirs.double(), theirs.dtype
    tolerance = 1e-14 if dtype == torch.float64 else 3e-6
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    close = same | ((ours - theirs).abs() <= tolerance * theirs.abs() + 1e-38)
    assert close.all()
    zero = theirs == 0
    assert (torch.signbit(ours) == torch.signbit(theirs))[zero].all()


def check(function):
    """Twice with the operands swapped, so that several kernels are at work in one graph."""

    def both(x, y):
        return as_tuple(function(x, y)) + as_tuple(function(y, x))

    for dtype in (torch.float32, torch.float64):
        values = torch.tensor(SPECIAL, dtype=dtype)
        x, y = values.repeat_interleave(len(values)), values.repeat(len(values))
        converted = torchjanus.function(both)
        for _ in range(4):
            results = converted(x, y)
        assert converted.stats()["hits"] > 0, converted.stats()["reasons"]
        for ours, theirs in zip(results, both(x, y), strict=True):
            assert_same(ours, theirs)


@pytest.mark.parametrize("name", UNARY.split())
def test_unary(name):
    function = getattr(torch, name)
    check(lambda x, y: function(x))


@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activation(name):
    function = getattr(F, name)
    check(lambda x, y: function(x))


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name):
    function = getattr(torch, name)
    check(lambda x, y: function(x, y))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    check(FUNCTIONS[name])
