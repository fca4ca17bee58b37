"""A backward run in parts: leaves have their gradients, and hooks run, before the next part does. Nothing else shows.

Parts are forced here; where several processes train together, they come by themselves (tests/python/distributed).
"""

import threading
import weakref

import pytest

import torch
import torchjanus
from torch import nn

FORCED = 200  # bytes of gradients in a part


@pytest.fixture(autouse=True)
def forced():
    torchjanus._core.testing.force_backward_parts(FORCED)
    yield
    torchjanus._core.testing.force_backward_parts(0)


def network(widths=(6, 8, 7, 5, 3)):
    torch.manual_seed(0)
    made = []
    for one, other in zip(widths, widths[1:], strict=False):
        made += [nn.Linear(one, other), nn.Tanh()]
    return nn.Sequential(*made[:-1]).double()


def warm_up(call, module, x):
    for _ in range(5):
        call(*x).sum().backward(retain_graph=True)
        module.zero_grad()
    return call


def convert(module, x, parts=None):
    """The converted module after its first calls."""
    converted = warm_up(torchjanus.function(module), module, x)
    stats = torchjanus.stats(converted)
    assert stats["state"] == "graph" and stats["hits"] > 0, stats
    assert stats["backward_parts"] == parts if parts else stats["backward_parts"] > 1, stats
    return converted


def inputs(rows=4, width=6):
    torch.manual_seed(1)
    return (torch.randn(rows, width, dtype=torch.float64),)


def gradients(module):
    return [None if p.grad is None else p.grad.clone() for p in module.parameters()]


def expect_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


def compare(use, make=network, x=None):
    """`use(module, ready, x)` gives the same for both; `ready()` is the module, converted or not, after some calls."""
    x = inputs() if x is None else x
    eager, ours = make(), make()
    expected = use(eager, lambda: warm_up(eager, eager, x), x)
    converted = []

    def ready():
        converted.append(convert(ours, x))
        converted.append(torchjanus.stats(converted[0]))
        return converted[0]

    found = use(ours, ready, x)
    expect_same(found, expected)
    call, before = converted
    after = torchjanus.stats(call)
    assert after["hits"] > before["hits"] and after["misses"] == before["misses"], after
    return found


def chain_of(node):
    """The nodes of the parts, in order."""
    chain = [node]
    while any(name(other) == "BucketBackward" for other, _ in chain[-1].next_functions):
        chain.append(chain[-1].next_functions[-1][0])
    return chain


def name(node):
    return "" if node is None else node.name()


def test_a_chain_of_nodes_each_with_its_leaves():
    x = inputs()
    module = network()
    out = convert(module, x)(*x)
    chain = chain_of(out.grad_fn)
    assert name(out.grad_fn) == name(network()(*x).grad_fn)
    assert len(chain) > 2
    found = [
        other.variable
        for node in chain
        for other, _ in node.next_functions
        if hasattr(other, "variable")
    ]
    assert {id(each) for each in found} == {id(each) for each in module.parameters()}
    # In the order in which eager completes them.
    assert found[0] is module[-1].bias and found[-1] is module[0].weight


def test_gradients_and_their_accumulation():
    def use(module, ready, x):
        call = ready()
        for _ in range(3):
            call(*x).square().sum().backward()
        return gradients(module)

    compare(use)


def test_a_second_backward():
    def use(module, ready, x):
        call = ready()
        loss = call(*x).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            loss.backward()
        return gradients(module)

    compare(use)


def test_gradients_of_some_parameters():
    def use(module, ready, x):
        call = ready()
        found = []
        for chosen in ([0], [-1], [2, 5], [-1, 0], [3]):
            parameters = list(module.parameters())
            of = [parameters[i] for i in chosen]
            out = call(*x).square().sum()
            found += torch.autograd.grad(out, of, retain_graph=True)
            found += torch.autograd.grad(out, of)
        out = call(*x).square().sum()
        torch.autograd.grad(out, list(module.parameters())[-1:], retain_graph=True)
        out.backward()
        return found, gradients(module)

    compare(use)


def test_gradient_of_an_input():
    def use(module, ready, x):
        call = ready()
        given = torch.ones(4, 6, dtype=torch.float64, requires_grad=True)
        call(given * 2).square().sum().backward()
        return given.grad, gradients(module)

    (x,) = inputs()
    compare(use, x=(x.requires_grad_() * 1,))


def test_second_gradients():
    def use(module, ready, x):
        call = ready()
        loss = call(*x).square().sum()
        first = torch.autograd.grad(loss, list(module.parameters()), create_graph=True)
        sum(each.square().sum() for each in first).backward()
        return list(first), gradients(module)

    compare(use)


