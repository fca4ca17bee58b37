"""Cutting instead of giving up: what stands around a statement that can't be converted keeps its graphs."""

import io
import random
import re
import threading
import time

import pytest
import torch.nn.functional as F
from differential import Call, Program, differential

import torch
import torchjanus
from torch import nn

# --- converted functions --------------------------------------------------------------------------


class Recorder:
    """Keeps what it is given; opaque to the generator because it truncates a file object."""

    def __init__(self):
        self.text = io.StringIO()
        self.count = 0

    def record(self, value):
        self.text.write(f"{float(torch.as_tensor(value).detach()):.9f} ")
        self.text.truncate()
        self.count += 1

    def __deepcopy__(self, memo):
        raise AssertionError("never copied")


def setting():
    recorder = Recorder()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(14)]
    return recorder, model, optimizer, batches


@differential(hits=8)
def test_function_with_a_statement_in_the_middle():
    recorder, model, optimizer, batches = setting()

    def step(x, y):
        """A step."""
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        recorder.record(loss)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_function_whose_callee_is_refused():
    recorder, model, optimizer, batches = setting()
    scale = 2.0

    def train(x, y, *, weight=0.5):
        nonlocal scale
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * weight * scale
        recorder.record(loss)
        loss.backward()
        optimizer.step()
        scale = scale * 0.9
        return loss

    def step(x, y):
        return train(x, y, weight=0.25)

    code = train.__code__

    def look():
        assert train(*batches[0]).requires_grad
        assert (train.__name__, train.__code__.co_name) == ("train", code.co_name)

    calls = [*batches, look, *batches]
    return Program(step, calls, watch=[model, optimizer, recorder])


