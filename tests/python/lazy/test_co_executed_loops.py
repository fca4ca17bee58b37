"""Loops of scripts that can't be converted as a whole: Python runs them, their operators run as graphs."""

import pytest
from scripts import run_both
from simulated_account import accounts

import torch
import torchjanus
from torchjanus import _core, script

# `odd` has no source, and `Meter` belongs to code that has none: nothing that calls them is converted.
SETTING = """
    import numpy
    import torch
    import torch.nn.functional as F
    from torch import nn

    model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 12), nn.GELU(), nn.Linear(12, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = [(torch.randn(5, 6), torch.randn(5, 3)) for _ in range(9)]
    made = {"torch": torch}
    exec('''
    def odd(x):
        return (x * 2 + 1).sin()

    class Meter:
        def __init__(self):
            self.values = []
        def add(self, value):
            self.values.append(value.detach())
        def __repr__(self):
            return f"{float(sum(self.values)):.9f}"

    def parts(x):
        for row in x:
            yield row * 2 + row.sum()
    ''', made)
    odd, Meter, parts = made["odd"], made["Meter"], made["parts"]
    del made
    meter = Meter()
"""

SCRIPTS = {
    "a function without source": """
    for number in range(60):
        x, y = data[number % 9]
        loss = ((model(odd(x)) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9f}")
    """,
    "NumPy in the middle": """
    def train():
        scales = []
        for number in range(60):
            x, y = data[number % 9]
            hidden = odd(model(odd(x)))
            scale = numpy.abs(hidden.detach().numpy()).max()
            scales.append(float(scale))
            loss = odd(((hidden / scale - y) ** 2).mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return scales, loss

    scales, loss = train()
    print(f"{sum(scales):.9f}")
    """,
    "an object of someone else": """
    def train():
        for number in range(90):
            x, y = data[number % 9]
            out = odd(model(odd(x)))
            meter.add(out.sum())
            loss = F.mse_loss(odd(out), odd(y)) + out.abs().mean()
            meter.add(loss)
            optimizer.zero_grad()
            loss.backward()
            meter.add(model[0].weight.grad.abs().max())
            optimizer.step()
            if number % 60 == 59:
                print(number, meter, f"{loss.item():.9f}")

    train()
    values = meter.values
    """,
    "a generator in the middle": """
    def train():
        for number in range(60):
            x, y = data[number % 9]
            rows = torch.stack([part for part in parts(odd(x))])
            loss = ((model(rows).tanh() - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    loss = train()
    """,
    "batches from a generator, while, continue and break": """
    def batches():
        try:
            while True:
                for x, y in data:
                    yield odd(x) * 0.5, y
        finally:
            print("the batches end")

    def train():
        losses, source = [], batches()
        number = 0
        while True:
            number += 1
            x, y = next(source)
            loss = ((model(odd(x)) - y) ** 2).mean()
            if number % 7 == 0:
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
            if number == 71:
                break
        return losses

    losses = train()
    """,
    "return and else": """
    def run(count, stop):
        for number in range(count):
            x, y = data[number % 9]
            loss = ((model(odd(x)) - y) ** 2).mean() + model(x).sin().sum() * 1e-3
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number == stop:
                return loss.detach()
        else:
            x = odd(loss.detach())
        return x + loss.detach()

    results = [run(30, 50), run(40, 35), run(2, 1)]
    """,
    "loops in loops": """
    def train():
        for number in range(40):
            optimizer.zero_grad()
            for x, y in data[:3]:
                loss = ((model(odd(x)) - y) ** 2).mean()
                loss.backward()
            optimizer.step()
        return loss

    loss = train()
    """,
    "a closure for the optimizer": """
    def train():
        search = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
        for number in range(40):
            x, y = data[number % 2]
            inputs = odd(x)
            def closure():
                search.zero_grad()
                loss = ((model(inputs) - y) ** 2).mean()
                loss.backward()
                return loss
            loss = search.step(closure)
            meter.add(loss)
        print(meter)

    train()
    """,
    "recursion": """
    def train(depth):
        for number in range(40):
            x, y = data[number % 9]
            loss = ((model(odd(x)) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if depth and number % 10 == 9:
                train(depth - 1)
        return loss

    loss = train(1)
    """,
    "running values that nobody looks at": """
    mean = torch.zeros(3)
    with torch.no_grad():
        for number in range(60):
            x, y = data[number % 9]
            out = odd(model(x)).exp().mean(0) * 0.1
            mean.mul_(0.9).add_(out)
            unused = (out * 3).softmax(0)
    print(mean)
    """,
}


def co_executed(stats):
    told = [each["co_execution"] for each in stats if "co_execution" in each]
    return [each for each in told if each["state"] == "co-executed"]


def assert_nothing_is_intercepted():
    before = _core.lazy_counts()
    _ = torch.ones(3) * 2 + 1
    after = _core.lazy_counts()
    assert before["pending"] == after["pending"] == 0
    assert before["noted"] == after["noted"]
    assert before["at_once"] == after["at_once"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name, tmp_path):
    stats = run_both(SETTING + SCRIPTS[name], tmp_path)
    told = co_executed(stats)
    assert told, [each.get("co_execution") for each in stats]
    assert sum(each["in_graphs"] for each in told) > 100
    assert_nothing_is_intercepted()


def test_exceptions_leave_no_interception(tmp_path):
    text = """
    def train():
        for number in range(90):
            x, y = data[number % 9]
            loss = ((model(odd(x)) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number == 71:
                kept.append(loss * 2)
                raise KeyError(number)

    kept = []
    try:
        train()
    except KeyError as error:
        print(repr(error))
    train()
    """
    stats = run_both(SETTING + text, tmp_path)
    assert co_executed(stats)
    assert_nothing_is_intercepted()


