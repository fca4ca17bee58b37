"""Lists and tuples that the program hands over, of another length in each call: one graph for all
lengths from 2 on, and what must come out when they are not what that graph assumes."""

import random
from collections import deque

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

LENGTHS = (3, 5, 4, 7, 2, 6, 9, 3, 8, 12, 5, 10)


def rows(count, size=4):
    return [torch.randn(size) for _ in range(count)]


def numbers(count):
    return [random.uniform(-1, 1) for _ in range(count)]


def lists(make, lengths=LENGTHS):
    return [(make(length),) for length in lengths]


@differential(graphs=2, hits=6)
def test_stack():
    return Program(lambda xs: torch.stack(xs).sum(0), lists(rows))


@differential(graphs=2, hits=6)
def test_cat():
    return Program(lambda xs: torch.cat(xs, 0) * 2, lists(rows))


@differential(graphs=2, hits=6)
def test_training():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(xs):
        optimizer.zero_grad()
        total = torch.zeros(())
        for x in xs:
            total = total + model(x).pow(2).mean()
        loss = total / len(xs)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, lists(rows), watch=[model, optimizer])


@differential(graphs=2, hits=6)
def test_discounted_rewards():
    def step(rewards, value):
        total, returns = value, []
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            returns.insert(0, total)
        return torch.stack(returns)

    return Program(step, [(numbers(n), torch.randn(())) for n in LENGTHS])


@differential(graphs=2, hits=6)
def test_tensor_of_numbers():
    return Program(lambda xs: torch.tensor(xs) * 2, lists(numbers))


@differential(graphs=2, hits=6)
def test_ints():
    weight = torch.randn(10, 4)

    def step(tokens):
        state = torch.zeros(4)
        for token in tokens:
            state = torch.tanh(state + weight[token])
        return state, sum(tokens), len(tokens)

    return Program(step, lists(lambda n: [random.randrange(10) for _ in range(n)]))


@differential(graphs=2, hits=6)
def test_pairs():
    def step(pairs):
        total = torch.zeros(4)
        for x, (weight, flag) in pairs:
            if flag:
                total = total + weight * x
        return total

    return Program(
        step,
        lists(
            lambda n: [(torch.randn(4), (random.random(), random.random() < 0.5)) for _ in range(n)]
        ),
    )


@differential(graphs=2, hits=6)
def test_enumerate_and_zip():
    def step(xs, weights):
        total = torch.zeros(4)
        for i, (x, weight) in enumerate(zip(xs, weights, strict=False)):
            total = total + x * weight * i
        return total

    return Program(step, [(rows(n), numbers(n)) for n in LENGTHS])


@differential(hits=5)
def test_lists_of_two_lengths():
    def step(xs, ys):
        return torch.stack(xs).sum(0) + torch.stack(ys).sum(0)

    return Program(
        step, [(rows(a), rows(b)) for a, b in zip(LENGTHS, reversed(LENGTHS), strict=True)]
    )


@differential(graphs=2, hits=6)
def test_comprehension():
    return Program(lambda xs: torch.stack([x * 2 for x in xs]).sum(), lists(rows))


@differential(graphs=2, hits=6)
def test_comprehension_that_outlives():
    return Program(lambda xs: [x * 2 for x in xs], lists(rows))


@differential(graphs=2, hits=6)
def test_tuple():
    return Program(lambda xs: torch.stack(xs).sum(0) * len(xs), lists(lambda n: tuple(rows(n))))


@differential(graphs=2, hits=6)
def test_attribute():
    class Memory:
        rows = ()

    memory = Memory()

    def fill(length):
        memory.rows = rows(length)

    def step(x):
        total = x
        for row in memory.rows:
            total = total + row * x
        return total

    calls = []
    for length in LENGTHS:
        calls += [lambda length=length: fill(length), (torch.randn(4),)]
    return Program(step, calls)


@differential(graphs=3, hits=6)
def test_other_sizes_of_elements():
    """A batch of another size in each call."""

    def step(xs):
        return torch.stack(xs).sum(0).tanh()

    return Program(
        step,
        [
            ([torch.randn(size, 4) for _ in range(length)],)
            for length, size in zip(LENGTHS, (2, 3, 5, 4, 7, 3, 2, 6, 8, 3, 5, 9), strict=True)
        ],
    )


