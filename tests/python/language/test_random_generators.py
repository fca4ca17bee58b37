"""Random numbers by Python's, NumPy's and torch's generators: draws in a step, and generators that the program changes.
PYTEST_DONT_REWRITE"""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def numbered_batches(count=12):
    return [(torch.randn(5, 4), i) for i in range(count)]


DRAWS = {
    "random": lambda x, i: x * random.random(),
    "uniform": lambda x, i: x * random.uniform(-1, 2) + random.uniform(i, i + 1),
    "gauss": lambda x, i: x * random.gauss(0.0, 1.0) + random.normalvariate(0, 2),
    "other laws": lambda x, i: (
        x * random.expovariate(1.5) + random.betavariate(2, 3) + random.triangular(0, 1, 0.3)
    ),
    "integers": lambda x, i: (
        x * random.randint(1, 20) + random.randrange(10) - random.randrange(0, 100, 7)
    ),
    "bits": lambda x, i: x * random.getrandbits(20),
    "varying bounds": lambda x, i: x * random.randint(0, i) + random.uniform(0.0, i * 0.5),
    "index": lambda x, i: x[random.randint(0, 4)] + x[:, random.randrange(4)].sum(),
    "choice": lambda x, i: x * random.choice([1.0, 2.0, 4.0]) + random.choice(range(5)),
    "choices": lambda x, i: x * sum(random.choices([1.0, 2.5, 4.0], k=3)),
    "sample": lambda x, i: x * sum(random.sample(range(20), 3)) + random.sample([1, 5, 9], k=2)[0],
    "torch as well": lambda x, i: torch.rand(3) * random.random() + torch.rand(3) * random.random(),
    "numpy": lambda x, i: x * np.random.rand() + np.random.randn() + np.random.random(),
    "numpy laws": lambda x, i: (
        x * np.random.uniform(1.0, 2.0) + np.random.normal(0.5, 2.0) + np.random.beta(0.4, 0.4)
    ),
    "numpy integers": lambda x, i: x * np.random.randint(5) + np.random.choice(7),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name):
    @differential(hits=8, graphs=1)
    def program():
        return Program(DRAWS[name], numbered_batches())

    program()


@differential(hits=20, graphs=2)
def test_stochastic_depth():
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    @torch.no_grad()
    def step(x, i):
        for k, layer in enumerate(layers):
            if random.random() < 0.8 - 0.1 * k:
                x = x + torch.tanh(layer(x))
        return x.pow(2).mean()

    return Program(step, numbered_batches(30), watch=[layers])


@differential(hits=12)
def test_draws_on_the_sides_of_a_branch():
    def step(x, i):
        if random.random() < 0.5:
            return x * random.random() + torch.rand(4)
        return x * np.random.rand() + random.gauss(0, 1)

    return Program(step, numbered_batches(24))


@differential(hits=12)
def test_draws_in_a_loop_of_varying_length():
    def step(x, i):
        total, k = x * 1.0, 0
        while random.random() < 0.7 and k < 20:
            total = total * 0.9 + random.random()
            k += 1
        return total, k

    return Program(step, numbered_batches(30))


@differential(hits=8)
def test_generators_of_the_program():
    held = SimpleNamespace(
        python=random.Random(5), legacy=np.random.RandomState(6), new=np.random.default_rng(7)
    )

    def step(x, i):
        y = x * held.python.random() + held.python.randint(0, 9) + held.python.choice([1.0, 2.0])
        y = y + held.legacy.rand() + held.legacy.randint(10) * held.legacy.normal(1.0, 2.0)
        return y * held.new.random() + held.new.normal() + held.new.uniform(1, 2)

    return Program(step, numbered_batches(), watch=[held.legacy.get_state()[1]])


@differential(hits=8)
def test_shuffled_lists():
    order = list(range(5))

    def step(x, i):
        weights = [1.0, 2.0, 3.0, 5.0]
        random.shuffle(weights)
        random.shuffle(order)
        return x * weights[0] - weights[3] + order[1]

    return Program(step, numbered_batches(16), watch=[order])


@differential(hits=8, aborts=1)
def test_draws_are_taken_back_when_a_run_is_given_up():
    rng = random.Random(3)
    numbers = np.random.default_rng(4)

    def step(x, i):
        y = x * random.random() + rng.gauss(0, 1) + np.random.rand() + numbers.random()
        if y.sum() > 1e6:  # never seen while profiling
            return y * rng.random() - 1
        return y + random.random() * torch.rand(())

    calls = numbered_batches(16)
    for k in (7, 11):
        calls[k] = (torch.full((5, 4), 1e9), k)
    return Program(step, calls)


