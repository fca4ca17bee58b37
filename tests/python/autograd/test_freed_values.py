"""Which values a `backward()` outside frees: a second one raises where eager's does, and only there."""

import pytest

import torch
import torchjanus

DTYPE = torch.float64


def tasks(x, p):
    shared = (x @ p[0]).tanh()
    return (shared @ p[1]).square().mean(), (shared @ p[2]).exp().mean()


def two_terms(x, p):
    return ((x @ p[0]).exp().sum() + (x @ p[1]).sin().sum(),)


def linear_and_square(x, p):
    h = p[0] + p[1]
    return h.sum(), h.square().sum()


def on_the_way(x, p):
    base = p[0] + p[1]
    first = base.square()
    return first, base.sin(), first.exp().sum()


USES = {
    "a head, then all": (tasks, lambda r, p: (torch.autograd.grad(r[0], p[1]), r[1].backward())),
    "a head, then the other": (
        tasks,
        lambda r, p: (torch.autograd.grad(r[0], p[1]), torch.autograd.grad(r[1], p[2])),
    ),
    "inputs of backward": (
        tasks,
        lambda r, p: (r[0].backward(inputs=[p[1]]), r[1].backward(inputs=[p[0], p[2]])),
    ),
    "all, then all": (tasks, lambda r, p: (r[0].backward(), r[1].backward())),
    "the same twice": (tasks, lambda r, p: (r[0].backward(), r[0].backward())),
    "one loss by its terms": (
        two_terms,
        lambda r, p: (torch.autograd.grad(r[0], p[0]), torch.autograd.grad(r[0], p[1])),
    ),
    "one loss twice": (two_terms, lambda r, p: (r[0].backward(), r[0].backward())),
    "nothing saved": (
        linear_and_square,
        lambda r, p: (r[0].backward(), r[1].backward(), r[0].backward()),
    ),
    "saved, a third time": (
        linear_and_square,
        lambda r, p: (r[0].backward(), r[1].backward(), r[1].backward()),
    ),
    "beside the way": (on_the_way, lambda r, p: (r[2].backward(), r[1].sum().backward())),
    "the way, then all": (on_the_way, lambda r, p: (r[0].sum().backward(), r[2].backward())),
    "all, then the way": (on_the_way, lambda r, p: (r[2].backward(), r[0].sum().backward())),
    "beside, all, then the way": (
        on_the_way,
        lambda r, p: (r[1].sum().backward(), r[2].backward(), r[0].sum().backward()),
    ),
    "nothing saved in front": (
        lambda x, p: (lambda a: (a, a.exp().sum()))(p[0] + x),
        lambda r, p: (r[0].sum().backward(), r[1].backward(), r[0].sum().backward()),
    ),
    "saved in front": (
        lambda x, p: (lambda a: (a, a.exp().sum()))(p[0] * x),
        lambda r, p: (r[0].sum().backward(), r[1].backward()),
    ),
    "separate gradients of a gradient": (
        two_terms,
        lambda r, p: (
            [each.sum().backward() for each in torch.autograd.grad(r[0], p[:2], create_graph=True)]
            and ()
        ),
    ),
    "those of powers": (
        lambda x, p: ((p[0] ** 2).sum() + (p[1] ** 3).sum(),),
        lambda r, p: (
            [each.sum().backward() for each in torch.autograd.grad(r[0], p[:2], create_graph=True)]
            and ()
        ),
    ),
    "nothing saved, then again for gradients": (
        lambda x, p: ((p[0] + p[1]).sum(),),
        lambda r, p: (r[0].backward(), *torch.autograd.grad(r[0], p[:2], create_graph=True)),
    ),
    "saved, then again for gradients": (
        lambda x, p: ((p[0] * p[1]).sum(),),
        lambda r, p: (r[0].backward(), *torch.autograd.grad(r[0], p[:2], create_graph=True)),
    ),
    "beside the way, kept": (
        on_the_way,
        lambda r, p: (
            r[1].sum().backward(retain_graph=True),
            r[2].backward(),
            r[1].sum().backward(),
        ),
    ),
}


def outcome(function, use, x, parameters):
    for each in parameters:
        each.grad = None
    results = function(x)
    try:
        given = use(results, parameters)
        told = None
    except RuntimeError as error:
        given, told = (), str(error).split(",")[0]
    grads = [None if each.grad is None else each.grad.clone() for each in parameters]
    return told, grads, [each for each in given if each is not None]


@pytest.mark.parametrize("name", USES)
def test_second_backward(name):
    program, use = USES[name]
    torch.manual_seed(0)
    parameters = [torch.randn(4, 4, dtype=DTYPE, requires_grad=True) for _ in range(3)]
    f = torchjanus.function(lambda x: program(x, parameters))
    for _ in range(8):
        x = torch.randn(4, 4, dtype=DTYPE)
        expected = outcome(lambda x: program(x, parameters), use, x, parameters)
        actual = outcome(f, use, x, parameters)
        assert actual[0] == expected[0]
        if expected[0] is None:  # else eager has gone through some nodes before
            torch.testing.assert_close(actual[1:], expected[1:], rtol=1e-9, atol=1e-9)
    assert f.stats()["hits"] >= 3


def stopped(gradient):
    raise ValueError("a hook")


def beside_what_was_stopped(results, parameters):
    """A gradient that ended on its way past the first result has not come to it."""
    hook = parameters[2].register_hook(stopped)
    with pytest.raises(ValueError, match="a hook"):
        results[2].backward()
    hook.remove()
    results[1].sum().backward()
    results[0].sum().backward()
    return ()


def test_backward_that_an_exception_ended():
    def program(x, p):
        base = p[0] + p[1]
        first = base.square()
        return first, base.sin(), (first * p[2]).exp().sum()

    parameters = [torch.randn(4, 4, dtype=DTYPE, requires_grad=True) for _ in range(3)]
    f = torchjanus.function(lambda x: program(x, parameters))
    for _ in range(8):
        x = torch.randn(4, 4, dtype=DTYPE)
        assert (
            outcome(lambda x: program(x, parameters), beside_what_was_stopped, x, parameters)[0]
            is None
        )
        assert outcome(f, beside_what_was_stopped, x, parameters)[0] is None
    assert f.stats()["hits"] >= 3