@differential(hits=4)
def test_lengths_zero_and_one():
    def step(xs):
        total = torch.zeros(4)
        for x in xs:
            total = total + x
        return total, len(xs), bool(xs)

    return Program(step, lists(rows, (3, 5, 4, 0, 1, 6, 0, 1, 8, 2, 1, 0, 7, 5)))


@differential(hits=4)
def test_elements_of_other_kinds():
    def step(xs, y):
        total = y
        for x in xs:
            total = total + x
        return total

    y = torch.randn(4)
    odd = [
        [1.0, 2, 3.0],
        [1, 2, 3],
        rows(3),
        [torch.randn(4), 2.5],
        [torch.randn(4), torch.randn(1)],
        [torch.randn(4).to(torch.float32), torch.randn(4)],
        [torch.randn(4, requires_grad=True), torch.randn(4)],
        [torch.randn(8)[::2], torch.randn(4)],
        [nn.Parameter(torch.randn(4)), torch.randn(4)],
        [True, False, True],
    ]
    calls = [(numbers(n), y) for n in LENGTHS[:6]]
    for each in odd:
        calls += [(each, y), (numbers(5), y)]
    return Program(step, calls)


@differential(hits=4)
def test_numbers_beyond_64_bits():
    def step(xs, y):
        total = 0
        for x in xs:
            total = total + x
        return total, y * 2

    values = [[2**62, 1], [2**64, 1, 2], [2**62, 2**62, 5], [1, 2, 3]]
    ints = [list(range(n)) for n in LENGTHS[:7]]
    return Program(step, [(each, torch.randn(3)) for each in ints + values + ints])


@differential(hits=4)
def test_same_tensor_twice():
    x = torch.randn(4)
    calls = lists(rows, LENGTHS[:6]) + [([x, x, x],), ([x] * 5,)]
    return Program(lambda xs: torch.stack(xs).sum(0), calls)


@differential(hits=2)
def test_element_that_is_handed_on():
    """It must be that very object."""

    def step(xs, y):
        best = xs[0]
        for x in xs:
            if x.sum() > best.sum():
                best = x
        return best, y * 2

    calls = [(rows(n), torch.randn(4)) for n in LENGTHS]
    return Program(step, calls)


def test_element_is_itself():
    def step(xs):
        return xs[-1], xs[1], [x for x in xs], torch.stack(xs).sum(0)

    converted = torchjanus.function(step)
    for length in LENGTHS:
        xs = rows(length)
        last, second, copy, _ = converted(xs)
        assert last is xs[-1] and second is xs[1]
        assert all(a is b for a, b in zip(copy, xs, strict=True))


def itself(x):
    return x


def cut_off(x):
    return x.detach()


def copied(x):
    return x.clone()


def copied_and_cut_off(x):
    return x.detach().clone()


def seen_otherwise(x):
    return x.view(2, 2)


def laid_in_order(x):
    return x.contiguous()


@differential(hits=5)
@pytest.mark.parametrize(
    "taken", [itself, cut_off, copied, copied_and_cut_off, seen_otherwise, laid_in_order]
)
def test_list_made_of_elements(taken):
    """What is the element, shares its memory or is a copy, is so."""

    def step(xs):
        return [taken(x) for x in xs], torch.stack(xs).sum(0)

    return Program(step, lists(rows))


@differential(hits=5)
def test_element_written():
    def step(xs):
        for x in xs:
            x.mul_(2)
        return torch.stack(xs).sum(0)

    return Program(step, lists(rows))


@differential(hits=5)
def test_list_changed():
    def step(xs, y):
        total = torch.zeros(4)
        for x in xs:
            total = total + x
        xs.append(total * y)
        return total

    return Program(step, [(rows(n), torch.randn(4)) for n in LENGTHS])


@differential(hits=3)
def test_list_emptied():
    def step(xs, y):
        while xs:
            y = y + xs.pop()
        return y

    return Program(step, [(numbers(n), torch.randn(4)) for n in LENGTHS])


@differential(hits=4)
def test_one_list_twice():
    def step(xs, ys):
        total = torch.zeros(4)
        for x, y in zip(xs, ys, strict=False):
            total = total + x * y
        return total

    calls = [(rows(n), rows(n)) for n in LENGTHS[:7]]
    same = rows(4)
    return Program(step, [*calls, (same, same), *calls])


