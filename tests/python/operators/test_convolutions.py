"""Convolutions and their gradients in graphs, each way that there is to compute them, against eager's in
double precision: values, and eager's strides."""

import itertools
import math

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus

LAST = torch.channels_last

# image, filters, stride, padding, dilation
CASES = [
    ((2, 3, 8, 8), (4, 3, 3, 3), 1, 1, 1),
    ((1, 3, 8, 8), (4, 3, 3, 3), 1, 1, 1),
    ((1, 4, 5, 6), (3, 4, 1, 1), 1, 0, 1),
    ((4, 6, 5, 7), (5, 6, 1, 1), 1, 0, 1),
    ((4, 6, 5, 7), (5, 6, 1, 1), 2, 0, 1),
    ((2, 5, 2, 2), (33, 5, 3, 3), 1, 1, 1),
    ((2, 5, 9, 7), (2, 5, 3, 2), (2, 3), (1, 0), 1),
    ((3, 2, 11, 9), (4, 2, 3, 3), 2, 2, (2, 3)),
    ((9, 1, 12, 12), (6, 1, 5, 5), 1, 0, 1),
    ((17, 7, 3, 3), (1, 7, 3, 3), 1, 0, 1),
    ((9, 2, 20, 20), (3, 2, 5, 5), 1, 0, 1),  # from here on image by image
    ((2, 3, 17, 19), (4, 3, 1, 1), 1, 0, 1),
    ((10, 3, 33, 34), (4, 3, 3, 3), 2, 1, 1),
    ((3, 2, 300), (3, 2, 4), 1, 2, 2),
    ((2, 1, 4, 4), (3, 1, 1, 1), 1, 1, 1),
    ((2, 3, 1, 1), (4, 3, 3, 3), 3, 4, 1),  # windows that see nothing
    ((3, 4, 10), (5, 4, 3), 1, 1, 1),
    ((1, 4, 9), (5, 4, 1), 1, 0, 1),
    ((10, 2, 17), (3, 2, 4), 3, 2, 2),
    ((4, 40, 23, 19), (5, 40, 3, 3), 1, 1, 1),  # from here on in pieces that end within images
    ((13, 60, 9, 11), (7, 60, 3, 3), 1, 1, 1),
    ((5, 64, 21, 17), (6, 64, 4, 4), 2, 1, 1),
    ((4, 48, 20, 20), (4, 48, 3, 3), 1, 2, (2, 1)),
    ((3, 96, 7, 50), (2, 96, 2, 3), (1, 2), 0, 1),
]


@pytest.fixture(params=[0, 1], ids=["library", "product"])
def way(request):
    torchjanus._core.testing.force_way(request.param)
    yield request.param
    torchjanus._core.testing.force_way(-1)


def step(x, weight, bias, arguments):
    y = (
        F.conv2d(x, weight, bias, *arguments)
        if x.dim() == 4
        else F.conv1d(x, weight, bias, *arguments)
    )
    gradients = torch.autograd.grad((y * y.detach().cos()).sum(), (x, weight, bias))
    return y, *gradients


def lies(tensor: torch.Tensor, last: bool) -> torch.Tensor:
    return tensor.contiguous(memory_format=LAST) if last else tensor


@pytest.mark.parametrize(("image", "filters", "stride", "padding", "dilation"), CASES)
@pytest.mark.parametrize(("last", "filter_last"), [(False, False), (True, False), (True, True)])
def test_each_way_gives_what_eager_does(
    way, image, filters, stride, padding, dilation, last, filter_last
):
    if last and len(image) == 3:
        pytest.skip("no such layout")
    arguments = (stride, padding, dilation)
    torch.manual_seed(0)  # sums of thousands of products: some draws miss the tolerance in eager
    scale = math.prod(filters[1:]) ** -0.5
    converted = torchjanus.function(lambda x, weight, bias: step(x, weight, bias, arguments))
    for _ in range(6):
        x = lies(torch.randn(image), last).requires_grad_()
        weight = lies(torch.randn(filters) * scale, filter_last).requires_grad_()
        bias = torch.randn(filters[0], requires_grad=True)
        given = converted(x, weight, bias)
        eager = step(x, weight, bias, arguments)
        exact = step(*(t.detach().double().requires_grad_() for t in (x, weight, bias)), arguments)
        for ours, wanted in zip(given, exact, strict=True):
            torch.testing.assert_close(ours.double(), wanted, rtol=1e-4, atol=1e-4)
        if last == filter_last:
            assert [t.stride() for t in given[:2]] == [t.stride() for t in eager[:2]]
    assert torchjanus.stats(converted)["hits"] > 0


