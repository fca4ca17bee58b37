"""torch.inference_mode and torch.no_grad inside and around converted code."""

import contextlib

import pytest
from differential import Call, Program, differential

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


# --- comprehensions with conditions ------------------------------------------------------------------


@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
@differential()
def test_modes_inside_and_around(around, mode):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def step(x):
        with mode():
            y = model(x)
            z = y.view(-1)
            z += 1
        return y

    def plain(x):
        y = model(x)
        return y, y.requires_grad, y.is_inference()

    def convert(function):
        converted = torchjanus.function(function)

        def called(x):
            with mode():
                return converted(x)

        return called, converted

    batches = [(torch.randn(5, 4),) for _ in range(5)]
    if not around:
        return Program(step, batches, watch=[model])

    def eager(x):
        with mode():
            return plain(x)

    return Program(eager, batches, watch=[model], convert=lambda _: convert(plain))


@differential()
def test_inference_decorator_and_keyword():
    model = nn.Linear(4, 3)

    @torch.inference_mode()
    def evaluate(x, *, scale=1.0):
        return (model(x) * scale).argmax(1)

    def step(x, **options):
        return evaluate(x, **options)

    calls = [Call((torch.randn(5, 4),), {"scale": 2.0}) for _ in range(5)]
    return Program(step, calls)
