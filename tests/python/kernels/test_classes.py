"""Losses of classes in fused kernels against eager: sizes one, odd and large, planes, permuted and
sliced scores, ignored classes, special values, gradients of second order; and targets that are no
classes."""

import math

import pytest
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_results import eager_and_converted

import torch
import torchjanus

PROPERTY = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
REDUCTIONS = ["none", "mean", "sum"]


def tolerance(dtype):
    return (
        {"rtol": 2e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-12}
    )


def expect_same(function, *operands):
    pairs, text = eager_and_converted(function, *operands)
    for e, a in pairs:
        torch.testing.assert_close(a, e, equal_nan=True, **tolerance(operands[0].dtype))
    return text


@st.composite
def scores_and_classes(draw):
    """Scores of rank 1 to 4 in any layout, and a class for each sample, some of them ignored."""
    rank = draw(st.integers(1, 4))
    classes = draw(st.sampled_from([1, 2, 3, 10, 16, 17, 65, 300]))
    sizes = [draw(st.sampled_from([0, 1, 2, 3, 8, 9, 33])) for _ in range(rank - 1)]
    sizes[min(1, rank - 1) : min(1, rank - 1)] = [classes]
    while math.prod(sizes) > 20000:
        sizes[sizes.index(max(sizes))] = 3
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    x = torch.randn(sizes, generator=generator, dtype=dtype) * draw(st.sampled_from([1, 50]))
    if draw(st.booleans()):
        order = draw(st.permutations(range(rank)))
        x = x.permute(order).contiguous().permute([order.index(d) for d in range(rank)])
    dim = min(1, rank - 1)
    target = torch.randint(0, sizes[dim], sizes[:dim] + sizes[dim + 1 :], generator=generator)
    ignore = draw(st.sampled_from([-100, 0, -1]))
    if ignore < 0 and target.numel() > 0 and draw(st.booleans()):
        target.view(-1)[:: draw(st.integers(1, 3))] = ignore
    return x, target, ignore


def loss_and_gradient(loss):
    def step(x, target):
        x = (x * 0.5).requires_grad_()
        y = loss(x, target)
        (gradient,) = torch.autograd.grad(
            (y * torch.linspace(0.5, 2, y.numel()).view(y.shape)).sum(), x
        )
        return y.detach(), gradient

    return step


@pytest.mark.parametrize("reduction", REDUCTIONS)
@PROPERTY
@given(data=st.data())
def test_cross_entropy(reduction, data):
    x, target, ignore = data.draw(scores_and_classes())
    loss = lambda x, t: F.cross_entropy(x, t, reduction=reduction, ignore_index=ignore)  # noqa: E731
    assert "_log_softmax" not in expect_same(loss_and_gradient(loss), x, target)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@PROPERTY
@given(data=st.data())
def test_cross_entropy_with_weights_of_classes_and_smoothing(reduction, data):
    x, target, ignore = data.draw(scores_and_classes())
    smoothing = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    weight = None
    if data.draw(st.booleans()):
        weight = torch.rand(x.shape[min(1, x.dim() - 1)], dtype=x.dtype)
        weight[:: data.draw(st.integers(2, 5))] = 0
    elif smoothing == 0:
        smoothing = 0.2

    def loss(x, t):
        options = {"reduction": reduction, "ignore_index": ignore, "label_smoothing": smoothing}
        return F.cross_entropy(x, t, weight, **options)

    text = expect_same(loss_and_gradient(loss), x, target)
    assert not any(name in text for name in ("_log_softmax", "nll_loss", "opaque"))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@PROPERTY
@given(data=st.data())
def test_negative_log_likelihood(reduction, data):
    x, target, ignore = data.draw(scores_and_classes())
    dim = min(1, x.dim() - 1)

    def loss(x, t):
        return F.nll_loss(F.log_softmax(x, dim), t, reduction=reduction, ignore_index=ignore)

    expect_same(loss_and_gradient(loss), x, target)


