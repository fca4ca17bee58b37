"""Reads and writes at a position that a tensor or a number of the run gives: views, bounds, gradients."""

from differential import Program, differential

import torch
from torch import nn


@differential()
def test_index_by_a_scalar_tensor_is_a_view():
    def f(x, t):
        return x[t], x

    x = torch.randn(4, 3)
    return Program(f, [(x, torch.tensor(i % 4 - 2)) for i in range(7)])


@differential()
def test_index_by_a_scalar_tensor_of_each_dtype():
    def f(x, t, s):
        return x[t] * 2, x[s].sum()

    calls = [
        (torch.randn(4, 3), torch.tensor(i % 4, dtype=torch.int32), torch.tensor(i % 3).short())
        for i in range(7)
    ]
    return Program(f, calls)


@differential(hits=3)
def test_index_by_a_scalar_tensor_out_of_range():
    def f(x, t):
        return x[t] + 1

    numbers = [0, 1, 2, 3, -4, 1, 4, -5, 0]
    return Program(f, [(torch.randn(4, 3), torch.tensor(i)) for i in numbers])


@differential()
def test_index_by_a_scalar_tensor_has_a_gradient():
    w = nn.Parameter(torch.randn(5, 3))

    def f(t):
        loss = (w[t] ** 2).sum() + w[t, 1]
        loss.backward()
        return loss

    return Program(f, [(torch.tensor(i % 5),) for i in range(7)], watch=[w])


@differential()
def test_index_by_a_scalar_tensor_gradient_due_outside():
    w = nn.Parameter(torch.randn(5, 3))

    def f(t):
        return w[t].sin()

    def outside():
        step(torch.tensor(2)).sum().backward()

    step = f
    return Program(f, [*[(torch.tensor(i % 5),) for i in range(7)], outside], watch=[w])


@differential()
def test_index_by_a_scalar_tensor_without_gradients():
    w = nn.Parameter(torch.randn(5, 3))

    @torch.no_grad()
    def f(t):
        return w[t] * 2

    return Program(f, [(torch.tensor(i % 5),) for i in range(7)], watch=[w])


@differential()
def test_index_by_a_scalar_tensor_that_is_changed_afterwards():
    def f(x, t):
        row = x[t]
        t = t + 1
        x = x * 2
        return row, x[t]

    x = torch.randn(4, 3)
    return Program(f, [(x, torch.tensor(i % 3)) for i in range(7)])


@differential()
def test_scalar_tensor_that_is_written_after_it_was_an_index():
    def f(x, t):
        row = x[t]
        t.add_(1)
        return row

    x = torch.randn(14, 3)
    return Program(f, [(x, torch.tensor(i)) for i in range(7)])


@differential()
def test_base_that_is_written_after_it_was_indexed():
    def f(x, t):
        row = x[t]
        x.mul_(2)
        return row

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4)) for i in range(7)])


@differential(hits=4)
def test_row_that_is_written():
    def f(x, t):
        row = x[t]
        row.mul_(2)
        return x

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4)) for i in range(7)])


@differential()
def test_assignment_at_a_scalar_tensor():
    def f(x, t, y):
        x[t] = y
        return x.sum()

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4), torch.randn(3)) for i in range(7)])


@differential(hits=3)
def test_index_of_tensors_and_numbers():
    def f(x, rows, t):
        return x[rows, 1], x[rows, 1:], x[1, rows], x[rows, t]

    rows = torch.tensor([0, 2, 1, 1])
    return Program(f, [(torch.randn(4, 3, 5), rows, torch.tensor(i % 4)) for i in range(7)])


@differential()
def test_index_by_a_number_of_a_tensor():
    def f(x, t):
        return x[int(t)] * 2, x[t.item()].sum()

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4)) for i in range(7)])


@differential(hits=5, graphs=1)
def test_counts_at_positions_of_the_data():
    counts = torch.zeros(4, 4)

    def step(truth, guess):
        for t, p in zip(truth, guess, strict=True):
            counts[t, p] += 1
        return counts.sum(), counts[truth[0]].clone()

    calls = [(torch.randint(4, (3,)), torch.randint(4, (3,))) for _ in range(9)]
    return Program(step, calls, watch=[counts])


@differential(hits=5, graphs=1)
def test_writes_at_numbers_of_the_data():
    table = torch.zeros(5, 3)

    def step(x):
        state = x.argmax().item()
        table[state] += 1
        table[state, -1] = x.sum()
        row = table[state]
        row.mul_(0.5)
        row[0] = 7
        return table[:, 1] * 2, row.sum(), state

    return Program(step, [(torch.randn(5),) for _ in range(9)], watch=[table])


@differential(hits=5)
def test_gradient_through_a_write_at_a_number_of_the_data():
    w = torch.randn(4, 4, requires_grad=True)

    def step(x):
        w.grad = None
        y = w * 2
        best = x.argmax()
        y[best] *= x
        y[:, best.item()] = x * w[0]
        y.square().sum().backward()
        return y.detach(), w.grad.clone()

    return Program(step, [(torch.randn(4),) for _ in range(9)], watch=[w])


@differential(hits=5, aborts=2)
def test_an_index_outside_beside_another_write():
    """Nothing is written before the indices are known to be inside."""
    first, second, table = torch.ones(7, 6), torch.zeros(4, 6), torch.randn(5, 6)

    def step(x, i):
        first.mul_(1.5).add_(x)
        second.mul_(0.5).add_(table[i])
        return x.sum()

    calls = [(torch.randn(7, 6), torch.randint(5, (4,))) for _ in range(12)]
    for wrong in (6, 9):
        calls[wrong] = (torch.randn(7, 6), torch.tensor([0, 1, 7, 2]))
    return Program(step, calls, watch=[first, second])


@differential(hits=4)
def test_position_out_of_range():
    def step(x, i):
        y = x.clone()
        y[i.item()] += 1
        y[i] -= 1
        return y

    calls = [(torch.randn(4), torch.tensor(i)) for i in (0, 1, 2, 3, -1, -4, 1, 4, 2, -5, 0)]
    return Program(step, calls)


@differential(hits=4)
def test_view_at_a_position_sees_writes():
    def step(x, i):
        y = x.clone()
        part = y[i]
        y.add_(1)
        first = part.clone()
        i.add_(1)
        part.mul_(2)
        return first, y, part + 0

    calls = [(torch.randn(4, 2), torch.tensor(i % 3)) for i in range(9)]
    return Program(step, calls)
