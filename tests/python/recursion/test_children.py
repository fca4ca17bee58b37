"""Children that a comprehension goes over, and gradients that some activations have only."""

import sys

from differential import Program, differential
from tree_programs import Family, TreeRNN, trained, trees, with_nodes

import torch
import torchjanus
from torch import nn


@differential(graphs=2, hits=10)
def test_sum_of_a_comprehension_trains():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return torch.sin(layer(x * node.value))
        return torch.tanh(layer(sum([go(child, x) for child in node.children])))

    return trained(go, [layer])


@differential(graphs=2, hits=10)
def test_sum_of_a_generator_expression():
    def go(node, x):
        if len(node.children) == 0:
            return torch.sin(x * node.value)
        return torch.tanh(sum(go(child, x) for child in node.children))

    return Program(lambda root, x: go(root, x), with_nodes())


@differential(graphs=2, hits=10)
def test_number_of_nodes():
    def size(node):
        return 1 + sum(size(child) for child in node.children)

    return Program(lambda root, x: x * size(root), with_nodes())


@differential(reasons=["kind_changed"])
def test_children_become_a_tuple_or_none():
    def size(node):
        return 1 + sum([size(child) for child in node.children])

    calls = with_nodes(24)

    def change():
        for root, _ in calls[9:12]:
            root.children = tuple(root.children)
        for root, _ in calls[15:18]:
            root.children[0].children.append(Family(0.5, []))

    return Program(lambda root, x: x * size(root), [*calls[:9], change, *calls[9:]])


@differential(graphs=1, hits=6)
def test_backward_outside():
    """Autograd's engine is the last to hold the node, with objects of Python's in it."""
    model = TreeRNN()
    converted = []

    def step(root):
        return model(root)

    def convert(_):
        converted.append(torchjanus.function(step))
        return lambda root: converted[0](root)[1].backward(), converted[0]

    return Program(lambda root: step(root)[1].backward(), trees(12), watch=[model], convert=convert)


@differential(graphs=1, hits=12)
def test_leaves_without_a_gradient():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return x * node.value
        return torch.tanh(layer(go(node.children[0], x)))

    return trained(go, [layer])


def summing(layer):
    """Adds up what the children give, from zeros on."""

    def go(node, x):
        total = torch.zeros(3)
        for child in node.children:
            total = total + layer(go(child, x))
        return torch.sin(total + x * node.value)

    return go


@differential(graphs=1, hits=12)
def test_sum_that_begins_with_zeros():
    layer = nn.Linear(3, 3)

    return trained(summing(layer), [layer])


@differential(graphs=1, hits=12)
def test_zeros_that_are_added_to_in_place():
    layer = nn.Linear(3, 3)

    def go(node, x):
        total = torch.zeros(3)
        for child in node.children:
            total += layer(go(child, x))
        return torch.sin(total + x * node.value)

    return trained(go, [layer])


@differential(graphs=1, hits=12)
def test_root_becomes_a_leaf():
    """The failing assumption: then nothing has a gradient, and eager raises."""
    layer = nn.Linear(3, 3)

    def go(node, x):
        total = torch.zeros(3)
        for child in node.children:
            total = total + torch.tanh(layer(go(child, x)))
        return total + x * node.value

    calls = with_nodes(24)
    for place in (10, 15):
        calls[place] = (Family(0.5, []), torch.randn(3))
    return trained(go, [layer], calls)


@differential(hits=7)
def test_the_program_asks_for_a_gradient():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return x * node.value
        below = go(node.children[0], x)
        if below.requires_grad:
            return torch.tanh(layer(below))
        return layer(below) * 2

    return trained(go, [layer])


@differential(hits=15)
def test_a_result_that_may_have_no_gradient():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return x * node.value
        return layer(go(node.children[0], x))

    return Program(lambda root, x: go(root.children[0], x), with_nodes(), watch=[layer])


@differential(graphs=1, hits=12)
def test_children_that_are_one_object():
    """Each visit of a shared child gives its gradient once more."""
    layer = nn.Linear(3, 3)

    calls = with_nodes()
    for root, _ in calls[8:]:
        root.children.append(root.children[0])
        root.children[0].children += [calls[0][0].children[0]] * 2
    return trained(summing(layer), [layer], calls)


def test_deep_chain_of_children():
    layer = nn.Linear(3, 3)
    layer.weight.data.mul_(0.3)

    go = summing(layer)

    def step(root, x):
        layer.zero_grad()
        loss = go(root, x).sum()
        loss.backward()
        return loss, layer.weight.grad

    f = torchjanus.function(step)
    for root, x in with_nodes(10):
        f(root, x)
    hits, deep, x = f.stats()["hits"], Family(0.5, []), torch.randn(3)
    for _ in range(10_000):
        deep = Family(0.5, [deep])
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        for mine, expected in zip(f(deep, x), step(deep, x), strict=True):
            torch.testing.assert_close(mine, expected)
        assert f.stats()["hits"] == hits + 1
    finally:
        while deep.children:
            deep = deep.children.pop()
        sys.setrecursionlimit(limit)
