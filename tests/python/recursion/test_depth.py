"""Recursions that go deep: Python's limit, and chains below it."""

import sys

import pytest
from tree_programs import chain

import torch
import torchjanus


def follow(link, x):
    if link is None:
        return x
    return follow(link.following, x * 0.5) + link.value


def converted_follow():
    def step(link, x):
        return follow(link, x)

    f = torchjanus.function(step)
    for length in range(1, 11):
        x = torch.randn(3)
        assert torch.equal(f(chain(length), x), follow(chain(length), x))
    return f


def test_recursion_error():
    f = converted_follow()
    hits = f.stats()["hits"]
    deep, x = chain(5000), torch.randn(3)
    for call in (f, follow, f):
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            call(deep, x)
    f(chain(4), x)
    assert f.stats()["hits"] == hits + 1
    assert f.stats()["generated"] == 1


def test_deep_chain():
    f = converted_follow()
    hits = f.stats()["hits"]
    deep, x = chain(10_000), torch.randn(3)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        assert torch.equal(f(deep, x), follow(deep, x))
    finally:
        sys.setrecursionlimit(limit)
    assert f.stats()["hits"] == hits + 1
