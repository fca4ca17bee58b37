"""Elementwise operators in compiled graphs against eager on every pair of special values: zeros of
both signs, infinities, NaN, numbers that are large, small, halves."""

import math

import pytest
import torch.nn.functional as F

import torch
import torchjanus

SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.5, 1e-30, -1e-30, 1e30, -1e30),
    *(math.inf, -math.inf, math.nan, 20.5, -20.5, 3.0, -3.0, 100.0, -100.0, 6.0, 7.0),
]

UNARY = (
    "neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos "
    "tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid floor ceil trunc "
    "round frac isnan isinf isfinite relu logical_not"
)
ACTIVATIONS = (
    "silu mish hardsigmoid hardswish softplus selu celu relu6 elu leaky_relu hardtanh "
    "logsigmoid softsign tanhshrink"
)
BINARY = (
    "add sub mul div floor_divide remainder fmod pow maximum minimum atan2 xlogy eq ne lt "
    "le gt ge logical_and logical_or logical_xor"
)


def power(exponent):
    return lambda x, y: x**exponent


FUNCTIONS = {
    # Elsewhere eager gives an element alone another value than one among others.
    "gelu": lambda x, y: F.gelu(x.clamp(-2.5, 1e30)),
    "gelu by tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "clamp by numbers": lambda x, y: torch.clamp(x, -0.5, 1.5),
    "clamp by tensors": lambda x, y: torch.clamp(x, y, y + 1),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "lerp": lambda x, y: (torch.lerp(x, y, 0.25), torch.lerp(x, y, 0.75)),
    # Whether a product overflows before it is added differs with contraction: no large factors.
    "addcmul": lambda x, y: torch.addcmul(x, y, y.sign(), value=0.3),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x, value=0.3),
    "number to a power": lambda x, y: 2.0**x,
    "rounded quotients": lambda x, y: (
        torch.div(x, y, rounding_mode="floor"),
        torch.div(x, y, rounding_mode="trunc"),
    ),
    "casts": lambda x, y: (x.bool(), (x * y).half()),
    **{f"power {exponent}": power(exponent) for exponent in (2, 3, 0.5, -0.5, -1, -2, 1.7, 0, 1)},
}


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def assert_same(ours, theirs):
    assert ours.dtype == theirs.dtype
    ours, theirs, dtype = ours.double(), theirs.double(), theirs.dtype
    tolerance = 1e-14 if dtype == torch.float64 else 3e-6
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    close = same | ((ours - theirs).abs() <= tolerance * theirs.abs() + 1e-38)
    assert close.all()
    zero = theirs == 0
    assert (torch.signbit(ours) == torch.signbit(theirs))[zero].all()


def check(function):
    """Twice with the operands swapped, so that several kernels are at work in one graph."""

    def both(x, y):
        return as_tuple(function(x, y)) + as_tuple(function(y, x))

    for dtype in (torch.float32, torch.float64):
        values = torch.tensor(SPECIAL, dtype=dtype)
        x, y = values.repeat_interleave(len(values)), values.repeat(len(values))
        converted = torchjanus.function(both)
        for _ in range(4):
            results = converted(x, y)
        assert converted.stats()["hits"] > 0, converted.stats()["reasons"]
        for ours, theirs in zip(results, both(x, y), strict=True):
            assert_same(ours, theirs)


@pytest.mark.parametrize("name", UNARY.split())
def test_unary(name):
    function = getattr(torch, name)
    check(lambda x, y: function(x))


@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_activation(name):
    function = getattr(F, name)
    check(lambda x, y: function(x))


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name):
    function = getattr(torch, name)
    check(lambda x, y: function(x, y))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    check(FUNCTIONS[name])