@differential(hits=6, aborts=1)
def test_draws_before_an_error():
    def step(x, i):
        scale = random.random()
        width = random.randint(1, 9 - i) if i != 9 else random.randint(4, 1)  # raises in the end
        return x * scale * width

    return Program(step, numbered_batches(14))


@differential(hits=1)
def test_a_function_that_is_replaced():
    def step(x, i):
        return x * random.random()

    original = random.random

    def patch():
        random.random = lambda: 0.25

    def undo():
        random.random = original

    calls = numbered_batches(8)
    return Program(step, [*calls[:5], patch, *calls[5:7], undo, calls[7]])


@differential(hits=1)
def test_a_generator_that_is_seeded_between_calls():
    rng = random.Random(1)

    def step(x, i):
        return x * rng.random() + random.random()

    def seed():
        rng.seed(9)
        random.seed(10)

    calls = numbered_batches(8)
    return Program(step, [*calls[:5], seed, *calls[5:]])


class Loaded(random.Random):
    def random(self):
        return super().random() * 0.5


@differential(reasons=["unknown_callable"])
def test_a_generator_with_rules_of_its_own():
    rng = Loaded(2)

    def step(x, i):
        return x * rng.uniform(1.0, 2.0)

    return Program(step, numbered_batches(8))


def seed_and_draw(x, i):
    random.seed(i)
    np.random.seed(i)
    torch.manual_seed(i)
    return x * random.random() + np.random.rand() + torch.rand(4), random.random()


def draw_around_a_seed(x, i):
    y = x * torch.rand(4) + torch.randn(4)
    generator = torch.manual_seed(2**40 + i)
    return y + torch.rand(4), torch.dropout(x, 0.5, True), generator is torch.default_generator


SEEDS = {
    "all": seed_and_draw,
    "draws before and after": draw_around_a_seed,
    "by keyword": lambda x, i: (torch.manual_seed(seed=3), x + torch.rand(4))[1],
    "negative": lambda x, i: (torch.manual_seed(-5), x + torch.rand(4))[1],
}


@pytest.mark.parametrize("name", SEEDS)
def test_seeding_inside(name):
    differential(hits=4)(lambda: Program(SEEDS[name], numbered_batches(8)))()


@differential(hits=4)
def test_seeding_a_generator_inside():
    rng, numpys = random.Random(1), np.random.RandomState(2)

    def step(x, i):
        rng.seed(i)
        numpys.seed(i + 1)
        return x * rng.random() + numpys.rand(), rng.gauss(0, 1)

    return Program(step, numbered_batches(8))


@differential(hits=4, aborts=1)
def test_seeding_in_a_run_that_is_given_up():
    def step(x, i):
        torch.manual_seed(i)
        random.seed(i)
        y = x.abs() * torch.rand(4)
        if y.sum() > 1e3:
            return y * random.random() * 2
        return y + random.random()

    return Program(step, [(x * (1e6 if i == 9 else 1), i) for x, i in numbered_batches(14)])


def test_other_devices_are_seeded_behind_the_run(monkeypatch):
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)

    @torchjanus.function
    def step(x, i):
        torch.manual_seed(i)
        return x + torch.rand(3)

    for i in range(8):
        step(torch.ones(3), i)
    assert torchjanus.stats(step)["hits"] > 0
    assert seeded == list(range(8))


@differential(reasons=["unknown_callable"])
def test_seeding_with_a_text():
    def step(x, i):
        random.seed("text")
        return x * random.random()

    return Program(step, numbered_batches(8))


@differential(reasons=["dynamic_value"])
def test_a_choice_of_objects():
    layers = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def step(x, i):
        return random.choice(layers)(x)

    return Program(step, numbered_batches(8))


def calls(*shapes, count=6):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


@differential(hits=2, graphs=1)
def test_random_numbers_in_program_order():
    def step(x):
        a = torch.rand(3)
        b = torch.randn_like(x)
        c = F.dropout(x, 0.3)
        d = torch.bernoulli(torch.full((3,), 0.4))
        e = torch.randint(0, 10, (3,))
        f = torch.empty(3).uniform_(-1, 1) + torch.empty(3).normal_()
        return a, b, c, d, e, f

    return Program(step, calls((3,)))
