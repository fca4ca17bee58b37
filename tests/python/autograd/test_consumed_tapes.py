"""Tensors that a run leaves after a backward() in it: a later backward() of them raises where that one
freed what their gradient needs, and computes where it did not."""

import random

import pytest
from differential import Program, differential
from random_trees import random_children

import torch
import torchjanus
from torch import nn


class Node:
    def __init__(self, word, children):
        self.word, self.children = word, children


def node(size):
    return Node(random.randrange(10), random_children(size, node))


def roots(count=20):
    return [(node(random.randrange(2, 10)),) for _ in range(count)]


def nodes_of(root):
    return [root] + [each for child in root.children for each in nodes_of(child)]


def backward_of_each(tensors):
    """What comes of a later backward() of each."""
    outcomes = []
    for tensor in tensors:
        try:
            tensor.sum().backward()
            outcomes.append("computed")
        except RuntimeError as error:
            outcomes.append(str(error)[:40])
    return outcomes


def used_later(train, calls, watch, tensors):
    """A step that is converted, then backward() outside of what it left."""

    def step_with(function):
        def step(*given):
            result = function(*given)
            return backward_of_each(tensors(result, *given))

        return step

    def convert(step):
        converted = torchjanus.function(train)
        return step_with(converted), converted

    return Program(step_with(train), calls, watch=watch, convert=convert)


def result_used_later(train, watch, count=20):
    calls = [(torch.randn(3),) for _ in range(count)]
    return used_later(train, calls, watch, lambda result, x: [result])


def states_used_later(go, layers, calls=None):
    modules = nn.ModuleList(layers)

    def train(root):
        modules.zero_grad()
        loss = go(root).square().sum()
        loss.backward()
        return loss.detach()

    def states(loss, root):
        return [each.state for each in nodes_of(root)]

    return used_later(train, calls or roots(), [modules], states)


# --- results ----------------------------------------------------------------------------------------


@differential(hits=12, graphs=1)
def test_result_that_was_freed():
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        h = torch.tanh(w * x)
        h.square().sum().backward()
        return h

    return result_used_later(train, [w])


@differential(hits=10, graphs=2)
def test_result_that_only_one_side_of_a_branch_frees():
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        h = torch.tanh(w * x)
        loss = (h * 2).square().sum() if x.sum() > 0 else (w * x).square().sum()
        loss.backward()
        return h

    return result_used_later(train, [w])


@differential(hits=10, graphs=2)
def test_backward_on_one_side_of_a_branch():
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        h = torch.tanh(w * x)
        if x.sum() > 0:
            h.sum().backward()
        return h

    return result_used_later(train, [w])


@differential(hits=12)
def test_result_of_both_sides_of_a_branch():
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        h = torch.tanh(w * x) if x.sum() > 0 else torch.sin(w)
        loss = (h * x).sum()
        loss.backward()
        return loss

    return result_used_later(train, [w])


@differential(hits=9)
def test_result_that_some_iterations_of_a_loop_free():
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        h = torch.tanh(w * x)
        loss = w.square().sum()
        iterations = 0
        while iterations < x[0] * 3:
            loss = loss + (h * h).sum()
            iterations += 1
        loss.backward()
        return h

    return result_used_later(train, [w])


@differential(hits=12)
def test_loss_of_a_loop():
    w = nn.Parameter(torch.randn(3))

    def train(x, n):
        w.grad = None
        h = w * x
        for _ in range(n):
            h = torch.tanh(h * w)
        loss = h.sum()
        loss.backward()
        return loss

    calls = [(torch.randn(3), 2 + i % 5) for i in range(20)]
    return used_later(train, calls, [w], lambda loss, x, n: [loss])


@differential(hits=8)
def test_graph_that_keeps_no_tensor():
    """Nothing is freed: another backward() computes once more."""
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        loss = (w + x.exp()).sum()
        loss.backward()
        return loss

    return result_used_later(train, [w])


