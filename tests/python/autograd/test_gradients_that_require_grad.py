"""Which gradients made with create_graph outside of a converted function require a gradient themselves: those of
linear operators only where something that they depend on does; those of max, relu and the like always."""

import pytest
import torch.nn.functional as F

import torch
import torchjanus

DTYPE = torch.float64

EXPRESSIONS = {
    "times a constant": lambda x, w, v: x * w,
    "times a number": lambda x, w, v: w * 3 - 2,
    "sum": lambda x, w, v: w.sum(),
    "mean of rows": lambda x, w, v: (x + w).mean(0),
    "product": lambda x, w, v: x @ w,
    "product of both": lambda x, w, v: w @ v,
    "linear": lambda x, w, v: F.linear(x, w, v[0]),
    "linear of a result": lambda x, w, v: F.linear(F.linear(x, w), v),
    "transposed, viewed and cut": lambda x, w, v: w.t()[1:].reshape(-1) * 2,
    "joined": lambda x, w, v: torch.cat([w, x, v * 2]),
    "stacked, one written": lambda x, w, v: torch.stack([w, v]).add_(1),
    "squared": lambda x, w, v: w**2 + v,
    "to the power of one": lambda x, w, v: w.pow(1) + v,
    "relu": lambda x, w, v: (x @ w).relu() + v,
    "leaky": lambda x, w, v: F.leaky_relu(x @ w) + v,
    "abs": lambda x, w, v: w.abs() + v,
    "clamp": lambda x, w, v: w.clamp(-1, 1) * v,
    "hardtanh": lambda x, w, v: F.hardtanh(w) + v,
    "largest": lambda x, w, v: w.amax(1) + v,
    "larger": lambda x, w, v: torch.maximum(w, x) + v,
    "absolute loss": lambda x, w, v: F.l1_loss(w, x) + v.sum(),
    "squared loss": lambda x, w, v: F.mse_loss(w, x) + v.sum(),
    "huber": lambda x, w, v: F.huber_loss(w, x) + v.sum(),
    "where": lambda x, w, v: torch.where(x > 0, w, v),
    "masked": lambda x, w, v: w.masked_fill(x > 0, 0.0) + v,
    "lower half": lambda x, w, v: w.tril() + v,
    "gathered": lambda x, w, v: w[[0, 2]] + v[[1, 3]],
    "softmax": lambda x, w, v: w.softmax(1) + v,
    "halved": lambda x, w, v: w / 2 + x / v,
    "interpolated": lambda x, w, v: torch.lerp(w, v, 0.3),
    "added product": lambda x, w, v: torch.addcmul(w, x, v),
    "matrix and sum": lambda x, w, v: torch.addmm(w, x, v),
    "pooled": lambda x, w, v: F.avg_pool1d(w[None], 2) + v.sum(),
    "pooled to the largest": lambda x, w, v: F.max_pool1d(w[None], 2) + v.sum(),
    "convolved": lambda x, w, v: F.conv1d(x[None], w[:, :, None]) + v,
    "filtered twice": lambda x, w, v: F.conv1d(F.conv1d(x[None], w[:, :, None]), v[:, :, None]),
    "embedded": lambda x, w, v: F.embedding(torch.tensor([0, 2]), w) + v[:2],
    "normalised": lambda x, w, v: F.layer_norm(x, (4,), w[0], v[0]),
    "normalised result": lambda x, w, v: F.layer_norm(w, (4,)) + v,
    "another dtype": lambda x, w, v: w.float().sum() + v.sum(),
    "expanded": lambda x, w, v: w[:1].expand(4, 4) + v,
    "cumulated": lambda x, w, v: w.cumsum(0) + v,
    "standard deviation": lambda x, w, v: w.std(0) + v,
    "norm": lambda x, w, v: w.norm() + v.sum(),
    "detached factor": lambda x, w, v: w * w.detach() + v,
    "branch": lambda x, w, v: (w * 2 if x.sum() > 0 else w * 3) + v,
    "loop": lambda x, w, v: sum(w * i for i in range(3)) + v,
    "flipped": lambda x, w, v: w.flip(0).roll(1, 0) + v,
    "product of elements": lambda x, w, v: w.prod(0) + v,
}  # fmt: skip


def flags(function, x, w, v, use):
    result = function(x)
    seed = torch.ones_like(result, requires_grad=use == "a seed that requires one")
    outputs = result if use != "a loss" else result.square().sum()
    gradients = torch.autograd.grad(
        outputs,
        (w, v),
        None if use == "a loss" else seed,
        create_graph=True,
        allow_unused=True,
    )
    return [(None if g is None else (g.requires_grad, g.detach())) for g in gradients]


@pytest.mark.parametrize("use", ["a constant seed", "a seed that requires one", "a loss"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_create_graph_outside(name, use):
    torch.manual_seed(0)
    w, v = (torch.randn(4, 4, dtype=DTYPE, requires_grad=True) for _ in range(2))
    program = EXPRESSIONS[name]
    f = torchjanus.function(lambda x: program(x, w, v))
    for _ in range(6):
        x = torch.randn(4, 4, dtype=DTYPE)
        expected = flags(lambda x: program(x, w, v), x, w, v, use)
        torch.testing.assert_close(flags(f, x, w, v, use), expected, rtol=1e-9, atol=1e-9)
    assert f.stats()["hits"] >= 2


SHARED_SEEDS = {
    "sum": lambda x, w, v: w + v,
    "difference": lambda x, w, v: w - v,
    "copy": lambda x, w, v: w.clone() + v * 2,
}


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("name", SHARED_SEEDS)
def test_gradient_that_is_the_seed(name, is_leaf):
    """Its place in the caller's graph stays as it was."""

    def observe(function, x):
        leaf = torch.arange(16.0, dtype=DTYPE).reshape(4, 4).requires_grad_()
        seed = leaf if is_leaf else leaf * 2
        a, b = torch.autograd.grad(function(x), (w, v), seed, create_graph=True)
        again = torch.autograd.grad((2 * a).sum() + (3 * b).sum(), leaf)
        return seed.is_leaf, a is seed, a.requires_grad, again

    w, v = (torch.randn(4, 4, dtype=DTYPE, requires_grad=True) for _ in range(2))
    f = torchjanus.function(lambda x: SHARED_SEEDS[name](x, w, v))
    for _ in range(6):
        x = torch.randn(4, 4, dtype=DTYPE)
        expected = observe(lambda x: SHARED_SEEDS[name](x, w, v), x)
        torch.testing.assert_close(observe(f, x), expected, rtol=1e-9, atol=1e-9)
    assert f.stats()["hits"] >= 2
