"""Results that are views of what existed before the run: autograd sees them as eager's, and what is written
to them later reaches what they are views of."""

from collections import namedtuple

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn

VIEWS = {
    "unfold": lambda x: x.unfold(0, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2), 1),
    "complex and back": lambda x: torch.view_as_real(torch.view_as_complex(x.view(-1, 2))),
    "tensor_split": lambda x: x.tensor_split(2),
    "hsplit": lambda x: torch.hsplit(x, 2),
    "vsplit": lambda x: torch.vsplit(x, [1]),
    "dsplit": lambda x: torch.dsplit(x.view(-1, 2, 2), 2),
    "atleast_3d": lambda x: torch.atleast_3d(x),
    "other dtype": lambda x: x.view(torch.int32),
    "squeeze": lambda x: x[:, None, :, None].squeeze((1, 3)),
    "unfold by keywords": lambda x: x.unfold(step=1, size=2, dimension=0),
    "tensor_split by keywords": lambda x: torch.tensor_split(input=x, sections=2),
    "alias": lambda x: torch.ops.aten.alias(x),
    "same shape": lambda x: x.view(x.shape),
    "unflatten": lambda x: x.t().unflatten(0, (2, 2)),
    "unflatten of rows": lambda x: x.t().unflatten(1, (1, -1)),
    "reshape": lambda x: x.t().reshape(4, -1, 1),
    "reshape of a part": lambda x: x[1:].t().reshape(-1),
    "flatten": lambda x: x[:, 1:].flatten(),
    "flatten of a row": lambda x: x[:1, 1:].flatten(),
    "opaque of native": lambda x: x.t().unfold(1, 2, 1),
    "native of opaque": lambda x: x.unfold(0, 2, 1)[1].t(),
    "opaque of opaque": lambda x: x.unfold(0, 2, 1).unfold(1, 2, 2),
    "broadcast": lambda x: torch.broadcast_tensors(x, torch.ones(2, *x.shape))[0],
    "native": lambda x: x[1:, 1],
    "split": lambda x: x.split(2),
    "unbind": lambda x: x.unbind(),
    "detach": lambda x: x.detach(),
}


def owned(kind, data):
    """The leaf, and the tensor of which views are taken."""
    leaf = data.clone().requires_grad_(kind != "plain")
    return leaf, leaf.clone() if kind == "inner" else leaf


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [each for part in value for each in tensors_in(part)]
        if isinstance(value, (list, tuple))
        else []
    )


def attempt(work):
    try:
        return work()
    except RuntimeError as error:
        return type(error), str(error).split(";")[0]


def seen(view, base):
    root = base._base if base._base is not None else base
    return view._is_view(), view._base is root, view.requires_grad, view.is_leaf, view.stride()


def probe(f, kind, data, *more):
    """What can be told of views by what is done with them when the run is over."""
    leaf, base = owned(kind, data)
    early = (base * base).sum()  # what autograd keeps of it
    *views, _ = tensors_in(f(base, *more))
    facts = [seen(view, base) for view in views]
    written = [attempt(lambda view=view: view.mul_(2) is view) for view in views]
    versions = base._version, [view._version - base._version for view in views]
    backward = None
    if kind != "plain":
        late = (base * 3).sum() + sum(v.double().sum() for v in views if v.requires_grad)
        backward = attempt(late.backward), leaf.grad, attempt(early.backward)
    return facts, written, versions, base.detach().clone(), backward


def probed(f, kind, calls, *more, **expected):
    def convert(_):
        g = torchjanus.function(f)
        return lambda data: probe(g, kind, data, *more), g

    return Program(lambda data: probe(f, kind, data, *more), calls, convert=convert, **expected)


SIZES = {"one size": [4] * 7, "sizes": [4, 4, 6, 6, 8, 10, 4, 8, 6, 4]}


def of_sizes(sizes):
    return [(torch.randn(size, 4),) for size in SIZES[sizes]]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind", ["plain", "leaf", "inner"])
@pytest.mark.parametrize("view", VIEWS)
@differential(hits=2)
def test_views_of_an_argument(view, kind, sizes):
    take = VIEWS[view]

    def f(x):
        return take(x), (x * 2).sum()

    return probed(f, kind, of_sizes(sizes))