@differential(hits=35)
def test_graphs_hold_when_a_function_that_they_inline_is_cut():
    recorder, model, optimizer, batches = setting()

    def train(x, y, recorded):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if recorded:
            recorder.record(loss)
        loss.backward()
        optimizer.step()
        return loss

    code = train.__code__
    refused = torchjanus.function(lambda x, y: train(x, y, True))

    def cut():
        for x, y in batches:
            refused(x, y)
        assert train.__code__ is not code

    def step(x, y):
        return train(x, y, False)

    calls = [*batches, cut, *batches, *batches]
    return Program(step, calls, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_converted_callee_that_is_refused():
    recorder, model, optimizer, batches = setting()

    def loss_of(x, y):
        scores = model(x)
        recorder.record(scores.sum())
        return F.cross_entropy(scores.log_softmax(1), y) * 2 + 1

    loss_of = torchjanus.function(loss_of)
    plain = loss_of.__wrapped__.__code__

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    def look():
        assert loss_of.__wrapped__.__code__ is plain

    return Program(step, [*batches, look, *batches], watch=[model, optimizer, recorder])


@differential(hits=60)
def test_function_whose_graphs_are_left_for_a_side_that_is_refused():
    """Neither side is rare: the graph of the other one is given up, and the statement is cut."""
    recorder, model, optimizer, batches = setting()
    generator = random.Random(4)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if generator.random() < 0.5:
            recorder.record(loss)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches * 8, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_function_that_returns_in_a_segment():
    recorder, model, optimizer, batches = setting()

    def step(x, y, limit=0.0):
        recorder.record(x.sum())
        loss = F.cross_entropy(model(x), y) * 2 + 1
        if limit > 0.5:
            return loss.item()
        loss.backward()
        recorder.record(loss)
        optimizer.step()
        return loss

    calls = [Call(batch, {"limit": float(i % 2)}) for i, batch in enumerate(batches * 2)]
    return Program(step, calls, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_function_with_default_closure_and_keyword():
    recorder, model, _, batches = setting()
    scale, offset = torch.full((3,), 2.0), [1.0]

    def step(x, y, *rest, weight=0.5, **options):
        nonlocal scale
        scores = model(x) * scale + offset[0]
        recorder.record(scores.sum())
        scale = scale * 0.9
        result = F.cross_entropy(scores, y) * weight - scores.mean() + len(rest) + len(options)
        return result, [name for name in sorted(locals())]

    return Program(step, batches * 2, watch=[model, recorder, offset])


@differential(hits=8)
def test_method_with_super_and_assumption_that_fails():
    recorder, model, _, batches = setting()

    class Base:
        def __init__(self):
            self.scale = 1.0

        def loss(self, scores, y):
            return F.cross_entropy(scores, y) * self.scale

    class Derived(Base):
        def step(self, x, y):
            scores = model(x).tanh() * 2 + 1
            recorder.record(scores.sum())
            loss = super().loss(scores, y)
            recorder.record(loss)
            penalty = scores.square().mean() * self.scale + scores.abs().sum()
            penalty.backward()
            return loss

    derived = Derived()

    def change():
        derived.scale = 3.0

    calls = [*batches[:9], change, *batches, *batches]
    return Program(derived.step, calls, watch=[model, recorder, derived])


@differential(hits=6)
def test_exception_raised_in_the_cut_statement_and_in_a_segment():
    recorder, model, optimizer, batches = setting()

    class Failing:
        def check(self, x):
            recorder.record(x.sum())
            if recorder.count in (9, 11):
                raise KeyError(recorder.count)

    failing = Failing()

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * 2 - 1
        failing.check(loss)
        extra = model(x).square().sum() * 0.1 + x.sum() + 1
        extra.backward()
        optimizer.step()
        return loss

    wrong = torch.randn(5, 3), batches[0][1]
    return Program(step, [*batches, wrong, *batches], watch=[model, optimizer, recorder])


@differential(hits=8)
def test_annotated_assignment_in_a_segment():
    recorder, model, optimizer, batches = setting()

    def step(x, y):
        optimizer.zero_grad()
        loss: torch.Tensor = F.cross_entropy(model(x), y)
        recorder.record(loss)
        scale: no_such_name = 2.0  # noqa: F821
        loss.backward()
        optimizer.step()
        return loss * scale

    return Program(step, batches, watch=[model, optimizer, recorder])


def test_bodies_rest_where_a_graph_has_their_statement():
    """A call that does not fit the segment's graph runs in Python, and its bodies make no graphs of their own."""
    torch.manual_seed(0)
    recorder, model, optimizer, batches = setting()
    settings = {"scale": 1.0, "is_last": False}

    @torchjanus.function
    def step(x, y):
        recorder.record(x.sum())
        if x.shape[0] > 1:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y) * settings["scale"]
            loss.backward()
            optimizer.step()
        return loss.detach() * (2 if settings["is_last"] else 1)

    for count in range(30):
        settings["is_last"] = count % 10 == 9
        step(*batches[count % len(batches)])
    (whole,) = step.stats()["parts"]
    parts = whole["parts"]
    graphs = [part for part in parts if part["state"] == "graph"]
    assert len(graphs) == 1 and graphs[0]["hits"] > 12, parts
    bodies = [part for part in parts if part not in graphs]
    assert all(part["generated"] == 0 for part in bodies), bodies


@differential(hits=8)
def test_function_with_a_try_statement():
    recorder, model, optimizer, batches = setting()

    def step(x, y):
        try:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if recorder.count == 8:
                raise ValueError("eight")
            recorder.record(loss)
            loss.backward()
            optimizer.step()
        except ValueError as error:
            recorder.record(8)
            loss = str(error)
        else:
            loss = loss * 2 + x.sum() - y.sum()
        finally:
            recorder.record(-1)
        return loss

    return Program(step, batches * 2, watch=[model, optimizer, recorder])


@differential(hits=8)
def test_recursive_function():
    recorder, model, _, batches = setting()
    converted = []

    def step(x, y, depth=2):
        scores = model(x).tanh() * 2 + depth
        recorder.record(scores.sum())
        if depth > 0:
            below = (converted[0] if converted else step)(x, y, depth - 1)
        else:
            below = 0.0
        return F.cross_entropy(scores, y) * 0.5 + below + scores.mean()

    def convert(step):
        function = torchjanus.function(step)
        converted.append(function)
        return function, function

    return Program(step, batches * 2, watch=[model, recorder], convert=convert)


@differential(hits=4)
def test_module_whose_forward_is_cut():
    recorder = Recorder()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

        def forward(self, x):
            hidden = torch.tanh(self.first(x)) * 2 + 1
            recorder.record(hidden.sum())
            return self.second(hidden).softmax(-1).log() - 1

    net = Net()
    seen = []

    def convert(step):
        return step, torchjanus.function(net)

    def step(x, y):
        loss = F.nll_loss(net(x), y)
        loss.backward()
        return loss

    def add_hook():
        net.register_forward_hook(lambda module, inputs, output: seen.append(len(seen)))

    batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(12)]
    calls = [*batches, add_hook, *batches]
    return Program(step, calls, watch=[*net.parameters(), recorder, seen], convert=convert)


