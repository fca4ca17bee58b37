"""Sizes that the run itself computes, and parts of tensors whose place only the run knows."""

import random

import pytest
from differential import Program, differential

import torch
from torch import nn


@differential(graphs=2)
def test_size_that_is_drawn():
    layer = nn.Linear(3, 2)

    def step():
        n = random.randint(2, 6)
        x = torch.randn(n, 3)
        y = torch.randint(0, 2, (n,))
        loss = nn.functional.cross_entropy(layer(x), y)
        loss.backward()
        return loss, x.shape[0] - n, torch.zeros(2, n).sum(), torch.arange(n)

    return Program(step, [() for _ in range(12)], watch=[layer])


@differential(graphs=2)
def test_size_that_a_tensor_holds():
    def step(lengths, x):
        most = int(lengths.max())
        padded = torch.zeros(len(lengths), most)
        return padded + x.mean(), x.repeat(most, 1).sum(0), torch.ones(most, dtype=torch.long)

    calls = [(torch.randint(3, 9, (4,)), torch.randn(3)) for _ in range(10)]
    return Program(step, calls)


@differential(aborts=1, hits=4)
def test_size_that_is_one_in_some_runs():
    def step(n):
        size = int(n) - 1
        return torch.zeros(size, 2) + torch.rand(size, 2)

    return Program(step, [(torch.tensor(n),) for n in (3, 4, 5, 3, 6, 2, 4, 1, 5, 2)])


@differential()
def test_size_that_is_decided_inside_a_branch():
    def step(x, n):
        if x.sum() > 0:
            return x.sum() + torch.ones(int(n)).sum()
        return x.sum() - 1

    calls = [(torch.randn(3), torch.tensor(2 + i % 3)) for i in range(12)]
    return Program(step, calls)


@pytest.mark.parametrize("width", [1, 2])
@differential(graphs=3)
def test_windows_of_a_sequence_in_a_loop(width):
    cell, state = nn.Linear(width, 4), nn.Linear(4, 4)

    def step(x):
        hidden = torch.zeros(x.size(0), 4)
        for t in range(x.size(1) - width + 1):
            hidden = torch.tanh(cell(x[:, t : t + width]) + state(hidden))
        loss = hidden.pow(2).sum()
        loss.backward()
        return loss

    lengths = [4, 4, 5, 4, 6, 3, 7, 8, 9, 5, 4, 10]
    return Program(step, [(torch.randn(2, n),) for n in lengths], watch=[cell, state])


@differential(graphs=3)
def test_windows_of_rows_in_a_loop():
    def step(x):
        total = torch.zeros(2, x.size(1))
        first = torch.zeros(1, x.size(1))
        for t in range(x.size(0) - 1):
            total = total * 0.5 + x[t : t + 2]
            first = first + x[t : t + 1] * x[1 + t : t + 2]
        return total, first

    return Program(step, [(torch.randn(n, 3),) for n in [4, 4, 5, 6, 3, 7, 8, 4, 9]])


@differential(hits=4)
def test_windows_that_end_behind_the_tensor():
    def step(x):
        total = torch.zeros(())
        for t in range(x.size(0)):
            total = total + x[t : t + 2].mean()
        return total

    return Program(step, [(torch.randn(n),) for n in [4, 4, 5, 6, 3, 7, 8, 4, 9]])


TABLES = {
    "from the first on": lambda table, n: table[:, :n],
    "from the second on": lambda table, n: table[:, 1 : n + 1],
    "one fewer": lambda table, n: table[:, : n - 1].repeat(1, 2, 1)[:, :n],
    "to the last": lambda table, n: table[:, table.size(1) - n :],
    "around the middle": lambda table, n: table[:, 6 - n : 6 + n - 1].mean(1),
}


@pytest.mark.parametrize("name", TABLES)
@differential(graphs=2, hits=6)
def test_as_much_of_a_table_as_there_are_words(name):
    table = torch.randn(1, 12, 4, requires_grad=True)
    layer = nn.Linear(4, 4)

    def step(x):
        y = layer(nn.functional.dropout(x + TABLES[name](table, x.size(1)), 0.2))
        y.square().mean().backward()
        return y.detach()

    lengths = [4, 4, 5, 6, 3, 5, 6, 4, 3, 6]
    return Program(step, [(torch.randn(2, n, 4),) for n in lengths], watch=[table, layer])


