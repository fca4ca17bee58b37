"""Parts of tensors that begin at a number of the run: one graph and one plan serve all numbers.

An iteration over blocks is the plainest training loop there is: `step(X[i:i + n], Y[i:i + n])`.
"""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def plans(converted):
    """As many memory plans as all graphs have."""
    return sum(graph["program"].count("arena of") for graph in converted.snapshot()["cache"])


def training(kind, inputs):
    model = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.ReLU(), nn.Linear(5, 4))
    if kind is torch.optim.SGD:
        optimizer = kind(model.parameters(), lr=0.1, momentum=0.9)
    else:
        optimizer = kind(model.parameters(), lr=0.01)
    targets = torch.randint(4, (len(inputs),))

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, targets, step


BLOCKS = [(i,) for _ in range(3) for i in range(0, 60, 4)]


def over_blocks(kind, inputs):
    model, optimizer, targets, step = training(kind, inputs)
    return Program(
        lambda i: step(inputs[i : i + 4], targets[i : i + 4]), BLOCKS, watch=[model, optimizer]
    )


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
@differential(hits=40, graphs=1)
def test_blocks_of_a_training_set(kind):
    return over_blocks(kind, torch.randn(60, 3))


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
@differential(hits=38, graphs=2)
def test_the_last_block_is_smaller(kind):
    return over_blocks(kind, torch.randn(58, 3))


@differential(hits=40, graphs=1)
def test_blocks_of_a_permutation():
    inputs = torch.randn(60, 3)
    model, optimizer, targets, step = training(torch.optim.Adam, inputs)
    order = torch.randperm(60)

    def block(i):
        rows = order[i : i + 4]
        return step(inputs[rows], targets[rows])

    return Program(block, BLOCKS, watch=[model, optimizer])


@differential(hits=40, graphs=1)
def test_blocks_by_number():
    inputs = torch.randn(60, 3)
    model, optimizer, targets, step = training(torch.optim.SGD, inputs)
    numbers = [(k,) for _ in range(3) for k in range(15)]
    return Program(
        lambda k: step(inputs[k * 4 : (k + 1) * 4], targets[k * 4 : (k + 1) * 4]),
        numbers,
        watch=[model, optimizer],
    )


@differential(hits=20, graphs=1)
def test_blocks_of_embedded_tokens():
    tokens = torch.randint(9, (60, 3))
    table, head = nn.Embedding(9, 4), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)

    def step(i):
        optimizer.zero_grad()
        loss = head(table(tokens[i : i + 5]).mean(1)).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(
        step, [(i,) for _ in range(2) for i in range(0, 60, 5)], watch=[table, head, optimizer]
    )


@differential(hits=20, graphs=1)
def test_parts_of_parts():
    x = torch.randn(30, 20)
    calls = [(4 * i % 24, 3 * i % 15) for i in range(30)]
    return Program(lambda i, j: (x[i : i + 4].T[j : j + 3] * 2).sum(0), calls, watch=[x])


@differential(hits=20, graphs=1)
def test_parts_of_what_the_run_computes():
    x = torch.randn(30, 6)

    def step(i):
        y = (x @ x.T).tanh()
        part = y[i : i + 4]
        return part.sum(1), part @ part.T, y.sum()

    return Program(step, [(i,) for i in range(26)], watch=[x])


@differential(hits=20, graphs=1)
def test_views_that_leave_the_run():
    x = torch.randn(30, 6)
    return Program(lambda i: (x[i : i + 4], x[i], (x * 2)[i]), [(i,) for i in range(26)], watch=[x])


@differential(hits=20, graphs=1)
def test_one_part_moves_and_the_other_stays():
    """They lie in one place in some runs only."""
    x = torch.randn(30, 6)

    def step(i):
        x[0:4] = x[i : i + 4] * 2 + x[0:4]
        return x[i : i + 4].sum(), x[0:4].sum()

    return Program(step, [(i,) for i in [*range(4, 26), *range(4)]], watch=[x])


@differential(hits=40, graphs=1)
def test_writes_to_parts():
    x, out, losses = torch.randn(60, 3), torch.zeros(60, 2), torch.zeros(60)
    layer = nn.Linear(3, 2)

    @torch.no_grad()
    def step(i):
        y = layer(x[i : i + 4])
        out[i : i + 4] = y
        losses[i] = y.square().mean()
        losses[i + 1] += 1
        return y.sum()

    return Program(step, BLOCKS, watch=[out, losses])


@differential(hits=20, graphs=1)
def test_gradients_of_parts():
    table = torch.randn(30, 4, requires_grad=True)

    def step(i):
        loss = (table[i : i + 3] * table[i + 3]).sum().tanh()
        loss.backward()
        return loss

    return Program(step, [(i,) for i in range(26)], watch=[table])


@differential(hits=20)
def test_parts_outside_of_the_tensor():
    """`narrow` raises, or counts from the end: the graph's plan is for what lies within."""
    x = torch.randn(30, 6)

    def step(i):
        x.add_(1)
        return x.narrow(0, i, 4).sum(1) * 2

    starts = [*range(12), -5, 27, 3, -40, -4, 26, -5, *range(12)]
    return Program(step, [(i,) for i in starts], watch=[x])


@differential(hits=15)
def test_indices_from_the_end():
    x, y = torch.randn(30, 6), torch.zeros(30)

    def step(i):
        y[i] = x[i].sum()
        return x[i] * 2

    return Program(step, [(i,) for i in [*range(12), *range(-12, 0), 3, -30, 4]], watch=[x, y])


@differential(hits=30, graphs=4)
def test_other_sizes_between():
    """Of the tensor and of the part: a plan for each, and each moves."""
    layer = nn.Linear(3, 2)
    tensors = [torch.randn(n, 3) for n in (30, 40)]
    calls = [(x, i, n) for n in (4, 6) for i in range(0, 24, 2) for x in tensors]

    def step(x, i, n):
        return layer(x[i : i + n]).tanh().sum(0)

    return Program(step, calls, watch=[layer])


def test_one_plan_for_all_blocks():
    inputs = torch.randn(1200, 3)
    _, _, targets, step = training(torch.optim.Adam, inputs)
    losses = torch.zeros(300)

    def block(i):
        losses[i // 4] = step(inputs[i : i + 4], targets[i : i + 4]).detach()

    converted = torchjanus.function(block)
    for _ in range(2):
        for i in range(0, 1200, 4):
            converted(i)
    stats = torchjanus.stats(converted)
    assert stats["graphs"] == 1
    assert stats["hits"] >= 590
    assert plans(converted) == 1
