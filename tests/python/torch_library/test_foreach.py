"""torch._foreach_*, which optimizers with foreach=True and averages of weights are made of."""

import math

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn

CALLS = {
    "abs": lambda f, x, y: f.abs(x),
    "add a number": lambda f, x, y: f.add(x, 0.5),
    "add numbers": lambda f, x, y: f.add(x, [0.5, 1.5, 2.5]),
    "add with a factor": lambda f, x, y: f.add(x, y, alpha=0.3),
    "add a tensor": lambda f, x, y: f.add(x, torch.tensor(1.5), alpha=2),
    "addcdiv": lambda f, x, y: f.addcdiv(x, y, x),
    "addcdiv with a factor": lambda f, x, y: f.addcdiv(x, x, y, 0.3),
    "addcdiv with factors": lambda f, x, y: f.addcdiv(x, x, y, [0.3, 0.6, 0.9]),
    "addcmul": lambda f, x, y: f.addcmul(x, y, y, value=0.3),
    "clamp_max": lambda f, x, y: f.clamp_max(x, 0.25),
    "clamp_min": lambda f, x, y: f.clamp_min(x, y),
    "div": lambda f, x, y: f.div(x, [2.0, 3.0, 7.0]),
    "div by tensors": lambda f, x, y: f.div(x, y),
    "exp": lambda f, x, y: f.exp(x),
    "lerp": lambda f, x, y: f.lerp(x, y, 0.3),
    "lerp by numbers": lambda f, x, y: f.lerp(x, y, [0.3, 0.9, 0.5]),
    "log": lambda f, x, y: f.log(y),
    "maximum": lambda f, x, y: f.maximum(x, y),
    "maximum of numbers": lambda f, x, y: f.maximum(x, 0.25),
    "minimum": lambda f, x, y: f.minimum(x, y),
    "mul": lambda f, x, y: f.mul(x, y),
    "mul by a tensor": lambda f, x, y: f.mul(x, torch.tensor(0.3)),
    "neg": lambda f, x, y: f.neg(x),
    "pow": lambda f, x, y: f.pow(y, 1.5),
    "pow by numbers": lambda f, x, y: f.pow(y, [1.5, 2, 3]),
    "reciprocal": lambda f, x, y: f.reciprocal(x),
    "rsqrt": lambda f, x, y: f.rsqrt(y),
    "sign": lambda f, x, y: f.sign(x),
    "sqrt": lambda f, x, y: f.sqrt(y),
    "sub": lambda f, x, y: f.sub(x, y, alpha=0.3),
    "one tensor twice": lambda f, x, y: f.mul([x[0], x[0], x[0]], [x[0], y[0], x[0]]),
}
ONLY_NEW = {"norm": lambda x: torch._foreach_norm(x), "norm 1": lambda x: torch._foreach_norm(x, 1)}
ONLY_IN_PLACE = {
    "copy_": lambda x, y: torch._foreach_copy_(x, y),
    "zero_": lambda x, y: torch._foreach_zero_(x),
}


class Functions:
    """torch._foreach_NAME, or in place."""

    def __init__(self, end):
        self.end = end

    def __getattr__(self, name):
        return getattr(torch, f"_foreach_{name}{self.end}")


NEW, IN_PLACE = Functions(""), Functions("_")


def lists(dtype):
    generator = torch.Generator().manual_seed(1)
    sizes = [(4,), (2, 3), (1, 5)]
    x = [torch.randn(size, generator=generator, dtype=dtype) for size in sizes]
    y = [torch.rand(size, generator=generator, dtype=dtype) + 0.1 for size in sizes]
    return x, y


def check(function, dtype):
    """Values, the kind of the result, whether it is of the tensors given, and what was written."""
    outcomes = []
    converted = torchjanus.function(function, profile_runs=0)
    for run in (function, converted):
        x, y = lists(dtype)
        for _ in range(3):
            result = run(x, y)
        own = [any(each is other for other in x) for each in result]
        outcomes.append((type(result), own, [*result, *x, *y], [each._version for each in x + y]))
    assert converted.stats()["hits"] >= 2, converted.stats()["reasons"]
    (kind, own, tensors, versions), expected = outcomes[1], outcomes[0]
    assert (kind, own, versions) == (expected[0], expected[1], expected[3])
    for mine, its in zip(tensors, expected[2], strict=True):
        torch.testing.assert_close(mine, its, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CALLS)
def test_new_lists(name, dtype):
    call = CALLS[name]
    check(lambda x, y: call(NEW, x, y), dtype)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("log", "pow", "sqrt")])
