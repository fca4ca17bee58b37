"""torch.inference_mode inside and around converted code, and the program's own context managers that
are generators."""

import contextlib

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def batches(count=8, rows=3):
    return [(torch.randn(rows, 4),) for _ in range(count)]


# --- inference mode ----------------------------------------------------------------------------


def observed(value):
    """What can be seen of a result."""
    if isinstance(value, torch.Tensor):
        return value.tolist(), value.is_inference(), value.requires_grad, value.stride()
    if isinstance(value, (list, tuple)):
        return [observed(each) for each in value]
    if isinstance(value, dict):
        return {key: observed(each) for key, each in value.items()}
    return value


def assert_same_inference(step, calls, surrounding=contextlib.nullcontext, hits=4):
    converted = torchjanus.function(step)
    for call in calls:
        with surrounding():
            expected, actual = step(*call), converted(*call)
        one, other = observed(expected), observed(actual)
        assert repr_rounded(one) == repr_rounded(other)
    assert converted.stats()["hits"] >= hits, converted.stats()["reasons"]


def repr_rounded(value):
    if isinstance(value, float):
        return round(value, 4) + 0.0
    if isinstance(value, (list, tuple)):
        return [repr_rounded(each) for each in value]
    if isinstance(value, dict):
        return {key: repr_rounded(each) for key, each in value.items()}
    return value


@differential(hits=4)
def test_inference_gives_numbers():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

    def step(x):
        with torch.inference_mode():
            logits = model(x)
            right = (logits.argmax(1) == 0).sum().item()
        return right / x.shape[0], float(logits.sum())

    return Program(step, batches(), watch=[model])


def test_inference_gives_tensors():
    model = nn.Linear(4, 2)

    def step(x):
        with torch.inference_mode():
            y = model(x)
            z = torch.softmax(y, 1)
        return y, [z, z], {"t": z.t()}

    assert_same_inference(step, batches(), hits=0)

    def plain(x):
        with torch.inference_mode():
            y = model(x)
            z = torch.softmax(y, 1)
        return y, [z, z]

    assert_same_inference(plain, batches())
    converted = torchjanus.function(plain)
    for call in batches():
        _, (one, other) = converted(*call)
        assert one is other


@pytest.mark.parametrize("call", [True, False])
def test_inference_decorates(call):
    model = nn.Linear(4, 2)

    @torch.inference_mode() if call else torch.inference_mode
    def predict(x):
        return model(x).relu()

    assert_same_inference(predict, batches())
    assert_same_inference(lambda x: predict(x).sum().item(), batches())


def test_inference_around():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).eval()

    def step(x):
        y = model(x)
        return y, y[0], torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    assert_same_inference(step, batches(), torch.inference_mode)
    made_inside = []
    with torch.inference_mode():
        made_inside = batches()
    assert_same_inference(step, made_inside, torch.inference_mode)


def test_inference_around_or_not():
    model = nn.Linear(4, 2)

    def step(x):
        return model(x) * 2

    converted = torchjanus.function(step)
    for number in range(24):
        x = torch.randn(3, 4)
        with torch.inference_mode(number % 3 == 0):
            expected, actual = step(x), converted(x)
        assert expected.is_inference() == actual.is_inference()
        assert expected.requires_grad == actual.requires_grad
        torch.testing.assert_close(actual, expected)
    assert converted.stats()["hits"] >= 8


