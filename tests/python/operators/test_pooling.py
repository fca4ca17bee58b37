"""Pooling in graphs against eager's: values, indices, strides, also of special values and ties, of any layout."""

import pytest
import torch.nn.functional as F
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from kernel_results import eager_and_converted, strides

import torch
import torchjanus

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
CASES = [
    ((2, 3, 8, 8), 2, 2),
    ((1, 1, 5, 7), 3, 1),
    ((3, 2, 9, 13), 3, 2),
    ((2, 2, 10, 150), 2, 2),
    ((2, 2, 10, 200), (2, 3), (1, 3)),
    ((1, 4, 7, 7), 7, 7),
    ((3, 6, 6), 2, 3),
]


def fill(size: tuple, kind: str) -> torch.Tensor:
    if kind == "normal":
        return torch.randn(size)
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0])
    return special[torch.randint(0, 6 if kind == "special" else 1, size)]


@pytest.mark.parametrize("kind", ["normal", "special", "nan"])
@pytest.mark.parametrize(("size", "kernel", "stride"), CASES)
def test_max_pool_equals_eager(size, kernel, stride, kind):
    def pool(x):
        return F.max_pool2d(x, kernel, stride, return_indices=True)

    converted = torchjanus.function(pool)
    for _ in range(6):
        x = fill(size, kind)
        wanted, given = pool(x), converted(x)
        assert torch.equal(given[1], wanted[1])
        assert torch.equal(given[0].view(torch.int32), wanted[0].view(torch.int32))
        for a, b in zip(given, wanted, strict=True):
            assert a.stride() == b.stride()
            assert a.dtype == b.dtype
    assert torchjanus.stats(converted)["hits"] > 0


# --- as kernels -----------------------------------------------------------------------------------

PROPERTY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
SMALL = st.integers(1, 4)


def image(data, dtype, special=True):
    """Of any dtype, values and layout, of three or four dimensions."""
    sizes = [
        data.draw(st.sampled_from(of)) for of in ([1, 2, 3], [1, 3, 16, 17], [1, 2, 7, 12, 20])
    ]
    sizes.append(data.draw(st.sampled_from([1, 2, 9, 17, 40, 70])))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    kind = data.draw(
        st.sampled_from(["normal", "equal", "special", "nan"] if special else ["normal"])
    )
    x = torch.randint(-2, 3, sizes).float() if kind == "equal" else fill(tuple(sizes), kind)
    x = x.to(dtype)
    layout = data.draw(st.sampled_from(["planes", "channels last", "turned", "sliced", "image"]))
    if layout == "channels last":
        return x.contiguous(memory_format=torch.channels_last)
    if layout == "turned":
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "sliced":
        return torch.cat([x, x], -1)[..., ::2]
    return x[0] if layout == "image" else x


