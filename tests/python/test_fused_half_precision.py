"""Reductions of half precision in fused kernels: computed in float32 and rounded once, as eager computes them, so
that a result may differ by the rounding of its last digit."""

import pytest
import torch.nn.functional as F
from kernel_results import eager_and_converted, strides

import torch

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
        y = F.batch_norm(x * 0.5, mean, variance, weight, bias, training, 0.1).relu()
        return y, mean, variance

    expect_same(run, x, mean, variance)


OF_SEVERAL_ROUNDINGS = {
    "prod": lambda x: (x * 0.5).prod(1),
    "log_softmax": lambda x: F.log_softmax(x * 2, -1),
    "softmax": lambda x: F.softmax(x * 2, 0),
    "cross_entropy": lambda x: F.cross_entropy(x * 2, torch.zeros(12, dtype=torch.int64)),
}


@pytest.mark.parametrize("name", OF_SEVERAL_ROUNDINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_eager_rounds_on_its_way_is_eagers(dtype, name):
    pairs, _ = eager_and_converted(OF_SEVERAL_ROUNDINGS[name], operand((12, 65), dtype))
    for eager, ours in pairs:
        assert torch.equal(eager, ours)
