"""Numbers that eager makes elements of a tensor, or parameters of an operator: which of them fit its dtype, wrap, or
raise."""

import math

import pytest
from differential import Program, differential

import torch
import torchjanus

FILLS = {
    "masked_fill": lambda x, n: x.masked_fill(x == x, n),
    "where": lambda x, n: torch.where(x == x, n, x),
    "clamp": lambda x, n: x.clamp(min=n),
    "clamp from above": lambda x, n: x.clamp_max(n),
    "add": lambda x, n: torch.add(x, x, alpha=n),
}
NUMBERS = {
    "bool": [0, 1, 2, -1, 256, 2**40, 0.5, -0.0, math.nan, math.inf, True, False],
    "uint8": [-1, -128, -255, -256, -1000, 255, 256, 0.5, -0.5, -1.0, 254.0, 255.5, True],
    "int8": [-128, -129, 127, 128, 0.5, -0.5, -128.0, -128.5, True],
    "int32": [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, True],
    "int64": [2**62, -(2**63), 0.5],
    "float16": [65504, 65505, 70000, -(2**40), 65504.0, 65519.0, 65520.0, -1e9, math.inf],
    "bfloat16": [2**40, 3e38, 3.4e38, -3.5e38, 1e300, math.nan],
    "float32": [2**63 - 1, 3.4e38, 3.5e38, -1e300, -math.inf],
    "float64": [1e300, -0.0],
}
CASES = [
    pytest.param(fill, dtype, number, id=f"{fill} {dtype} {number!r}")
    for fill in FILLS
    for dtype, numbers in NUMBERS.items()
    for number in numbers
]


def outcome(function, *arguments):
    """Results as text, in which NaN is NaN; or what was raised."""
    try:
        return [(x.dtype, x.shape, str(x.tolist())) for x in function(*arguments)]
    except Exception as error:
        return type(error), str(error)


def with_another_use(fill):
    """A kernel has two operators: also where the function itself is torch's."""

    def run(x, number):
        y = FILLS[fill](x, number)
        return y, y.logical_not()

    return run


@pytest.mark.parametrize("shape", [(), (5,)], ids=str)
@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "argument"])
@pytest.mark.parametrize(("fill", "dtype", "number"), CASES)
def test_number_as_an_element(fill, dtype, number, is_constant, shape):
    """A graph gives it wherever eager does; where eager raises, the call does as well."""
    program = with_another_use(fill)
    arguments = (torch.ones(shape).to(getattr(torch, dtype)),)
    if is_constant:
        step = lambda x: program(x, number)
    else:
        step, arguments = program, (*arguments, number)
    eager = outcome(step, *arguments)
    converted = torchjanus.function(step)
    for _ in range(5):
        assert outcome(converted, *arguments) == eager
    if isinstance(eager, list):
        assert converted.stats()["hits"] > 0, converted.stats()["reasons"]
    else:
        assert converted.stats()["hits"] == 0


REPLACEMENTS = {
    "masked_fill": lambda x, n: x.masked_fill(x > 2, n),
    "masked_fill in place": lambda x, n: x.masked_fill_(x > 2, n),
    "where": lambda x, n: torch.where(x > 2, x, n),
    "where first": lambda x, n: torch.where(x > 2, n, x),
}


def with_numbers_about(dtype):
    """A tensor, with numbers that it holds, and those beside the ends of what it does."""
    limits = torch.iinfo(dtype)
    numbers = [1, 2, 3, 4, 5, 6, limits.max, limits.max + 1, limits.min, limits.min - 1, 7]
    return [(torch.tensor([1, 2, 3, 100], dtype=dtype), n) for n in numbers]


@pytest.mark.parametrize("fill", REPLACEMENTS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32], ids=str)
@differential(hits=5)
def test_number_that_does_not_fit(fill, dtype):
    return Program(REPLACEMENTS[fill], with_numbers_about(dtype))


BOUNDS = {
    "from below": lambda x, n: x.clamp(min=n),
    "from above": lambda x, n: x.clamp(max=n),
    "between": lambda x, n: x.clamp(-n, n),
    "clamp_min": lambda x, n: x.clamp_min(n),
    "in place": lambda x, n: x.clamp_(max=n),
}


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32], ids=str)
@differential(hits=3)
def test_bound_that_does_not_fit(name, dtype):
    """Versions of torch differ in which of them raise."""
    return Program(BOUNDS[name], with_numbers_about(dtype))


@pytest.mark.parametrize("fill", REPLACEMENTS)
@differential(reasons=["would_raise"])
def test_constant_that_does_not_fit(fill):
    def f(x):
        return REPLACEMENTS[fill](x, 300)

    return Program(f, [(torch.tensor([1, 2, 3, 100], dtype=torch.uint8),) for _ in range(6)])


@differential()
def test_turned_without_dimensions():
    def step(x):
        return x.sum().flip(0), torch.flip(x.mean(), (-1,)) * 2, x.amax().flip(())

    return Program(step, [(torch.randn(3),) for _ in range(6)])