@differential(hits=4)
def test_memory_that_the_step_writes():
    """An element that is the step's own weight, or shares its memory."""
    weight = torch.randn(4)

    def step(xs):
        total = torch.zeros(4)
        for x in xs:
            total = total + x * weight
        weight.add_(total, alpha=0.01)
        for x in xs:
            total = total + x
        return total

    calls = lists(rows, LENGTHS[:7])
    calls += [([weight, torch.randn(4)],), ([torch.randn(4), weight.view(4)],)]
    return Program(step, calls + lists(rows, (5, 6, 3)), watch=[weight])


@differential(hits=4)
def test_gradients_of_elements():
    """Elements that need gradients are taken one by one."""

    def step(xs):
        total = torch.zeros(())
        for x in xs:
            total = total + (x * x).sum()
        total.backward()
        return total.detach()

    def leaves(count):
        return [torch.randn(4, requires_grad=True) for _ in range(count)]

    return Program(step, lists(leaves, (3, 3, 3, 3, 3, 4, 4, 4, 4, 4)) + lists(rows, (2,)))


@differential(hits=4)
def test_known_positions():
    def step(xs):
        return xs[0] * 2 + xs[-1], torch.stack(xs[::-1]).cumsum(0), len(xs)

    return Program(step, lists(rows))


@differential(hits=3)
def test_parts_and_extremes():
    def step(xs, y):
        return y * max(xs), y + min(xs), sum(xs[1:]), sorted(xs)[0], xs.index(xs[0])

    return Program(step, [(numbers(n), torch.randn(3)) for n in (3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5)])


@differential(graphs=2, hits=6)
def test_list_in_a_branch():
    def step(xs, y):
        if y.sum() > 0:
            for x in xs:
                y = y + x
        else:
            y = y * len(xs)
        return y

    return Program(step, [(rows(n), torch.randn(4)) for n in LENGTHS])


@differential(hits=4)
def test_nested_loops():
    def step(xs, ys):
        total = torch.zeros(())
        for x in xs:
            for y in ys:
                total = total + F.relu(x - y).sum()
        return total

    return Program(step, [(rows(n), rows(n % 4 + 2)) for n in LENGTHS])


@pytest.mark.parametrize("make", [rows, numbers])
def test_no_graph_for_new_lengths(make):
    def step(xs, y):
        for x in xs:
            y = torch.tanh(y + x)
        return y

    converted = torchjanus.function(step)
    for length in LENGTHS:
        converted(make(length), torch.randn(4))
    before = converted.stats()["generated"]
    for length in range(2, 60):
        xs, y = make(length), torch.randn(4)
        assert torch.allclose(converted(xs, y), step(xs, y), atol=1e-6)
    assert converted.stats()["generated"] == before


@differential(hits=12, graphs=4)
def test_deque_that_grows_in_front_as_long_as_a_list():
    """Returns of an episode, from its last reward to its first."""

    def step(rewards):
        total = 0
        returns = deque()
        for reward in rewards[::-1]:
            total = reward + 0.9 * total
            returns.appendleft(total)
        values = torch.tensor(returns)
        return (values - values.mean()) / (values.std() + 1e-8), len(returns), returns, returns[0]

    calls = [([random.random() for _ in range(random.randint(4, 12))],) for _ in range(24)]
    return Program(step, calls)


@differential(hits=12, graphs=4)
def test_deque_that_grows_and_shrinks():
    def step(numbers):
        waiting, taken = deque(), []
        for number in numbers:
            waiting.append(number * 2)
        while len(waiting) > 3:
            taken.append(waiting.popleft())
        return torch.tensor(taken).sum(), list(waiting), waiting

    calls = [([random.random() for _ in range(random.randint(6, 12))],) for _ in range(24)]
    return Program(step, calls)


@differential(hits=3)
def test_deque_of_a_greatest_length():
    def step(numbers):
        last = deque(maxlen=3)
        for number in numbers:
            last.append(number * 2)
        return torch.tensor(last).sum(), last

    calls = [([random.random() for _ in range(length)],) for length in (5, 6, 7, 5, 5, 5, 5)]
    return Program(step, calls)


@differential(hits=10, graphs=9)
def test_lengths_that_are_ever_others():
    """Of a list that can't be one of the graph there is a graph for a few lengths, and no more."""

    def step(tensors):
        total = tensors[0] * 1.0
        for tensor in tensors:
            total = total + tensor.sum() * 2
        return total.detach()

    weights = [torch.randn(2, requires_grad=True) * 2 for _ in range(40)]
    return Program(step, [(weights[: 4 + i // 3],) for i in range(100)])
