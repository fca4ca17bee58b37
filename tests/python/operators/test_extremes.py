"""Elementwise operators and their gradients in kernels against eager, at NaN, infinities, zeros of both signs, the
largest and smallest numbers and the operators' own limits, in all floating dtypes; and operators with numbers beside
half precision, which have to agree to the last bit."""

import math

import pytest
import torch.nn.functional as F

import torch
import torchjanus

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
HALVES = [torch.bfloat16, torch.float16]
TOLERANCE = {
    torch.float32: 2e-5,
    torch.float64: 1e-9,
    torch.bfloat16: 2**-6,
    torch.float16: 2**-9,
}
LIMITS = [0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 2.5, 3.0, 6.0, 7.0, 20.0, 20.5, 100.0, math.inf]

UNARY = (
    "neg abs sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh "
    "cosh tanh asinh acosh atanh erfc sigmoid floor ceil trunc round frac relu"
)
ACTIVATIONS = (
    "silu mish hardsigmoid hardswish softplus selu celu relu6 elu leaky_relu hardtanh logsigmoid "
    "softsign tanhshrink"
)
# Of one tensor and a number, 0.3, which half precision cannot hold.
WITH_NUMBER = {
    "elu": lambda x: F.elu(x, 0.3),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.3),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
    "threshold": lambda x: F.threshold(x, 0.3, 0.7),
    "hardtanh": lambda x: F.hardtanh(x, -0.3, 0.7),
    "clamp": lambda x: x.clamp(-0.3, 0.3),
    "clamp from below": lambda x: x.clamp(min=0.3),
    "clamp from above": lambda x: x.clamp(max=0.3),
    "clamp_min": lambda x: x.clamp_min(0.3),
    "clamp_max": lambda x: x.clamp_max(0.3),
    "add": lambda x: x + 0.3,
    "sub": lambda x: x - 0.3,
    "sub from": lambda x: 0.3 - x,
    "mul": lambda x: x * 0.3,
    "mul of": lambda x: torch.mul(torch.tensor(0.3), x),
    "div": lambda x: x / 0.3,
    "add alpha": lambda x: torch.add(x, x, alpha=0.3),
    "sub alpha": lambda x: torch.sub(x, x, alpha=0.3),
    "rsub alpha": lambda x: torch.rsub(x, x, alpha=0.3),
    "add a tensor without dimensions": lambda x: x + torch.tensor(0.3),
    "sub a tensor without dimensions": lambda x: x - torch.tensor(0.3),
    "mul a tensor without dimensions": lambda x: x * torch.tensor(0.3),
    "div a tensor without dimensions": lambda x: x / torch.tensor(0.3),
    "maximum": lambda x: torch.maximum(x, torch.tensor(0.3)),
    "minimum": lambda x: torch.minimum(x, torch.tensor(0.3)),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0.3),
    "where": lambda x: torch.where(x > 0, x, 0.3),
    "remainder": lambda x: x % 0.3,
    "fmod": lambda x: x.fmod(0.3),
}
# Whose gradient eager rounds elsewhere, or which have none.
VALUES_WITH_NUMBER = {
    "softplus": lambda x: F.softplus(x, 0.3),
    "softplus with a threshold": lambda x: F.softplus(x, 3, 0.7),
    "divided": lambda x: 0.3 / x,
    "tensor divided": lambda x: torch.tensor(0.3) / x,
    "floor_divide": lambda x: x // 0.3,
    "floor_divide by a tensor without dimensions": lambda x: x // torch.tensor(0.3),
    "div floor": lambda x: torch.div(x, 0.3, rounding_mode="floor"),
    "div trunc": lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    "greater": lambda x: x > 0.3,
    "equal": lambda x: x == 0.3,
    "greater than a tensor without dimensions": lambda x: x > torch.tensor(0.3),
    "power 3": lambda x: x**3,
    "power -2": lambda x: x**-2,
    "power 0.5": lambda x: x**0.5,
    "power -0.5": lambda x: x**-0.5,
    "power 2.3": lambda x: x**2.3,
    "number to a power": lambda x: 0.3**x,
    "lerp": lambda x: torch.lerp(x, x * 2, 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.3),
    "addcdiv": lambda x: torch.addcdiv(x, x, x + 3, value=0.3),
    "xlogy": lambda x: torch.xlogy(x, 0.3),
}
OF_ONE = {
    **{name: getattr(torch, name) for name in UNARY.split()},
    **{name: getattr(F, name) for name in ACTIVATIONS.split()},
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    **{f"{name}, 0.3": function for name, function in WITH_NUMBER.items()},
    # Of the gradient eager rounds alpha to float32, also for float64.
    "celu, 0.3": lambda x: F.celu(x, 0.25),
}
OF_TWO = {
    **{name: getattr(torch, name) for name in "maximum minimum atan2 mul div fmod pow".split()},
    "clamp by tensors": lambda x, y: torch.clamp(x, y, y + 1),
    "where": lambda x, y: torch.where(x > 0, x, y),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x),
    "smooth_l1_loss": lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.3),
    "huber_loss": lambda x, y: F.huber_loss(x, y, reduction="none", delta=0.3),
    "l1_loss": lambda x, y: F.l1_loss(x, y, reduction="none"),
}