Pair = namedtuple("Pair", "first second")

CONTAINERS = {
    "list": lambda x: [x.unfold(0, 2, 1), x.unfold(0, 2, 1)],
    "dict": lambda x: {"a": x.unfold(0, 2, 1), "b": x[0]},
    "tuple of one twice": lambda x: (x.unfold(0, 2, 1),) * 2,
    "named": lambda x: Pair(x.tensor_split(2)[1], x.t()),
    "one of another": lambda x: (part := x.unfold(0, 2, 1), part[0], part[0].unfold(0, 2, 1)),
    "by a changed list": lambda x: shown_by_list(x),
}


def shown_by_list(x):
    places, sizes = [1], [2, 2]
    views = torch.vsplit(x, places)[1], x[0].view(sizes), x.as_strided(sizes, (1, 2), 1)
    places.append(2)
    sizes[1] = 3
    return views


@pytest.mark.parametrize("kind", ["plain", "leaf", "inner"])
@pytest.mark.parametrize("container", CONTAINERS)
@differential()
def test_views_in_containers(container, kind):
    take = CONTAINERS[container]

    def f(x):
        return take(x), (x * 2).sum()

    return probed(f, kind, of_sizes("one size"))


def without(x):
    with torch.no_grad():
        return x.unfold(0, 2, 1)


def native_without(x):
    with torch.no_grad():
        return x[1:]


def within(x):
    with torch.enable_grad():
        return x.unfold(0, 2, 1), x[1:]