@differential(hits=12, graphs=1)
def test_result_that_shares_what_keeps_no_tensor():
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        h = w + x
        (h * 2 * x).sum().backward()
        return h * x.exp()

    return result_used_later(train, [w])


@differential(reasons=["autograd"])
def test_result_of_which_a_part_was_freed():
    """Another backward() comes to a gradient before it raises."""
    w = nn.Parameter(torch.randn(3))

    def train(x):
        w.grad = None
        h = torch.tanh(w * x)
        h.square().sum().backward()
        return h + w

    return result_used_later(train, [w])


# --- states of a recursion --------------------------------------------------------------------------


@differential(hits=12, graphs=1)
def test_states_on_the_way_of_the_loss():
    layer = nn.Linear(3, 3)

    def go(node):
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = state + torch.tanh(go(child))
        node.state = state
        return state

    return states_used_later(go, [layer])


@differential(hits=12, graphs=1)
def test_states_that_are_read():
    layer = nn.Linear(3, 3)

    def write(node):
        for child in node.children:
            write(child)
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = torch.tanh(layer(state + child.state))
        node.state = state

    def go(root):
        write(root)
        return root.state

    return states_used_later(go, [layer])


@differential(hits=4, aborts=1)
def test_states_of_which_some_are_not_read():
    """From some call on nodes have a third child, which is not read."""
    layer = nn.Linear(3, 3)

    def write(node):
        for child in node.children:
            write(child)
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            if child.word < 10:
                state = torch.tanh(layer(state + child.state))
        node.state = state

    def go(root):
        write(root)
        return root.state

    calls = roots(20)
    for (root,) in calls[12:14]:
        root.children[0].word = 11
    return states_used_later(go, [layer], calls)


def returned_by_some(layer):
    def go(node):
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            below = go(child)
            if child.word > 5:
                state = state + torch.tanh(below)
        node.state = state
        return state

    return go


def returned_by_none(layer):
    def go(node):
        for child in node.children:
            go(child)
        node.state = torch.tanh(layer.bias * node.word)
        return node.state

    return go


def beside_what_is_returned(layer):
    def go(node):
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = state + torch.tanh(go(child))
        node.state = torch.sin(layer.weight[0] * node.word)
        return state

    return go


def read_detached(layer):
    def go(node):
        for child in node.children:
            go(child)
        state = torch.tanh(layer.bias * node.word)
        for child in node.children:
            state = torch.tanh(layer(state + child.state.detach()))
        node.state = state
        return state

    return go


@pytest.mark.parametrize(
    "make",
    [
        returned_by_some,
        returned_by_none,
        beside_what_is_returned,
        read_detached,
    ],
)
@differential(reasons=["autograd"])
def test_states_that_the_loss_does_not_reach(make):
    layer = nn.Linear(3, 3)
    return states_used_later(make(layer), [layer])


# --- elements of lists that nothing reads -----------------------------------------------------------


def first_or_last(position):
    first, later = nn.Linear(3, 3), nn.Linear(3, 3)
    modules = nn.ModuleList([first, later])

    def step(x, n):
        modules.zero_grad()
        states = [torch.tanh(first(x))]
        for i in range(n):
            states.append(torch.tanh(later(x * i)))
        loss = states[position].sum()
        loss.backward()
        return loss.detach()

    return Program(step, [(torch.randn(3), 2 + i % 3) for i in range(24)], watch=[modules])


@pytest.mark.parametrize("position", [0, -1, 1])
@differential(hits=8)
def test_parameter_of_elements_that_are_not_read(position):
    """It has no gradient."""
    return first_or_last(position)


@differential(hits=8)
def test_position_that_varies():
    first, later = nn.Linear(3, 3), nn.Linear(3, 3)
    modules = nn.ModuleList([first, later])

    def step(x, n, k):
        modules.zero_grad()
        states = [torch.tanh(first(x)), torch.tanh(first(x * 2))]
        for i in range(n):
            states.append(torch.tanh(later(x * i)))
        loss = states[k].sum()
        loss.backward()
        return loss.detach()

    calls = [(torch.randn(3), 2 + i % 2, i % 3) for i in range(24)]
    return Program(step, calls, watch=[modules])


