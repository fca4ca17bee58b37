"""What graphs draw themselves for dropout: the numbers, and the generator's state after them, are torch's."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
from torch import nn

# Around the 312 pairs of numbers that the generator computes at once.
SIZES = [(1,), (2,), (311,), (312,), (313,), (624,), (3, 5, 400)]


@pytest.mark.parametrize("chance", [1e-6, 0.3, 0.5, 0.999999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@differential()
def test_sizes(dtype, chance):
    def step(x):
        shift = torch.rand((), dtype=torch.float32)  # one number: pairs begin in the middle
        return F.dropout(x, chance), F.dropout(x * 2, chance), shift, torch.rand(3)

    calls = [(torch.ones(size, dtype=dtype),) for size in SIZES for _ in range(4)]
    return Program(step, calls)


@differential()
def test_probabilities_that_vary():
    def step(x, chance):
        return torch.empty_like(x).bernoulli_(chance) * x

    calls = [(torch.randn(40, 40), chance) for chance in (0.5, 0.25, 0.0, 1.0, 0.75, 0.1, 0.9)]
    return Program(step, [*calls, (torch.randn(40, 40), 1.5), *calls])


@differential()
def test_a_run_that_is_given_up_has_drawn_nothing():
    def step(x):
        y = F.dropout(x, 0.5)
        if y.sum() > 1000:
            return y * 0
        return y

    calls = [(torch.full((20, 20), 1000.0 if i == 7 else 0.1),) for i in range(10)]
    return Program(step, calls)


PARTS = {
    "variational autoencoder": lambda y: y[:, :16] + torch.randn_like(y[:, :16]) * y[:, 16:].exp(),
    "columns": lambda y: F.dropout(y[:, 3:], 0.5) * torch.rand_like(y[:, 3:]),
    "every other row": lambda y: F.dropout(y[::2], 0.5) + torch.randn_like(y[::2]),
    "chunks": lambda y: F.dropout(y.chunk(3)[1][:, 2:], 0.3),
    "repeated": lambda y: F.dropout(y[:1].expand(5, 32), 0.5),
}


@pytest.mark.parametrize("name", PARTS)
@differential(hits=3)
def test_draws_for_parts_of_tensors(name):
    """They go into new memory, in the order of the indices."""
    linear = nn.Linear(32, 32)

    def step(x):
        linear.zero_grad()
        y = PARTS[name](linear(x))
        y.sum().backward()
        return y

    return Program(step, [(torch.randn(12, 32),) for _ in range(6)], watch=[linear])


@pytest.mark.parametrize("in_place", [True, False])
@differential(reasons=["unsupported_tensor"])
def test_draws_in_another_order_than_that_of_the_indices(in_place):
    def step(x):
        return F.dropout(x.clone()[:, :3] if in_place else x.t(), 0.5, inplace=in_place)

    return Program(step, [(torch.randn(12, 32),) for _ in range(6)])
