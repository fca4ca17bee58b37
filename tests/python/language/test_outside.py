"""Differential programs: what comes from outside of the program and what leaves it. Python's and
NumPy's random generators, clocks, functions of numbers that vary, warnings, log records, text files.
PYTEST_DONT_REWRITE"""

import io
import logging
import math
import random
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def batches(count=12):
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
        return Program(DRAWS[name], batches())

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

    return Program(step, batches(30), watch=[layers])


@differential(hits=12)
def test_draws_on_the_sides_of_a_branch():
    def step(x, i):
        if random.random() < 0.5:
            return x * random.random() + torch.rand(4)
        return x * np.random.rand() + random.gauss(0, 1)

    return Program(step, batches(24))


@differential(hits=12)
def test_draws_in_a_loop_of_varying_length():
    def step(x, i):
        total, k = x * 1.0, 0
        while random.random() < 0.7 and k < 20:
            total = total * 0.9 + random.random()
            k += 1
        return total, k

    return Program(step, batches(30))


@differential(hits=8)
def test_generators_of_the_program():
    held = SimpleNamespace(
        python=random.Random(5), legacy=np.random.RandomState(6), new=np.random.default_rng(7)
    )

    def step(x, i):
        y = x * held.python.random() + held.python.randint(0, 9) + held.python.choice([1.0, 2.0])
        y = y + held.legacy.rand() + held.legacy.randint(10) * held.legacy.normal(1.0, 2.0)
        return y * held.new.random() + held.new.normal() + held.new.uniform(1, 2)

    return Program(step, batches(), watch=[held.legacy.get_state()[1]])


@differential(hits=8)
def test_shuffled_lists():
    order = list(range(5))

    def step(x, i):
        weights = [1.0, 2.0, 3.0, 5.0]
        random.shuffle(weights)
        random.shuffle(order)
        return x * weights[0] - weights[3] + order[1]

    return Program(step, batches(16), watch=[order])


@differential(hits=8, aborts=1)
def test_draws_are_taken_back_when_a_run_is_given_up():
    rng = random.Random(3)
    numbers = np.random.default_rng(4)

    def step(x, i):
        y = x * random.random() + rng.gauss(0, 1) + np.random.rand() + numbers.random()
        if y.sum() > 1e6:  # never seen while profiling
            return y * rng.random() - 1
        return y + random.random() * torch.rand(())

    calls = batches(16)
    for k in (7, 11):
        calls[k] = (torch.full((5, 4), 1e9), k)
    return Program(step, calls)


@differential(hits=6, aborts=1)
def test_draws_before_an_error():
    def step(x, i):
        scale = random.random()
        width = random.randint(1, 9 - i) if i != 9 else random.randint(4, 1)  # raises in the end
        return x * scale * width

    return Program(step, batches(14))


@differential(hits=1)
def test_a_function_that_is_replaced():
    def step(x, i):
        return x * random.random()

    original = random.random

    def patch():
        random.random = lambda: 0.25

    def undo():
        random.random = original

    calls = batches(8)
    return Program(step, [*calls[:5], patch, *calls[5:7], undo, calls[7]])


@differential(hits=1)
def test_a_generator_that_is_seeded_between_calls():
    rng = random.Random(1)

    def step(x, i):
        return x * rng.random() + random.random()

    def seed():
        rng.seed(9)
        random.seed(10)

    calls = batches(8)
    return Program(step, [*calls[:5], seed, *calls[5:]])


class Loaded(random.Random):
    def random(self):
        return super().random() * 0.5


@differential(reasons=["unknown_callable"])
def test_a_generator_with_rules_of_its_own():
    rng = Loaded(2)

    def step(x, i):
        return x * rng.uniform(1.0, 2.0)

    return Program(step, batches(8))


@differential(reasons=["unknown_callable"])
def test_seeding_inside():
    def step(x, i):
        random.seed(i)
        return x * random.random()

    return Program(step, batches(8))


@differential(reasons=["dynamic_value"])
def test_a_choice_of_objects():
    layers = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def step(x, i):
        return random.choice(layers)(x)

    return Program(step, batches(8))


# --- clocks -------------------------------------------------------------------------------------


@differential(hits=8, graphs=1)
def test_clocks():
    meter = SimpleNamespace(total=0.0, count=0, last=None, started=time.time())

    def step(x, i):
        start = time.perf_counter()
        y = x * 2
        elapsed = time.perf_counter() - start
        meter.count += 1
        meter.last = 0.0 * (time.monotonic() + time.process_time())
        late = time.time() < meter.started or time.time_ns() <= 0
        return y, elapsed >= 0, late

    return Program(step, batches(), watch=[meter.count])


