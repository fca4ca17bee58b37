"""Arguments that are one tensor in some calls and several in others: one graph where the run only
reads them."""

import random

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def patterns(count, calls, width=5, make=torch.randn):
    """Arguments for each call, some of which are the same tensor."""
    for _ in range(calls):
        tensors = [make(width) for _ in range(count)]
        yield tuple(random.choice(tensors) for _ in range(count))


def one_graph_at_last(step, calls, most):
    """The last half of the calls needs no new graph, and all together need few."""
    converted = torchjanus.function(step)
    calls = list(calls)
    for call in calls[: len(calls) // 2]:
        converted(*call)
    before = converted.stats()
    for call in calls[len(calls) // 2 :]:
        converted(*call)
    after = converted.stats()
    assert after["hits"] - before["hits"] == len(calls) - len(calls) // 2
    assert after["graphs"] <= most


def weigh(a, b, c, d):
    return (a * 2 + b).tanh() * c - d.exp()


@differential(hits=20)
def test_tensors_that_are_read():
    return Program(weigh, list(patterns(4, 60)))


def test_one_graph_fits_however_they_are_shared():
    random.seed(0)
    one_graph_at_last(weigh, patterns(4, 60), most=5)


@differential(hits=10)
def test_which_is_which_is_asked():
    def step(a, b, c):
        return a + b if a is b else a * c if b is c else (a, b, c)[1] - c

    return Program(step, list(patterns(3, 60)))


@differential(hits=10)
def test_they_are_given_back():
    """The results are the very arguments, so that some are one object."""

    def step(a, b, c):
        largest = [a, c, b]
        return largest, a + b + c, {"first": a, "second": b}, [x is a for x in largest]

    return Program(step, list(patterns(3, 60)))


@differential(hits=5)
def test_one_of_them_is_written():
    def step(a, b, c):
        a.add_(b, alpha=0.5)
        return a * c + b

    return Program(step, list(patterns(3, 60)))


@differential(hits=5)
def test_one_of_them_is_written_beside_a_number_that_varies():
    def step(a, b, n):
        a.mul_(0.5)
        return a * n + b

    calls = [(*pair, 0.1 * i) for i, pair in enumerate(patterns(2, 60))]
    return Program(step, calls)


@differential(hits=5)
def test_leaves():
    def step(a, b, c):
        for x in (a, b, c):
            x.grad = None
        (a * b).sin().mul(c).sum().backward()
        return [x.grad for x in (a, b, c)]

    return Program(step, list(patterns(3, 60, make=lambda n: torch.randn(n, requires_grad=True))))


@differential(hits=5)
def test_gradients_that_are_asked_for():
    def step(a, b, c):
        loss = (a * b).sin().mul(c).sum()
        return torch.autograd.grad(loss, [a, c], allow_unused=True)

    return Program(step, list(patterns(3, 60, make=lambda n: torch.randn(n, requires_grad=True))))


@differential(hits=5)
def test_gradients_of_what_was_computed_before():
    def step(a, b):
        return torch.autograd.grad((a * b).sin().sum(), a)

    return Program(step, list(patterns(2, 60, make=lambda n: torch.randn(n).requires_grad_() * 2)))


@differential(hits=5)
def test_gradients_from_outside():
    def step(a, b, c):
        return (a * b).sin().mul(c).sum()

    def convert(f):
        converted = torchjanus.function(f)
        return trained(converted), converted

    def trained(f):
        def call(*leaves):
            for x in leaves:
                x.grad = None
            f(*leaves).backward()
            return [x.grad for x in leaves]

        return call

    calls = list(patterns(3, 60, make=lambda n: torch.randn(n, requires_grad=True)))
    return Program(trained(step), calls, convert=lambda _: convert(step))


@differential(hits=5)
def test_weights_are_tied_later():
    """The optimizer's step is outside."""
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)

    def step(x):
        first.zero_grad()
        second.zero_grad()
        loss = second(first(x).tanh()).square().sum()
        loss.backward()
        return loss

    def tie():
        second.weight = first.weight

    calls = [(torch.randn(3, 4),) for _ in range(12)]
    return Program(step, [*calls[:8], tie, *calls[8:]], watch=[first, second])


@differential(hits=5)
def test_gradients_are_switched_on():
    def step(a, b):
        a.requires_grad_()
        loss = (a * b).sum()
        loss.backward()
        return b.requires_grad, a.grad

    return Program(step, list(patterns(2, 60)))


@differential(hits=5)
def test_a_gradient_is_put_at_one():
    def step(a, b, c):
        a.grad = c * 2
        return b.grad

    return Program(step, list(patterns(3, 60)))


@differential(hits=5)
def test_views_of_one_tensor():
    def step(a, b):
        return a[1:] * b[:-1], a.view(-1, 1) @ b.view(1, -1)

    return Program(step, list(patterns(2, 40)))


@differential(hits=8)
def test_parts_of_one_memory_that_have_memory_of_their_own_later():
    cell = nn.GRUCell(3, 3)

    def step(a, b):
        with torch.no_grad():
            return cell(a, a) + cell(b, b)

    whole = [torch.randn(6) for _ in range(8)]
    calls = [(x[:3], x[3:]) for x in whole] + [(torch.randn(3), torch.randn(3)) for _ in range(8)]
    return Program(step, calls + [(x[3:], x[:3]) for x in whole])


class Words(nn.Module):
    def __init__(self, words=23, hidden=8):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.decoder = nn.Linear(hidden, words)

    def forward(self, word, state):
        state = self.cell(self.embedding(word), state)
        return F.log_softmax(self.decoder(state), dim=-1), state


def candidates_of(model, beams, width):
    """What hypotheses, each with a state that may be others' as well, can go on with."""
    with torch.no_grad():
        candidates = []
        for score, words, state in beams:
            scores, after = model(torch.tensor(words[-1]), state)
            best = scores.topk(width)
            for value, word in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                candidates.append((score + value, [*words, word], after))
    return candidates


@pytest.mark.parametrize("width", [2, 4])
@differential(hits=20)
def test_an_iteration_of_beams(width):
    """An iteration's hypotheses go on with the last one's, so that some have a state in common."""
    model = Words()

    def driven(candidates_of):
        beams = []

        def call(first):
            nonlocal beams
            beams = beams or [(0.0, [first], torch.zeros(model.cell.hidden_size))]
            found = candidates_of(model, beams, width)
            best = sorted(found, key=lambda candidate: -candidate[0])[:width]
            beams = [] if len(best[0][1]) > 6 else best
            return found

        return call

    def convert(_):
        converted = torchjanus.function(candidates_of)
        return driven(converted), converted

    calls = [(first % 23,) for first in range(90)]
    return Program(driven(candidates_of), calls, watch=[model], convert=convert)


def test_beams_are_multiplied_together():
    """The four hypotheses of an iteration have one product with each weight."""
    model = Words(hidden=256)
    step = torchjanus.function(lambda beams: [c[0] for c in candidates_of(model, beams, 4)])
    for _ in range(12):
        step([(random.random(), [1, random.randrange(23)], torch.randn(256)) for _ in range(4)])
    assert step.stats()["hits"] > 0
    text = str(step.graph())
    assert text.count(" = topk ") / 4 == text.count(": f32[4,23]\n") > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.add_(x.flip(0)),
        lambda x: x.add_(x[0].clone()),
        lambda x: x.mul_(x[:, [1, 2, 3, 0]]),
        lambda x: x.copy_(x.sum(0) + x),
        lambda x: x.copy_(x.roll(1, 1)),
    ],
)
@differential(hits=5)
def test_an_argument_is_written_from_other_elements_of_itself(change):
    """The graph knows it twice, as what it is given and as what it writes."""

    def step(x, y):
        change(x)
        return x * y

    return Program(step, [(torch.randn(4, 4), torch.randn(4)) for _ in range(9)])


@differential(hits=10)
def test_gradients_of_arguments_are_read_beside_one_that_is_trained():
    def step(a, b, c):
        if c.requires_grad:
            c.sin().sum().backward()
        return a.grad, b.grad, a + b

    trained = torch.randn(5, requires_grad=True)
    others = [torch.randn(5) for _ in range(2)]
    calls = [(random.choice(others), random.choice(others), trained) for _ in range(40)]
    return Program(step, calls, watch=[trained])