def test_an_interrupt_leaves_no_interception(tmp_path):
    text = """
    import os, signal

    def train():
        for number in range(90):
            x, y = data[number % 9]
            loss = ((model(odd(x)) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number == 71:
                os.kill(os.getpid(), signal.SIGINT)

    try:
        train()
    except KeyboardInterrupt:
        print("interrupted")
    """
    stats = run_both(SETTING + text, tmp_path)
    assert co_executed(stats)
    assert_nothing_is_intercepted()


def test_a_generator_is_left_alone(tmp_path):
    """Its consumer would be intercepted between two values."""
    text = """
    def losses():
        for number in range(60):
            x, y = data[number % 9]
            loss = ((model(odd(x)) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.detach()

    values = [value + 1 for value in losses()]
    """
    stats = run_both(SETTING + text, tmp_path)
    assert stats
    assert not co_executed(stats)


def test_threads(tmp_path):
    text = """
    import threading

    def train(seed):
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(6, 6, generator=generator, requires_grad=True)
        descent = torch.optim.SGD([weight], lr=0.01, momentum=0.9)
        mine = [x.clone() for x, _ in data]  # a tensor is used by one thread at a time
        for number in range(60):
            loss = ((odd(mine[number % 9]) @ weight).tanh() ** 2).mean() + weight.square().sum()
            descent.zero_grad()
            loss.backward()
            descent.step()
        results[seed] = weight.detach()

    results = {}
    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads, thread
    results = [results[seed] for seed in range(3)]
    """
    stats = run_both(SETTING + text, tmp_path)
    assert co_executed(stats)
    assert_nothing_is_intercepted()


@pytest.mark.parametrize("switch", ["lazy", "interception"])
def test_switched_off(switch, tmp_path):
    with torchjanus.options.without(switch):
        stats = run_both(SETTING + SCRIPTS["a function without source"], tmp_path)
    assert not co_executed(stats)


def test_lazy_within_a_loop(tmp_path):
    """The program's own lazy execution ends within an iteration; the loop's begins again with the next one."""
    text = """
    import torchjanus

    def train():
        for number in range(70):
            x, y = data[number % 9]
            with torchjanus.lazy():
                hidden = odd(x) * 2 + 1
            loss = ((model(odd(hidden)) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    loss = train()
    """
    stats = run_both(SETTING + text, tmp_path)
    assert sum(each["co_execution"]["noted"] for each in stats) > 0
    assert_nothing_is_intercepted()


def test_operators_that_differ_from_iteration_to_iteration(tmp_path):
    text = """
    for size in range(2, 90):
        x = torch.ones(size)
        for _ in range(5):
            x = x * 2 - x
        x = odd(x) + odd(x * 2) + odd(x * 3) + x.sum() + x.mean() - x.prod()
    """
    stats = run_both(SETTING + text, tmp_path)
    told = [each["co_execution"] for each in stats if each.get("co_execution", {}).get("why_not")]
    assert "its operators differ from iteration to iteration" in {each["why_not"] for each in told}


def test_a_loop_whose_segments_are_ever_new_waits_for_the_account(tmp_path):
    text = """
    from torchjanus import _core
    from torchjanus._core import testing

    for size in range(2, 90):
        testing.simulate_processor_time(100 * size + 1000 * _core.lazy_counts()["structures"], 100)
        x = torch.ones(size)
        for _ in range(5):
            x = x * 2 - x
        x = odd(x) + odd(x * 2) + odd(x * 3) + x.sum() + x.mean() - x.prod()
    """
    with accounts() as begin:
        begin()
        stats = run_both(SETTING + text, tmp_path)
        spent = _core.conversion_account()["spent"]
    (told,) = [
        each["co_execution"] for each in stats if each.get("co_execution", {}).get("iterations")
    ]
    assert told["state"] == "undecided"
    assert 0 < told["iterations"] < 24  # with nothing to pay, 48 tell that it is no use
    assert spent > 1000
    assert_nothing_is_intercepted()


def test_a_function_is_no_better_than_the_loop_whose_time_it_takes(tmp_path):
    text = """
    from torchjanus._core import testing

    def step(size, milliseconds):
        x = w = torch.ones(size, requires_grad=True)
        for _ in range(5):
            x = x * 2 - x
        testing.simulate_processor_time(100 * size + milliseconds, 100)
        (odd(x) + odd(x * 2) + odd(x * 3) + x.mean() - x.prod()).sum().backward()
        return w.grad

    for size in range(2, 120):
        testing.simulate_processor_time(100 * size, 100)
        step(size, MILLISECONDS)
    """
    why_not = {}
    for milliseconds in (90, 10):
        with accounts() as begin:
            begin(-1e6)
            _core.testing.let_times_decide(True)
            try:
                stats = run_both(
                    SETTING + text.replace("MILLISECONDS", f"{milliseconds}"), tmp_path
                )
            finally:
                _core.testing.let_times_decide(False)
        told = {each["name"].split(",")[0]: each["co_execution"] for each in stats}
        why_not[milliseconds] = told["step"]["why_not"], told["step"]["iterations"] > 0
    assert why_not == {
        90: ("its operators differ from iteration to iteration", False),
        10: ("its operators differ from call to call", True),
    }


def test_code_without_its_scope():
    """A region whose scope was not entered on this thread begins no iterations."""
    file = "<scope>"
    code = script.compile_script("for i in range(3):\n    abs(i)\n    print.__class__(i)\n", file)
    assert any(isinstance(each, _core.CoExecutionScope) for each in code.co_consts)
    with pytest.raises(TypeError, match="one or more"):
        _core.CoExecutionScope([], True)
