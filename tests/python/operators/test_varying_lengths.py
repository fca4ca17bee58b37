"""Sequences whose length, batch or mask differs from call to call: slices of larger tensors as arguments,
masks that are kept and made anew, lengths that the run draws."""

import random

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def lengths(count):
    return [(random.randint(4, 8), random.randint(5, 14)) for _ in range(count)]


def slices():
    """Arguments of calls: matrices without their last column, of four shapes."""
    shapes = [(4, 5), (5, 6), (6, 5), (4, 7), (4, 7), (4, 7)]
    return [(torch.randn(count, length + 1)[:, :-1],) for count, length in shapes]


@differential(hits=14, graphs=2)
def test_all_but_the_last_token():
    """The rows of such a slice have gaps between them."""
    embed, layer = nn.Embedding(20, 6), nn.Linear(6, 20)

    def step(tokens, targets):
        logits = layer(embed(tokens))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        embed.zero_grad()
        layer.zero_grad()
        loss.backward()
        return loss.detach(), logits.argmax(-1) == targets

    calls = []
    for count, length in lengths(20):
        tokens = torch.randint(0, 20, (count, length + 1))
        calls.append((tokens[:, :-1], tokens[:, 1:]))
    return Program(step, calls, watch=[embed, layer])


@differential(hits=12, graphs=3)
def test_results_lie_as_their_operands_do():
    def step(x, y):
        return x * 2, x + y, torch.relu(x).t(), (x @ y.t()).sum(0), x.sum(0)

    calls = []
    for count, length in lengths(16):
        whole = torch.randn(length, count)
        calls.append((whole.t(), torch.randn(count, length + 2)[:, 1:-1]))
    return Program(step, calls)


@differential(hits=10, graphs=3)
def test_slices_in_some_calls_and_whole_tensors_in_others():
    def step(x):
        return x.cumsum(1) + x.mean(), x.unsqueeze(0) * 2

    calls = []
    for i, (count, length) in enumerate(lengths(18)):
        x = torch.randn(count, length + 1)
        calls.append((x[:, :-1] if i % 3 else x,))
    return Program(step, calls)


@differential(hits=2)
def test_results_that_share_memory_or_are_copies():
    def step(x):
        return x.reshape(-1), x.flatten()

    return Program(step, slices())


@differential(hits=2)
def test_program_that_asks_how_they_lie():
    def step(x):
        if not x.is_contiguous():
            x = x.contiguous()
        return x.view(-1) * 2, x.stride()

    return Program(step, slices())


@differential(hits=2)
def test_rows_that_share_memory():
    def step(x):
        return x * 2, x.sum(0)

    calls = []
    for count, length in [(4, 5), (5, 6), (6, 5), (4, 7), (4, 7), (4, 7)]:
        calls.append((torch.randn(1, length).expand(count, length),))
    return Program(step, calls)


@differential(hits=6)
def test_slices_that_turn_into_rows_that_share_memory():
    def step(x):
        return x * 2, x.sum(0)

    calls = [(torch.randn(c, n + 1)[:, :-1],) for c, n in lengths(10)]
    calls += [(torch.randn(1, 7).expand(5, 7),), (torch.randn(6, 9)[:, :-1],)]
    return Program(step, calls)


@pytest.mark.parametrize("keyword", [True, False])
@differential(hits=24, graphs=3)
def test_mask_that_is_made_anew_where_it_does_not_fit(keyword):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.mask = None
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            if self.mask is None or self.mask.size(0) != x.size(0):
                size = x.size(0)
                self.mask = torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=1)
            scores = (self.layer(x) @ x.t()).masked_fill(self.mask, float("-inf"))
            if self.mask.shape != (x.size(0), len(scores)):
                raise RuntimeError("a mask that does not fit")
            return scores.softmax(-1) @ x

    model = Masked()

    def step(x):
        return (model(x) if keyword else model.forward(x)).sum().detach()

    sizes = [5, 8, 3, 9, 9, 12, 7, 7, 4, 6]
    calls = [(torch.randn(sizes[i % len(sizes)], 3),) for i in range(36)]
    return Program(step, calls, watch=[model])


@differential(hits=12, graphs=2)
def test_two_arguments_that_have_to_fit():
    """They differed in calls that raised nothing, and fit in the others."""

    def step(x, mask):
        if x.size(0) != mask.size(0):
            return x.sum()
        return (x * mask).sum(), x + mask

    calls = []
    for i, (count, _) in enumerate(lengths(24)):
        other = count if i % 2 else count + 1
        calls.append((torch.randn(count), torch.rand(other)))
    return Program(step, calls)


@differential(hits=9, graphs=1)
def test_lengths_that_the_run_draws():
    def step():
        n, k = random.randint(6, 20), int(torch.randint(4, 9, ()))
        n = int(torch.tensor(n))
        tokens = (torch.ones(k, 1) + torch.arange(n + 1))[:, :-1]
        ends = torch.randint(4, n + 1, (k,))
        padding = torch.arange(n) >= ends.unsqueeze(1)
        if padding.shape[0] != tokens.shape[0]:
            raise AssertionError("batch")
        if padding.shape[1] != tokens.shape[1]:
            raise AssertionError("length")
        return tokens * padding, padding.shape, tokens.shape[1] - n

    return Program(step, [() for _ in range(12)])


