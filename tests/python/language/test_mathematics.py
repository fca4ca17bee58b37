"""Functions of Python's `math` and rounding, on numbers that vary. PYTEST_DONT_REWRITE"""

import math

import pytest
from differential import Program, differential

import torch


def numbered_batches(count=12):
    return [(torch.randn(5, 4), i) for i in range(count)]


FUNCTIONS = {
    "trigonometry": lambda x, i: (
        x * math.cos(i * 0.1) + math.sin(i) - math.tan(0.1 * i) + math.atan2(i, 2.0)
    ),
    "exponentials": lambda x, i: (
        x * math.exp(-i * 0.1) + math.log(i + 1) + math.log(i + 2, 2) + math.log1p(i) + math.tanh(i)
    ),
    "powers": lambda x, i: (
        x * math.sqrt(i) + math.pow(i, 1.5) + math.hypot(i, 1.0) + math.log2(i + 1)
    ),
    "rounding": lambda x, i: (
        x * math.floor(i * 0.3) + math.ceil(i * 0.3) + math.trunc(-i * 0.7) + round(i * 0.45)
    ),
    "round to digits": lambda x, i: x * round(x.sum().item(), 2) + round(i * 137, -2),
    "integers": lambda x, i: x * math.gcd(i, 12) + math.comb(i + 2, 2) + math.isqrt(i),
    "tests": lambda x, i: (
        x + 1
        if math.isnan(x.sum().item()) or not math.isfinite(i * 1.0)
        else x * math.isclose(i, 3)
    ),
    "of tensors": lambda x, i: x * math.exp(x.mean()) + math.floor(x.abs().sum()),
    "parts": lambda x, i: x * abs(i - 5) + divmod(i, 3)[1] + divmod(i * 0.5, 2)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numbers(name):
    @differential(hits=7)
    def program():
        return Program(FUNCTIONS[name], numbered_batches(14))

    program()


@pytest.mark.parametrize("function", [math.log, math.sqrt, math.acos, math.factorial])
def test_functions_that_raise(function):
    @differential(hits=2, aborts=1)
    def program():
        def step(x, i):
            return (
                x * function(i - 4) if function is math.factorial else x * function(0.9 - 0.1 * i)
            )

        calls = numbered_batches(24)
        return Program(step, calls[6:12] + calls[:3] if function is math.factorial else calls)

    program()
