"""What only the run shows to have a gradient: where it shows nothing, eager decides."""

import random

import pytest
from differential import Program, differential
from test_programs_met_writes import Node, node, roots

import torch
from torch import nn

# --- what backward() has freed ------------------------------------------------------------------


def later(forward, layer, calls, attribute="state"):
    """A step that frees some of what its nodes keep, and what they are good for afterwards."""
    seen = []

    def step(root):
        layer.zero_grad()
        loss = forward(root)
        loss.backward()
        return loss

    def visit(root):
        state = getattr(root, attribute)
        try:
            state.sum().backward()
            seen.append(layer.bias.grad.clone())
        except RuntimeError as error:
            seen.append(str(error)[:60])
        for child in root.children:
            visit(child)

    program = []
    for (root,) in calls:
        program += [(root,), lambda root=root: visit(root)]
    return Program(step, program, watch=[layer, seen])


@differential(hits=10)
def test_states_that_the_loss_reached():
    layer = nn.Linear(3, 3)

    def go(part):
        state = torch.tanh(layer.bias * part.word)
        for child in part.children:
            state = state + torch.tanh(layer(go(child)))
        part.state = state
        return state

    return later(lambda root: go(root).square().sum(), layer, roots())


@differential(hits=10)
def test_states_read_back_that_the_loss_reached():
    layer = nn.Linear(3, 3)

    def go(part):
        for child in part.children:
            go(child)
        state = torch.tanh(layer.bias * part.word)
        for child in part.children:
            state = torch.tanh(layer(state + child.state))
        part.state = state

    def forward(root):
        go(root)
        return root.state.square().sum()

    return later(forward, layer, roots())


@pytest.mark.parametrize("of", ["leaves", "all"])
@differential(reasons=["branch_changed"])
def test_states_that_the_loss_did_not_reach(of):
    """A later backward() of them computes."""
    layer = nn.Linear(3, 3)

    def go(part):
        state = torch.tanh(layer.bias * (part.word + 1))
        part.state = torch.exp(layer.bias * 0.5)
        for child in part.children:
            state = state + torch.tanh(layer(go(child)))
        if of == "leaves" and part.children:
            state = state + part.state
        return state

    return later(lambda root: go(root).square().sum(), layer, roots(12))


@differential(hits=4)
def test_states_of_two_names_one_of_which_is_not_reached():
    layer = nn.Linear(3, 3)

    def go(part):
        state = torch.tanh(layer.bias * (part.word + 1))
        for child in part.children:
            state = state + torch.tanh(layer(go(child)))
        part.state = state
        if part.word > 20:
            part.other = torch.exp(state)
        return state

    calls = roots(24)
    for (root,) in calls[14:18]:
        root.children[0].word = 30
    return later(lambda root: go(root).square().sum(), layer, calls)


# --- parameters that only some elements or nodes depend on ----------------------------------------


@differential(reasons=["branch_changed"])
def test_element_of_a_list_that_nothing_reads():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    layers = nn.ModuleList([first, second])
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)

    def step(root):
        found = []

        def go(part):
            if part.children:
                found.append(torch.tanh(first.bias * part.word))
            else:
                found.append(torch.tanh(second.bias * part.word))
            for child in part.children:
                go(child)

        go(root)
        loss = found[0].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, roots(16), watch=[layers, optimizer])


@differential(reasons=["branch_changed"])
def test_attribute_that_nothing_reads():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    layers = nn.ModuleList([first, second])
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)

    def step(root):
        def go(part):
            for child in part.children:
                go(child)
            layer = first if part.word % 2 else second
            part.state = torch.tanh(layer.bias * (part.word + 1))

        go(root)
        loss = root.state.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, roots(16), watch=[layers, optimizer])


@differential(graphs=1, hits=8)
def test_last_element_of_a_list_that_all_rounds_make_alike():
    layer = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def step(x, rounds):
        found = []
        for _ in range(rounds):
            x = torch.tanh(layer(x))
            found.append(x)
        loss = found[-1].square().sum() + found[0].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(torch.randn(3), random.randrange(2, 7)) for _ in range(16)]
    return Program(step, calls, watch=[layer, optimizer])


@differential(hits=6)
def test_layer_that_some_trees_do_not_use():
    """Their gradients stay None, and the optimizer leaves them alone."""
    leaf, inner, rare = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
    layers = nn.ModuleList([leaf, inner, rare])
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1, weight_decay=0.1)

    def go(part):
        state = torch.tanh(leaf.bias * (part.word + 1))
        for child in part.children:
            below = go(child)
            state = state + torch.tanh((rare if child.word == 7 else inner)(below))
        return state

    def step(root):
        loss = go(root).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def words(part, largest):
        part.word = min(part.word, largest)
        for child in part.children:
            words(child, largest)
        return part

    calls = [(node(random.randrange(6, 12)),) for _ in range(26)]
    for i, (root,) in enumerate(calls):
        words(root, 6 if i in (15, 19) else 9)
        if i not in (15, 19):
            root.children.append(Node(7, []))
    return Program(step, calls, watch=[layers, optimizer])
