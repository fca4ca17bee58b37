"""Parameters that eager looks at before it computes: where it raises, graphs do not compute."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch

# Before 2.15 trying celu out raises.
HAS_TRIED = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 15)
REFUSED = {
    "celu": lambda x, n: F.celu(x, n),
    "celu in place": lambda x, n: torch.celu_(x * 1, n),
    "dropout in evaluation": lambda x, n: F.dropout(x, 1 - n, training=False) * 1,
    "group norm": lambda x, n: F.group_norm(x.view(-1, 2)[: 1 + int(n)], 2),
}
CONSTANT = {
    "celu": (lambda x: F.celu(x, 0.0), "operation_failed" if HAS_TRIED else "shape_mismatch"),
    "dropout": (lambda x: F.dropout(x, 2.0, training=False) * 1, "would_raise"),
    "torch's dropout": (lambda x: torch.dropout(x, -0.5, False) * 1, "would_raise"),
    "one value of a channel": (lambda x: F.group_norm(x[:1, :2], 2) * 2, "would_raise"),
    "eps": (lambda x: F.batch_norm(x, None, None, training=True, eps=0.0), "would_raise"),
    "too many for cpu": (lambda x: x.cpu(1, 2, 3) + 1, "would_raise"),
    "unknown to cpu": (lambda x: x.cpu(foo=1) + 1, "would_raise"),
    "order for cpu": (lambda x: x.cpu(memory_format=torch.channels_last), "unknown_callable"),
}


@pytest.mark.parametrize("name", REFUSED)
@differential(hits=0)
def test_it_varies(name):
    """The last calls raise in eager."""
    return Program(REFUSED[name], [(torch.randn(4, 4), n) for n in (1, 1, 1, 1, 1, 1, 0, 0, 0)])


@pytest.mark.parametrize("name", CONSTANT)
def test_it_never_fits(name):
    program, reason = CONSTANT[name]

    @differential(reasons=[reason])
    def test():
        return Program(lambda x: program(x * 2), [(torch.randn(4, 4),) for _ in range(6)])

    test()


RAVELLED = {
    "column": lambda x: x[:, 0].ravel(),
    "every other": lambda x: x.view(-1)[::2].ravel(),
    "one column": lambda x: x[:, :1].ravel(),
    "vector": lambda x: x.view(-1).ravel(),
    "matrix": lambda x: torch.ravel(x),
    "transposed": lambda x: x.t().ravel(),
}


@pytest.mark.parametrize("name", RAVELLED)
@differential()
def test_ravel(name):
    """A copy if the elements don't lie in a row, a view else: what is written to it shows."""

    def f(x):
        base = x * 1
        row = RAVELLED[name](base)
        row.mul_(3)
        return base, row, row.stride()

    return Program(f, [(torch.randn(3, 3),) for _ in range(6)])


@pytest.mark.parametrize("name", RAVELLED)
@differential()
def test_ravel_of_an_argument(name):
    return Program(lambda x: RAVELLED[name](x).add_(1), [(torch.randn(3, 3),) for _ in range(6)])


@differential()
def test_ravel_gives_a_view_of_a_vector():
    def f(x):
        row = x.ravel()
        return x * 2, row is x

    return Program(f, [(torch.randn(3),) for _ in range(6)])


@pytest.mark.parametrize("kind", [list, tuple])
@differential()
def test_each_in_place_gives_the_list_itself(kind):
    def f(x):
        tensors = kind([x * 1, x * 2])
        given = torch._foreach_mul_(tensors, 2)
        return tensors, given is tensors, type(given).__name__

    return Program(f, [(torch.randn(3),) for _ in range(6)])
