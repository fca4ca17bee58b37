"""Functions that calls define: another one in each call, of the same code; and those that outlive a run."""

import types

import pytest

import torch
import torchjanus

RUNS = 12


def compared(step, arguments, *, hits=1):
    """Runs with equal arguments, made anew for each; gives the statistics."""
    converted = torchjanus.function(step)
    runs = []
    for run in (step, converted):
        torch.manual_seed(0)
        runs.append([run(*arguments(i)) for i in range(RUNS)])
    for mine, its in zip(runs[1], runs[0], strict=True):
        torch.testing.assert_close(mine, its)
    stats = converted.stats()
    assert stats["hits"] >= hits, stats["reasons"]
    return stats


def task(scale, *, twice=False):
    amplitude = torch.rand(1) * scale

    def sample(x):
        return amplitude * torch.sin(x) * (2 if twice else 1)

    return sample


def test_another_function_of_the_same_code_needs_no_other_graph():
    def step(sample, x):
        return sample(x).sum() + sample(x + 1).sum()

    kept = []

    def arguments(i):
        kept.append(task(1 + i))
        return kept[-1], torch.ones(3) * i

    stats = compared(step, arguments, hits=6)
    assert stats["generated"] == 1
    kept.clear()
    assert compared(step, lambda i: (task(i), torch.ones(3)), hits=6)["generated"] == 1


def test_functions_of_other_codes():
    def other(x):
        return x * x

    def step(sample, x):
        return sample(x).sum() + x.sum()

    def arguments(i):
        return (other if i in (5, 8) else task(1 + i)), torch.ones(3) * i

    compared(step, arguments)


def test_what_a_function_refers_to_is_assumed():
    """Its variables, defaults and globals."""

    def step(sample, x):
        return sample(x).sum()

    def arguments(i):
        sample = task(1 + i, twice=i % 5 == 4)
        if i == 9:
            space = {"torch": types.SimpleNamespace(sin=torch.cos)}
            sample = types.FunctionType(sample.__code__, space, "sample", None, sample.__closure__)
        return sample, torch.ones(3) * i

    compared(step, arguments)


def test_which_function_it_is():
    def step(one, other, x):
        return x + 1 if one is other else x * 2

    def arguments(i):
        one = task(1)
        return one, (one if i % 3 == 0 else task(1)), torch.ones(3) * i

    compared(step, arguments, hits=0)


def counter(start):
    count = start

    def increase(x):
        nonlocal count
        count = count + 1
        return x * count

    def value(x):
        return x + count

    return increase, value


def test_functions_that_share_a_variable():
    def step(increase, value, x):
        first = increase(x)
        return first + value(x)

    shared = []

    def arguments(i):
        if i == 0:
            shared[:] = [counter(start) for start in range(3)]
        increase, value = shared[i % 3]
        return increase, (shared[1][1] if i % 4 == 3 else value), torch.ones(3) * i

    compared(step, arguments, hits=0)


def test_a_function_outlives_the_run():
    def step(x):
        scale = x.sum()
        shift = x * 2

        def apply(y, factor=3):
            return y * scale + shift * factor

        return apply, apply(x)

    converted = torchjanus.function(step)
    for i in range(RUNS):
        x = torch.ones(3) * i
        (mine, now), (its, expected) = converted(x), step(x)
        torch.testing.assert_close(now, expected)
        torch.testing.assert_close(mine(x), its(x))
        torch.testing.assert_close(mine(x, factor=5), its(x, factor=5))
        for name in ("__name__", "__qualname__", "__module__", "__defaults__", "__doc__"):
            assert getattr(mine, name) == getattr(its, name)
        assert i < RUNS / 2 or mine.__code__ is its.__code__
        assert mine.__globals__ is its.__globals__ and mine.__annotations__ == {}
        assert len(mine.__closure__) == len(its.__closure__)


def made(x):
    total = x.sum()

    def add(y):
        nonlocal total
        total = total + y.sum()
        return total

    def show():
        return total

    return add, show


def test_functions_that_outlive_the_run_share_variables():
    def step(x):
        add, show = made(x)
        return {"add": add, "show": show, "again": add, "sum": x.sum() * 2}

    converted = torchjanus.function(step)
    for i in range(RUNS):
        mine = converted(torch.ones(3) * i)
        assert mine["add"] is mine["again"]
        mine["add"](torch.ones(2))
        assert mine["show"]().item() == 3 * i + 2
        assert mine["add"].__closure__[0] is mine["show"].__closure__[0]
    assert converted.stats()["hits"] > 0, converted.stats()["reasons"]


def test_gradients_of_what_a_function_keeps():
    weight = torch.nn.Parameter(torch.ones(3))

    def scaled(x):
        product = weight * x

        def value():
            return product.sum()

        return value

    def step(x):
        return scaled(x)

    converted = torchjanus.function(step)
    for i in range(RUNS):
        weight.grad = None
        converted(torch.ones(3) * i)().backward()
        assert torch.equal(weight.grad, torch.ones(3) * i)
    assert converted.stats()["hits"] > 0, converted.stats()["reasons"]


def annotated(x):
    shift = x * 2

    def apply(y: torch.Tensor) -> torch.Tensor:
        return y + shift

    return apply


def calls_itself(x):
    half = x / 2

    def apply(n):
        return half if n == 0 else apply(n - 1) + 1

    return apply


def decorated(x):
    shift = x * 2

    def same(function):
        return function

    @same
    def apply(y):
        return y + shift

    return apply


def with_a_lambda(x):
    shift = x * 2
    return lambda y: y + shift


@pytest.mark.parametrize("make", [annotated, calls_itself, decorated, with_a_lambda])
def test_functions_that_stay_in_python(make):
    """Their definition does more than a graph's end can repeat."""

    def step(x):
        return make(x), x.sum()

    converted = torchjanus.function(step)
    for i in range(RUNS):
        x = torch.ones(3) * i
        (mine, _), (its, _) = converted(x), step(x)
        argument = 2 if make is calls_itself else x
        torch.testing.assert_close(mine(argument), its(argument))
        assert mine.__annotations__ == its.__annotations__
    assert "outlives the run" in str(converted.stats()["reasons"])
