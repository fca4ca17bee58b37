"""Lazy execution of programs whose path or sizes change from iteration to iteration: one graph serves them."""

import random

import pytest
from apart import in_a_thread

import torch
import torchjanus
from torch import nn
from torchjanus import _core


def counts():
    return _core.lazy_counts()["families"]


@pytest.fixture(autouse=True)
def _doubles():
    torch.set_default_dtype(torch.float64)
    torchjanus.options.trace_graph = True
    yield
    torchjanus.options.trace_graph = False
    torch.set_default_dtype(torch.float32)


def same(lazily, eagerly):
    for one, other in zip(lazily, eagerly, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def both_ways(program, seed=0):
    """Compares the results of a program that is run eagerly and lazily. What was counted."""

    def run():
        random.seed(seed)
        torch.manual_seed(seed)
        return program()

    def run_lazily():
        with torchjanus.lazy():
            results = run()
        return results, counts()

    eagerly = run()
    lazily, counted = in_a_thread(run_lazily)
    same(lazily, eagerly)
    return counted


STEPS = [
    lambda x: x.tanh() * 2,
    lambda x: (x + 1).relu(),
    lambda x: x - x.mean(1, keepdim=True),
    lambda x: x.sigmoid().sqrt() + x,
    lambda x: x.abs().exp().reciprocal() - 1,
]


def paths(iterations=60, depth=3):
    results = []
    x = torch.randn(6, 8)
    for _ in range(iterations):
        y = x
        for _ in range(depth):
            y = random.choice(STEPS)(y)
        results.append(torch.tensor((y * y).sum().item()))
    return results


def test_paths():
    counted = both_ways(paths)
    assert counted["calls"] > 40
    assert counted["branches"] > 0


def test_a_path_that_was_never_seen():
    x = torch.randn(5, 7)
    known = [(0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 2, 3), (2, 1, 0, 3), (1, 2, 0, 3), (0, 1, 3, 2)]
    new = (4, 4, 0, 1)

    def follow(path):
        y = x
        for step in path:
            y = STEPS[step](y)
        return (y * y).mean().item()

    def program():
        with torchjanus.lazy():
            for path in known * 4:
                assert follow(path) == pytest.approx(expected[path], rel=1e-12)
            stages = [counts()]
            for _ in range(2):  # calls of a kind that is new run at once
                assert follow(new) == pytest.approx(expected[new], rel=1e-12)
            stages.append(counts())
            for _ in range(8):
                assert follow(new) == pytest.approx(expected[new], rel=1e-12)
            return [*stages, counts()]

    expected = {path: follow(path) for path in (*known, new)}
    before, at_first, afterwards = in_a_thread(program)
    assert sum(at_first["misses"].values()) > sum(before["misses"].values())
    assert afterwards["graphs"] > before["graphs"]
    assert afterwards["calls"] > at_first["calls"]


class Network(nn.Module):
    """Leaves out layers at random, and repeats one as often as it is told."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 12)
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(4))
        self.norm = nn.BatchNorm1d(12)
        self.again = nn.Linear(12, 12)
        self.last = nn.Linear(12, 3)

    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.layers:
            if random.random() < 0.6:
                x = x + layer(x).tanh()
        x = self.norm(x)
        for _ in range(random.randint(1, 3)):
            x = self.again(x).relu()
        return self.last(x)


def training(optimizer_class, iterations=60, **options):
    model = Network()
    optimizer = optimizer_class(model.parameters(), 0.01, **options)
    results = []
    for _ in range(iterations):
        x, kinds = torch.randn(8, 6), torch.randint(0, 3, (8,))
        loss = nn.functional.cross_entropy(model(x), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(torch.tensor(loss.item()))
    return [*results, *(value.detach().clone() for value in model.state_dict().values())]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.Adam, {}),
        (torch.optim.RMSprop, {"weight_decay": 0.1}),
    ],
)
def test_training(optimizer, options):
    counted = both_ways(lambda: training(optimizer, **options))
    assert counted["graphs"] > 0  # it may lack most of the paths that come afterwards
    assert counted["fetches"] > 0


def trips(iterations=60):
    weight = torch.randn(5, 5)
    state = torch.zeros(4, 5)
    results = []
    for _ in range(iterations):
        x = torch.randn(4, 5)
        for _ in range(random.randint(1, 6)):
            x = (x @ weight).tanh() + x
        state.mul_(0.9).add_(x)
        results.append(torch.tensor(x.pow(2).sum().item()))
    return [*results, state.clone()]


def test_loops_of_varying_length():
    counted = both_ways(trips)
    assert counted["calls"] > 40


def lengths(iterations=80, smallest=3, largest=9):
    weight, bias = torch.randn(6, 6), torch.randn(6)
    results = []
    for _ in range(iterations):
        x = torch.randn(3, random.randint(smallest, largest), 6)
        attention = (x @ x.transpose(1, 2)).softmax(-1)
        y = (attention @ x @ weight + bias).relu()
        results.append(torch.tensor((y[:, -1] * y.mean(1)).sum().item()))
    return results


def test_sizes_that_vary():
    counted = both_ways(lengths)
    assert counted["calls"] > 40
    assert counted["sizes"] > 0


class Recogniser(nn.Module):
    def __init__(self, words=20, width=8, heads=2):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(32, width)
        self.norm = nn.LayerNorm(width)
        self.inside = nn.Linear(width, 3 * width)
        self.outside = nn.Linear(width, width)
        self.last = nn.Linear(width, words)
        self.heads = heads

    def forward(self, text):
        batch, length = text.shape
        x = self.words(text) + self.places(torch.arange(length))
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.inside(self.norm(x)).chunk(3, -1)
        )
        scores = (q @ k.transpose(2, 3)) / 2.0
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        mixed = scores.masked_fill(~mask, -1e9).softmax(-1) @ v
        x = x + self.outside(mixed.transpose(1, 2).reshape(batch, length, -1))
        return self.last(x)


def texts(iterations=80, clip=False):
    model = Recogniser()
    # Adam's would make something of the gradients that are zero but for rounding.
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    results = []
    for _ in range(iterations):
        text = torch.randint(0, 20, (4, random.randint(4, 11)))
        scores = model(text[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        results.append(torch.tensor(loss.item()))
    return [*results, *(value.detach().clone() for value in model.state_dict().values())]


@pytest.mark.parametrize("clip", [False, True])
def test_training_on_texts_of_varying_length(clip):
    counted = both_ways(lambda: texts(clip=clip))
    assert counted["calls"] > 60


def test_off_unless_it_is_asked_for():
    torchjanus.options.trace_graph = False
    counted = both_ways(paths)
    assert counted["calls"] == 0
    assert counted["graphs"] == 0


def test_the_option_is_a_bool():
    with pytest.raises(TypeError, match="trace_graph is a bool, not 1"):
        torchjanus.options.trace_graph = 1
    assert torchjanus.options.trace_graph


def always_new(iterations=200):
    results = []
    for _ in range(iterations):
        x = torch.randn(4, 4)
        for _ in range(12):
            x = random.choice(STEPS)(x)
        results.append(torch.tensor(x.argmax().item()))
    return results


def test_a_broadcast_view_of_what_is_written():
    def program():
        results = []
        for _ in range(30):
            x = torch.randn(4)
            y = x.expand(3, 4) * 2
            x.add_(1)
            results.append(torch.tensor((y + random.choice(STEPS)(x.expand(3, 4))).sum().item()))
        return results

    both_ways(program)


def test_storages_that_are_written_and_die():
    def program(iterations=40):
        results = []
        for _ in range(iterations):
            kept = torch.zeros(4, 4)
            for _ in range(2):
                part = random.choice(STEPS)(torch.randn(4, 4))
                kept[random.randint(0, 1)].add_(part[0])
                kept.mul_(part.sigmoid().sum().item())
            results.append(kept.clone())
        return results

    counted = both_ways(program)
    assert counted["calls"] > 0


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    """Programs that choose among paths, sizes and writes at random."""

    def program():
        weights = [torch.randn(5, 5, requires_grad=True) for _ in range(3)]
        momenta = [torch.zeros(5, 5) for _ in weights]
        seen = torch.zeros(5)
        results = []
        for _ in range(30):
            x = torch.randn(random.choice([2, 2, 3, 4, 7]), 5)
            for _ in range(random.randint(1, 3)):
                choice = random.randrange(5)
                if choice < 3:
                    x = (x @ weights[choice]).tanh()
                elif choice == 3:
                    x = x.flip(0) + x.mean(0)
                else:
                    x = torch.cat([x[1:], x[:1] * 2]) - 0.5
            if random.random() < 0.3:
                with torch.no_grad():
                    seen[1:4] += x.detach()[-1, 1:4]
            loss = (x * x).mean() + sum((weight * 0.1).sum() for weight in weights)
            loss.backward()
            with torch.no_grad():
                for weight, momentum in zip(weights, momenta, strict=True):
                    momentum.mul_(0.9).add_(weight.grad)
                    weight.sub_(momentum, alpha=0.01)
                    if random.random() < 0.8:
                        weight.grad = None
            results.append(torch.tensor(loss.item()))
        return [*results, seen, *(weight.detach() for weight in weights), *momenta]

    both_ways(program, seed)
