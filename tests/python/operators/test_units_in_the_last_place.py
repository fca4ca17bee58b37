"""Functions in kernels against eager in units in the last place: on random bit patterns of all finite numbers and
densely around zero, where networks use them. Vectors by Sleef's functions and by our own polynomials have to be
within two units of eager's."""

import functools
import math

import pytest
import torch.nn.functional as F
from element_operators import ACTIVATIONS, UNARY
from units_in_the_last_place import FAR, INTEGERS, distance

import torch
import torchjanus

DTYPES = [torch.float32, torch.float64]
BOUND = 2
PREDICATES = {"isnan", "isinf", "isfinite", "logical_not"}

FUNCTIONS = {
    **{name: getattr(torch, name) for name in UNARY.split()},
    **{name: getattr(F, name) for name in ACTIVATIONS.split()},
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "power 1.7": lambda x: x**1.7,
    "power -0.5": lambda x: x**-0.5,
    "2 to a power": lambda x: 2.0**x,
}
# Made of several functions, each of which may be off by one: the largest distance from eager among every 61st number
# of float32. A unit of 1 + exp(-x) is two where that is 2^24; mish is this far off where exp(x) is subnormal.
FARTHER = {
    ("sigmoid", torch.float32): 4,
    ("silu", torch.float32): 4,
    ("mish", torch.float32): 22,
}
# What cancels loses its digits, in eager as in kernels. Counted in units of the operand's last place.
CANCELLING = {
    ("tanhshrink", torch.float32): 1,
    ("tanhshrink", torch.float64): 1,
    ("gelu", torch.float32): 2,
    ("gelu", torch.float64): 2,
    ("gelu by tanh", torch.float32): 2,
    ("gelu by tanh", torch.float64): 2,
}
# Without AVX2 kernels call the C library's functions, and glibc's own are up to three units from the exact value.
if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
    FARTHER |= {("erfc", dtype): 3 for dtype in DTYPES}
    CANCELLING |= {("tanhshrink", dtype): 2 for dtype in DTYPES}
# What libraries approximate on some processors: so far as eager is from the exact value, a kernel may be from eager.
APPROXIMATED = {("gelu", torch.float32)}
# Functions with results below the smallest normal number, of operands there or of exponents.
KEEP_SUBNORMAL = set(
    "neg abs expm1 log1p sin tan asin atan sinh tanh asinh atanh erf frac relu exp exp2 silu softplus logsigmoid "
    "hardswish leaky_relu softsign mish selu elu gelu".split()
)


@functools.cache
def operands(dtype):
    """Random bit patterns, numbers around zero, subnormal ones, exponents with subnormal results, and special ones as
    whole vectors of them."""
    generator = torch.Generator().manual_seed(5)
    bits = torch.randint(-(2**31), 2**31, (2, 120_000), generator=generator)
    bits = bits[0] if dtype == torch.float32 else (bits[0] << 32) | (bits[1] & 0xFFFFFFFF)
    anywhere = bits.to(INTEGERS[dtype]).view(dtype)
    anywhere = anywhere[anywhere.isfinite()]
    assert anywhere.numel() > 100_000
    info = torch.finfo(dtype)
    around_zero = torch.linspace(-10, 10, 50_001, dtype=torch.float64).to(dtype)
    small = (torch.rand(10_000, generator=generator, dtype=torch.float64) * 2 - 1) * info.tiny
    exponents = torch.linspace(1, 1.7, 20_000, dtype=torch.float64) * math.log(info.tiny)
    special = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0], dtype=dtype)
    parts = [
        special.repeat_interleave(64),
        around_zero,
        small.to(dtype),
        exponents.to(dtype),
        anywhere,
    ]
    x = torch.cat([*parts, *(-part for part in parts[2:4])])
    # Whole vectors in each thread of eager's, which computes what is left over by other functions.
    return x[: x.numel() // 4096 * 4096]


def operands_and_results(name, dtype):
    """Operands, and what eager and a kernel give of them: behind a negation, which is exact, so that there are two
    operators for a kernel."""

    def function(x):
        return FUNCTIONS[name](-x)

    x = operands(dtype)
    converted = torchjanus.function(function)
    for _ in range(4):
        ours = converted(x)
    assert "fused" in str(converted.graph())
    return -x, function(x), ours


def units_of(x):
    """The distance from each number's size to the next larger one."""
    return torch.nextafter(x.abs(), torch.full_like(x, math.inf)) - x.abs()


def subnormal(x):
    return (x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_distance_from_eager(name, dtype):
    """NaN, infinities and subnormal results are where eager's are."""
    x, eager, ours = operands_and_results(name, dtype)
    if not eager.is_floating_point():
        assert torch.equal(ours, eager)
        return
    units, bound = distance(ours, eager), FARTHER.get((name, dtype), BOUND)
    if (name, dtype) in CANCELLING:
        finite = eager.isfinite() & ours.isfinite()
        assert (units[~finite] == 0).all()
        units = torch.where(finite, (ours - eager).abs() / units_of(x), 0)
        bound = CANCELLING[name, dtype]
    if (name, dtype) in APPROXIMATED:
        exact = FUNCTIONS[name](x.double())
        error = torch.where(finite, (eager - exact).abs() / units_of(x), 0)
        bound += error.max().item()
        own_error = torch.where(finite, (ours - exact).abs() / units_of(x), 0)
        assert own_error.max() <= CANCELLING[name, dtype]
    worst = units.argmax()
    assert units[worst] <= bound, (x[worst], ours[worst], eager[worst])
    assert (subnormal(ours) == subnormal(eager)).all() or (name, dtype) in CANCELLING
    assert subnormal(eager).sum() > 1000 or name not in KEEP_SUBNORMAL


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sqrt"])
def test_distance_from_the_exact_value(name):
    """Of float32, by float64: our own polynomials within two units, and roots as near as eager's, which are not
    rounded correctly on all processors."""
    x, eager, ours = operands_and_results(name, torch.float32)
    exact = FUNCTIONS[name](x.double()).float()
    assert distance(ours, exact).max() <= (1 if name == "sqrt" else BOUND)
    assert name != "sqrt" or distance(ours, eager).max() == 0


def test_distance_counts_numbers_in_between():
    for dtype in (torch.float16, torch.bfloat16, *DTYPES):
        tiny = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
        pairs = [(1.0, 1.0, 0), (0.0, -0.0, 0), (math.nan, -math.nan, 0), (math.inf, math.inf, 0)]
        pairs += [(tiny, -tiny, 2), (0.0, tiny, 1), (1.0, 1 + torch.finfo(dtype).eps, 1)]
        pairs += [(-1.0, -1 - 4 * torch.finfo(dtype).eps, 4), (2.0, 2 - torch.finfo(dtype).eps, 1)]
        pairs += [
            (math.inf, 1.0, 2 * FAR),
            (1.0, math.nan, 2 * FAR),
            (math.inf, -math.inf, 2 * FAR),
        ]
        x, y, units = zip(*pairs, strict=True)
        found = distance(torch.tensor(x, dtype=dtype), torch.tensor(y, dtype=dtype))
        assert found.tolist() == list(units)