@differential(hits=4)
def test_module_whose_class_gets_another_forward():
    recorder = Recorder()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 3)

        def forward(self, x, scale=2):
            hidden = torch.tanh(self.first(x)) * scale + 1
            recorder.record(hidden.sum())
            return hidden.softmax(-1).log() - 1

    def other(self, x):
        return self.first(x) * 5

    def replace():
        Net.forward = other

    def change_default():
        Net.forward.__defaults__ = (7,)

    net = Net()
    calls = [(torch.randn(5, 4),) for _ in range(10)]
    calls = [*calls, change_default, *calls, replace, *calls]
    return Program(
        lambda x: net(x),
        calls,
        watch=[recorder],
        convert=lambda step: (step, torchjanus.function(net)),
    )


@differential(hits=8)
def test_function_whose_defaults_are_replaced():
    recorder, *_ = setting()

    def step(x, scale=1.0, *, shift=10.0):
        y = x * scale + shift
        recorder.record(y.sum())
        return (y + 1).sum()

    def other(x, scale=1.0, *, shift=10.0):
        recorder.count += 1
        return x.sum() - scale

    calls = [(torch.randn(3),) for _ in range(40)]
    changes = [
        lambda: setattr(step, "__defaults__", (2.0,)),
        lambda: setattr(step, "__kwdefaults__", {"shift": 20.0}),
        lambda: step.__kwdefaults__.update(shift=30.0),
        lambda: setattr(step, "__code__", other.__code__),
    ]
    for number, change in enumerate(changes):
        calls.insert(8 + 7 * number, change)
    return Program(step, calls, watch=[recorder])


def test_defaults_that_are_set_on_the_converted_function():
    @torchjanus.function
    def scaled(x, scale=1.0, *, shift=0.0):
        return x * scale + shift

    def other(x, scale=1.0, *, shift=0.0):
        return x - scale

    x = torch.ones(2)
    for call in range(12):
        if call == 4:
            scaled.__defaults__ = (3.0,)
        if call == 8:
            scaled.__kwdefaults__ = {"shift": 2.0}
        expected = x * (3.0 if call >= 4 else 1.0) + (2.0 if call >= 8 else 0.0)
        assert torch.equal(scaled(x), expected)
    assert scaled.__defaults__ == (3.0,) and scaled.stats()["hits"]
    with pytest.raises(TypeError, match="__defaults__ must be set to a tuple object"):
        scaled.__defaults__ = 5
    scaled.__code__ = other.__code__
    assert torch.equal(scaled(x), x - 3)


count = 100  # of the module; a function's variable of this name is none of it


@differential(reasons=["unknown_callable"])
def test_variable_that_is_not_bound_where_a_segment_begins():
    recorder, *_ = setting()

    def step(x, number):
        y = x * 2
        recorder.record(y.sum())
        count += number  # noqa: F821, F823, F841
        y = y + 1
        return y.sum()

    return Program(step, [(torch.randn(3), i) for i in range(16)], watch=[recorder])


