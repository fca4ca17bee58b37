"""Operators that give their operand itself, or a view of it, for some operands: transpositions, flattening,
attributes that real tensors share."""

import pytest
from differential import Program, differential

import torch
from torch import nn


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@differential()
def test_transposed_is_a_new_tensor(rank):
    def f(x):
        t = x.T
        return t, t is x, x * 2

    x = torch.randn(tuple(range(2, 2 + rank)))
    return Program(f, [(x,)] * 6, watch=[x])


@differential()
def test_transposed_vector_with_gradient():
    w = nn.Parameter(torch.randn(3))

    def f(x):
        loss = (w.T * x).sum()
        loss.backward()
        return w.T

    return Program(f, [(torch.randn(3),)] * 6, watch=[w])


@differential(graphs=1)
def test_attributes_that_real_tensors_share():
    def step(x):
        return x.mH, x.H @ x, x.real is x, x.nbytes

    return Program(step, [(torch.randn(5, 4),) for _ in range(5)])


@differential(hits=3)
def test_flattening_of_one_dimension_gives_the_tensor_itself():
    def step(x):
        y = x * 2
        z = nn.Flatten()(y)
        z.add_(1)
        return y, z is y, y.flatten(-1) is y, y.flatten()

    return Program(step, [(torch.randn(4, 3),) for _ in range(6)])


@differential()
def test_views_of_numbers_name_dimensions():
    """A tensor without dimensions takes 0 and -1 as one of its own."""

    def f(x):
        y = x.squeeze(0), x.squeeze(-1), torch.squeeze(x, (0,)), x.transpose(0, -1), x.flatten(0)
        return [each * 2 for each in y], x.unsqueeze(-1).squeeze(0)

    return Program(f, [(torch.tensor(float(i)),) for i in range(7)])