@pytest.mark.parametrize("kind", ["grouped", "transposed", "double", "sliced", "no gradient"])
def test_what_products_leave_to_the_library(way, kind):
    def convolve(x, weight):
        if kind == "transposed":
            return F.conv_transpose2d(x, weight, stride=2)
        return F.conv2d(x, weight, groups=2 if kind == "grouped" else 1)

    def whole(x, weight):
        y = convolve(x, weight)
        return torch.autograd.grad(y.square().sum(), x if kind == "no gradient" else weight)[0]

    converted = torchjanus.function(whole)
    dtype = torch.float64 if kind == "double" else torch.float32
    for _ in range(6):
        x = torch.randn(2, 4, 6, 6, dtype=dtype, requires_grad=True)
        weight = torch.randn(4, 2 if kind == "grouped" else 4, 3, 3, dtype=dtype)
        if kind == "sliced":
            weight = torch.randn(4, 4, 3, 6)[..., ::2]
        weight.requires_grad_()
        torch.testing.assert_close(converted(x, weight), whole(x, weight), rtol=1e-4, atol=1e-4)
    assert torchjanus.stats(converted)["hits"] > 0


def test_sizes_that_vary(way):
    def convolve(x, weight):
        return F.conv1d(x, weight, padding=1)

    converted = torchjanus.function(convolve)
    weight = torch.randn(4, 3, 3)
    for batch, length in itertools.product((2, 3, 5), (7, 9, 12)):
        x = torch.randn(batch, 3, length)
        torch.testing.assert_close(converted(x, weight), convolve(x, weight), rtol=1e-4, atol=1e-5)
    assert torchjanus.stats(converted)["hits"] > 0


@pytest.mark.parametrize("ways", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    ("size", "channels", "filters"), [(1, 3, 5), (8, 8, 8), (6, 1, 4), (6, 4, 1)]
)
@pytest.mark.parametrize("kind", ["channels last", "tokens", "planes"])
def test_filters_of_one_element_lie_in_two_ways(ways, size, channels, filters, kind):
    """Library and product give a dimension of one element different strides."""
    weight = torch.randn(filters, channels, 1, 1, requires_grad=True)

    def step(x):
        weight.grad = None
        if kind == "tokens":
            x = x.transpose(1, 2).reshape(1, channels, size, size)
        loss = F.conv2d(x, weight).square().mean()
        loss.backward()
        return loss

    converted = torchjanus.function(step, profile_runs=0)
    try:
        for number in range(6):
            torchjanus._core.testing.force_way(ways[number % 2])
            x = torch.randn(1, size * size, channels)
            if kind != "tokens":
                x = x.view(1, channels, size, size)
            if kind == "channels last":
                x = x.contiguous(memory_format=LAST)
            loss, gradient = step(x), weight.grad
            torch.testing.assert_close(converted(x), loss)
            torch.testing.assert_close(weight.grad, gradient)
            assert weight.grad.stride() == gradient.stride()
    finally:
        torchjanus._core.testing.force_way(-1)
    stats = torchjanus.stats(converted)
    assert stats["hits"] == 6, stats


@differential(reasons=["unsupported_tensor"])
def test_no_channels():
    """Eager's result has none either, whatever the weight says."""

    def f(x):
        weight = torch.ones(2, x.shape[0], 2, dtype=x.dtype)
        return F.conv1d(x[None] * 2, weight)

    return Program(f, [(torch.rand(n, 4),) for n in (3, 3, 3, 3, 3, 0, 0, 0, 0, 3)])


def test_no_channels_refused():
    def f(x):
        return F.conv2d(x * 2, torch.ones(2, x.shape[1], 1, 1))

    converted = torchjanus.function(f)
    for _ in range(5):
        assert converted(torch.ones(1, 0, 3, 3)).shape == (1, 0, 3, 3)
    sentences = [reason["sentence"] for reason in converted.stats()["reasons"]]
    assert any("a convolution of no channels" in each for each in sentences), sentences
