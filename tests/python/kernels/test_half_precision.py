"""Reductions of half precision in fused kernels: computed in float32 and rounded once, as eager computes them, so
that a result may differ by the rounding of its last digit."""

import re

import pytest
import torch.nn.functional as F
from kernel_results import eager_and_converted, strides

import torch
import torchjanus

DTYPES = [torch.bfloat16, torch.float16]
SHAPES = [(5,), (33, 17), (3, 40, 65), (1, 300)]
ONE_DIGIT = {torch.bfloat16: 2**-7, torch.float16: 2**-10}


def operand(shape, dtype, layout="contiguous"):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))
    if layout == "transposed" and x.dim() > 1:
        x = x.transpose(0, -1).contiguous().transpose(0, -1)
    return x.to(dtype)


def expect_same(function, *operands, digits=1):
    pairs, text = eager_and_converted(function, *operands)
    assert "fused" in text
    for eager, ours in pairs:
        assert strides(ours) == strides(eager)
        rtol = digits * ONE_DIGIT[operands[0].dtype]
        torch.testing.assert_close(ours, eager, rtol=rtol, atol=rtol / 8, equal_nan=True)
    return text


@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_means_and_extrema(dtype, shape, layout):
    x = operand(shape, dtype, layout)
    for dims in [(0,), (-1,), tuple(range(len(shape)))]:
        for keep in (False, True):
            expect_same(lambda x: (x * 0.5).sum(dims, keepdim=keep), x)  # noqa: B023
            expect_same(lambda x: (x * 0.5).mean(dims, keepdim=keep), x)  # noqa: B023
            expect_same(lambda x: (x * 0.5).amax(dims, keepdim=keep), x)  # noqa: B023
            expect_same(lambda x: (x * 0.5).amin(dims, keepdim=keep), x)  # noqa: B023


@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_positions_of_extrema(dtype, shape, layout):
    """Of what was rounded, so that many elements are equal."""
    x = operand(shape, dtype, layout)
    x[(-1,) * x.dim()] = float("nan") if layout == "contiguous" and len(shape) == 2 else 7
    for dim in (0, -1):
        pairs, text = eager_and_converted(
            lambda x: ((x * 0.01).argmax(dim), *(x * 0.01).max(dim), (x + 300).argmin(dim)),  # noqa: B023
            x,
        )
        assert "fused" in text
        for eager, ours in pairs:
            torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_of_many_does_not_round_on_its_way(dtype):
    x = torch.full((4, 5000), 0.75, dtype=dtype)
    x[:, 0] = 4.0
    expect_same(lambda x: (x * 0.5).sum(1), x)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_and_its_gradient(dtype, shape):
    x = operand(shape, dtype)
    expect_same(lambda x: F.softmax(x * 2, -1) + 1, x)
    softmax_backward = torch.ops.aten._softmax_backward_data
    log_softmax_backward = torch.ops.aten._log_softmax_backward_data
    for dim in (0, -1):
        y, z = F.softmax(x, dim), F.log_softmax(x, dim)
        expect_same(lambda dy, y: softmax_backward(dy * 2, y, dim, dtype), x, y)  # noqa: B023
        expect_same(lambda dy, z: log_softmax_backward(dy * 2, z, dim, dtype), x, z)  # noqa: B023


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm(dtype, affine):
    x = operand((12, 65), dtype)
    weight, bias = torch.randn(2, 65).to(dtype).unbind(0) if affine else (None, None)
    text = expect_same(lambda x: F.layer_norm(x * 2 + 1, (65,), weight, bias).relu(), x)
    assert text.count("fused") == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_layer_norm(dtype):
    x = operand((12, 65), dtype)
    weight, bias = torch.randn(2, 65).to(dtype).unbind(0)

    def gradients(x, weight, bias):
        x, weight, bias = (t.clone().requires_grad_() for t in (x, weight, bias))
        y = F.layer_norm(x, (65,), weight, bias)
        return torch.autograd.grad((y * y).mean(), (x, weight, bias))

    expect_same(gradients, x, weight, bias, digits=4)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norm(dtype, training):
    x = operand((16, 8, 5, 5), dtype)
    mean, variance = torch.zeros(8, dtype=dtype), torch.ones(8, dtype=dtype)
    weight, bias = torch.randn(2, 8).to(dtype).unbind(0)

    def run(x, mean, variance):
        mean, variance = mean.clone(), variance.clone()
        y = F.batch_norm(x, mean, variance, weight, bias, training, 0.1).relu()
        return y, mean, variance

    assert not batch_norms_outside_of_kernels(expect_same(run, x, mean, variance))