@pytest.mark.parametrize("outside", [torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("kind", ["plain", "leaf", "inner"])
@pytest.mark.parametrize("take", [without, native_without, within])
@differential(hits=0)
def test_grad_modes(take, kind, outside):
    """The mode in which a view was taken decides what autograd lets be written to it."""
    factor = torch.ones((), requires_grad=True)

    def f(x):
        return take(x), (x * 2).sum()

    def step(g, data):
        leaf, base = owned(kind, data)
        with outside():
            *views, _ = tensors_in(g(base))
        facts = [seen(view, base) for view in views]
        written = [attempt(lambda view=view: view.mul_(factor) is view) for view in views]
        return facts, written, base._version, base.requires_grad

    def convert(_):
        g = torchjanus.function(f)
        return lambda data: step(g, data), g

    return Program(lambda data: step(f, data), of_sizes("one size"), convert=convert)


@pytest.mark.parametrize("take", [without, native_without])
def test_graphs_take_views_in_their_mode(take):
    f = torchjanus.function(lambda x: (take(x), x * 2))
    for _ in range(6):
        view = f(torch.ones(3))[0]
    assert torchjanus.stats(f)["reasons"] == []
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(torch.ones((), requires_grad=True))


STATE = torch.zeros(4, 4, dtype=torch.float64)


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.register_buffer("seen", torch.randn(4, 4))

    def forward(self, x):
        self.seen.add_(x)
        self.window = self.seen.unfold(0, 2, 1)
        return (
            self.weight.unfold(0, 2, 2),
            self.seen.hsplit(2),
            STATE.tensor_split(2),
            (x * 2).sum(),
        )


@differential()
def test_views_of_what_a_module_or_its_globals_hold():
    holder = Holder()

    def step(g, x):
        of_weight, (of_seen, other), (of_state, _), _ = g(x)
        with torch.no_grad():
            of_weight.add_(1)
        written = (
            attempt(lambda: of_weight.mul_(2)),
            of_seen.add_(1),
            other.zero_(),
            of_state.add_(x[:2]),
        )
        bases = (
            of_weight._base is holder.weight,
            holder.window._base is holder.seen,
            of_state._base is STATE,
        )
        versions = [t._version for t in (holder.weight, holder.seen)]
        holder.window.add_(1)
        return written, bases, versions

    def convert(_):
        g = torchjanus.function(holder.forward)
        return lambda x: step(g, x), g

    calls = [STATE.zero_, *((torch.randn(4, 4),) for _ in range(7))]
    return Program(lambda x: step(holder.forward, x), calls, watch=[holder, STATE], convert=convert)


WRITTEN = {
    "before": lambda x: (x.add_(1), x.unfold(0, 2, 1)),
    "before through a part": lambda x: (x[0].add_(1), x.unfold(0, 2, 1)[1]),
    "another": lambda x: (x.clone().unfold(0, 2, 1).sum(), x.unfold(0, 2, 1))[1:],
    "before a view that may copy": lambda x: (x.add_(1), x[:, 1:].flatten()),
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("written", WRITTEN)
@differential(hits=2)
def test_views_of_what_the_run_writes(written, sizes):
    take = WRITTEN[written]

    def f(x):
        return take(x), (x * 2).sum()

    return probed(f, "plain", of_sizes(sizes))


@pytest.mark.parametrize("rows", [1, 2])
@differential(reasons=["unsupported_tensor"])
def test_what_may_be_a_copy_of_what_is_written_later(rows):
    def f(x):
        part = x[1:]
        flat = part.t().reshape(-1)
        x.add_(1)
        return flat * 2

    return Program(f, [(torch.randn(size, 4),) for size in (5, 5, 5, 6, 7, rows + 1, rows + 1, 5)])


MADE = {
    "both": lambda y: (y, y.unfold(0, 2, 1)),
    "only views": lambda y: (y.unfold(0, 2, 1), y[0]),
    "several": lambda y: (y, *y.tensor_split(2)),
    "chain": lambda y: (y.unfold(0, 2, 1)[0], y.t().unfold(0, 2, 1)),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("made", MADE)
@differential()
def test_views_of_what_the_run_makes(made, tracked):
    take = MADE[made]
    w = torch.ones(4, 4, requires_grad=tracked)

    def step(g, x):
        first, second, *_ = g(x)
        root = first if first._base is None else first._base
        facts = second._base is root, second._is_view(), second._version - root._version
        written = attempt(lambda: second.mul_(3) is second)
        total = (first * 2).sum()
        if tracked:
            w.grad = None
            total.backward()
        return facts, written, second._version - root._version, total, w.grad

    def f(x):
        return take(x * w)

    def convert(_):
        g = torchjanus.function(f)
        return lambda x: step(g, x), g

    return Program(lambda x: step(f, x), of_sizes("one size"), convert=convert)


def test_gradients_of_a_view_taken_without_are_refused():
    w = torch.ones(3, requires_grad=True)

    def f(x):
        with torch.no_grad():
            part = w.unfold(0, 2, 1)
        return part.requires_grad, part * x[:2, None]

    g = torchjanus.function(f)
    for _ in range(6):
        expected, actual = f(torch.ones(3)), g(torch.ones(3))
        assert expected[0] == actual[0]
        assert expected[1].requires_grad == actual[1].requires_grad


def hooked(part):
    part.register_hook(lambda gradient: gradient * 3)
    return part


@pytest.mark.parametrize("view", ["unfold", "native", "same shape"])
@differential(reasons=["autograd"])
def test_hooks_of_views(view):
    take, w = VIEWS[view], nn.Parameter(torch.randn(4, 4))

    def f(x):
        return hooked(take(w)), (x * 2).sum()

    def step(g, x):
        w.grad = None
        g(x)[0].sum().backward()

    def convert(_):
        g = torchjanus.function(f)
        return lambda x: step(g, x), g

    return Program(lambda x: step(f, x), of_sizes("one size"), watch=[w], convert=convert)


@pytest.mark.parametrize("view", ["unfold", "native", "same shape"])
@differential(reasons=["mode_active"])
def test_views_taken_in_inference_mode(view):
    take, factor = VIEWS[view], torch.ones((), requires_grad=True)

    def f(x):
        with torch.inference_mode():
            return take(x), (x * 2).sum()

    def step(g, data):
        part, _ = g(data)
        return attempt(lambda: part.mul_(factor)), part._is_view(), data

    def convert(_):
        g = torchjanus.function(f)
        return lambda data: step(g, data), g

    return Program(lambda data: step(f, data), of_sizes("one size"), convert=convert)
