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


class Mixing:
    """As timm's Mixup: what it drew last is a scalar of NumPy's."""

    def __init__(self, number):
        self.number = number


SCALARS = [numpy.float64, numpy.float32, numpy.float16]


@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_scalars_beside_tensors(kind, dtype):
    """Each is taken by its value, whichever side it stands on."""

    @differential(hits=9, graphs=1, tolerance=1e-7)
    def program():
        mixing = Mixing(None)

        def step(x):
            s = mixing.number
            return x * s, s * x, x + s, s - x, x / s, s / x, float(s), s

        calls = []
        for i in range(12):
            calls.append(lambda i=i: setattr(mixing, "number", kind(0.3 + i)))
            calls.append(((torch.arange(1, 5) * 2).to(dtype),))
        return Program(step, calls)

    program()


@differential(hits=9, graphs=1)
def test_scalars_with_gradients_and_in_place():
    mixing = Mixing(None)
    weight = torch.randn(4, requires_grad=True)

    def step(x):
        weight.grad = None
        y = weight * mixing.number
        y *= 1.0 - mixing.number
        y.sum().backward()
        return y.detach() + x, weight.grad + 0

    calls = []
    for i in range(12):
        calls.append(lambda i=i: setattr(mixing, "number", numpy.float64(0.3 + i)))
        calls.append((torch.randn(4),))
    return Program(step, calls, watch=[weight])


@differential(hits=9, graphs=1)
def test_arithmetic_of_doubles():
    mixing = Mixing(None)

    def step(x):
        s = mixing.number
        rest = 1.0 - s
        print(rest, s + rest)
        return x * s + (1.0 - s) * x, rest, rest * s, s * 2.0 - rest, float(rest), x * (rest * rest)

    calls = []
    for i in range(12):
        calls.append(lambda i=i: setattr(mixing, "number", numpy.float64(0.3 + i)))
        calls.append((torch.randn(4),))
    return Program(step, calls)


@pytest.mark.filterwarnings("ignore")
@differential(hits=4, aborts=1)
def test_arithmetic_that_numpy_warns_of():
    mixing = Mixing(numpy.float64(2.0))

    def step(x):
        s = mixing.number
        return x * 2, s * s, s

    def grow():
        mixing.number = numpy.float64(1e300)

    calls = [(torch.randn(4),) for _ in range(8)]
    return Program(step, [*calls, grow, *calls])


@pytest.mark.parametrize("other", [numpy.float32(0.1), numpy.int64(3), numpy.bool_(True)], ids=repr)
def test_arithmetic_of_other_scalars(other):
    """`1.0 - s` is a numpy.float32 for one of these, and so on."""

    @differential(hits=0, reasons=["unknown_callable"])
    def program():
        mixing = Mixing(other)
        return Program(lambda x: x * (1.0 - mixing.number), [(torch.randn(4),) for _ in range(6)])

    program()


@pytest.mark.parametrize("other", [numpy.int64(3), numpy.bool_(True)], ids=repr)
def test_scalars_that_are_no_floats(other):
    @differential(hits=0, reasons=["expression"])
    def program():
        mixing = Mixing(other)
        return Program(lambda x: x * mixing.number, [(torch.arange(4),) for _ in range(6)])

    program()
