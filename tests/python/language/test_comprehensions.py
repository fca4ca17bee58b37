"""Comprehensions and generator expressions that a call consumes at once, over numbers of elements
that vary, and lists of the graph in part, in a row and in another order."""

import random

import pytest
from differential import Program, differential

import torch


def rows(count=24, columns=4):
    """Another number of rows in each call."""
    return [(torch.randn(2 + (i * 7 + i * i) % 11, columns),) for i in range(count)]


def numbers(count=24):
    """Lists of other lengths in each call."""
    return [
        ([random.uniform(-1, 3) for _ in range(2 + i * 5 % 7)], torch.randn(4))
        for i in range(count)
    ]


STOP_EARLY = {
    "any": lambda x: x * 2 if any(row.sum() > 2 for row in x) else x - 1,
    "all": lambda x: x * 2 if all(row.sum().item() > -3 for row in x) else x - 1,
    "any with a condition": lambda x: x * any(v > 1 for v in x.sum(1).tolist() if v > 0),
    "not any": lambda x: x if not any(row[0] > 1 for row in x) else x * 3,
    "next position": lambda x: x * next((i for i, row in enumerate(x) if row.sum() > 1), -1),
    "next number": lambda x: x * next((v for v in x.sum(1).tolist() if v > 1), 0.5),
    "next tensor": lambda x: x * next((row for row in x if row.sum() > 1), x[0] * 2),
}


@pytest.mark.parametrize("name", STOP_EARLY)
@differential(hits=16, graphs=2)
def test_stops_early(name):
    return Program(STOP_EARLY[name], rows())


@differential(hits=16, graphs=2)
def test_stops_early_over_a_list():
    def step(values, x):
        first = next((v for v in values if v > 1), 0.0)
        return x * first, any(v > 2.5 for v in values), all(v > -0.5 for v in values)

    return Program(step, numbers())


@differential(hits=16, graphs=2)
def test_any_of_a_fixed_number():
    def step(x):
        if any(row.sum() > 1 for row in x):
            return x * 2
        return x - 1

    return Program(step, [(torch.randn(5, 4),) for _ in range(24)])


@differential(hits=16, graphs=2)
def test_what_is_not_asked_any_more_does_not_fail():
    def step(x):
        return x * any(1 / v > 0.5 for v in x.sum(1).tolist())

    calls = rows()
    for (x,) in calls[::3]:
        x[-1] = 0
        x[0] = 0.4
    return Program(step, calls)


@differential(aborts=1, hits=14)
def test_asking_what_fails():
    def step(x):
        return x * any(1 / v > 5 for v in x.sum(1).tolist())

    calls = rows()
    for (x,) in calls[4::3]:
        x[0] = 0
    return Program(step, calls)


@differential(hits=8)
def test_the_rest_of_an_iterator():
    def step(x):
        values = iter(x.sum(1).tolist())
        found = any(v > 0 for v in values)
        return x * sum(values), found

    return Program(step, [(torch.randn(3, 4),) for _ in range(40)])


