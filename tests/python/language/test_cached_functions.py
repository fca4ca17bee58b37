"""Functions under functools.lru_cache: what their caches hold is assumed, and the calls count."""

import functools

import pytest
from differential import Program, differential

import torch
import torchjanus


def make(maximum):
    """A function with a cache of its own, for eager and for the converted step."""

    @functools.lru_cache(maximum)
    def size_of(text, more=0):
        return 1.0 + len(text) + more

    return size_of


@pytest.mark.parametrize("maximum", [None, 2, 128])
@differential(hits=4)
def test_what_the_cache_holds(maximum):
    size_of = make(maximum)

    def step(x):
        return x * size_of("ab") + size_of("abc", more=2)

    return Program(step, [(torch.randn(3),) for _ in range(8)])


def test_calls_count_and_move_to_the_front():
    infos = []
    for convert in (lambda step: step, torchjanus.function):
        size_of = make(2)
        step = convert(lambda x, size_of=size_of: x * size_of("a") + size_of("b") + size_of("a"))
        for _ in range(8):
            step(torch.ones(3))
        size_of("c")  # takes the place of "b", which was asked for less lately
        size_of("a")
        infos.append(size_of.cache_info())
    assert step.stats()["hits"] >= 4
    assert infos[0] == infos[1]


@differential(hits=4)
def test_a_cache_that_is_cleared_between_calls():
    table = {"a": 2.0}

    @functools.cache
    def value(name):
        return table[name]

    def change():
        table["a"] += 1
        value.cache_clear()
        value("a")

    calls = [(torch.randn(3),) for _ in range(5)]
    return Program(lambda x: x * value("a"), [*calls, change, *calls, change, *calls])


@pytest.mark.parametrize("maximum", [1, 2])
@differential(hits=4)
def test_a_link_that_is_used_again(maximum):
    """Other keys take the place of the first, which then comes back with another value."""
    table = {"a": 2.0}

    @functools.lru_cache(maximum)
    def value(name):
        return table.get(name, 0.0)

    def change():
        value("b")
        value("c")
        table["a"] += 3.0
        value("a")

    calls = [(torch.randn(3),) for _ in range(5)]
    return Program(lambda x: x * value("a"), [*calls, change, *calls, change, *calls])


@pytest.mark.parametrize("maximum", [None, 4])
@differential(hits=4)
def test_results_that_look_like_the_cache(maximum):
    @functools.lru_cache(maximum)
    def options(key, more=None):
        return {"a": "xyz", "b": "", "mark": object()}

    def step(x):
        return x + len(options("a")) + len(options("b", more=2)), options("a")["a"]

    return Program(step, [(torch.randn(3),) for _ in range(8)])


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 3.0

    @functools.lru_cache  # noqa: B019
    def factor(self, power):
        return self.scale**power


@differential(hits=4)
def test_methods_with_a_cache():
    model = Model()
    return Program(lambda x: x * model.factor(2), [(torch.randn(3),) for _ in range(8)])


@differential(reasons=["unknown_callable"])
def test_an_argument_that_is_always_another():
    size_of = make(None)
    return Program(lambda x, text: x * size_of(text), [(torch.randn(3), t) for t in "abcdefgh"])
