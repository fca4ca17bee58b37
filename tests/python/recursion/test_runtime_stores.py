"""Recursion that writes attributes of the nodes it meets: they are read back in the run, and written
to the nodes at its end."""

import random

import pytest
from differential import Program, differential
from random_trees import random_children

import torch
from torch import nn


class Node:
    def __init__(self, word, children):
        self.word, self.children = word, children


class Slotted:
    __slots__ = ("children", "count", "state", "word")

    def __init__(self, word, children):
        self.word, self.children = word, children


def node(size, kind=Node):
    return kind(random.randrange(10), random_children(size, lambda part: node(part, kind)))


def roots(count=20, kind=Node):
    return [(node(random.randrange(2, 10), kind),) for _ in range(count)]


def trained(go, layers, calls=None):
    """A training step of what go(root) gives."""
    modules = nn.ModuleList(layers)
    optimizer = torch.optim.SGD(modules.parameters(), lr=0.05)

    def step(root):
        optimizer.zero_grad()
        loss = go(root).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls or roots(), watch=[modules, optimizer])


# --- what is written ----------------------------------------------------------------------------


@differential(graphs=1, hits=12)
def test_numbers_and_flags():
    layer = nn.Linear(3, 3)

    def go(node):
        node.visited = True
        node.count = len(node.children)
        node.weight = node.word * 0.5
        state = layer.bias * node.word
        for child in node.children:
            state = torch.tanh(state + go(child))
        return state

    return trained(go, [layer])


@differential(graphs=1, hits=12)
def test_number_that_one_side_writes():
    layer = nn.Linear(3, 3)

    def go(node):
        if node.word > 4:
            node.weight = node.word * 0.5
        state = layer.bias * node.word
        for child in node.children:
            state = torch.tanh(state + go(child))
        return state

    return trained(go, [layer])


@differential(graphs=1, hits=12)
def test_order_of_new_attributes():
    """The order in which attributes come to be is that of `__dict__`."""

    def go(node):
        if node.word > 4:
            node.first = 1
            node.second = 2
        else:
            node.second = 3
            node.first = 4
        return node.word + sum(go(child) for child in node.children)

    return Program(lambda root: torch.ones(2) * go(root), roots())


@differential(graphs=1, hits=12)
def test_detached_states_in_slots():
    layer = nn.Linear(3, 3)

    def go(node):
        state = layer.bias * node.word
        for child in node.children:
            state = torch.tanh(state + go(child))
        node.state = state.detach() * 2
        return state

    return trained(go, [layer], roots(kind=Slotted))


@differential(graphs=1, hits=12)
def test_states_with_gradients():
    layer = nn.Linear(3, 3)

    def go(node):
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = state + torch.tanh(go(child))
        node.state = state
        return state

    return trained(go, [layer])


@differential(graphs=1, hits=12)
def test_states_without_gradients():
    layer = nn.Linear(3, 3)

    def go(node):
        node.state = layer.bias * node.word
        for child in node.children:
            go(child)
            node.state = torch.tanh(node.state + layer(child.state))

    def step(root):
        with torch.no_grad():
            go(root)
            return root.state.sum()

    return Program(step, roots())


# --- what was written is read ---------------------------------------------------------------------


@differential(graphs=1, hits=12)
def test_states_of_children():
    layer = nn.Linear(3, 3)

    def go(node):
        for child in node.children:
            go(child)
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = torch.tanh(layer(state + child.state))
        node.state = state

    def forward(root):
        go(root)
        return root.state

    return trained(forward, [layer])


class ChildSum(nn.Module):
    """A child-sum TreeLSTM that keeps its states in the nodes."""

    def __init__(self, hidden=3):
        super().__init__()
        self.words = nn.Embedding(10, hidden)
        self.gates = nn.Linear(2 * hidden, 3 * hidden)
        self.forget = nn.Linear(2 * hidden, hidden)

    def forward(self, node):
        for child in node.children:
            self(child)
        x = torch.tanh(self.words.weight[node.word])
        total = torch.zeros(3)
        for child in node.children:
            total = total + child.h
        enter, leave, candidate = self.gates(torch.cat([x, total])).chunk(3)
        c = torch.sigmoid(enter) * torch.tanh(candidate)
        for child in node.children:
            c = c + torch.sigmoid(self.forget(torch.cat([x, child.h]))) * child.c
        node.c = c
        node.h = torch.sigmoid(leave) * torch.tanh(c)
        return node.h


@differential(graphs=1, hits=12)
def test_tree_lstm_with_states_in_the_nodes():
    model = ChildSum()
    return trained(model, [model])


