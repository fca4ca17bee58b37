"""Lists, dicts and objects of which each iteration of a loop puts another one in place."""

import functools
from dataclasses import dataclass

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


@dataclass
class State:
    hidden: torch.Tensor
    count: int


def sequences(step, count=14, watch=(), width=3):
    """Calls with sequences of 2 to 6 rows."""
    return Program(step, [(torch.randn(2 + i % 5, width),) for i in range(count)], watch=watch)


@differential(hits=10, graphs=1)
def test_states_of_layers():
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
    optimizer = torch.optim.SGD(layers.parameters(), 0.1)

    def step(rows):
        states = [torch.zeros(3) for _ in layers]
        for row in rows:
            new = []
            for layer, state in zip(layers, states, strict=True):
                row = torch.tanh(layer(row) + state)
                new.append(row)
            states = new
        loss = sum(state.square().sum() for state in states)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, [state.detach() for state in states]

    return sequences(step, watch=[layers])


@differential(hits=10, graphs=1)
def test_window():
    def step(rows):
        recent = [rows[0], rows[1], rows[0] + rows[1]]
        for row in rows:
            recent = recent[1:] + [recent[0] * 0.5 + row]
        recent.append(rows[0])
        return torch.stack(recent), len(recent)

    return sequences(step)


@differential(hits=10, graphs=1)
def test_pairs_in_lists():
    def step(rows):
        states = [(torch.zeros(3), 0), (torch.ones(3), 1)]
        for row in rows:
            states = [(h + row, n + 1) for h, n in reversed(states)]
        return states

    return sequences(step)


@differential(hits=10, graphs=1)
def test_dict():
    def step(rows):
        state = {"h": torch.zeros(3), "n": 0}
        for row in rows:
            state = {"h": torch.sin(state["h"] + row), "n": state["n"] + 2}
        state["more"] = 1
        return state

    return sequences(step)


@differential(hits=10, graphs=1)
def test_dict_behind_variables_that_hold_themselves():
    """What one conversion leaves behind is no part of what the next one looks at."""

    def holder(x):
        scale = 2.0
        shifted = functools.partial(lambda a, b: a * scale + b, b=1.0)
        return shifted(x)

    held = torchjanus.function(holder)
    for _ in range(8):
        held(torch.ones(3))

    def step(rows):
        state = {"h": torch.zeros(3)}
        for row in rows:
            state = {"h": torch.sin(state["h"] + row)}
        return state

    return sequences(step)


@differential(hits=10, graphs=1)
def test_objects():
    w = torch.randn(3, requires_grad=True)

    def step(rows):
        state = State(torch.zeros(3), 0)
        for row in rows:
            state = State(torch.tanh(state.hidden * w + row), state.count + 1)
        w.grad = None
        state.hidden.sum().backward()
        return state.hidden.detach(), state.count

    return sequences(step, watch=[w])


@differential(hits=8)
def test_two_names_for_one_list():
    def step(rows):
        states = [torch.zeros(3), torch.ones(3)]
        same = states
        for row in rows:
            states = [states[0] + row, states[1] * row]
            same = states
        same[0] = rows[0]
        return states, states is same

    return sequences(step)


@pytest.mark.parametrize("name", ["elsewhere", "changed", "iterator", "method", "branch", "last"])
def test_list_that_is_held_elsewhere(name):
    def elsewhere(rows):
        states = [torch.zeros(3), torch.ones(3)]
        first = states
        for row in rows[2:]:
            states = [states[0] + row, states[1] * row]
        states[0] = rows[0]
        return states, first, states is first

    def changed(rows):
        states = [torch.zeros(3), torch.ones(3)]
        kept = (states, 1)
        for row in rows:
            states[0] = row
            states = [states[0] + row, states[1] * row]
        return states, kept

    def iterator(rows):
        states = [torch.zeros(3), torch.ones(3)]
        total = torch.zeros(3)
        for state in states:
            for row in rows[2:]:
                states = [states[1] + row, states[0] * row]
            total = total + state
            states[1] = total
        return states, total

    def method(rows):
        states = [torch.zeros(3), torch.ones(3)]
        append = states.append
        for row in rows[2:]:
            states = [states[0] + row, states[1] * row]
        append(rows[0])
        return states, len(states)

    def branch(rows):
        states = [torch.zeros(3), torch.ones(3)]
        for row in rows:
            if row.sum() > 0:
                states = [states[0] + row, states[1] * row]
            else:
                states[0] = states[0] - row
        return states

    def last(rows):
        states = [torch.zeros(3), torch.ones(3)]
        before = []
        for row in rows:
            before = states
            states = [states[0] + row, states[1] * row]
        before.append(rows[0])
        return states, before, before is states

    program = {f.__name__: f for f in (elsewhere, changed, iterator, method, branch, last)}[name]
    differential(hits=1)(lambda: sequences(program, count=30))()


@differential(hits=4)
def test_another_length_in_some_iterations():
    def step(rows):
        recent = []
        for row in rows:
            recent = [*recent[-2:], row * len(recent)]
        return torch.stack(recent).sum(0)

    return sequences(step, count=30)