def batch_norms_outside_of_kernels(text):
    return re.findall(r"^  %.* = .*batch_norm.*", text, re.MULTILINE)


@pytest.mark.parametrize("mean", [0.0, 10.0])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_of_batch_norm(dtype, affine, mean):
    """Far from zero too: eager normalises by the mean that it rounded to half precision."""
    x = (operand((16, 8, 5, 5), torch.float32) + mean).to(dtype)
    weight, bias = torch.randn(2, 8).to(dtype).unbind(0) if affine else (None, None)

    def gradients(x):
        leaves = [t.clone().requires_grad_() for t in (x, weight, bias) if t is not None]
        y = F.batch_norm(leaves[0], None, None, *leaves[1:], training=True)
        return (y.detach(), *torch.autograd.grad((y * y * y).sum(), leaves))

    assert not batch_norms_outside_of_kernels(expect_same(gradients, x, digits=4))


def expect_equal(function, *operands):
    pairs, text = eager_and_converted(function, *operands)
    for eager, ours in pairs:
        torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
    return text


def close_to_exact(ours, exact):
    """Within what eager's roundings of a sum and its logarithm may make."""
    rtol = 8 * ONE_DIGIT[ours.dtype]
    torch.testing.assert_close(ours.double(), exact, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("shape", [*SHAPES, (4, 1), (2, 3, 16)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_sums_round_where_eager_does(dtype, shape, dim):
    x = operand(shape, dtype)
    assert "fused" in expect_equal(lambda x: F.log_softmax(x * 2, dim) + 1, x)
    assert "fused" in expect_equal(lambda x: torch.logsumexp(x * 2, dim) + 1, x)
    everything = tuple(range(len(shape)))
    expect_equal(lambda x: torch.logsumexp(x * 2, everything, keepdim=True), x)
    close_to_exact(torch.logsumexp(x, dim), torch.logsumexp(x.double(), dim))
    x[0] = float("inf") if len(shape) == 1 else float("-inf")
    expect_equal(lambda x: torch.logsumexp(x * 2, dim), x)

    def gradient(x):
        x = x.clone().requires_grad_()
        (dx,) = torch.autograd.grad((F.log_softmax(x, dim) * x.detach()).sum(), x)
        return dx

    expect_same(gradient, operand(shape, dtype), digits=2)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(12,), (33, 17), (130, 65), (3, 12, 40), (3, 5, 6, 7)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_and_its_gradient(dtype, shape, reduction):
    """Equal to eager's in all bits: the logarithms, the losses, and gradients of what was rounded."""
    x = operand(shape, dtype)
    classes = shape[0 if len(shape) == 1 else 1]
    target = torch.randint(0, classes, [*shape[:1], *shape[2:]] if len(shape) > 1 else [])
    if len(shape) > 1:
        target.view(-1)[2] = -100

    def step(x, target):
        x = x.clone().requires_grad_()
        loss = F.cross_entropy(x * 2, target, reduction=reduction)
        (dx,) = torch.autograd.grad((loss * 0.5).sum(), x)
        return loss.detach(), dx

    text = expect_equal(step, x, target)
    assert "log_softmax" in text and "nll_loss_backward" not in text
    loss, dx = step(x, target)
    exact = x.double().requires_grad_()
    expected = F.cross_entropy(exact * 2, target, reduction=reduction)
    (expected * 0.5).sum().backward()
    if len(shape) == 2:
        close_to_exact(dx, exact.grad)


@pytest.mark.parametrize("dtype", DTYPES)
def test_targets_that_are_no_classes_raise(dtype):
    converted = torchjanus.function(lambda x, y: F.cross_entropy(x * 2, y))
    x = operand((33, 17), dtype)
    for target in [*[torch.arange(33) % 17] * 5, torch.full((33,), 17)]:
        if target.max() < 17:
            assert torch.equal(converted(x, target), F.cross_entropy(x * 2, target))
            continue
        with pytest.raises(IndexError, match="Target 17 is out of bounds"):
            converted(x, target)


OF_SEVERAL_ROUNDINGS = {
    "prod": lambda x: (x * 0.5).prod(1),
    "softmax": lambda x: F.softmax(x * 2, 0),
}


@pytest.mark.parametrize("name", OF_SEVERAL_ROUNDINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_eager_rounds_on_its_way_is_eagers(dtype, name):
    expect_equal(OF_SEVERAL_ROUNDINGS[name], operand((12, 65), dtype))