def test_create_graph_in_backward():
    def use(module, ready, x):
        call = ready()
        call(*x).square().sum().backward(create_graph=True)
        first = [p.grad for p in module.parameters()]
        for p in module.parameters():
            p.grad = None
        sum(each.square().sum() for each in first).backward()
        return [each.detach() for each in first], gradients(module)

    compare(use)


def test_hooks_run_between_parts():
    """In eager's order, each after the gradient of its own leaf and before the next part."""

    def use(module, ready, x):
        order = []
        for number, p in enumerate(module.parameters()):
            p.register_hook(lambda g, number=number: order.append(number))
            p.register_post_accumulate_grad_hook(lambda p, n=number: order.append(100 + n))
        out = ready()(*x)
        order.clear()
        for node in chain_of(out.grad_fn)[1:]:
            node.register_prehook(lambda gradients: order.append(-1))
        out.square().sum().backward()
        orders.append(order)
        return [each for each in order if each >= 0], gradients(module)

    orders = []
    compare(use)
    order = orders[1]
    assert order.count(-1) >= 2 and order[0] >= 0 and order[-1] >= 0
    for i in range(1, len(order)):  # the accumulation comes right behind
        assert order[i] < 100 or order[i - 1] == order[i] - 100


def test_parameters_updated_while_gradients_come():
    """What reads a parameter has done so when its gradient is given."""

    def use(module, ready, x):
        def update(p):
            p.data.add_(p.grad, alpha=-0.1)  # autograd would not notice
            p.grad = None

        for p in module.parameters():
            p.register_post_accumulate_grad_hook(update)
        call = ready()
        for _ in range(3):
            call(*x).square().sum().backward()
        return [p.detach().clone() for p in module.parameters()]

    compare(use)


class Biases(nn.Module):
    """Gradients that are the incoming one, or each other."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = (
            nn.Parameter(torch.randn(8, 6, dtype=torch.float64)) for _ in range(3)
        )

    def forward(self, x):
        return ((x + self.one).tanh() + self.two) + self.three


def make_biases():
    torch.manual_seed(0)
    return Biases()


def test_gradients_that_hooks_write_to():
    def use(module, ready, x):
        def triple(p):
            p.grad *= 3

        for p in module.parameters():
            p.register_post_accumulate_grad_hook(triple)
        call = ready()
        seed = torch.ones(8, 6, dtype=torch.float64)
        call(*x).backward(seed)
        return gradients(module), seed

    compare(use, make_biases, inputs(rows=8))


def test_an_exception_in_the_middle():
    def use(module, ready, x):
        fails = []

        def hook(gradient):
            if fails:
                raise ValueError("in the middle")

        list(module.parameters())[4].register_hook(hook)
        call = ready()
        fails.append(True)
        with pytest.raises(ValueError, match="in the middle"):
            call(*x).square().sum().backward()
        before = gradients(module)
        module.zero_grad()
        fails.clear()
        call(*x).square().sum().backward()
        return [each is None for each in before], gradients(module)

    compare(use)


def test_a_value_changed_before_it_is_used():
    def use(module, ready, x):
        call = ready()
        given = x[0].clone()
        loss = call(given).square().sum()
        given.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        return gradients(module)[-1]

    compare(use)


def test_several_threads_at_once():
    def use(module, ready, x):
        call = ready()
        out = call(*x).square().sum()
        parameters, found = list(module.parameters()), []

        def backward():
            found.append(torch.autograd.grad(out, parameters, retain_graph=True))

        for _ in range(4):
            threads = [threading.Thread(target=backward) for _ in range(4)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
        return [list(each) for each in found]

    compare(use)


def test_backward_within_a_hook():
    def use(module, ready, x):
        within, inner = [], []

        def nested(gradient):
            if not within:
                within.append(True)
                with torch.enable_grad():
                    again = call(*x).square().sum()
                inner.extend(torch.autograd.grad(again, list(module.parameters())))

        list(module.parameters())[5].register_hook(nested)
        within.append(True)
        call = ready()
        within.clear()
        call(*x).square().sum().backward()
        return inner, gradients(module)

    compare(use)


def test_anomaly_mode():
    def use(module, ready, x):
        call = ready()
        loss = call(*x).square().sum()
        with torch.autograd.set_detect_anomaly(True, check_nan=True):
            loss.backward()
        return gradients(module)

    compare(use)


@pytest.mark.parametrize("create_graph", [False, True])
def test_batched_gradients(create_graph):
    def use(module, ready, x):
        out = ready()(*x)
        seeds = torch.eye(out.numel(), dtype=torch.float64).reshape(-1, *out.shape)
        parameters = list(module.parameters())
        found = torch.autograd.grad(
            out, parameters, seeds, is_grads_batched=True, create_graph=create_graph
        )
        return [each.detach() for each in found]

    compare(use)


OTHER_VIEWS = {
    "hsplit": lambda w: torch.hsplit(w, 2)[1],
    "tensor_split": lambda w: w.tensor_split(2, 1)[1],
    "as_strided": lambda w: w.as_strided((6, 3), (6, 1), 3),
    "alias": lambda w: torch.ops.aten.alias(w)[:, 3:],
    "einsum": lambda w: torch.einsum("ij->ji", w).t()[:, 3:],
}


@pytest.mark.parametrize("view", OTHER_VIEWS.values(), ids=OTHER_VIEWS)
def test_parameters_read_through_other_views(view):
    """Such a run is not divided: a later part could read what a hook has written."""

    class Viewed(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.first, self.second = (
                nn.Parameter(torch.randn(6, 6, dtype=torch.float64)) for _ in range(2)
            )

        def forward(self, x):
            return torch.tanh(torch.tanh(x @ self.first) @ view(self.second))

    def run(call, module, x):
        for _ in range(8):
            call(x).square().sum().backward()
        return [p.detach().clone() for p in module.parameters()]

    def update(p):
        p.data.add_(p.grad, alpha=-0.1)
        p.grad = None

    (x,) = inputs()
    eager, ours = Viewed(), Viewed()
    for module in (eager, ours):
        for p in module.parameters():
            p.register_post_accumulate_grad_hook(update)
    converted = torchjanus.function(ours)
    expect_same(run(converted, ours, x), run(eager, eager, x))
    assert torchjanus.stats(converted)["hits"] > 0


class Scaled(nn.Module):
    """Each factor is saved for the gradient of one weight only."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(6, 6, dtype=torch.float64))
        self.last = nn.Parameter(torch.randn(8, 6, dtype=torch.float64))

    def forward(self, x, y):
        return (x @ self.first).tanh().sum() + (self.last * y).sum()


