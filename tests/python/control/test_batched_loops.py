"""Loops over sequences of any length: iterations that do not need each other are computed together."""

import random

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

WIDTH = 3


def sequences(count, longest=9):
    return [torch.randn(random.randrange(2, longest), WIDTH) for _ in range(count)]


def answers(count):
    return [torch.randn(2) for _ in range(count)]


class Recurrent(nn.Module):
    """A sequence's last state, by a loop of Python."""

    def __init__(self, cell="tanh", width=64):
        super().__init__()
        self.cell, self.width = cell, width
        gates = {"tanh": 1, "lstm": 4}[cell]
        self.inputs = nn.Linear(WIDTH, gates * width)
        self.states = nn.Linear(width, gates * width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        state = torch.zeros(self.width)
        memory = torch.zeros(self.width)
        for t in range(x.shape[0]):
            gates = self.inputs(x[t]) + self.states(state)
            if self.cell == "tanh":
                state = torch.tanh(gates)
            else:
                i, f, g, o = gates.chunk(4)
                memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
                state = torch.sigmoid(o) * torch.tanh(memory)
        return self.out(state)


def training(loss_of, *modules, optimizer=torch.optim.SGD, rate=0.002):
    """A step that trains the modules, and what there is to look at behind it."""
    optimizer = optimizer([p for module in modules for p in module.parameters()], lr=rate)

    def step(*given):
        optimizer.zero_grad()
        loss = loss_of(*given)
        loss.backward()
        optimizer.step()
        return loss

    return step, [*modules, optimizer]


def error_of(model):
    """A loss over one sequence after the other."""

    def loss_of(xs, ys):
        loss = 0
        for x, y in zip(xs, ys, strict=True):
            loss = loss + ((model(x) - y) ** 2).sum()
        return loss

    return loss_of


def batches(count, size=6):
    return [(sequences(size), answers(size)) for _ in range(count)]


def batched(program):
    """Whether the graph that the program's calls end with computes iterations together."""
    converted = torchjanus.function(program.step)
    for call in program.calls:
        converted(*call)
    assert converted.stats()["hits"] > 0
    return " = rows " in str(converted.graph())


def sequences_program(cell):
    model = Recurrent(cell)
    step, watch = training(error_of(model), model)
    return Program(step, batches(16), watch=watch)


@pytest.mark.parametrize("cell", ["tanh", "lstm"])
@differential(graphs=4, hits=8)
def test_a_loop_for_each_sequence(cell):
    return sequences_program(cell)


@pytest.mark.parametrize("cell", ["tanh", "lstm"])
def test_they_are_computed_together(cell):
    assert batched(sequences_program(cell))


@differential(graphs=4, hits=8)
def test_forward_alone():
    model = Recurrent()

    @torch.no_grad()
    def step(xs):
        return [model(x) for x in xs]

    return Program(step, [(sequences(6),) for _ in range(16)], watch=[model])


@differential(graphs=4, hits=8)
def test_backward_outside():
    model = Recurrent()

    def step(xs):
        return sum(model(x).sum() for x in xs)

    def convert(f):
        converted = torchjanus.function(f)

        def call(xs):
            model.zero_grad()
            loss = converted(xs)
            loss.backward()
            return loss.detach()

        return call, converted

    def call(xs):
        model.zero_grad()
        loss = step(xs)
        loss.backward()
        return loss.detach()

    calls = [(sequences(6),) for _ in range(16)]
    return Program(call, calls, watch=[model], convert=lambda _: convert(step))


def list_program():
    """Lists of any number of sequences, all of one length in a call: a loop in a loop."""
    model = Recurrent()
    step, watch = training(error_of(model), model)
    calls = []
    for _ in range(20):
        count, length = random.randrange(2, 9), random.randrange(2, 7)
        calls.append(([torch.randn(length, WIDTH) for _ in range(count)], answers(count)))
    return Program(step, calls, watch=watch)


@differential(graphs=6, hits=5)
def test_a_loop_over_sequences():
    return list_program()


def nested_program():
    """A tensor of sequences: a loop in a loop, both of any number of iterations."""
    model = Recurrent()

    def loss_of(x):
        loss = torch.zeros(())
        for i in range(x.shape[0]):
            loss = loss + model(x[i]).square().sum()
        return loss

    step, watch = training(loss_of, model)

    sizes = [(random.randrange(2, 9), random.randrange(2, 9)) for _ in range(16)]
    calls = [(torch.randn(*size, WIDTH),) for size in sizes]
    return Program(step, calls, watch=watch)


@differential(graphs=3, hits=8)
def test_a_loop_in_a_loop():
    return nested_program()


def test_iterations_of_the_outer_loop_are_computed_together():
    assert batched(nested_program())


@differential(graphs=4, hits=6)
def test_a_loss_in_each_iteration():
    model = Recurrent()
    head = nn.Linear(64, 4)

    def loss_of(xs, labels):
        loss = 0
        for x, label in zip(xs, labels, strict=True):
            state = torch.zeros(64)
            for t in range(x.shape[0]):
                state = torch.tanh(model.inputs(x[t]) + model.states(state))
                loss = loss + F.cross_entropy(head(state)[None], label[None])
        return loss

    step, watch = training(loss_of, model, head, optimizer=torch.optim.Adam, rate=0.001)

    calls = [
        (sequences(5), [torch.tensor(random.randrange(4)) for _ in range(5)]) for _ in range(14)
    ]
    return Program(step, calls, watch=watch)


@differential(graphs=4, hits=6)
def test_words():
    words = nn.Embedding(11, WIDTH)
    model = Recurrent()

    def loss_of(texts):
        return sum(model(words(text)).square().sum() for text in texts)

    step, watch = training(loss_of, words, model)

    calls = [
        ([torch.randint(0, 11, (random.randrange(2, 9),)) for _ in range(5)],) for _ in range(14)
    ]
    return Program(step, calls, watch=watch)


def test_one_sequence_after_the_other():
    """Each begins with the state that the one before left: nothing is gained together."""
    model = Recurrent()

    def step(xs):
        with torch.no_grad():
            state = torch.zeros(64)
            for x in xs:
                for t in range(x.shape[0]):
                    state = torch.tanh(model.inputs(x[t]) + model.states(state))
            return state

    assert not batched(Program(step, [(sequences(6),) for _ in range(14)]))


@differential(graphs=6, hits=15)
def test_a_test_on_the_state():
    """What the state holds decides how an iteration goes on: no iteration is put off."""
    model = Recurrent()

    def loss_of(xs):
        loss = 0
        for x in xs:
            state = torch.zeros(64)
            for t in range(x.shape[0]):
                state = torch.tanh(model.inputs(x[t]) + model.states(state))
                if state.sum() > 0.3:
                    state = state * 0.5
            loss = loss + model.out(state).square().sum()
        return loss

    step, watch = training(loss_of, model)
    return Program(step, [(sequences(4),) for _ in range(20)], watch=watch)


@differential(graphs=4, hits=6)
def test_dropout_in_each_iteration():
    model = Recurrent()

    def loss_of(xs):
        loss = 0
        for x in xs:
            state = torch.zeros(64)
            for t in range(x.shape[0]):
                state = F.dropout(torch.tanh(model.inputs(x[t]) + model.states(state)), 0.3)
            loss = loss + model.out(state).square().sum()
        return loss

    step, watch = training(loss_of, model)
    return Program(step, [(sequences(5),) for _ in range(14)], watch=watch)


@differential(graphs=4, hits=6)
def test_two_directions():
    there, back = Recurrent(), Recurrent()

    def loss_of(xs):
        loss = 0
        for x in xs:
            state, other = torch.zeros(64), torch.zeros(64)
            for t in range(x.shape[0]):
                state = torch.tanh(there.inputs(x[t]) + there.states(state))
            for t in range(x.shape[0] - 1, -1, -1):
                other = torch.tanh(back.inputs(x[t]) + back.states(other))
            loss = loss + (there.out(state) * back.out(other)).square().sum()
        return loss

    step, watch = training(loss_of, there, back)
    return Program(step, [(sequences(5),) for _ in range(14)], watch=watch)


@differential(graphs=4, hits=6)
def test_states_that_are_kept():
    """All states of each sequence go into a list, and attention looks over them."""
    model = Recurrent()

    def loss_of(xs):
        loss = 0
        for x in xs:
            state, states = torch.zeros(64), []
            for t in range(x.shape[0]):
                state = torch.tanh(model.inputs(x[t]) + model.states(state))
                states.append(state)
            states = torch.stack(states)
            weights = torch.softmax(states @ state, 0)
            loss = loss + model.out(weights @ states).square().sum()
        return loss

    step, watch = training(loss_of, model)
    return Program(step, [(sequences(5),) for _ in range(14)], watch=watch)
