"""Calls of operators in less usual forms: operands in another order, tensors for numbers, answers that
are no tensors."""

import math

import pytest
from differential import Program, differential

import torch


@pytest.mark.parametrize("dtype", [torch.bool, torch.float64])
@differential(hits=3)
def test_methods_whose_operator_takes_the_tensor_second(dtype):
    def step(a, condition, b):
        return a.where(condition, b), a.where(other=b, condition=condition), a.where(condition, 1)

    def batch():
        a, condition, b = torch.randn(3, 8) > 0
        return a.to(dtype), condition, b.to(dtype)

    return Program(step, [batch() for _ in range(6)])


@differential(hits=3)
def test_polygamma():
    def step(x):
        return x.polygamma(1), x.polygamma(n=2)

    return Program(step, [(torch.rand(4) + 0.5,) for _ in range(6)])


@differential(reasons=["unknown_callable"])
def test_operator_that_gives_a_dtype():
    def step(x, i):
        return torch.result_type(x, i), x + i

    return Program(step, [(torch.randn(4), torch.arange(4)) for _ in range(6)])


@differential(hits=3)
def test_equal_and_close():
    def step(x, y):
        flags = torch.equal(x, y), x.equal(x), torch.allclose(x, y), x.allclose(y, equal_nan=True)
        return flags, x + y

    x = torch.randn(4)
    nan = torch.full((4,), math.nan)
    pairs = [(x, y) for y in (-x, x + 1, x.clone(), x + 1e-9, -x)]
    return Program(step, [*pairs, (nan, nan), (x, torch.randn(3)), (x, torch.arange(4))])


@differential(hits=3)
def test_an_element_for_a_number():
    def step(x, y, rate):
        return x.add(y, alpha=rate), torch.addcmul(x, y, y, value=rate)

    return Program(
        step, [(torch.randn(3), torch.randn(3), torch.tensor(0.1 * i)) for i in range(6)]
    )


@differential(graphs=1, hits=3)
def test_what_a_tensor_says_of_where_it_lies():
    def step(x):
        y = x * 2
        flags = [y.is_cpu, y.is_cuda, y.is_sparse, y.is_mtia, y.is_xla, y.is_vulkan]
        if y.layout == torch.strided and y.layout is x.layout:
            y = y.H @ y
        return y, flags, str(x.layout)

    return Program(step, [(torch.randn(3, 2),) for _ in range(7)])


@differential(hits=4)
def test_strides():
    def step(x):
        y = x.t()
        return (
            x.stride(),
            y.stride(0),
            y.stride(-1),
            x.new_zeros(2, 5).stride(dim=1),
            x * x.stride(0),
        )

    calls = [(torch.randn(rows, 4),) for rows in (3, 3, 3, 3, 5, 6, 7, 8, 1, 9, 2)]
    return Program(step, calls)


@differential(hits=3)
def test_range_of_bools():
    def step(x):
        return x[0] * 2, torch.arange(True, 3), torch.arange(0, 3, True), torch.arange(True)

    return Program(step, [(torch.randn(4),) for _ in range(6)])


@differential(reasons=["would_raise"])
def test_bool_where_an_int_is_asked_for():
    def step(x, count):
        try:
            return x.topk(count)[0]
        except TypeError as error:
            return str(error)

    counts = [1, 1, 1, 1, True, 1, True, True, 1, True]
    return Program(step, [(torch.randn(4), count) for count in counts])