@pytest.mark.parametrize("use", ["for", "sum", "stack", "comprehension", "enumerate", "reversed"])
@differential(hits=12, graphs=1)
def test_all_elements_are_read(use):
    """Whatever the elements depend on has a gradient: one graph for all lengths."""
    first, later = nn.Linear(3, 3), nn.Linear(3, 3)
    modules = nn.ModuleList([first, later])

    def step(x, n):
        modules.zero_grad()
        states = [torch.tanh(first(x))]
        for i in range(n):
            states.append(torch.tanh(later(x * i)))
        total = 0.0
        if use == "for":
            for state in states:
                total = total + state.exp()
        elif use == "reversed":
            for state in reversed(states):
                total = total + state.exp()
        elif use == "comprehension":
            total = sum([state.exp() for state in states])
        elif use == "enumerate":
            for i, state in enumerate(states):
                total = total + state * i
        else:
            total = sum(states) if use == "sum" else torch.stack(states)
        loss = total.sum()
        loss.backward()
        return loss.detach()

    return Program(step, [(torch.randn(3), 2 + i % 5) for i in range(24)], watch=[modules])


@pytest.mark.parametrize("use", ["break", "last", "pop", "shorter", "slice"])
@differential(hits=19)
def test_loops_that_leave_elements_out(use):
    first, later = nn.Linear(3, 3), nn.Linear(3, 3)
    bias = nn.Parameter(torch.randn(3))
    modules = nn.ModuleList([first, later])

    def step(x, n):
        modules.zero_grad()
        states = [torch.tanh(first(x))]
        for i in range(n):
            states.append(torch.tanh(later(x * i)))
        total = x * 0
        if use == "break":
            for i, state in enumerate(states):
                total = total + state
                if i == 0:
                    break
        elif use == "last":
            for state in states:
                total = state
        elif use == "pop":
            total = states.pop()
        elif use == "slice":
            for state in states[4:]:
                total = total + state
        else:
            for state, _ in zip(states, [1]):
                total = total + state
        loss = (total + bias).sum()
        loss.backward()
        return loss.detach()

    calls = [(torch.randn(3), 2 + i % 3) for i in range(24)]
    return Program(step, calls, watch=[modules, bias])


@pytest.mark.parametrize("keeps", [True, False])
def test_gradients_taken_in_a_loop(keeps):
    @differential(hits=0 if not keeps else 3, reasons=["autograd"] if not keeps else [])
    def build():
        w = torch.randn(3, requires_grad=True)

        def step(x, n):
            w.grad = None
            ys, total = [], 0
            for _ in range(n):
                y = (w * w * x).sum()
                (g,) = torch.autograd.grad(y, w, retain_graph=keeps)
                total = total + g
                ys.append(y)
            sum(ys).backward()
            return total

        return Program(step, [(torch.randn(3), 2 + i % 3) for i in range(12)], watch=[w])

    build()


@pytest.mark.parametrize("keeps", [True, False])
def test_gradients_taken_in_a_recursion(keeps):
    @differential(reasons=["autograd"] if not keeps else ["limit"])
    def build():
        w = torch.randn(3, requires_grad=True)

        class Tree:
            def __init__(self, depth):
                self.x = torch.randn(3)
                self.children = [Tree(depth - 1) for _ in range(2)] if depth else []

        def walk(node):
            y = (w * w * node.x).sum()
            (g,) = torch.autograd.grad(y, w, retain_graph=keeps)
            for child in node.children:
                y = y + walk(child)
            return y + g.sum()

        def step(tree):
            w.grad = None
            loss = walk(tree)
            loss.backward()
            return loss

        return Program(step, [(Tree(1 + i % 3),) for i in range(9)], watch=[w])

    build()
