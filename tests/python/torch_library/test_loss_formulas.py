"""Losses that eager computes in one operator, and activations whose gradient has numbers of its own: where eager
rounds, what overflows, and signs of zeros."""

import pytest
import torch.nn.functional as F

import torch
import torchjanus

LOSSES = {
    "mse": lambda x, y, **how: F.mse_loss(x, y, **how),
    "smooth_l1, 1": lambda x, y, **how: F.smooth_l1_loss(x, y, **how),
    "smooth_l1, 0.3": lambda x, y, **how: F.smooth_l1_loss(x, y, beta=0.3, **how),
    "huber, 1": lambda x, y, **how: F.huber_loss(x, y, **how),
    "huber, 2.3": lambda x, y, **how: F.huber_loss(x, y, delta=2.3, **how),
}
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def expect_same(found, expected):
    for mine, its in zip(found, expected, strict=True):
        same = (mine == its) & (mine.signbit() == its.signbit()) | (mine.isnan() & its.isnan())
        assert same.all(), (mine[~same][:3], its[~same][:3])


def by_graph(function, *operands):
    converted = torchjanus.function(function, profile_runs=0)
    for _ in range(3):
        result = converted(*operands)
    assert converted.stats()["hits"] >= 2, converted.stats()["reasons"]
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_of_elements(loss, dtype):
    """All bits: half precision is rounded where eager rounds it."""
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(2, 4096, generator=generator) * 3).to(dtype)
    x[:4] = torch.tensor([float("inf"), float("nan"), 1.0, -1.0])

    def function(x, y):
        return (LOSSES[loss](-x, y, reduction="none"),)

    expect_same(by_graph(function, x, y), function(x, y))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("delta", [0.1, 0.001])
def test_huber_loss_of_differences_that_float16_does_not_hold(delta, reduction):
    x, y = torch.tensor([[6e4, 100, 3, -7], [-6e4, 1, 2, 5]], dtype=torch.float16)

    def function(x, y):
        return F.huber_loss(x * 1, y, delta=delta, reduction=reduction)

    expected, found = function(x, y), by_graph(function, x, y)
    assert expected.isfinite().all()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("factor", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_input_and_target(loss, factor, dtype):
    """Of differences around the limit, of none, and of infinite ones; both signs of zero."""
    x = torch.tensor([0.0, -0.0, 1.0, 2.5, -2.5, 0.3, 1.5, -4.0, 0.25]).to(dtype)
    y = torch.tensor([0.0, 0.0, 1.0, 0.5, -0.5, 0.0, 0.5, float("inf"), 0.0]).to(dtype)

    def function(x, y):
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        (LOSSES[loss](x, y, reduction="sum") * factor).backward()
        return x.grad, y.grad

    found, expected = by_graph(function, x, y), function(x, y)
    for mine, its in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, its, equal_nan=True)
        zero = its == 0
        assert (mine[zero].signbit() == its[zero].signbit()).all(), (mine, its)


@pytest.mark.parametrize("loss", LOSSES)
def test_second_gradients(loss):
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(2, 50, generator=generator, dtype=torch.float64) * 3

    def function(x, y):
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        first = torch.autograd.grad(LOSSES[loss](x, y, reduction="mean"), (x, y), create_graph=True)
        second = torch.autograd.grad(sum((each * each).sum() for each in first), (x, y))
        return *(each.detach() for each in first), *second

    for mine, its in zip(by_graph(function, x, y), function(x, y), strict=True):
        torch.testing.assert_close(mine, its)


@pytest.mark.parametrize("alpha", [1.1, 0.3, 0.1, 2, -0.7])
def test_celus_gradient_has_alpha_in_float32(alpha):
    x = torch.linspace(-5, 5, 2001, dtype=torch.float64)

    def function(x):
        x = x.detach().requires_grad_()
        result = F.celu(x, alpha=alpha)
        result.sum().backward()
        return result.detach(), x.grad

    for mine, its in zip(by_graph(function, x), function(x), strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-14, atol=1e-14)