def test_a_value_is_freed_behind_the_last_part_that_needs_it():
    torch.manual_seed(0)
    module = Scaled()
    x, y = (torch.randn(8, 6, dtype=torch.float64) for _ in range(2))
    converted = convert(module, (x, y), parts=2)
    x, y = x.clone(), y.clone()
    alive = {"x": weakref.ref(x), "y": weakref.ref(y)}
    loss = converted(x, y)
    seen = []
    first, second = chain_of(loss.grad_fn)

    def look(*_):
        seen.append({name: each() is not None for name, each in alive.items()})

    of_first = [other.variable for other, _ in first.next_functions if hasattr(other, "variable")]
    earlier = "y" if of_first[0] is module.last else "x"
    later = "x" if earlier == "y" else "y"
    second.register_prehook(look)
    del x, y, first, second, of_first
    loss.backward()
    look()
    assert seen[0] == {earlier: False, later: True}
    assert seen[1] == {earlier: False, later: False}


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 4), nn.Linear(6, 5)

    def forward(self, x):
        x = torch.tanh(self.trunk(x))
        return self.one(x), self.other(x)


def make_two():
    torch.manual_seed(0)
    return Two().double()


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_results_of_which_some_have_a_gradient(used):
    x = inputs()
    found = []
    for converted in (False, True):
        module = make_two()
        call = torchjanus.function(module) if converted else module
        for _ in range(6):
            module.zero_grad()
            results = call(*x)
            sum(results[i].square().sum() for i in used).backward()
        found.append(gradients(module))
        if converted:
            assert torchjanus.stats(call)["backward_parts"] > 1
    assert [each is None for each in found[0]] == [each is None for each in found[1]]
    expect_same(*[[each for each in one if each is not None] for one in found])


def test_left_whole_where_that_is_asked_for():
    x = inputs()
    module = network()
    with torchjanus.options.without("bucketed_backward"):
        convert(module, x, parts=1)
    torchjanus._core.testing.force_backward_parts(0)
    convert(network(), x, parts=1)


def test_the_report_says_it():
    x = inputs()
    converted = convert(network(), x)
    parts = torchjanus.stats(converted)["backward_parts"]
    assert f"backward run: {parts} parts" in torchjanus.explain(converted)