@differential(hits=9, graphs=1)
def test_arange_of_an_int_that_a_tensor_holds():
    def step(n):
        steps = torch.arange(int(n))
        return (
            steps,
            steps.shape,
            torch.arange(2, int(n) + 2).size(0),
            len(torch.arange(int(n) + 1)),
        )

    return Program(step, [(torch.tensor(3 + i % 5),) for i in range(12)])


@differential(reasons=["shape_mismatch"])
def test_arange_of_a_float_that_a_tensor_holds():
    def step(x):
        return torch.arange(float(x)).shape

    return Program(step, [(torch.tensor(3.5 + i % 5),) for i in range(6)])


@differential(hits=6, aborts=1)
def test_one_less_than_two():
    """Sizes of the run are at least two, or the call is Python's."""

    def step(n):
        return torch.zeros(int(n) + 1).sum() + torch.ones(int(n)).sum()

    return Program(step, [(torch.tensor(n),) for n in (3, 4, 5, 3, 6, 1, 4, 2, 5, 2, 3)])


@differential(hits=12, graphs=2)
def test_size_that_a_tensor_stands_for():
    """Python asks a tensor without dimensions for the int that it holds."""

    def step(sizes):
        return torch.zeros(2, sizes[0], 3) + 1, torch.ones(sizes.max()).sum()

    return Program(step, [(torch.randint(2, 9, (4,)),) for _ in range(16)])


def last(x, n):
    return x[:, -n:]


def all_but_the_last(x, n):
    return x[:, :-n]


def window(x, n):
    return x[:, -n - 2 : -n]


def until_the_end(x, n):
    return x[:, -n:-1]


@pytest.mark.parametrize("part", [last, all_but_the_last, window, until_the_end])
@differential(hits=8, graphs=3)
def test_parts_counted_from_the_end(part):
    """A varying number that is negative, zero at times, and beyond the other end at times."""
    weight = torch.randn(12, requires_grad=True)

    def step(x, n):
        weight.grad = None
        y = part(x * weight, n)
        y.sum().backward()
        return y.detach(), weight.grad + 0

    numbers = [3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 1, 1, 0, 6, 7, 12, 5, 14, 3, 4]
    return Program(step, [(torch.randn(3, 12), n) for n in numbers], watch=[weight])


@differential(hits=20, graphs=1)
def test_the_last_of_rows_that_grow():
    """As with a cache: the whole sequence at first, one token at each later call."""

    def step(tokens, new):
        return tokens[:, -new:].clone(), tokens.shape[1] - new

    calls = [(torch.randint(0, 9, (2, 6 + i)), 6 if i % 8 == 0 else 1) for i in range(30)]
    return Program(step, calls)


@differential(hits=10, graphs=1)
def test_a_size_by_the_remainder_of_a_varying_number():
    def step(x, n):
        size = 3 + n % 4
        return torch.ones(2, size)[:, -size:] * x, x.new_zeros(2, 10)[:, -size:]

    return Program(step, [(torch.randn(()), n) for n in range(1, 16)])


BEYOND = {
    "from": lambda x, n: x[:, n:] * 2,
    "up to": lambda x, n: x[:, :n] * 2,
    "but the last": lambda x, n: x[:, :-n] * 2,
    "between": lambda x, n: x[:, -2 * n : -n] * 2,
    "narrow": lambda x, n: x.narrow(1, n, 1) * 2,
    "narrow by keywords": lambda x, n: torch.narrow(input=x, dim=1, start=n, length=1) * 2,
    "narrow from the end": lambda x, n: torch.narrow(x, 1, -n, 1) * 2,
    "both parts": lambda x, n: torch.cat([x[:, -n:], x[:, :-n]], 1) * 2,
}


@pytest.mark.parametrize("case", BEYOND)
@differential(hits=1)
def test_bounds_of_either_sign_and_behind_the_end(case):
    numbers = [1, 2, 3, 4, 1, 2, -1, -2, 0, 5, 6, 9, 3]
    return Program(
        BEYOND[case], [(torch.randn(2, 5, requires_grad=True), each) for each in numbers]
    )


@pytest.mark.parametrize("case", BEYOND)
def test_gradients_due_outside_of_varying_parts(case):
    """The backward run needs the number, too."""
    step = BEYOND[case]
    converted = torchjanus.function(step)
    with torchjanus.options.without("background"):
        for n in [1, 2, 3, 4, 1, 2, -1, 3, 4]:
            x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            step(x, n).sum().backward()
            converted(y, n).sum().backward()
            assert torch.equal(x.grad, y.grad), n
    assert torchjanus.stats(converted)["hits"] > 0
