"""Expressions around tensors: arithmetic, comparisons, calls, containers, texts. PYTEST_DONT_REWRITE"""

import math

import pytest
from differential import Program, differential

import torch

SCALE = 3.0


def calls(*shapes, count=6):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


def double(x):
    return x * 2


def variadic(x, *rest, factor=1.0, **options):
    total = x * factor
    for other in rest:
        total = total + other
    return total + options.get("shift", 0.0)


SIMPLE = {
    "arithmetic": lambda x, y: (x + y) * 2 - y / (x.abs() + 1) + x**2 - 3 // (y.abs() + 1) + -x,
    "reflected": lambda x, y: 1 - x + 2 / (y.abs() + 1) + 3 * x + 2.0**x,
    "comparisons": lambda x, y: (x > y) & (x <= 1) | ~(y == 0),
    "matmul": lambda x, y: x @ y.t() + torch.matmul(x, y.T),
    "global constant": lambda x, y: x * SCALE + y,
    "math functions": lambda x, y: x * math.sqrt(2) + math.pi * y + math.floor(2.5),
    "helper function": lambda x, y: double(x) + double(y),
    "variadic": lambda x, y: variadic(x, y, y, factor=0.5, shift=2.0),
    "star call": lambda x, y: variadic(*[x, y], **{"factor": 2.0}),
    "conditional expression": lambda x, y: x + 1 if x.shape[0] > 3 else y,
    "shape arithmetic": lambda x, y: x.reshape(x.shape[0] * x.shape[1] // 2, 2) * x.numel() + x.dim(),
    "chained comparison": lambda x, y: x + 1 if 1 < x.size(0) <= 4 else y,
    "short circuit": lambda x, y: -x if x is not None and y.ndim == 2 else None,
    "tuple": lambda x, y: (x + 1, (y, x * 2), [x, y]),
    "dictionary": lambda x, y: {"sum": x + y, "parts": {"x": x, "y": y}},
    "same object": lambda x, y: (x, x, y, x + y),
    "none": lambda x, y: (None, x + y),
    "constant": lambda x, y: (7, x + y),
    "comprehension": lambda x, y: sum([row * i for i, row in enumerate(x)]),
    "dict comprehension": lambda x, y: {i: x[i] + y[i] for i in range(3)},
    "generator in sum": lambda x, y: sum(row.sum() for row in x),
    "nested comprehension": lambda x, y: [[x[i, j] for j in range(2)] for i in range(2) if i],
    "zip": lambda x, y: [a + b for a, b in zip(x, y, strict=True)],
    "reversed": lambda x, y: torch.stack(list(reversed(list(x)))),
    "map": lambda x, y: list(map(double, (x, y))),
    "lambda": lambda x, y: (lambda a, b=2.0: a * b)(x) + y,
    "slicing": lambda x, y: x[1:3] + y[:2] + x[-1] + y[..., 0:1][0] + x[None][0, 1],
    "index arrays": lambda x, y: x[torch.tensor([0, 2])] + y[[1, 0]],
    "is and not": lambda x, y: -x if not (x is y) else y,
    "in": lambda x, y: -x if 3 in x.shape else y,
    "string test": lambda x, y: -x if "cpu" == x.device.type else y,
    "min max": lambda x, y: x * max(1, 2, x.size(0)) + min(3.0, 2.5),
    "isinstance": lambda x, y: -x if isinstance(x, torch.Tensor) and not isinstance(y, list) else y,
    "getattr": lambda x, y: getattr(x, "sum")() + getattr(y, "missing", 3.0),  # noqa: B009
    "unpack shape": lambda x, y: (lambda a, b: x.view(b, a))(*x.shape) + 0 * y.sum(),
    "item": lambda x, y: x.sum().item() + y.mean().item(),
    "float of tensor": lambda x, y: float(x.sum()) * 2 + int(y.abs().sum()),
    "tolist": lambda x, y: x.sum(0).tolist(),
    "numpy constants": lambda x, y: x * float(torch.finfo(torch.float32).eps) + y,
    "dtype": lambda x, y: x.to(torch.float32).double() + y.type_as(x) + (x > 0).to(x.dtype),
    "new tensors": lambda x, y: x + torch.ones(4, 1) + torch.zeros_like(y) + torch.arange(3) + x.new_full((1,), 2.0),
    "as tensor": lambda x, y: (torch.as_tensor(x) is x, torch.as_tensor([1, 2.0, 3]) + torch.as_tensor(y)),
    "operator methods": lambda x, y: x.__radd__(2).__mul__(y).__rmul__(3.0),
    "tensor constant": lambda x, y: x * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor(2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMPLE)
@differential(hits=2, graphs=1)
def test_simple(name):
    f = SIMPLE[name]

    def step(x, y):
        return f(x, y)

    return Program(step, calls((4, 3), (4, 3)))


@differential(hits=2, graphs=1)
def test_formatted_strings_of_results():
    def step(x):
        loss = x.sum().item()
        return f"loss {loss:.3f} of {x.shape[0]:>4} {'x'!r}", "value {:.2f}".format(loss)  # noqa: UP032

    return Program(step, calls((3,)))


class Flag:
    """Counts how often its truth is asked for."""

    def __init__(self, value):
        self.value, self.asked = value, 0

    def __bool__(self):
        self.asked += 1
        return self.value


@differential()
def test_truth_of_nested_operations():
    """Python 3.12 and 3.13 ask the outcome of the inner one again."""
    flags = [Flag(False), Flag(True)]

    def step(x):
        no, yes = flags
        chosen = [(no and yes) or yes, (yes or no) and no, no or (yes and no), yes and (yes or no)]
        if ((yes or no) and no) or yes:
            return x * 2, [each is yes for each in chosen], no.asked, yes.asked
        return x

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=flags)