def test_what_is_between_two_clocks():
    """Programs measure by them: the work between two readings is done there, in any order of data."""
    model, x = nn.Linear(4, 4), torch.ones(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torchjanus.function
    def step():
        start = time.perf_counter()
        loss = model(x).pow(2).sum()
        forward = time.perf_counter()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        end = time.perf_counter()
        return forward - start, end - forward

    for _ in range(6):
        step()
    assert step.stats()["hits"] >= 2
    before, forward, update, after = step.graph().split("python_draw")
    assert "linear" not in before and "linear" in forward
    assert " mm " in update and " add " in update
    assert " mm " not in after and " add " not in after


# --- functions of numbers -----------------------------------------------------------------------

FUNCTIONS = {
    "trigonometry": lambda x, i: (
        x * math.cos(i * 0.1) + math.sin(i) - math.tan(0.1 * i) + math.atan2(i, 2.0)
    ),
    "exponentials": lambda x, i: (
        x * math.exp(-i * 0.1) + math.log(i + 1) + math.log(i + 2, 2) + math.log1p(i) + math.tanh(i)
    ),
    "powers": lambda x, i: (
        x * math.sqrt(i) + math.pow(i, 1.5) + math.hypot(i, 1.0) + math.log2(i + 1)
    ),
    "rounding": lambda x, i: (
        x * math.floor(i * 0.3) + math.ceil(i * 0.3) + math.trunc(-i * 0.7) + round(i * 0.45)
    ),
    "round to digits": lambda x, i: x * round(x.sum().item(), 2) + round(i * 137, -2),
    "integers": lambda x, i: x * math.gcd(i, 12) + math.comb(i + 2, 2) + math.isqrt(i),
    "tests": lambda x, i: (
        x + 1
        if math.isnan(x.sum().item()) or not math.isfinite(i * 1.0)
        else x * math.isclose(i, 3)
    ),
    "of tensors": lambda x, i: x * math.exp(x.mean()) + math.floor(x.abs().sum()),
    "parts": lambda x, i: x * abs(i - 5) + divmod(i, 3)[1] + divmod(i * 0.5, 2)[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numbers(name):
    @differential(hits=7)
    def program():
        return Program(FUNCTIONS[name], batches(14))

    program()


@pytest.mark.parametrize("function", [math.log, math.sqrt, math.acos, math.factorial])
def test_functions_that_raise(function):
    @differential(hits=2, aborts=1)
    def program():
        def step(x, i):
            return (
                x * function(i - 4) if function is math.factorial else x * function(0.9 - 0.1 * i)
            )

        calls = batches(24)
        return Program(step, calls[6:12] + calls[:3] if function is math.factorial else calls)

    program()


@differential(hits=8)
def test_cosine_of_a_counter():
    model = nn.Linear(4, 3)
    model.steps = 0

    def step(x, i):
        model.steps += 1
        factor = 0.5 * (1 + math.cos(math.pi * model.steps / 20))
        return model(x * factor).sum()

    return Program(step, batches(), watch=[model])


SCHEDULERS = {
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "one cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=50),
    "warm restarts": lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 7),
    "cyclic": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=5),
    "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(
        o, lambda e: 0.5 * (1 + math.cos(e * 0.1))
    ),
    "multi step": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [4, 9]),
    "sequential": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o,
        [
            torch.optim.lr_scheduler.ConstantLR(o, 0.1, 4),
            torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
        ],
        milestones=[4],
    ),
    "plateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(name):
    @differential(hits=10)
    def program():
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        scheduler = SCHEDULERS[name](optimizer)

        def step(x, i):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            scheduler.step(loss) if name == "plateau" else scheduler.step()
            return loss, optimizer.param_groups[0]["lr"]

        return Program(step, batches(24), watch=[model])

    program()


# --- what is shown ------------------------------------------------------------------------------


def warn_twice(x, i):
    warnings.warn(f"the mean is {x.mean().item():.3f}")
    y = x * 2
    warnings.warn("each time", DeprecationWarning, stacklevel=2)
    return y


def warn_in_helper(x, i):
    def helper(y):
        warnings.warn("in the helper", RuntimeWarning)
        return y + 1

    return helper(x) * 2


@pytest.mark.parametrize("step", [warn_twice, warn_in_helper])
def test_warnings(step):
    converted = torchjanus.function(step)
    results = []
    for run in (step, converted):
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = [run(x, i) for x, i in batches(8)]
        seen = [(str(w.message), w.category, w.filename, w.lineno) for w in caught]
        results.append((outcome, seen))
    assert results[0][1:] == results[1][1:]
    assert all(torch.equal(a, b) for a, b in zip(results[0][0], results[1][0], strict=True))
    assert converted.stats()["hits"] >= 4


def test_warnings_that_become_errors():
    def step(x):
        y = x * 2
        if y.dim() == 1:
            warnings.warn("careful", UserWarning)
        return y

    converted = torchjanus.function(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            converted(torch.ones(3))
        assert converted.stats()["hits"] >= 2
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="careful"):
            converted(torch.ones(3))
        warnings.simplefilter("ignore")
        assert converted(torch.ones(3)).tolist() == [2, 2, 2]


def test_warnings_shown_once():
    def step(x):
        warnings.warn("only once")
        return x * 2

    for run in (step, torchjanus.function(step)):
        globals().pop("__warningregistry__", None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(8):
                run(torch.ones(3))
        assert len(caught) == 1


class Records(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(
            (record.getMessage(), record.levelname, record.name, record.lineno, record.funcName)
        )


@differential(hits=5)
def test_log_records():
    logger = logging.Logger("training", logging.INFO)
    records = Records()
    logger.addHandler(records)

    def step(x, i):
        y = x * 2
        logger.info("loss %.4f at %d", y.sum().item(), i)
        logger.debug("not shown")
        logger.warning(f"mean {y.mean().item():.3f}")
        return y

    return Program(step, batches(8), watch=[records.lines])


@differential(hits=5)
def test_text_files():
    file = io.StringIO()

    def step(x, i):
        y = x * 2
        file.write(f"{y.sum().item():.4f}\n")
        print("done", i, file=file)
        return y

    def look():
        seen.append(file.getvalue())

    seen = []
    calls = batches(8)
    return Program(step, [*calls[:6], look, *calls[6:], look], watch=[seen])
