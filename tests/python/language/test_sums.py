"""sum() of Python's numbers: since Python 3.12 it keeps account of what additions of floats round away."""

import random
import sys

import pytest
from differential import Program, differential

import torch

LOSSY = (0.1, 1e16, -0.3, 1e-9, -1e16, 0.7)


def sums_of_known():
    return (
        sum([0.1] * 10),
        sum(LOSSY),
        sum([1, 2, 0.1, 3, True, 0.2, 1e16, -1e16]),
        sum(LOSSY, 0.5),
        sum(LOSSY, start=2),
        sum([0.1, 0.2, 0.3], True),
        sum([1e308, 1e308, -1e308]),
        sum([float("inf"), 1.0, 0.1]),
        sum([-0.0, -0.0], -0.0),
        sum([2**63, 1, 0.1, 0.2, 0.3]),
        sum([0.1, 2**70, 0.2, 1e16, 3, -1e16]),
        sum([]),
        sum([1, 2, True]),
    )


@differential(tolerance=0)
def test_known_numbers():
    def step(x):
        sums = sums_of_known()
        return x * sums[0] + sum([0.1, 0.2, 0.3]), sum([0.1] * 10), sum(LOSSY, 0.5), sums

    return Program(step, [(torch.randn(3),) for _ in range(6)])


def lossy(count):
    return [random.choice((1, 1e16, -1e16, 1e-9)) * random.uniform(-1, 1) for _ in range(count)]


@differential(hits=8, tolerance=0)
def test_floats_that_vary():
    def step(x, a, b, c, n):
        values = [a, b, c]
        return (
            x * sum(values),
            sum(values),
            sum([*values, n, -b, -c], 0.5),
            sum([n, True, a, b]),
            sum([a, -a], -0.0),
            sum([-0.0, -0.0], -0.0) * a,
            sum([a, b, c], True),
        )

    calls = [(torch.randn(3), *lossy(3), index) for index in range(16)]
    calls += [
        (torch.randn(3), float("inf"), 1.0, 2.0, 3),
        (torch.randn(3), 1e308, 1e308, -1e308, 3),
    ]
    return Program(step, calls)


@differential(hits=8)
def test_numbers_of_tensors():
    def step(x):
        return x * sum(row.sum().item() for row in x), sum(x.flatten().tolist())

    return Program(step, [(torch.randn(4, 3, dtype=torch.float64) * 1e8,) for _ in range(16)])


@pytest.mark.parametrize("start", [0, 0.5, 2, True])
@differential(hits=12, graphs=2, tolerance=0)
def test_lists_of_other_lengths(start):
    def step(values, x):
        return x * sum(values, start), sum(v * 2 for v in values), sum(values, start)

    return Program(step, [(lossy(2 + i * 5 % 7), torch.randn(4)) for i in range(24)])


@differential(
    reasons=["unsupported_argument"] if sys.version_info >= (3, 14) else [], hits=0, tolerance=0
)
def test_complex_numbers():
    def step(x, n):
        return x * n, sum([0.1j, 1e16 + n, -1e16, 0.2])

    return Program(step, [(torch.randn(3), index) for index in range(10)])