def test_state_written_in_inference():
    """A tensor of outside stays one, and what is stored is one of inference mode."""

    class Tracker(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.last = None

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.last = x * 2
            return x - self.mean

    for surrounding in (torch.inference_mode, contextlib.nullcontext):
        eager, model = Tracker(), Tracker()

        def call(module, x):
            if surrounding is torch.inference_mode:
                return module(x)
            with torch.inference_mode():
                return module(x)

        converted = torchjanus.function(call)
        for (x,) in batches():
            with surrounding():
                expected, actual = call(eager, x), converted(model, x)
            torch.testing.assert_close(actual, expected)
            torch.testing.assert_close(model.mean, eager.mean)
            assert model.mean.is_inference() == eager.mean.is_inference()
            assert model.mean._version == eager.mean._version
            assert model.last.is_inference() and actual.is_inference()
        assert converted.stats()["hits"] >= 3, converted.stats()["reasons"]


def test_inference_tensor_in_training():
    """Eager raises: inference tensors cannot be saved for backward."""
    model = nn.Linear(4, 2)

    def step(x):
        with torch.inference_mode():
            features = x * 2
        loss = model(features).sum()
        loss.backward()
        return loss.detach()

    converted = torchjanus.function(step)
    for call in batches(6):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            converted(*call)


def test_inference_tensor_written_outside():
    def step(x):
        with torch.inference_mode():
            y = x * 2
        y.add_(1)
        return y

    converted = torchjanus.function(step)
    for call in batches(6):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            converted(*call)


def test_inference_tensor_handed_to_training():
    """A graph made for other tensors must not take it."""
    weight = torch.randn(4, requires_grad=True)

    def step(x):
        (x * weight).sum().backward()
        return x + 1

    converted = torchjanus.function(step)
    for (x,) in batches(6):
        converted(x)
    with torch.inference_mode():
        x = torch.randn(3, 4)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        converted(x)


@differential(hits=3)
def test_evaluation_after_training():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        with torch.inference_mode():
            after = model(x).pow(2).mean().item()
        return loss.item(), after

    return Program(step, batches(), watch=[model])


# --- context managers that are generators ----------------------------------------------------------


@differential(hits=4)
def test_own_scope():
    depth = {"now": 0}

    @contextlib.contextmanager
    def scope(value, *, factor=1):
        before = depth["now"]
        depth["now"] = value * factor
        try:
            yield value + 1
        finally:
            depth["now"] = before

    def step(x):
        with scope(2, factor=3) as next_value, scope(5):
            y = x * next_value * depth["now"]
        return y + depth["now"]

    return Program(step, batches(), watch=[depth])


@differential(hits=4)
def test_scope_of_a_method_that_returns():
    class Model:
        def __init__(self):
            self.mode, self.log = "plain", []

        @contextlib.contextmanager
        def using(self, mode):
            before, self.mode = self.mode, mode
            with torch.no_grad():
                yield
            self.log.append(mode)
            self.mode = before

        def forward(self, x):
            with self.using("double"):
                if self.mode == "double":
                    return x * 2
            return x

    model = Model()
    weight = torch.randn(4, requires_grad=True)

    def step(x):
        y = model.forward(x * weight)
        return y, y.requires_grad, model.mode

    return Program(step, batches(), watch=[model])


@differential(hits=4)
def test_scope_in_loops_and_branches():
    @contextlib.contextmanager
    def counted(box):
        box.append(1)
        yield len(box)
        box.pop()

    def step(x):
        box, total = [], x
        for _ in range(3):
            with counted(box) as count:
                if x.sum() > 0:
                    total = total + count
                    continue
                total = total * 2
        return total, len(box)

    return Program(step, batches(12))


@differential(hits=7)
def test_scope_that_branches():
    """Which half of the generator runs, the run decides."""

    @contextlib.contextmanager
    def scope(x):
        if x.sum() > 0:
            yield 2.0
        else:
            yield 3.0

    def step(x):
        with scope(x) as factor:
            y = x * factor
        return y

    return Program(step, batches(12))


@differential(reasons=["would_raise"])
def test_scope_that_does_not_yield():
    @contextlib.contextmanager
    def scope(on):
        if on:
            yield

    def step(x):
        with scope(x.shape[0] > 5):
            return x * 2

    return Program(step, batches(6))


@differential(reasons=["would_raise"])
def test_scope_around_what_raises():
    log = []

    @contextlib.contextmanager
    def scope():
        try:
            yield
        except ValueError:
            log.append("caught")

    def step(x):
        with scope():
            if x.shape[0] == 3:
                raise ValueError("three")
        return x * 2

    return Program(step, batches(6), watch=[log])


@differential(hits=4)
def test_functional_call():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        parameters = dict(model.named_parameters())
        inner = torch.func.functional_call(model, parameters, (x,)).pow(2).mean()
        gradients = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
        updated = {
            name: parameter - 0.1 * gradient
            for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
        }
        loss = torch.func.functional_call(model, updated, (x,)).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, batches(), watch=[model])


# --- small things --------------------------------------------------------------------------------


@differential(hits=4)
def test_chained_comparison_of_numbers():
    def step(x):
        s = x.sum().item()
        inside = 0 < s < 1.5
        return inside, x * 2 if -1 < s <= 1 else x, 1 if -3 < x.shape[0] * s < 3 < 4 else 0

    return Program(step, batches(16))


@differential(hits=4)
def test_chained_comparison_of_tensors():
    def step(x):
        s = x.sum()
        return (x * 2 if -1 < s < 1 else x), -2 < s < 2

    return Program(step, batches(16))


@differential(hits=4)
def test_chained_comparison_looks_once():
    calls = []

    def middle(value):
        calls.append(1)
        return value

    def step(x):
        s = x.sum().item()
        return (x + 1 if -1 < middle(s) < middle(s + 1) < 5 else x), len(calls)

    return Program(step, batches(16), watch=[calls])


@differential(hits=3)
def test_value_that_or_gives():
    def step(x):
        s = x.sum().item()
        return x * (max(s, 0) or 1.0)

    return Program(step, batches(24))


@differential(hits=3)
def test_shifts():
    def step(x, n):
        return x * (1 << n), n << 2, 1000 >> n, -n >> 1

    return Program(step, [(torch.randn(3), n) for n in (3, 5, 4, 7, 2, 6, 0, 1, 62, 63, 64, 70, 9)])


@differential(hits=4)
def test_shift_by_a_negative_number():
    def step(x, n):
        return x * (1 << n)

    return Program(step, [(torch.randn(3), n) for n in (3, 5, 4, 7, 2, 6, -1, 4, -2)])


@differential(hits=4)
def test_strides():
    def step(x):
        y = x.t()
        return (
            x.stride(),
            y.stride(0),
            y.stride(-1),
            x.new_zeros(2, 5).stride(dim=1),
            x * x.stride(0),
        )

    calls = [(torch.randn(rows, 4),) for rows in (3, 3, 3, 3, 5, 6, 7, 8, 1, 9, 2)]
    return Program(step, calls)


@differential(hits=3)
def test_rest_of_a_mapping():
    def step(options, x):
        match options:
            case {"scale": scale, **rest}:
                rest["more"] = 1
                return x * scale * len(rest) + rest.get("offset", 0.0), rest
            case {**everything}:
                return x, everything

    calls = [({"scale": 2.0, "offset": o}, torch.randn(3)) for o in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)]
    return Program(step, [*calls, ({"other": 1}, torch.randn(3)), ({"scale": 2.0}, torch.randn(3))])


# --- comprehensions with conditions ------------------------------------------------------------------


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