@differential(aborts=1, hits=4)
def test_more_words_than_the_table_has():
    """Eager's part is shorter then, and the sum raises; of one row it is not."""
    table, row = torch.randn(1, 6, 4), torch.randn(6)

    def step(x):
        part = row[: x.size(1)]
        return x + table[:, : x.size(1)], part.sum(), part.shape

    return Program(step, [(torch.randn(2, n, 4),) for n in [4, 4, 5, 6, 3, 7, 8, 4, 9, 5]])


@differential(hits=4)
def test_window_at_a_place_that_a_tensor_holds():
    weight = torch.randn(9, 3, requires_grad=True)

    def step(start):
        place = int(start)
        part = weight[place : place + 3]
        part.sum().backward()
        return part.detach(), weight[place + 1 : place + 2].shape

    return Program(
        step, [(torch.tensor(i),) for i in (0, 1, 4, 2, 6, 3, 7, 8, -1, 5)], watch=[weight]
    )


@differential(hits=8, graphs=2)
def test_reshape_by_a_number_that_is_a_drawn_size():
    """One graph for all sizes, although only the run knows that the number is a dimension."""
    layer = nn.Linear(4, 4)

    def step(start):
        n = random.randint(3, 8)
        x = torch.rand(2, n, 4)
        h, rows = start, []
        for t in range(n):
            h = torch.tanh(layer(h) + x[:, t])
            rows.append(h)
        scores = torch.stack(rows, 1) @ x.transpose(1, 2)
        layer.zero_grad()
        loss = scores.reshape(-1, n).logsumexp(1).mean()
        loss.backward()
        return loss, x.reshape(n, 8).sum()

    return Program(step, [(torch.randn(2, 4),) for _ in range(14)], watch=[layer])


@differential(reasons=["dynamic_control"])
def test_loop_of_a_drawn_number_that_is_none_in_the_graph():
    """The reason is why, and not that the number of iterations varies."""

    def step(x):
        n = random.randint(3, 8)
        y = torch.rand(n, 3)
        for t in range(n):
            x = torch.cat((x, y[t]))
        return x.sum()

    return Program(step, [(torch.randn(3),) for _ in range(12)])


@differential(hits=4)
def test_a_size_of_a_tensor_that_nobody_needs_otherwise():
    class Holder:
        pass

    holder = Holder()

    def step(number):
        return torch.full((holder.x.size(0),), number) * 2

    def put(rows):
        holder.x = torch.randn(rows, 4)

    calls = []
    for i in range(12):
        calls += [lambda i=i: put(2 + 3 * i % 5), (i * 0.5,)]
    return Program(step, calls)


@differential(graphs=5, hits=14)
def test_sizes_that_are_equal_by_chance():
    """Of a dozen lengths some agree in each call, others in the next: those that once differed have
    names of their own."""

    def step(xs, weights):
        return sum(x.mean(0) * weight for x, weight in zip(xs, weights, strict=True))

    def tensors():
        return [torch.randn(random.randrange(2, 7), 3) for _ in range(12)]

    calls = [(tensors(), [torch.randn(3) for _ in range(12)]) for _ in range(24)]
    return Program(step, calls)


@differential(graphs=3, hits=8)
def test_sizes_that_must_agree_have_one_name():
    def step(a, b, c):
        return (a + b).sum() * c.sum(), torch.cat([a, c], 0)

    calls = []
    for _ in range(14):
        n, m = random.randrange(2, 9), random.randrange(2, 9)
        calls.append((torch.randn(n, 3), torch.randn(n, 3), torch.randn(m, 3)))
    return Program(step, calls)


@differential(graphs=3, hits=8)
def test_batches_as_large_as_the_features():
    """Sizes that happen to be equal in one call are no one size."""
    layer = nn.Linear(32, 32)
    buffer, scale = torch.randn(32), nn.Parameter(torch.randn(32))
    layer.register_buffer("buffer", buffer)

    def step(x):
        layer.zero_grad()
        hidden = torch.tanh(layer(x)) * layer.buffer + scale
        loss = (hidden.sum(0) + hidden.mean(0) * layer.buffer).square().mean()
        loss.backward()
        return loss.detach(), hidden.detach()

    sizes = [32, 16, 8, 32, 64, 32, 5, 7, 32, 9, 16, 64, 8]
    return Program(step, [(torch.randn(size, 32),) for size in sizes], watch=[layer, scale])