def test_scores_that_are_computed_in_the_same_kernel():
    x, target = torch.randn(33, 17), torch.randint(0, 17, (33,))
    text = expect_same(lambda x, t: (F.cross_entropy(x * 2 + 1, t, reduction="none"),), x, target)
    assert "class_loss" in text
    x, target = torch.randn(9, 5, 33), torch.randint(0, 5, (9, 33))
    expect_same(lambda x, t: (F.cross_entropy(x * 2 + 1, t, reduction="none"),), x, target)


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf, 1e30, -1e30])
def test_special_scores(special):
    x, target = torch.randn(8, 5), torch.tensor([0, 1, 2, 3, 4, 0, 1, 2])
    x[1, 1] = x[2, 0] = x[7, 4] = special
    x[5] = special
    for reduction in REDUCTIONS:
        loss = lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r)  # noqa: E731
        expect_same(loss_and_gradient(loss), x, target)
        smoothed = lambda x, t, r=reduction: F.cross_entropy(  # noqa: E731
            x, t, weight, reduction=r, label_smoothing=0.2
        )
        for weight in (None, torch.rand(5)):
            expect_same(lambda x, t: (smoothed(x, t),), x, target)


def test_second_gradients():
    def step(x, target):
        x = x.clone().requires_grad_()
        (first,) = torch.autograd.grad(F.cross_entropy(x, target), x, create_graph=True)
        (second,) = torch.autograd.grad((first * torch.cos(x)).sum(), x, create_graph=True)
        (third,) = torch.autograd.grad((second * second).sum(), x)
        return first.detach(), second.detach(), third

    expect_same(step, torch.randn(12, 7).double(), torch.randint(0, 7, (12,)))


@pytest.mark.parametrize("smoothed", [False, True])
@pytest.mark.parametrize("wrong", [5, -1, 1 << 40])
@pytest.mark.parametrize("shape", [(9, 5), (9, 5, 3), (5,)])
def test_what_is_no_class_raises_as_in_eager_and_changes_nothing(wrong, shape, smoothed):
    options = {"weight": torch.rand(5), "label_smoothing": 0.1} if smoothed else {}
    weight = torch.ones(5, 5, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step(x, target):
        optimizer.zero_grad()
        scores = torch.einsum("nc...,cd->nd...", x, weight) if x.dim() > 1 else x @ weight
        loss = F.cross_entropy(scores, target, **options)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x = torch.randn(shape)
    target = torch.randint(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ())
    converted = torchjanus.function(step)
    for _ in range(5):
        converted(x, target)
    before = weight.detach().clone()
    bad = target.clone()
    bad.view(-1)[-1] = wrong
    with pytest.raises(IndexError, match="out of bounds"):
        converted(x, bad)
    assert torch.equal(weight, before)
    converted(x, target)
    assert not torch.equal(weight, before)


def test_sizes_that_vary_share_a_graph():
    function = lambda x, t: (F.cross_entropy(x * 2, t),)  # noqa: E731
    converted = torchjanus.function(function)
    for i in range(12):
        x, target = torch.randn(i + 9, 3 * i + 2), torch.randint(0, 3 * i + 2, (i + 9,))
        torch.testing.assert_close(converted(x, target), function(x, target))


def test_few_samples_of_many_classes_and_half_precision_are_left_to_torch():
    x, target = torch.randn(2, 100_000), torch.tensor([3, 99_999])
    text = expect_same(loss_and_gradient(F.cross_entropy), x, target)
    assert "class_loss" not in text
    x, target = torch.randn(9, 5).bfloat16(), torch.randint(0, 5, (9,))
    for smoothing in (0.0, 0.1):
        loss = lambda x, t, s=smoothing: F.cross_entropy(x, t, label_smoothing=s)  # noqa: E731
        converted = torchjanus.function(loss)
        for _ in range(5):
            actual = converted(x, target)
        assert torch.equal(actual, loss(x, target))


def test_large_scores_keep_their_differences():
    """As in eager, the largest is taken off before the logarithm of the sum is."""
    x, target = torch.randn(8, 50).round() * 8 + 1e8, torch.randint(0, 50, (8,))
    loss = lambda x, t: F.cross_entropy(x, t, label_smoothing=0.3)  # noqa: E731
    expect_same(lambda x, t: (loss(x, t),), x, target)


def test_weights_that_change_and_require_no_gradient():
    x, target = torch.randn(8, 5, requires_grad=True), torch.randint(0, 5, (8,))
    loss = lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1)  # noqa: E731
    converted = torchjanus.function(loss)
    for _ in range(6):
        weight = torch.rand(5)
        torch.testing.assert_close(converted(x, target, weight), loss(x, target, weight))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="not differentiable"):
            converted(x, target, torch.rand(5, requires_grad=True))
