"""Cells of recurrent networks, and what loops compute alike in each iteration, against eager."""

import pytest
from differential import Program, differential

import torch
from torch import nn

CELLS = {
    "gru": lambda: nn.GRUCell(5, 6),
    "gru_without_bias": lambda: nn.GRUCell(5, 6, bias=False),
    "lstm": lambda: nn.LSTMCell(5, 6),
    "tanh": lambda: nn.RNNCell(5, 6),
    "relu": lambda: nn.RNNCell(5, 6, nonlinearity="relu"),
}


def shown(state):
    return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("shape", [(3, 5), (5,)], ids=["batched", "single"])
@differential()
def test_a_cell_learns(name, shape):
    cell = CELLS[name]()
    optimizer = torch.optim.Adam(cell.parameters(), 0.01)

    def step(inputs):
        state = None
        for x in inputs:
            state = cell(x, state)
        loss = shown(state).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, shown(state)

    return Program(step, [(torch.randn(4, *shape),) for _ in range(6)], watch=[cell, optimizer])


@differential()
def test_a_cell_that_thinks_about_one_input():
    cell, halt = nn.GRUCell(5, 6), nn.Linear(6, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *halt.parameters()], 0.1)

    def step(x, enough):
        x = torch.tanh(x)
        state = torch.zeros(x.shape[0], 6)
        halting = torch.zeros(x.shape[0])
        while halting.min() < enough:
            state = cell(x, state)
            halting = halting + 0.1 + torch.sigmoid(halt(state)).squeeze(1)
        loss = state.sum() + halting.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(torch.randn(3, 5), torch.tensor(0.5 + index % 4)) for index in range(16)]
    return Program(step, calls, watch=[cell, halt, optimizer])


@differential()
def test_iterations_that_compute_the_same_from_outside():
    weight = nn.Parameter(torch.randn(4, 4))
    optimizer = torch.optim.SGD([weight], 0.01)

    def step(x, iterations):
        total, state = x.sum(), x
        while iterations > 0:
            shift = (x @ weight).tanh()
            state = state * 0.5 + shift
            iterations = iterations - 1
        loss = total + state.square().mean() + weight.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, state

    calls = [(torch.randn(3, 4), torch.tensor(index % 5)) for index in range(15)]
    return Program(step, calls, watch=[weight, optimizer])


@differential()
def test_a_gradient_inside_of_the_loop():
    weight = torch.randn(4, requires_grad=True)

    def step(x, iterations):
        while iterations > 0:
            loss = (x.exp() * weight).sum()
            (gradient,) = torch.autograd.grad(loss, weight)
            x = x - 0.1 * gradient
            iterations = iterations - 1
        return x

    calls = [(torch.randn(4), torch.tensor(1 + index % 4)) for index in range(12)]
    return Program(step, calls, watch=[weight])


@differential()
def test_parts_whose_gradients_adjoin():
    weight = nn.Parameter(torch.randn(4, 12))

    def step(x):
        first, second, third = (x @ weight).chunk(3, dim=1)
        middle = (x @ weight)[:, 2:8]
        loss = (first * second.tanh()).sum() + third.square().sum()
        loss = loss + middle[:, :3].sum() * 2 + middle[:, 3:].square().sum()
        weight.grad = None
        loss.backward()
        return loss

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)], watch=[weight])


@differential(hits=2)
def test_a_state_of_another_size_raises():
    cell = nn.GRUCell(5, 6)

    def step(x, state):
        return cell(x, state)

    calls = [(torch.randn(3, 5), torch.randn(3, 6)) for _ in range(5)]
    calls.append((torch.randn(3, 5), torch.randn(2, 6)))
    return Program(step, calls, watch=[cell])


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("state", ["given", "none", "absent", "keyword"])
@differential()
def test_cell(kind, bias, batched, state):
    cell = kind(3, 4, bias=bias)
    optimizer = torch.optim.SGD(cell.parameters(), 0.1)
    shape = (2,) if batched else ()

    def step(xs, h):
        optimizer.zero_grad()
        loss = 0
        for x in xs:
            if state == "given":
                h = cell(x, h)
            elif state == "keyword":
                h = cell(hx=h, input=x)
            elif state == "none":
                h = cell(x, None)
            else:
                h = cell(x)
            out = h[0] if isinstance(h, tuple) else h
            loss = loss + out.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss, h

    def start():
        h = torch.randn(*shape, 4)
        return (h, torch.randn(*shape, 4)) if kind is nn.LSTMCell else h

    batches = [([torch.randn(*shape, 3) for _ in range(3)], start()) for _ in range(5)]
    return Program(step, batches, watch=[cell])


@differential()
def test_relu_cell():
    cell = nn.RNNCell(3, 4, nonlinearity="relu")

    def step(x, h):
        cell.zero_grad()
        h = cell(x, h)
        h = cell(x, h)
        h.sum().backward()
        return h

    return Program(step, [(torch.randn(2, 3), torch.randn(2, 4)) for _ in range(5)], watch=[cell])
