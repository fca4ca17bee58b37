"""NumPy's functions of numbers, whose scalars are numbers of the run or made after it."""

import numpy
import pytest
from differential import Program, differential

import torch


def rows(*counts, repeats=12):
    return [(torch.randn(counts[i % len(counts)], 4),) for i in range(repeats)]


@pytest.mark.parametrize("counts", [(5,), (5, 6, 9, 12)])
def test_half_of_the_rows(counts):
    @differential(hits=9, graphs=1)
    def program():
        def step(x):
            half = int(numpy.ceil(x.shape[0] / 2))
            return x.sum() + torch.ones(half, 2).sum(), half

        return Program(step, rows(*counts))

    program()


@pytest.mark.parametrize("counts", [(5,), (5, 6, 9, 12)])
def test_scale_by_a_root(counts):
    @differential(hits=9, graphs=1)
    def program():
        def step(x):
            return x / numpy.sqrt(x.shape[0]) + 2.0 * x, numpy.sqrt(2) * x

        return Program(step, rows(*counts))

    program()


@differential(hits=9, graphs=1)
def test_scalars_that_are_given_back_and_shown():
    kept = []

    def step(x):
        loss = x.pow(2).mean().item()
        clipped = numpy.clip(loss, 0.1, 0.9)
        kept.append(numpy.log1p(loss))
        print("loss", clipped, f"{numpy.sqrt(loss):.3f}")
        return clipped, x * clipped, float(numpy.exp(loss))

    return Program(step, rows(5), watch=[kept])


@differential(hits=9, graphs=1)
def test_functions_of_ints():
    def step(x, n):
        return x * numpy.maximum(n, 3), int(numpy.power(n, 2)), numpy.minimum(n, 7)

    return Program(step, [(torch.randn(3), i) for i in range(2, 14)])


@differential(reasons=["unknown_callable"])
def test_function_of_a_list():
    def step(x):
        return x * 2, numpy.mean(x.tolist())

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["dynamic_value"])
@pytest.mark.filterwarnings("ignore")
def test_what_numpy_warns_of():
    def step(x):
        return x * float(numpy.log(0))

    return Program(step, rows(5))