@differential(hits=8)
def test_variable_that_is_not_bound_on_some_calls():
    recorder, *_ = setting()

    def step(x, number):
        y = x * 2
        if number % 3:
            count = number
        recorder.record(y.sum())
        y = y + 1
        return y.sum() * count

    return Program(step, [(torch.randn(3), i) for i in range(1, 24)], watch=[recorder])


def test_cut_that_does_not_pay_is_given_up(simulated):
    """A graph copies the whole table where Python writes a row."""
    simulated(2, 1)
    recorder = Recorder()

    def build():
        table = torch.zeros(1000, 1000)

        def step(x):
            recorder.record(x.sum())
            y = x * 2 + 1
            table[3] = y
            table[5] = y * 2
            return y - table[5]

        return step, table

    (plain, expected), (step, table) = build(), build()
    converted = torchjanus.function(step)
    hits, since = 0, 0
    for _ in range(1000):  # contests of what other tests converted may have their turns first
        x = torch.randn(1000)
        assert torch.equal(plain(x), converted(x))
        assert torch.equal(expected, table)
        before, hits = hits, torchjanus.stats(converted)["hits"]
        since = since + 1 if hits == before else 0
        if hits > 0 and since == 30:
            break
    assert since == 30
    assert "ms in Python" in torchjanus.explain(converted)


def test_several_threads():
    recorder, model, _, batches = setting()
    lock = threading.Lock()

    @torchjanus.function
    def score(x, y):
        scores = model(x).tanh() * 2 + 1
        with lock:
            recorder.count += 1
        return F.cross_entropy(scores, y) * 0.5 + scores.mean()

    expected = [score.__wrapped__(*batch) for batch in batches]
    results = {}

    def work(number):
        results[number] = [score(*batch) for _ in range(6) for batch in batches]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.count == len(batches) * (4 * 6 + 1)
    for number in range(4):
        for one, other in zip(results[number], expected * 6, strict=True):
            torch.testing.assert_close(one, other)


def test_report_names_the_cuts():
    recorder, model, _, batches = setting()

    @torchjanus.function
    def step(x, y):
        scores = model(x).tanh() * 2 + 1
        recorder.record(scores.sum())
        return F.cross_entropy(scores, y) * 0.5 + scores.mean()

    for batch in batches:
        step(*batch)
    stats = step.stats()
    assert stats["state"] == "cut" and stats["hits"] > 0
    text = step.explain()
    line = step.__wrapped__.__code__.co_firstlineno + 3
    assert f"cut at line {line}" in text and "[unknown_callable]" in text
    assert step.graph().count("graph @") == 2


def prices(snapshot):
    """What the statements at cuts took in Python, by line."""
    found = {cut["line"]: cut["in_python"] for cut in snapshot.get("cuts", ())}
    for part in snapshot.get("parts", ()):
        found |= prices(part)
    return found


def test_report_tells_what_cuts_cost():
    """The time of a cut statement is without that of the parts in its body, which have their own."""
    recorder = setting()[0]

    @torchjanus.function
    def step(x):
        x = x.tanh() * 2 + 1
        for _ in range(3):
            x = (x * 0.5 + 1).tanh() * 2
            time.sleep(0.002)
            recorder.record(x.sum())
        return (x.sin() + 1).exp()

    for _ in range(30):
        step(torch.ones(4))
    cuts = prices(step.snapshot())
    start = step.__wrapped__.__code__.co_firstlineno
    loop, sleep = cuts[start + 3], cuts[start + 5]
    assert loop["runs"] > 3 and sleep["runs"] > 10
    nap = sleep["milliseconds"] / sleep["runs"]
    assert nap > 2
    assert loop["milliseconds"] / loop["runs"] < 3 * nap
    text = step.explain()
    assert (
        f"in Python {loop['runs']} times, " in text and f"in Python {sleep['runs']} times, " in text
    )
    assert re.search(
        r"runs as a graph; 1 in the cache, ran \d+ of \d+ times, .+ each, .+ entry and", text
    )