def test_lists_in_place(name):
    call = CALLS[name]
    check(lambda x, y: call(IN_PLACE, x, y), torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    """`mul_` of a list rounds the number to the dtype, `mul_` of a tensor doesn't: torch's own runs."""

    def decay(x):
        torch._foreach_mul_([x], 0.9)
        return x * 2 + 1

    converted = torchjanus.function(decay, profile_runs=0)
    mine, its = (torch.arange(1, 6).to(dtype) for _ in range(2))
    for _ in range(3):
        assert torch.equal(converted(mine), decay(its)) and torch.equal(mine, its)
    assert "unknown_callable" in {each["code"] for each in converted.stats()["reasons"]}


@pytest.mark.parametrize("name", ONLY_NEW)
def test_norms(name):
    call = ONLY_NEW[name]
    check(lambda x, y: call(x), torch.float64)


@pytest.mark.parametrize("name", ONLY_IN_PLACE)
def test_copies(name):
    call = ONLY_IN_PLACE[name]
    check(lambda x, y: call(x, y), torch.float64)


def test_a_list_that_is_shorter_raises():
    def function(x, y):
        return torch._foreach_add(x, y[:2])

    converted = torchjanus.function(function, profile_runs=0)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="[Tt]ensor list"):
            converted(*lists(torch.float64))
    assert converted.stats()["hits"] == 0


def test_tensors_that_require_gradients():
    """Torch makes a node for the list."""

    def function(x, y):
        return torch._foreach_mul(x, y)

    converted = torchjanus.function(function, profile_runs=0)
    gradients = []
    for run in (function, converted, converted):
        x, y = lists(torch.float64)
        for each in x:
            each.requires_grad_()
        products = run(x, y)
        assert "CppFunction" in type(products[0].grad_fn).__name__
        sum(each.sum() for each in products).backward()
        gradients.append([each.grad for each in x])
    for found in gradients[1:]:
        torch.testing.assert_close(found, gradients[0])


def test_averages_of_weights():
    """As swa_utils.get_ema_multi_avg_fn makes them."""
    average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)

    def train(converts):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
        kept = [each.detach().clone() for each in net.parameters()]

        def step(x):
            net.zero_grad()
            net(x).square().mean().backward()
            with torch.no_grad():
                for each in net.parameters():
                    each -= 0.1 * each.grad
            average(kept, list(net.parameters()), 1)

        run = torchjanus.function(step, profile_runs=0) if converts else step
        for _ in range(5):
            run(torch.randn(4, 3))
        return kept, run

    (expected, _), (found, run) = train(False), train(True)
    assert run.stats()["hits"] >= 3, run.stats()["reasons"]
    torch.testing.assert_close(found, expected)
    assert all(math.isfinite(each.sum()) for each in found)


def leaves_of(x):
    return x.clone().requires_grad_(), x.clone().requires_grad_()


@differential(reasons=["autograd"])
def test_gradient_of_one_result():
    """Eager gives the others no gradient, and not zeros."""

    def step(x):
        a, b = leaves_of(x)
        torch._foreach_mul([a, b], 2.0)[0].sum().backward()
        return a.grad, b.grad

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["autograd"])
def test_unused_result():
    def step(x):
        a, b = leaves_of(x)
        products = torch._foreach_mul([a, b], 2.0)
        return torch.autograd.grad(products[0].sum(), (a, b), allow_unused=True)

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential()
def test_gradient_of_all_results():
    def step(x):
        a, b = leaves_of(x)
        first, second = torch._foreach_mul([a, b], 2.0)
        (first * second).sum().backward()
        return a.grad, b.grad

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["autograd"])
def test_sign_of_a_determinant():
    def step(x):
        (a, _) = leaves_of(x.outer(x) + torch.eye(3))
        torch.linalg.slogdet(a)[0].backward()
        return a.grad

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential()
def test_both_results_of_a_determinant():
    def step(x):
        (a, _) = leaves_of(x.outer(x) + torch.eye(3))
        sign, logarithm = torch.linalg.slogdet(a)
        (sign * logarithm).backward()
        return a.grad

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@pytest.mark.parametrize("name", ["foreach", "slogdet"])
def test_gradient_of_one_result_outside(name):
    weights = [torch.ones(2, 2, requires_grad=True) for _ in range(2)]

    def loss(x):
        if name == "foreach":
            return torch._foreach_mul(weights, 2.0)[0].sum() * x
        return torch.linalg.slogdet(weights[0] + torch.eye(2))[0] * x

    def step_with(function):
        def step(x):
            for weight in weights:
                weight.grad = None
            function(x).backward()

        return step

    def convert(step):
        converted = torchjanus.function(loss)
        return step_with(converted), converted

    @differential(reasons=["autograd"])
    def test():
        calls = [(torch.rand(()),) for _ in range(6)]
        return Program(step_with(loss), calls, watch=[weights], convert=convert)

    test()