@differential(graphs=1, hits=12)
def test_tree_lstm_with_one_pair_in_a_node():
    layer, both = nn.Linear(3, 3), nn.Linear(3, 3)

    def go(node):
        h, c = torch.tanh(layer.bias * node.word), torch.sigmoid(layer.bias)
        for child in node.children:
            go(child)
            h = h + torch.tanh(both(child.state[0]))
            c = c * torch.sigmoid(child.state[1])
        node.state = (h, c)
        return node.state

    return trained(lambda root: torch.cat(go(root)), [layer, both])


@differential(graphs=1, hits=12)
def test_counter_in_a_node():
    """Also of children that are visited several times, and of nodes that existed before the call."""

    def go(node):
        node.count = node.count + 1
        return node.count + sum(go(child) for child in node.children)

    calls = roots()
    for (root,) in calls:
        root.children.append(root.children[0])

    def reset(node):
        node.count = 0
        for child in node.children:
            reset(child)

    for (root,) in calls:
        reset(root)
    return Program(lambda root: torch.ones(2) * go(root), [*calls, *calls[:6]])


@differential(graphs=1, hits=12)
def test_whether_an_attribute_is_there():
    """Each node is counted once, however often it is met."""

    def go(node):
        if hasattr(node, "seen"):
            return 0
        node.seen = True
        weight = getattr(node, "weight", 1)
        return weight + sum(go(child) for child in node.children)

    calls = roots(30)
    for i, (root,) in enumerate(calls):
        root.children.append(root.children[0])
        if i % 2:
            root.children[0].weight = 5
    return Program(lambda root: torch.ones(2) * go(root), [*calls, *calls[:6]])


@differential(graphs=2, hits=12)
def test_states_found_once():
    """Nodes that several others share keep what was found of them."""
    layer = nn.Linear(3, 3)

    def go(node):
        if node.state is not None:
            return node.state
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = state + torch.tanh(go(child))
        node.state = state
        return state

    def reset(node):
        node.state = None
        for child in node.children:
            reset(child)

    calls = roots(24)
    for (root,) in calls:
        root.children += [root.children[0], *root.children[0].children]
        reset(root)
    return trained(go, [layer], calls)


# --- what fails -----------------------------------------------------------------------------------


@differential(hits=6, reasons=["kind_changed"])
def test_another_class_appears():
    class Other(Node):
        pass

    def go(node):
        node.seen = node.word
        return node.word + sum(go(child) for child in node.children)

    calls = roots(24)
    for (root,) in calls[9:14]:
        root.children.append(Other(3, []))
    return Program(lambda root: torch.ones(2) * go(root), calls)


@differential(hits=6)
def test_class_gets_a_setter():
    class Mine(Node):
        pass

    def go(node):
        node.seen = node.word
        return node.word + sum(go(child) for child in node.children)

    def hide():
        def set_seen(self, value):
            self.__dict__["seen"] = value * 100

        Mine.__setattr__ = lambda self, name, value: set_seen(self, value)

    calls = roots(20, Mine)
    return Program(lambda root: torch.ones(2) * go(root), [*calls[:12], hide, *calls[12:]])


@differential(hits=6)
def test_run_that_raises_leaves_nothing():
    layer = nn.Linear(3, 3)

    def go(node):
        node.seen = node.word
        state = layer.weight[node.word % 3] * 2
        for child in node.children:
            state = state + go(child)
        if node.word == 77:
            raise ValueError("77")
        return state

    calls = roots(20)
    calls[12][0].children[0].word = 77
    return trained(go, [layer], calls)


@differential(reasons=["autograd"])
def test_states_whose_gradients_are_due_outside():
    layer = nn.Linear(3, 3)

    def go(node):
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = state + torch.tanh(go(child))
        node.state = state
        return state

    return Program(lambda root: go(root).sum(), roots(12), watch=[layer])


@differential(reasons=["heap_write"])
def test_written_through_a_property():
    class Mine(Node):
        @property
        def seen(self):
            return self.word

        @seen.setter
        def seen(self, value):
            self.word = value

    def go(node):
        node.seen = 3
        return node.word + sum(go(child) for child in node.children)

    return Program(lambda root: torch.ones(2) * go(root), roots(12, Mine))


@pytest.mark.parametrize("by_path", [True, False])
@differential(hits=2)
def test_the_same_object_by_two_ways(by_path):
    """What is written to a node is read of the object that the program holds otherwise."""
    kept = Node(1, [])
    layer = nn.Linear(3, 3)

    def go(node):
        node.seen = node.word
        state = layer.bias * node.word
        for child in node.children:
            state = state + go(child)
        return state

    def step(root):
        y = go(root)
        return y.sum() * (kept.seen if by_path else kept.word)

    calls = roots(20)
    kept.seen = 5
    for (root,) in calls[6:]:
        root.children.append(kept)
    return Program(step, calls, watch=[kept])