@differential(graphs=3)
def test_square_batches_in_products_with_a_tensor_of_the_module():
    layer = nn.Linear(32, 32)
    layer.table = torch.randn(32, 32)

    def step(x):
        return (x @ layer.table).sum(0) + layer(x).mean(0), x @ layer.table.t()

    sizes = [32, 16, 8, 32, 64, 32, 5, 7, 32, 9, 16, 64, 8]
    return Program(step, [(torch.randn(size, 32),) for size in sizes], watch=[layer])


class Holder:
    mask = None


@pytest.mark.parametrize("lengths", [[5, 8, 3, 9, 12, 7], [4, 4, 4, 4, 6, 9]])
@differential(hits=24, graphs=3)
def test_mask_in_an_attribute_as_long_as_the_input(lengths):
    model = nn.Linear(3, 3)
    holder = Holder()

    def step(x):
        return (model(x).transpose(0, 1) @ (holder.mask @ x)).sum().detach()

    calls = []
    for i in range(36):
        n = lengths[i % len(lengths)]
        calls.append(lambda n=n: setattr(holder, "mask", torch.ones(n, n).triu(1)))
        calls.append((torch.randn(n, 3),))
    return Program(step, calls)


def groups_of(counts):
    """Rows that belong to groups, as batches of graphs do: their number is read from the data."""
    calls = []
    for count in counts:
        sizes = [random.randint(2, 6) for _ in range(count)]
        index = torch.repeat_interleave(torch.arange(count), torch.tensor(sizes))
        calls.append((torch.randn(sum(sizes), 3), index, torch.randint(0, 2, (count,))))
    return calls


def step_over_groups():
    layer = nn.Linear(3, 2)

    def step(x, index, y):
        count = int(index.max()) + 1
        sums = x.new_zeros(count, 3).index_add_(0, index, x)
        layer.zero_grad()
        loss = nn.functional.cross_entropy(layer(sums), y)
        loss.backward()
        return loss.detach(), (layer(sums).argmax(1) == y).sum()

    return step, layer


@differential(hits=15, graphs=2)
def test_size_of_the_run_beside_a_known_size():
    step, layer = step_over_groups()
    return Program(step, groups_of([8] * 20), watch=[layer])


@differential(hits=15, graphs=3)
def test_size_of_the_run_beside_a_size_that_varies():
    step, layer = step_over_groups()
    return Program(step, groups_of([8, 9, 5] * 8), watch=[layer])


@differential(hits=8, aborts=1)
def test_size_of_the_run_that_is_another_one_in_some_runs():
    """Then the program raises as it does in eager."""
    step, layer = step_over_groups()
    calls = groups_of([8] * 12)
    x, index, y = calls[9]
    calls[9] = (x, index.clamp(max=5), y)
    return Program(step, calls, watch=[layer])


def rows_of(*sizes):
    """Features with so many rows, and the numbers of so many of them."""
    return [(torch.randn(rows, 3), torch.randint(0, rows, (count,))) for rows, count in sizes]


@differential(graphs=2)
def test_rows_of_a_slice_that_meet_as_many():
    """`moves[:n]` has the smaller of two numbers of rows."""
    layer = nn.Linear(3, 3)

    def step(features, objects):
        moves = layer(features)
        loss = nn.functional.smooth_l1_loss(moves[: len(objects)], features[objects])
        loss.backward()
        return loss

    sizes = [(8, 5), (8, 4), (9, 3), (7, 6), (12, 5), (8, 2), (10, 10), (6, 4)]
    return Program(step, rows_of(*sizes), watch=[layer])


@differential(graphs=3, hits=2)
def test_rows_of_a_slice_that_meet_more():
    """Where fewer rows are left than are asked for, eager execution repeats them or raises."""

    def step(features, objects):
        try:
            return features[: len(objects)] + torch.ones(len(objects), 3)
        except RuntimeError as error:
            return str(error)

    sizes = [(8, 5), (8, 4), (9, 3), (7, 6), (1, 4), (12, 5), (3, 5), (8, 2)]
    calls = [(x, torch.zeros(n)) for (x, _), (_, n) in zip(rows_of(*sizes), sizes, strict=True)]
    return Program(step, calls)
