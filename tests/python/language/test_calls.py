"""How the frontend binds arguments, inlines calls and keeps identities, seen from outside: the
converted function gives what the original gives, by a graph."""

import functools
import operator
import re
from collections import namedtuple

import pytest
from differential import Call, Program, differential

import torch
import torchjanus

Pair = namedtuple("Pair", "first second")


def outcome(function, *argument_sets, calls=6):
    """Calls the original and the converted function in turn; returns the converted one."""
    converted = torchjanus.function(function)
    for index in range(calls):
        arguments = argument_sets[index % len(argument_sets)]
        torch.manual_seed(index)
        expected = function(*arguments)
        torch.manual_seed(index)
        assert_same(converted(*arguments), expected)
    return converted


def assert_same(actual, expected):
    assert type(actual) is type(expected)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(actual, expected)
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected):
            assert_same(a, b)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key in expected:
            assert_same(actual[key], expected[key])
    else:
        assert actual == expected


def assert_graph(function, *argument_sets, calls=6):
    converted = outcome(function, *argument_sets, calls=calls)
    stats = converted.stats()
    assert stats["hits"] > 0, stats["reasons"]


x = torch.randn(4, 8)


def test_defaults_stars_and_keyword_only():
    def inner(a, b=2, *rest, k=1, **named):
        return a * b * k + sum(rest) + named.get("z", 0)

    def outer(x):
        options = {"k": 5, "z": 1}
        return inner(x) + inner(x, 3, 4, **options) + inner(*[x, 2])

    assert_graph(outer, (x,))


def test_closures_share_their_variables():
    def outer(x):
        count = 0

        def more(value):
            nonlocal count
            count += 1
            return value * count

        return more(x) + more(x), count

    assert_graph(outer, (x,))


def test_partial_lambda_and_map():
    scale = functools.partial(torch.mul, other=3)

    def outer(x):
        return [*map(lambda row: scale(row).sum(), x)]

    assert_graph(outer, (x,))


def test_named_tuple_result():
    assert_graph(lambda x: Pair(x + 1, second=x.shape), (x,))


def test_same_object_twice_and_the_argument_itself():
    def outer(x):
        y = x * 2
        return [y, y, x]

    converted = torchjanus.function(outer)
    for _ in range(6):
        first, second, third = converted(x)
    assert converted.stats()["hits"] > 0
    assert first is second and third is x


def test_recursion_over_known_numbers():
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * 0.5

    assert_graph(power, (x, 4))


def test_generator_that_only_reads():
    def rows(parts):
        for index, part in enumerate(parts):
            yield index, part

    def outer(x):
        return sum(part * index for index, part in rows([x, x + 1, x + 2]))

    assert_graph(outer, (x,))


@pytest.mark.parametrize("change", ["size", "number", "flag"])
def test_what_varies(change):
    sets = {
        "size": [(torch.randn(4, 8), 2.0, True), (torch.randn(6, 8), 2.0, True)],
        "number": [(x, 2.0, True), (x, 3.5, True)],
        "flag": [(x, 2.0, True), (x, 2.0, False)],
    }[change]

    def outer(x, scale, flag):
        y = x * scale / x.size(0)
        return y.sum() if flag else y

    assert_graph(outer, *sets, calls=12)


def test_views_written_in_place():
    def outer(x):
        y = x.clone()
        row = y[1]
        row += 1
        y[:, 2:4] *= 3
        y[0] = 7
        return y, row

    assert_graph(outer, (x,))


def test_formatted_text_of_results():
    assert_graph(lambda x: f"{x.sum().item():.3f} of {x.shape[0]}", (x,))


def test_loop_that_ends_by_what_it_computes():
    def halved(x):
        x = x + 1
        while x.norm() > 1:
            x = x / 2
        return x

    assert_graph(halved, (x,), (x * 5,))


@pytest.mark.parametrize(
    "reason, build",
    [
        ("heap_write", lambda holder: lambda x: setattr(y := x * 2, "note", 1) or y),
        ("dynamic_value", lambda holder: lambda x: getattr(x, f"{x.sum().item():.0f}", x) * 2),
        ("unknown_callable", lambda holder: lambda x: x * len(open("/dev/null").read())),
    ],
)
def test_refused_with_a_reason(reason, build):
    class Holder:
        count = 0

    converted = torchjanus.function(build(Holder()))
    for _ in range(6):
        converted(x)
    assert reason in [each["code"] for each in converted.stats()["reasons"]]


@differential(hits=2, graphs=1)
def test_closures_defaults_and_keyword_only():
    factor = 1.5

    def step(x, /, y, *others, scale=2.0, **named):
        result = x * factor + y * scale
        for other in others:
            result = result - other
        for value in named.values():
            result = result * value
        return result

    arguments = [
        Call((torch.randn(3), torch.randn(3), torch.randn(3)), {"weight": torch.randn(3)})
        for _ in range(6)
    ]
    return Program(step, arguments)


PATTERN = re.compile(r"(\w+)\.(\d+)")
found = PATTERN.match  # bound to an object of C
noted: list[float] = []
note, lookup = noted.append, {"a": 2.0, "b": 3.0}.get


@differential(hits=4)
def test_methods_of_c_that_are_bound():
    noted.clear()

    def step(x, name="layer.12"):
        note(3.0)
        return x * float(found(name, 0)[2]) + lookup("b"), lookup("c", 1.0), noted[-1]

    return Program(step, [(torch.randn(3),) for _ in range(7)], watch=[noted])


@differential(hits=8)
def test_a_bound_method_is_another_one():
    held = {"get": {"a": 2.0}.get}

    def step(x):
        return x * held["get"]("a")

    def change():
        held["get"] = {"a": 5.0}.get

    batches = [(torch.randn(3),) for _ in range(7)]
    return Program(step, [*batches, change, *batches])


@differential(hits=4)
def test_what_a_bound_method_reads_changes():
    table = {"a": 2.0}
    get = table.get

    def step(x):
        return x * get("a")

    batches = [(torch.randn(3),) for _ in range(7)]
    return Program(step, [*batches, lambda: table.update(a=7.0), *batches])


def counted(*arguments, **keywords):
    counted.calls += 1
    return counted.calls, arguments, keywords


@differential(hits=5)
def test_operator_call():
    def step(x):
        counted.calls = 0
        return operator.call(counted, 1), operator.call(counted, a=x), counted.calls, x * 2

    return Program(step, [(torch.randn(3),) for _ in range(8)])


class Hinting:
    asked = 0

    def __length_hint__(self):
        Hinting.asked += 1
        return Hinting.asked


@differential(reasons=["unknown_callable"])
def test_functions_of_operator_that_ask_an_object():
    hinting = Hinting()

    def step(x):
        Hinting.asked = 0
        known = operator.index(3), operator.indexOf([1, 2], 2), operator.countOf((1, 1), 1)
        return known, operator.length_hint(hinting), x * 2

    return Program(step, [(torch.randn(3),) for _ in range(8)])


def first(*arguments, **keywords):
    return arguments[0] * 2


FIRST = functools.partial(first, 1, k=2)
TAGGED = functools.partial(first, 1)
TAGGED.tag = 3


@differential(hits=5)
def test_partials_of_partials_from_before():
    def step(x):
        one, other = functools.partial(FIRST, 2, k=3), functools.partial(TAGGED, 2)
        apart = one.func is first, one.args, one.keywords, other.func is TAGGED, other.args
        return apart, one(3), other(3), x * 2

    return Program(step, [(torch.randn(3),) for _ in range(8)])
