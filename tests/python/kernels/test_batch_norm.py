"""Batch norms in fused kernels, with the activations and sums around them, against eager: outputs,
gradients and running statistics, over random shapes, layouts and special values; row by row, and in
phases where images are large."""

import itertools
import math

import pytest
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torch
import torchjanus

SIZES = st.sampled_from([1, 2, 3, 5, 8, 16, 17, 33])
CHANNELS = st.sampled_from([1, 2, 3, 7, 16, 33, 64, 65])
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 3.0]
LAYOUTS = ["contiguous", "channels last", "permuted", "sliced", "broadcast"]
PROPERTY = {"max_examples": 30, "deadline": None, "suppress_health_check": list(HealthCheck)}


def laid(x, layout, order):
    """The same numbers, in memory in that way."""
    if layout == "channels last" and x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    if layout == "permuted":
        return x.permute(order).contiguous().permute([order.index(d) for d in range(x.dim())])
    if layout == "sliced":
        wide = x.new_zeros([2 * size for size in x.shape])
        place = tuple(slice(0, None, 2) for _ in x.shape)
        wide[place] = x
        return wide[place]
    if layout == "broadcast":
        return x[:1].expand(x.shape)
    return x


@st.composite
def images(draw, special=False):
    """A tensor of rank 2 to 4 with more than one element for each channel."""
    sizes = [draw(SIZES) + 1, draw(CHANNELS), *draw(st.lists(SIZES, max_size=2))]
    while math.prod(sizes) > 40000:
        sizes[sizes.index(max(sizes))] = 3
    dtype = draw(st.sampled_from([torch.float32, torch.float32, torch.float64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    x = torch.randn(sizes, generator=generator, dtype=torch.float64).to(dtype)
    x = x * draw(st.sampled_from([1, 1e-3, 1e4])) + draw(st.sampled_from([0, 0, 3, -100]))
    if special:
        for value in draw(st.lists(st.sampled_from(SPECIAL), max_size=3)):
            x[tuple(draw(st.integers(0, size - 1)) for size in sizes)] = value
    return laid(x, draw(st.sampled_from(LAYOUTS)), draw(st.permutations(range(len(sizes)))))


def parameters(x, affine=True):
    channels = x.shape[1]
    generator = torch.Generator().manual_seed(channels)

    def vector():
        return torch.randn(channels, generator=generator, dtype=torch.float64).to(x.dtype)

    scale = (vector(), vector()) if affine else (None, None)
    return [vector(), vector().abs() + 0.5, *scale]


def farthest(numbers, exact):
    """The largest rounding error of finite numbers."""
    error = (numbers.double() - exact.double()).abs()
    error = error[error.isfinite()]
    return error.max().item() if error.numel() else 0.0


def expect_same(function, *operands):
    """The converted function gives what eager gives, also to the statistics that it writes; in float32
    with rounding errors of the size of eager's."""

    def fresh(convert=torch.clone):
        first, *others = operands
        first = first if convert is torch.clone else convert(first)
        return [first, *(None if x is None else convert(x) for x in others)]

    expected_operands, exact_operands = fresh(), fresh(lambda x: x.double().clone())
    converted = torchjanus.function(function)
    for _ in range(5):
        actual_operands = fresh()
        actual = converted(*actual_operands)
    expected = function(*expected_operands)
    exact = function(*exact_operands)
    close = (1e-11, 1e-11) if operands[0].dtype == torch.float64 else (1e-5, 3e-6)
    largest = operands[0].nan_to_num(0, 0, 0).abs().max().item()
    for a, e, x in zip(
        [*actual, *actual_operands[1:]],
        [*expected, *expected_operands[1:]],
        [*exact, *exact_operands[1:]],
        strict=True,
    ):
        if e is None:
            assert a is None
            continue
        assert (a.dtype, a.shape, a.stride()) == (e.dtype, e.shape, e.stride())
        absolute = close[1] + close[0] * max(1, largest) + 4 * farthest(e, x)
        if a.dim() == 1:  # a sum over a channel: of a mean's rounding error as often
            absolute += 1e-2 * close[0] * largest * operands[0].numel() / a.numel()
        torch.testing.assert_close(a, e, equal_nan=True, rtol=close[0], atol=absolute)
    return str(converted.graph())


def make_forward():
    """A function of its own for each use, that no other sizes are known of."""

    def forward(x, mean, variance, weight, bias):
        return (F.relu(F.batch_norm(x, mean, variance, weight, bias, True, 0.3, 1e-3)),)

    return forward


def make_gradients():
    def gradients(x, mean, variance, weight, bias):
        x, weight, bias = (one.detach().requires_grad_() for one in (x, weight, bias))
        y = F.batch_norm(x * 0.5, mean, variance, weight, bias, True, 0.3, 1e-3)
        z = F.silu(y)  # without a corner, where rounding would decide
        return torch.autograd.grad((z * torch.cos(z)).sum(), (x, weight, bias))

    return gradients


@settings(**PROPERTY)
@given(data=st.data())
def test_the_output_and_the_statistics(data):
    x = data.draw(images(special=True))
    affine = data.draw(st.booleans())
    expect_same(make_forward(), x, *parameters(x, affine))


@settings(**PROPERTY)
@given(data=st.data())
def test_a_residual_and_a_second_reader(data):
    x = data.draw(images(special=True))

    def normalise(x, mean, variance, weight, bias):
        y = F.batch_norm(x, mean, variance, weight, bias, True, 0.3, 1e-3)
        return F.relu(y + x), y * 2

    expect_same(normalise, x, *parameters(x))


@settings(**PROPERTY)
@given(data=st.data())
def test_without_running_statistics(data):
    x = data.draw(images(special=True))

    def normalise(x, weight, bias):
        return (F.leaky_relu(F.batch_norm(x, None, None, weight, bias, True, 0.3, 1e-3)),)

    expect_same(normalise, x, *parameters(x)[2:])


@settings(**PROPERTY)
@given(data=st.data())
def test_gradients(data):
    x = data.draw(images())
    expect_same(make_gradients(), x, *parameters(x))


@pytest.mark.parametrize(
    "shape", [(2, 64, 1, 33), (2, 2, 1, 2), (3, 2, 2, 1), (4, 3, 1, 1)], ids=str
)
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_dimensions_of_one_element_have_any_stride(shape, order):
    x = laid(torch.randn(shape), "permuted", order)
    expect_same(make_forward(), x, *parameters(x))
    expect_same(make_gradients(), x, *parameters(x))


def test_they_are_in_kernels():
    x = torch.randn(4, 6, 5, 5)
    graph = expect_same(make_forward(), x, *parameters(x))
    assert "fused" in graph.split("batch_norm_train")[0]
    graph = expect_same(make_gradients(), x, *parameters(x))
    assert "fused" in graph.split("batch_norm_train")[0]
    assert "fused" in graph.split("native_batch_norm_backward")[0].split("batch_norm_train")[1]


LARGE = [
    (4, 64, 40, 40),
    (2, 3, 150, 200),
    (8, 512, 9, 9),
    (5, 130, 17, 23),
    (20000, 9),
    (3000, 100),
    (2, 9, 9, 30, 31),
]


def expect_as_exact(function, *operands):
    """What the converted function gives is about as near to the exact results as what eager gives."""
    converted = torchjanus.function(function)
    for _ in range(5):
        actual = converted(*(x.clone() for x in operands))
    expected = function(*(x.clone() for x in operands))
    exact = function(*(x.double() for x in operands))
    for a, e, x in zip(actual, expected, exact, strict=True):
        allowed = 4 * (e - x).abs().max() + 1e-6 * x.abs().max()
        assert (a - x).abs().max() <= allowed


@pytest.mark.parametrize("layout", ["contiguous", "channels last", "sliced"])
@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_large_images(shape, layout):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator) * 3 + 50
    x = laid(x, layout, list(reversed(range(len(shape)))))
    expect_as_exact(make_forward(), x, *parameters(x))
    expect_as_exact(make_gradients(), x, *parameters(x))


@pytest.mark.parametrize("value", [0.0, 1e4, -3e6])
def test_constant_channels(value):
    """Nothing deviates: what is left of the variance is rounding, as in eager."""
    x = torch.full((4, 32, 30, 30), value)
    expect_same(make_forward(), x, *parameters(x))


def test_sizes_that_vary():
    """One kernel for every batch."""
    mean, variance, weight, bias = parameters(torch.empty(2, 24))
    forward = make_forward()
    converted = torchjanus.function(forward)
    for batch in (4, 6, 9, 5, 17, 33):
        x = torch.randn(batch, 24, 13, 13)
        statistics = mean.clone(), variance.clone()
        (expected,) = forward(x, *statistics, weight, bias)
        ours = mean.clone(), variance.clone()
        (actual,) = converted(x, *ours, weight, bias)
        torch.testing.assert_close(actual, expected, rtol=3e-5, atol=3e-5)
        torch.testing.assert_close(ours, statistics, rtol=1e-6, atol=1e-6)
    graph = str(converted.graph())
    assert "fused" in graph.split("batch_norm_train")[0]


def test_sums_of_few_long_rows_do_not_depend_on_threads():
    x = torch.randn(3, 300001)

    @torchjanus.function
    def sums(x):
        return (x * 2).sum(1), torch.cos(x).mean(1, keepdim=True) + x

    results = []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            for _ in range(5):
                result = sums(x)
            results.append(result)
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