def window(data):
    """Kernel, stride, padding; each for rows and columns."""
    kernel = [data.draw(SMALL) for _ in range(2)]
    return (
        kernel,
        [data.draw(SMALL) for _ in range(2)],
        [data.draw(st.integers(0, k // 2)) for k in kernel],
    )


def expect_same(function, x, tolerance=0.0):
    pairs, text = eager_and_converted(function, x)
    for e, a in pairs:
        assert a.numel() == 0 or strides(a) == strides(e)
        torch.testing.assert_close(a, e, rtol=tolerance, atol=tolerance, equal_nan=True)
    return text


def or_discard(function, x):
    """Windows that eager does not take are no example."""
    try:
        function(x)
    except RuntimeError:
        assume(False)


@PROPERTY
@given(data=st.data())
def test_maxima_in_kernels(data):
    x = image(data, data.draw(st.sampled_from(DTYPES)))
    kernel, stride, padding = window(data)
    dilation = [data.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(2)]
    ceil = data.draw(st.booleans())

    def pool(x):
        y, indices = F.max_pool2d(x, kernel, stride, padding, dilation, ceil, return_indices=True)
        return y, indices, y * 2 + 1

    or_discard(pool, x)
    assert "fused" in expect_same(pool, x)


@PROPERTY
@given(data=st.data())
def test_averages_in_kernels(data):
    x = image(data, data.draw(st.sampled_from(DTYPES)))
    kernel, stride, padding = window(data)
    ceil, counts_padding = data.draw(st.booleans()), data.draw(st.booleans())
    divisor = data.draw(st.sampled_from([None, 3, -2]))

    def pool(x):
        return F.avg_pool2d(x, kernel, stride, padding, ceil, counts_padding, divisor)

    or_discard(pool, x)
    assert "fused" in expect_same(pool, x)


@PROPERTY
@given(data=st.data())
def test_adaptive_averages(data):
    """Of windows that differ they are the library's."""
    x = image(data, data.draw(st.sampled_from([torch.float32, torch.float64])), special=False)
    sizes = [data.draw(st.sampled_from([1, 2, 3, size])) for size in x.shape[-2:]]
    text = expect_same(lambda x: F.adaptive_avg_pool2d(x, sizes).relu(), x, 1e-5)
    windows = [size / given for size, given in zip(x.shape[-2:], sizes, strict=True)]
    if sizes != [1, 1] and all(w == int(w) for w in windows) and windows[0] * windows[1] <= 32:
        assert text.count("fused") == 1


@PROPERTY
@given(data=st.data())
def test_gradients_of_pooling_in_kernels(data):
    x = image(data, data.draw(st.sampled_from([torch.float32, torch.float64])), special=False)
    kernel, stride, padding = window(data)
    ceil, counts_padding = data.draw(st.booleans()), data.draw(st.booleans())
    kind = data.draw(st.sampled_from(["maxima", "averages", "adaptive"]))

    def step(x):
        x = x.detach().requires_grad_()
        if kind == "adaptive":
            y = F.adaptive_avg_pool2d(x, kernel)
        elif kind == "maxima":
            y = F.max_pool2d(x, kernel, stride, padding, 1, ceil)
        else:
            y = F.avg_pool2d(x, kernel, stride, padding, ceil, counts_padding)
        (y * y.detach().cos()).sum().backward()
        return y.detach(), x.grad

    or_discard(step, x)
    expect_same(step, x, 1e-5)


AVERAGES = {
    "side by side": lambda x: F.avg_pool2d(x, 2),
    "on each other": lambda x: F.avg_pool2d(x, 4, 2, 1),
    "at all places": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "that leave a border": lambda x: F.avg_pool2d(x, (3, 2)),
    "of lines": lambda x: F.avg_pool2d(x, (1, 4)),
    "apart in one dimension": lambda x: F.avg_pool2d(x, 3, (3, 1), (0, 1)),
    "to a size": lambda x: F.adaptive_avg_pool2d(x, (5, 8)),
    "to lines": lambda x: F.adaptive_avg_pool2d(x, (5, 16)),
    "to a size by odd windows": lambda x: F.adaptive_avg_pool2d(x, (5, 3)),
}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", AVERAGES)
def test_gradients_of_averages_are_eagers_to_the_bit(name, dtype, last):
    is_odd = name == "to a size by odd windows"
    size = 15 if is_odd else 16

    def gradient(x, dy):
        x = x.detach().requires_grad_()
        (dx,) = torch.autograd.grad(AVERAGES[name](x), x, dy)
        return dx

    layout = torch.channels_last if last else torch.contiguous_format
    x = torch.randn(2, 17, 15, size, dtype=dtype).contiguous(memory_format=layout)
    dy = torch.randn_like(AVERAGES[name](x))
    dy[0] = fill(dy.shape[1:], "special")
    pairs, text = eager_and_converted(gradient, x, dy)
    for e, a in pairs:
        assert strides(a) == strides(e)
        torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(torch.signbit(a)[e == 0], torch.signbit(e)[e == 0])
    assert ("fused" in text) != is_odd


def test_what_stands_behind_a_gradient_is_computed_with_it():
    def step(x):
        x = x.detach().requires_grad_()
        F.avg_pool2d(x.relu(), 2).pow(2).sum().backward()
        return x.grad

    pairs, text = eager_and_converted(step, torch.randn(4, 8, 20, 20))
    torch.testing.assert_close(*pairs[0])
    assert "avg_pool2d_backward" in text.split("fused")[-1]


def test_what_stands_behind_a_pooling_is_computed_with_it():
    def pool(x, b):
        return F.max_pool2d(x, 3, 2, 1).relu() * b + 1

    pairs, text = eager_and_converted(pool, torch.randn(4, 8, 20, 20), torch.randn(8, 1, 1))
    torch.testing.assert_close(*pairs[0], rtol=0, atol=0)
    assert text.count("fused") == 1


@pytest.mark.parametrize("pool", [F.max_pool1d, F.avg_pool1d])
def test_lines_are_pooled_in_kernels(pool):
    assert "fused" in expect_same(lambda x: pool(x, 3, 2, 1), torch.randn(3, 5, 33))


def test_large_windows_are_left_to_the_library():
    assert "fused" not in expect_same(lambda x: F.max_pool2d(x, 7, 1, 3), torch.randn(2, 3, 16, 16))


def test_an_average_that_eager_refuses():
    converted = torchjanus.function(lambda x, d: F.avg_pool2d(x, 2, divisor_override=d))
    for _ in range(5):
        with pytest.raises(RuntimeError, match="divisor"):
            converted(torch.randn(1, 1, 4, 4), 0)


def test_a_batch_of_any_size():
    converted = torchjanus.function(lambda x: F.max_pool2d(x, 2).relu())
    for batch in (2, 2, 2, 3, 4, 5, 7, 6, 9):
        x = torch.randn(batch, 3, 8, 8)
        assert torch.equal(converted(x), F.max_pool2d(x, 2).relu())
    assert torchjanus.stats(converted)["hits"] > 3


def test_a_pooled_image_that_is_read_at_its_places_too():
    expect_same(lambda x: F.avg_pool2d(x, 3, 1, 1) - x * 2, torch.randn(2, 3, 9, 9))
    expect_same(
        lambda x: F.avg_pool2d(x, 3, 1, 1) + F.max_pool2d(x, 3, 1, 1), torch.randn(2, 3, 9, 9)
    )


BAD_WINDOWS = {
    "no elements": lambda x: F.max_pool2d(x, 0, stride=1),
    "no elements to average": lambda x: F.avg_pool2d(x, 0, stride=1),
    "dilation of none": lambda x: F.max_pool2d(x, 3, 1, padding=1, dilation=0),
}


@pytest.mark.parametrize("name", BAD_WINDOWS)
def test_windows_that_there_are_not(name):
    def step(x):
        try:
            return BAD_WINDOWS[name](x)
        except RuntimeError:
            return x * 2

    converted = torchjanus.function(step)
    x = torch.randn(2, 3, 8, 8)
    for _ in range(6):
        assert torch.equal(converted(x), step(x))