CONSUMED = {
    "tuple": lambda x: torch.stack(tuple(row * 2 for row in x)).sum(0),
    "sorted": lambda x: x * sorted(row.sum().item() for row in x)[0],
    "sorted downwards": lambda x: x * sorted((r.sum().item() for r in x), reverse=True)[1],
    "nested": lambda x: x * sum([v.item() * 2 for row in x for v in row if v > 0]),
    "nested, of sizes": lambda x: x * sum([i * j for i in range(x.shape[0]) for j in range(i)]),
    "median": lambda x: x * sorted(x.sum(1).tolist())[x.shape[0] // 2],
    "top": lambda x: x * sum(sorted(x.sum(1).tolist())[-2:]),
}


@pytest.mark.parametrize("name", CONSUMED)
@differential(hits=16, graphs=2)
def test_consumed_at_once(name):
    return Program(CONSUMED[name], rows())


@differential(hits=16, graphs=2)
def test_a_tuple_as_result():
    return Program(lambda x: tuple(row.sum().item() for row in x), rows())


SORTED = {
    "numbers": lambda v, x: x * sorted(v)[0],
    "by a key": lambda v, x: (x * 2, sorted(v, key=lambda each: abs(each - 1))),
    "pairs": lambda v, x: x * sorted([(a, i) for i, a in enumerate(v)], key=lambda p: -p[0])[0][1],
    "indices": lambda v, x: (x * 2, sorted(range(len(v)), key=lambda i: v[i], reverse=True)),
    "ints": lambda v, x: x * sorted([int(3 * each) for each in v])[-1],
    "of a known number": lambda v, x: x * sorted([x[0].item(), x[1].item(), x[2].item()])[1],
}


@pytest.mark.parametrize("name", SORTED)
@differential(hits=14, graphs=3)
def test_sorted(name):
    return Program(SORTED[name], numbers())


@differential(hits=10, graphs=2)
def test_equal_ones_stay_in_their_order():
    def step(values, x):
        pairs = [(int(v), i) for i, v in enumerate(values)]
        up, down = (
            sorted(pairs, key=lambda p: p[0]),
            sorted(pairs, key=lambda p: p[0], reverse=True),
        )
        return x * up[0][1], [i for _, i in up], [i for _, i in down]

    return Program(step, numbers())


@differential(aborts=1, hits=15)
def test_sorting_what_is_not_a_number():
    def step(values, x):
        return x * sorted(values)[0]

    calls = numbers()
    for values, _ in calls[5::4]:
        values[1] = float("nan")
    return Program(step, calls)


def gathered(x):
    values = []
    for row in x:
        values.append(row.sum().item())
    return values


def window(x):
    recent = []
    for row in x:
        recent.append(row.sum().item())
        if len(recent) > 3:
            recent.pop(0)
    return x * sum(recent), recent


def from_the_front(x):
    recent = []
    for row in x:
        recent.insert(0, row.sum().item())
        if len(recent) > 3:
            recent.pop()
    return x * sum(recent), recent


def both_ends(x):
    values = []
    for i, row in enumerate(x):
        if i % 2 == 0:
            values.append(row.sum().item())
        else:
            values.insert(0, row.sum().item())
    return x * values[0], values


def methods(x):
    values = gathered(x)
    values.sort()
    values.reverse()
    values.extend([1.0, 2.0])
    return x * values[0], values.index(1.0), values.count(2.0), 1.0 in values, 7.5 not in values


def changed(x):
    values = gathered(x)
    values[0] = 1.5
    values[-1] = 2.5
    values.insert(1, 0.25)
    del values[0]
    values.remove(2.5)
    last = values.pop(-1)
    return x * last, values


def halves(x):
    values = gathered(x)
    middle = len(values) // 2
    left, right = values[:middle], values[middle:]
    return x * sum(left), right + left, values[1:-1]


def replaced(x):
    values = gathered(x)
    values[1:] = [4.0, 5.0]
    values[:1] = []
    return x * sum(values), values


def batches(x):
    values = gathered(x)
    total = 0.0
    for i in range(0, len(values), 2):
        total += max(values[i : i + 2])
    return x * total


def flushed(x):
    done, batch = [], []
    for row in x:
        batch.append(row.sum().item())
        if len(batch) == 3:
            done.append(sum(batch))
            batch.clear()
    return x * len(done), done, batch


def tensors(x):
    recent = []
    for row in x:
        recent.append(row * 2)
        if len(recent) > 2:
            recent[:1] = []
    return torch.stack(recent).sum(0)


W = torch.ones(4, requires_grad=True)


def with_gradients(x):
    outputs = []
    for row in x:
        outputs.append(torch.tanh(row * W))
    later = outputs[1:] + outputs[:1]
    loss = sum((a * b).sum() for a, b in zip(outputs, later))
    W.grad = None
    loss.backward()
    return loss.detach(), W.grad.clone()


LISTS = [
    window, from_the_front, both_ends, methods, changed, halves, replaced, batches, flushed, tensors,
    with_gradients,
]  # fmt: skip


@pytest.mark.parametrize("step", LISTS)
@differential(hits=16, graphs=2)
def test_lists_of_the_graph(step):
    return Program(step, rows())


@differential(hits=8, aborts=1)
def test_what_is_not_in_a_list():
    def step(x):
        values = [int(v) for v in x.sum(1).tolist()]
        try:
            return x * values.index(0)
        except ValueError:
            return x

    return Program(step, rows(40))


@differential(hits=16, graphs=2)
def test_membership_of_numbers():
    def step(x):
        kept = 0.0
        for i, row in enumerate(x):
            if i in (1, 3, 4) or i not in range(0, 6):
                kept = kept + row.sum().item()
        return x * kept

    return Program(step, rows())


@differential(graphs=2, hits=6)
def test_comprehension_with_a_condition():
    def step(x, n):
        kept = [x * i for i in range(n) if i % 3 != 1]
        return torch.stack(kept).sum(0), len(kept), sum(i for i in range(n) if i > 1)

    return Program(step, [(torch.randn(4), n) for n in (4, 6, 5, 8, 7, 12, 9, 4, 5, 11, 20)])


@differential(graphs=2, hits=6)
def test_comprehension_with_conditions_on_data():
    weight = torch.randn(4, requires_grad=True)

    def step(x):
        rows = [row * weight for row in x if row.sum() > 0 if row[0] < 1]
        total = sum(rows, weight * 0)
        total.sum().backward()
        return len(rows), total.detach()

    calls = [(torch.randn(rows, 4),) for rows in (6, 8, 7, 9, 6, 5, 12, 8, 10, 7, 3, 30)]
    return Program(step, calls, watch=[weight])


@differential(hits=2)
def test_comprehension_of_which_nothing_is_left():
    def step(x, n):
        kept = [x[i] for i in range(n) if x[i].item() > 10]
        return kept, len(kept), bool(kept)

    calls = [(torch.randn(8) * 8, n) for n in (4, 6, 5, 8, 7, 2, 3, 8, 8, 8)]
    return Program(step, calls)


@differential(hits=3)
def test_condition_that_never_held():
    """The profile saw one outcome; then the other one comes."""

    def step(x, n):
        return sum([x * i for i in range(n) if i < 6])

    return Program(
        step, [(torch.randn(4), n) for n in (4, 5, 3, 5, 2, 4, 5, 3, 9, 8, 4, 7, 9, 5, 6)]
    )