def extremes(dtype):
    """Each 32 times, so that eager computes all of them in vectors."""
    info = torch.finfo(dtype)
    # Products of half precision overflow in eager's gradients of several operators; a kernel has one of float32.
    large = [info.max, info.tiny, info.tiny / 4] if dtype != torch.float16 else [info.tiny]
    numbers = [*LIMITS, *large, 1e-3]
    values = torch.tensor([math.nan, *numbers, *(-x for x in numbers)], dtype=torch.float64)
    return values.to(dtype)


def converted(function, *operands):
    """What the function gives eagerly, and from a graph."""
    step = torchjanus.function(function)
    for _ in range(4):
        ours = step(*operands)
    assert step.stats()["hits"] > 0, step.stats()["reasons"]
    return function(*operands).detach(), ours.detach()


def gradient(function):
    def of(*operands):
        *tensors, dy = operands
        y = function(*(x * 1 for x in tensors))
        return torch.cat([g.flatten() for g in torch.autograd.grad(y, tensors, dy)])

    return of


def expect_same(eager, ours, tolerance, smallest=1e-37):
    """NaN where eager has NaN, zeros of eager's sign."""
    assert ours.dtype == eager.dtype
    dtype, eager, ours = eager.dtype, eager.double(), ours.double()
    same = (eager == ours) & ((eager != 0) | (eager.signbit() == ours.signbit()))
    same |= eager.isnan() & ours.isnan()
    if tolerance > 0:
        smallest = max(smallest, 1e-6 if dtype == torch.float16 else 0)
        near = (eager - ours).abs() <= tolerance * eager.abs() + smallest
        same |= near & eager.isfinite() & ours.isfinite() & ((eager != 0) | (ours != 0))
    wrong = (~same).nonzero().flatten()[:5]
    assert same.all(), (wrong.tolist(), eager[wrong].tolist(), ours[wrong].tolist())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_ONE)
def test_one_tensor_at_extremes(name, dtype):
    function, x = OF_ONE[name], extremes(dtype).repeat_interleave(32)
    expect_same(*converted(lambda x: function(x * 1), x), TOLERANCE[dtype])
    x.requires_grad_()
    for dy in (1.0, -2.0):
        expect_same(*converted(gradient(function), x, torch.full_like(x, dy)), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_TWO)
def test_two_tensors_at_extremes(name, dtype):
    function, values = OF_TWO[name], extremes(dtype)
    x, y = values.repeat_interleave(32 * len(values)), values.repeat(len(values))
    y = y.repeat_interleave(32)
    expect_same(*converted(lambda x, y: function(x * 1, y), x, y), TOLERANCE[dtype])
    operands = x.requires_grad_(), y.requires_grad_(), torch.ones_like(x)
    eager, ours = converted(gradient(function), *operands)
    # Of a target eager computes 0 where the negative of the input's gradient is -0.
    expect_same(eager + 0, ours + 0, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_of_infinity_is_what_eagers_vectors_give(dtype):
    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0] * 32, dtype=dtype)
    expect_same(*converted(lambda x: F.gelu(x * 1), x), TOLERANCE[dtype])


