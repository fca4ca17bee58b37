"""Gradients of torch.autograd.grad in memory that the program has otherwise: writes would show there."""

import pytest
from differential import Program, differential
from torch.autograd import Function, grad

import torch


class Logged(Function):
    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.log.append(gradient)
        return gradient, None


class Masked(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return (x * mask).sum()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.saved_tensors[0], None


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def what_a_function_saved(x):
    mask = (x > 0.5).double()
    (g,) = grad(Masked.apply(x, mask), x)
    g.mul_(3)
    return mask


def what_a_function_logged(x):
    log = []
    (g,) = grad(Logged.apply(x, log).square().sum(), x)
    g.zero_()
    return log


def what_a_hook_logged(x):
    log = []
    h = x + 2
    h.register_hook(lambda g: log.append(g))
    (g,) = grad(h.square().sum(), x)
    g.zero_()
    return log


def above_a_hook(x):
    log = []
    h = x + 2
    h.register_hook(lambda g: log.append(g))
    y = h + 1
    of_y, _ = grad(y.square().sum(), (y, x))
    of_y.zero_()
    return log


def chain(x):
    h = x + 1
    y = h + 2
    seed = torch.ones(2, 2)
    (g,) = grad(y, h, seed)
    (g,) = grad(h, x, g)
    g.mul_(5)
    return seed


def one_seed_that_is_gone(x):
    a, b = x * 2, x * 3

    def both(y, seed):
        return grad(y, a, seed, retain_graph=True)[0], grad(y, b, seed)[0]

    of_a, of_b = both(a + b, torch.ones(2, 2))
    of_a.mul_(5)
    return of_b


def branch_of_another_shape(x):
    h = x * 2
    k = h.view(4) if x.sum() > 0 else h.view(4) * 2
    of_k, of_h = grad(k.square().sum(), (k, h))
    of_h.zero_()
    return of_k


def branch_that_spreads(x):
    loss = x.sum() if x.sum() > 0 else x.mean()
    (g,) = grad(loss, x)
    g.clamp_(-1, 1)
    return g


def written(operation, shape=(2, 2)):
    def step(x):
        seed = torch.ones(shape)
        (g,) = grad(operation(x), x, seed)
        g.mul_(5)
        return seed

    return step


def joined(x):
    y = torch.hstack([x, x.detach()])
    of_y, of_x = grad(y.square().sum(), (y, x))
    of_x.zero_()
    return of_y


def loop_without_iterations(x):
    seed = torch.ones(2, 2)
    y = x
    for _ in range(int(x[0, 0] > 0)):
        y = torch.tanh(y)
    (g,) = grad(y, x, seed)
    g.mul_(5)
    return seed


def seed_of_what_is_not_followed(x):
    seed = torch.ones(2, 2)
    (g,) = grad(torch.addr(x, torch.ones(2), torch.ones(2)), x, seed)
    seed.zero_()
    return g


def through(operation, writes_second=True):
    """The gradients of a tensor and of what the operation makes of it may be one."""

    def step(x):
        h = x * 2
        y = operation(h)
        of_h, of_y = grad((y * y).sum(), (h, y))
        (of_y if writes_second else of_h).mul_(5)
        return of_h * 1, of_y * 1

    return step


def of_the_sum(operation):
    """Eager raises where the gradient is one element, seen many times."""

    def step(x):
        h = x * 2
        (g,) = grad(operation(h).sum(), h)
        g.mul_(5)
        return g * 1

    return step


class Given(Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class GivenAsView(Function):
    @staticmethod
    def forward(ctx, x):
        return x + 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(2, 2)


def seed_that_changes(operation):
    def step(x):
        seed = torch.ones(2, 2)
        (g,) = grad(operation(x), x, seed)
        seed.mul_(3)
        return g * 1

    return step


def chain_through_a_function(x):
    h = x * 2
    seed = torch.ones(2, 2)
    (g,) = grad(h + 1, h, seed)
    (g,) = grad(Given.apply(x), x, g)
    seed.mul_(3)
    return g * 1


UNCERTAIN = {
    "repeated once, and its result's": through(lambda h: h.repeat(1, 1)),
    "its own, repeated once": through(lambda h: h.repeat(1, 1), writes_second=False),
    "tiled once, and its result's": through(lambda h: h.tile(1, 1)),
    "permuted by einsum": through(lambda h: torch.einsum("ij->ji", h)),
    "einsum that changes nothing": through(lambda h: torch.einsum("...->...", h)),
    "sum of what is repeated once": of_the_sum(lambda h: h.repeat(1, 1)),
    "sum of what is tiled once": of_the_sum(lambda h: h.tile(1, 1)),
    "sum of what einsum permutes": of_the_sum(lambda h: torch.einsum("ij->ji", h)),
    "sum behind a branch": of_the_sum(lambda h: h * 2 if h.sum() > 0 else h),
    "seed through a Function": seed_that_changes(Given.apply),
    "seed through a Function's view": seed_that_changes(GivenAsView.apply),
    "seed through two": seed_that_changes(lambda x: Given.apply(GivenAsView.apply(x))),
    "seed through a Function and a sum": seed_that_changes(lambda x: Given.apply(x + 1) + 1),
    "seed permuted by einsum": seed_that_changes(lambda x: torch.einsum("ij->ji", x)),
    "chain by hand, through a Function": chain_through_a_function,
    "what a Function saved": what_a_function_saved,
    "what a Function logged": what_a_function_logged,
    "what a hook logged": what_a_hook_logged,
    "above a hook": above_a_hook,
    "chain by hand": chain,
    "one seed that is gone": one_seed_that_is_gone,
    "branch of another shape": branch_of_another_shape,
    "branch that spreads": branch_that_spreads,
    "repeated once": written(lambda x: x.repeat(1, 1)),
    "tiled once": written(lambda x: torch.tile(x, (1, 1))),
    "ellipsis": written(lambda x: x[...]),
    "sums of one": written(lambda x: x.view(1, 4).cumsum(0), (1, 4)),
    "joined": joined,
    "seed of what isn't followed": seed_of_what_is_not_followed,
}


def signs(count=8):
    return [
        ((torch.rand(2, 2) + 0.1).mul_(1 if i % 2 else -1).requires_grad_(),) for i in range(count)
    ]


@pytest.mark.parametrize("name", UNCERTAIN)
def test_written_where_others_may_see_it(name):
    @differential(reasons=["unsupported_tensor"])
    def test():
        return Program(UNCERTAIN[name], signs())

    test()


@differential(reasons=["dynamic_control"])
def test_loop_without_iterations():
    return Program(loop_without_iterations, signs())


def after_a_function(x):
    (g,) = grad(Doubled.apply(x * x).sum(), x)
    return g.mul_(3)


def after_a_hook_that_keeps_nothing(x):
    h = x * x
    h.register_hook(lambda g: g * 2)
    (g,) = grad(h.sum(), x)
    return g.mul_(3)


def within_a_branch(x):
    y = x * x if x.sum() > 0 else x * 3
    (g,) = grad(y.sum(), x)
    return g.clamp_(-1, 1)


def within_a_loop(x):
    y = x * 1
    for _ in range(int(x[0, 0] > 0) + 2):
        y = torch.tanh(y * x)
    (g,) = grad(y.sum(), x)
    return g.clamp_(-1, 1)


def beside_what_is_not_followed(x):
    a, b = x * 1, x * 3
    of_a, of_b = grad((a.repeat(1, 1).square() * b).sum(), (a, b))
    return of_b.mul_(5), of_a * 1


def seed_of_a_function_that_computes(x):
    seed = torch.ones(2, 2)
    (g,) = grad(Doubled.apply(x), x, seed)
    seed.mul_(3)
    return g.mul_(2)


CERTAIN = {
    "beside what isn't followed": beside_what_is_not_followed,
    "seed of a Function that computes": seed_of_a_function_that_computes,
    "after a Function": after_a_function,
    "after a hook that keeps nothing": after_a_hook_that_keeps_nothing,
    "within a branch": within_a_branch,
    "within a loop": within_a_loop,
}


@pytest.mark.parametrize("name", CERTAIN)
def test_written_where_nobody_sees_it(name):
    @differential(hits=3)
    def test():
        return Program(CERTAIN[name], signs())

    test()


def of_leaves(operation, writes="seed"):
    """Eager keeps a view that somebody gives as a leaf's gradient."""

    def step(x):
        p, q = x.detach().clone().requires_grad_(), x.detach().clone().requires_grad_()
        seed = torch.ones(2, 2)
        operation(p, q).backward(seed)
        {"seed": seed, "p": p.grad}[writes].mul_(3)
        return p.grad * 1, q.grad * 1

    return step


def stacked(p, q):
    return torch.stack([p, q]).sum(0)


OF_LEAVES = {
    "stacked": of_leaves(stacked),
    "stacked, one is written": of_leaves(stacked, writes="p"),
    "a Function's view": of_leaves(lambda p, q: GivenAsView.apply(p) + q * 2),
    "two Functions": of_leaves(lambda p, q: Given.apply(GivenAsView.apply(p)) + q * 2),
    "permuted by einsum": of_leaves(lambda p, q: torch.einsum("ij->ji", p) + q * 2),
    "permuted by einsum, one is written": of_leaves(
        lambda p, q: torch.einsum("ij->ji", p) + q, writes="p"
    ),
}


@pytest.mark.parametrize("name", OF_LEAVES)
def test_views_that_become_gradients_of_leaves(name):
    @differential(reasons=["unsupported_tensor"])
    def test():
        return Program(OF_LEAVES[name], signs())

    test()


COPIED = {
    "summed in parts": of_leaves(
        lambda p, q: torch.cat([p.sum().view(1, 1), q.mean().view(1, 1)]) * torch.ones(2, 2),
        writes="p",
    ),
    "a Function's own": of_leaves(lambda p, q: Given.apply(p) + q * 2),
    "concatenated": of_leaves(
        lambda p, q: torch.cat([p, q]).square().sum() * torch.ones(2, 2), writes="p"
    ),
}


@pytest.mark.parametrize("name", COPIED)
def test_gradients_of_leaves_that_are_their_own(name):
    @differential(hits=3)
    def test():
        return Program(COPIED[name], signs())

    test()
