"""Copies into another order in memory (`contiguous`, `reshape`, images with their channels last), against eager: any
permutation, slices, sizes zero and one, broadcast dimensions, elements of every size."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_results import strides

import torch
import torchjanus

PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.complex64]


@st.composite
def tensors(draw):
    rank = draw(st.integers(1, 5))
    sizes = [draw(st.sampled_from([0, 1, 2, 3, 4, 7, 16, 17, 33, 64])) for _ in range(rank)]
    while math.prod(sizes) > 50_000:
        sizes[sizes.index(max(sizes))] = 3
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    x = torch.randint(0, 99, [2 * s for s in sizes], generator=generator)
    x = x.to(draw(st.sampled_from(DTYPES)))
    for d in range(rank):
        step = draw(st.sampled_from([1, 1, 2]))
        x = x.narrow(d, 0, sizes[d] * step)[(slice(None),) * d + (slice(None, None, step),)]
    if draw(st.booleans()):
        x = x.contiguous()
    x = x.permute(draw(st.permutations(range(rank))))
    if draw(st.booleans()):
        x = x.unsqueeze(0).expand(3, *x.shape).movedim(0, draw(st.integers(0, rank)))
    return x


def expect_same(function, *operands):
    converted = torchjanus.function(function)
    for _ in range(6):
        actual = converted(*operands)
    assert converted.stats()["graphs"] > 0, converted.stats()["reasons"]
    for a, e in zip(actual, function(*operands), strict=True):
        assert torch.equal(a, e) and a.dtype == e.dtype
        # Strides that nobody sees, of dimensions of one element, decide how eager goes on.
        assert a.numel() == 0 or 1 in a.shape or strides(a) == strides(e)


@PROPERTY
@given(x=tensors())
def test_in_order(x):
    """What is planned is read by another operator, or leaves the graph."""
    expect_same(lambda x: (x.contiguous(), x.contiguous().flip(0), x.reshape(x.numel()) + 0), x)


@PROPERTY
@given(x=tensors(), data=st.data())
def test_reshaped(x, data):
    first = data.draw(st.integers(0, x.dim() - 1))
    last = data.draw(st.integers(first, x.dim() - 1))
    shape = [*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]]
    expect_same(lambda x: (x.reshape(shape), x.reshape(shape).flip(-1)), x)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_ones_on_threads(dtype, threads):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        x = torch.randn(16, 64, 4, 33, dtype=dtype)
        expect_same(
            lambda x: (
                x.transpose(1, 2).reshape(64, 64, 33).flip(0),
                x.permute(0, 2, 3, 1).reshape(64, 33, 64).flip(0),
                x.permute(3, 2, 1, 0).contiguous().flip(0),
            ),
            x,
        )
    finally:
        torch.set_num_threads(before)


def test_elements_that_are_taken_as_negative_or_conjugate():
    """Stay imperative, or are copied as what they are taken for."""
    x = torch.randn(20, 30, dtype=torch.complex64).conj()
    f = torchjanus.function(lambda x, y: (x.t().contiguous(), y.t().contiguous().flip(0)))
    for _ in range(6):
        turned, flipped = f(x.imag, x)
    assert torch.equal(turned, x.imag.t()) and torch.equal(flipped, x.t().flip(0))