def numbers_of(dtype):
    x = torch.randn(100, 64, generator=torch.Generator().manual_seed(3)) * 2
    x[:10] = torch.tensor([0.3, -0.3, 0.7, -0.7]).repeat(16)
    return x.to(dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", WITH_NUMBER | VALUES_WITH_NUMBER)
def test_numbers_beside_half_precision(name, dtype):
    function, x = (WITH_NUMBER | VALUES_WITH_NUMBER)[name], numbers_of(dtype)
    expect_same(*converted(lambda x: function(x * 1), x), 0)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", WITH_NUMBER)
def test_gradients_with_numbers_beside_half_precision(name, dtype):
    x = numbers_of(dtype).requires_grad_()
    dy = numbers_of(dtype).roll(17, 1)
    expect_same(*converted(gradient(WITH_NUMBER[name]), x, dy), 0)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "floor_divide", "atan2"])
def test_tensors_without_dimensions_beside_half_precision(name, dtype):
    function, x = getattr(torch, name), numbers_of(dtype)
    for s in (torch.tensor(1.2345), torch.tensor(-0.7, dtype=torch.float64)):
        expect_same(*converted(lambda x, s: function(x * 1, s), x, s), 0)


REDUCTIONS = {
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(1, keepdim=True),
    "amax of all": lambda x: x.amax((0, 1)),
    "max": lambda x: x.max(),
    "max along": lambda x: x.max(1).values,
    "sum and amax": lambda x: x.sum(1) + x.amax(1),
    "prod": lambda x: x.prod(),
    "prod along": lambda x: x.prod(1),
    "var_mean": lambda x: torch.cat(torch.var_mean(x, 1)),
    "var_mean of all": lambda x: torch.stack(torch.var_mean(x)),
    "var_mean with a correction": lambda x: torch.cat(torch.var_mean(x, 0, correction=0)),
}
ROWS = {
    "ordinary": [[0.5, 2.0, -1.5, 4.0], [1.0, 1.0, -1.0, 1.0], [2.0, -3.0, 0.5, 0.25]],
    "NaN": [[1.0, math.nan, 2.0, 3.0], [1.0, 2.0, 3.0, 3.0], [-1.0, 2.0, 3.0, 4.0]],
    "infinities": [
        [math.inf, -math.inf, 1.0, 2.0],
        [1.0, math.inf, 2.0, 3.0],
        [-1.0, 2.0, 3.0, math.inf],
    ],
    "infinities of one sign": [
        [1.0, -math.inf, -math.inf, 2.0],
        [1.0, 2.0, 3.0, 4.0],
        [0.5, 1.0, 2.0, -3.0],
    ],
    "a zero": [[1.0, 0.0, 2.0, 3.0], [4.0, 2.0, 3.0, 1.0], [0.5, 1.0, 2.0, -3.0]],
    "zeros": [[-0.0, 0.0, 2.0, 3.0], [4.0, 0.0, 3.0, 1.0], [0.5, math.nan, math.inf, -3.0]],
    "an overflow": [[1e4, 1e30, 1e30, -1e5], [1.0, 2.0, 1.0, 1.0], [1e-30, 1e30, 1e30, 1e-30]],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_at_extremes(name, rows, dtype):
    function, x = REDUCTIONS[name], torch.tensor(ROWS[rows], dtype=torch.float64).to(dtype)
    expect_same(*converted(lambda x: function(x * 1), x), TOLERANCE[dtype])
    x.requires_grad_()
    for factor in (1.5, -2.0):
        dy = torch.full_like(function(x.detach()), factor)
        expect_same(*converted(gradient(function), x, dy), TOLERANCE[dtype])


@pytest.mark.parametrize("rows", ["ordinary", "a zero", "NaN", "infinities"])
@pytest.mark.parametrize("name", ["prod along", "amax", "var_mean"])
def test_second_gradients_of_reductions(name, rows):
    def second(x):
        (g,) = torch.autograd.grad(REDUCTIONS[name](x * 1).sum(), x, create_graph=True)
        if not g.requires_grad:
            return g
        return torch.autograd.grad((g * g).sum(), x)[0]

    x = torch.tensor(ROWS[rows], dtype=torch.float64).requires_grad_()
    expect_same(*converted(second, x), 1e-9, smallest=1e-12)


def test_a_guard_on_gradients_sees_nan():
    """The step is left out where the gradient is not finite."""
    layer = torch.nn.Linear(4, 8)

    def step(x):
        layer.zero_grad()
        layer(x).amax(1).square().mean().backward()
        return layer.bias.grad.isnan().sum()

    x = torch.randn(3, 5, 4)
    function = torchjanus.function(step)
    for _ in range(4):
        function(x)
    x[0, 1, 2] = math.nan
    assert function(x).item() == step(x).item() == 8
