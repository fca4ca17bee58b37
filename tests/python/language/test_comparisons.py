"""Comparisons: chained ones, of objects by what their classes say, of tuples of numbers that vary, and elements in
tensors."""

import dataclasses
from typing import NamedTuple

from differential import Program, differential

import torch


def calls(count=14, *more):
    return [(torch.randn(4, 3), *(each(index) for each in more)) for index in range(count)]


@dataclasses.dataclass
class Point:
    x: float
    y: int = 2
    name: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(order=True, frozen=True)
class Version:
    major: int
    minor: int = 0


class Amount:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value if isinstance(other, Amount) else NotImplemented

    def __lt__(self, other):
        return self.value < other.value if isinstance(other, Amount) else NotImplemented

    __hash__ = None


class Larger(Amount):
    def __gt__(self, other):
        return "reflected"


class Transition(NamedTuple):
    state: torch.Tensor
    reward: float = 2.0
    kinds = ("a", "b")

    @property
    def scaled(self):
        return self.state * self.reward


@differential(hits=10, graphs=1)
def test_dataclasses_made_and_kept():
    kept = Point(1.0, 2, "kept")

    def step(x, k):
        made = Point(1.0, k, "made")
        y = x * 2 if made == kept else x + 1
        return y * (3 if made != kept else 5), kept == Point(1.0), kept == (1.0, 2)

    return Program(step, calls(18, lambda index: index % 3 + 1), [kept])


@differential(hits=10, graphs=1)
def test_the_order_of_dataclasses():
    kept = Version(1, 2)

    def step(x, k):
        made = Version(1, k)
        y = x * 2 if made < kept else x + 1
        return y * (3 if kept <= made else 5), max(Version(0, 9), Version(1, 0)).major

    return Program(step, calls(18, lambda index: index % 4))


@differential(hits=6)
def test_a_field_that_is_changed():
    kept = Point(1.0)

    def step(x):
        return x * 2 if kept == Point(1.0) else x + 1

    def change():
        kept.y = 7

    return Program(step, [*calls(8), change, *calls(8)], [kept])


@differential(hits=10)
def test_what_classes_say():
    kept = Amount(2)

    def step(x, k):
        made = Amount(k)
        y = x * 2 if made == kept else x + 1
        y = y * 3 if made != kept else y + 2
        y = y * 5 if kept > made else y + 3
        return y, made == 2, made != None, kept == kept, kept < Larger(1)  # noqa: E711

    return Program(step, calls(20, lambda index: index % 4), [kept])


@differential(hits=10)
def test_objects_without_an_order():
    def step(x):
        try:
            return x * 2 if Point(1.0) < Point(2.0) else x
        except TypeError:
            return x * 3

    return Program(step, calls())


@differential(hits=10)
def test_tuples_of_numbers_that_vary():
    def step(x, k):
        y = x * 2 if (k, 1) == (2, 1) else x + 1
        y = y * 3 if (1, k, 2) < (1, 2, 3) else y + 2
        return y * 2 if (k,) >= (1, 0) else y

    return Program(step, calls(20, lambda index: index % 4))


@differential(hits=10, graphs=1)
def test_what_a_named_tuple_has_of_its_class():
    def step(x, k):
        made = Transition(x, k)._replace(reward=k + 1.0)
        fields = made._asdict()
        return made.scaled * len(made.kinds) + fields["state"], list(fields), made._fields

    return Program(step, calls(16, lambda index: index * 0.5))


class Options(dict):
    __getattr__ = dict.__getitem__


@differential(hits=8)
def test_items_as_attributes():
    options = Options(rate=0.5, depth=2)

    def step(x):
        return x * options.rate * options.depth

    def change():
        options["depth"] = 3

    return Program(step, [*calls(8), change, *calls(8)], [options])


class Strange:
    __eq__ = property(lambda self: lambda other: True)


@differential(reasons=["expression"])
def test_a_comparison_that_is_no_method():
    strange = Strange()

    def step(x):
        return x * 2 if strange == 3 else x

    return Program(step, calls(5))


@differential(reasons=["dynamic_value"])
def test_two_floats_that_may_be_one_nan():
    nan = float("nan")

    def step(x, a, b):
        return x * 2 if (a, 1) == (b, 1) else x * 3

    def first(index):
        return nan if index % 3 == 0 else index * 1.0

    return Program(step, [*calls(9, first, first), *calls(6, first, lambda index: -1.0)])


@differential(hits=8)
def test_element_in_a_tensor():
    pad = 0

    def step(x):
        return x * 2 if pad in x else x * 3

    return Program(step, [(torch.arange(6) + i % 2,) for i in range(20)])


@differential(hits=8)
def test_element_not_in_a_tensor():
    def step(x, pad):
        return x * 2 if pad not in x else x * 3

    return Program(step, [(torch.arange(6), 3 + i % 5) for i in range(24)])


@differential(hits=3)
def test_equality_of_different_kinds():
    def step(x, dim):
        if dim == () or dim is None or dim == "all":
            return x.sum()
        return x.sum(dim), dim != [], (dim,) == dim

    return Program(step, [(torch.randn(3, 4), 1) for _ in range(6)])


def batches(count=8, rows=3):
    return [(torch.randn(rows, 4),) for _ in range(count)]


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


@differential(hits=4, graphs=1)
def test_dicts_are_compared():
    existing, nested = {"a": 1, "b": [2]}, {"b": [2], "a": 1}

    def step(x, n):
        made = {"n": n, "a": 1}
        tests = (existing == nested, existing != {}, {} == {}, existing == {"a": 1, "c": [2]})
        return (
            x * 2,
            tests,
            made == {"a": 1, "n": n + 1},
            made != {"n": n, "a": 1},
            made == {"n": n},
        )

    return Program(step, [(torch.randn(3), n) for n in range(2, 10)])


@differential(hits=4)
def test_a_dict_that_equals_another_one_in_some_calls():
    shared, other = {}, {"a": 1}

    def step(x):
        return x * 2 if shared == {} else x * 3 if shared == other else x * 5

    def fill():
        shared["a"] = 1

    def change():
        shared["a"] = 2

    batches = [(torch.randn(3),) for _ in range(5)]
    return Program(step, [*batches, fill, *batches, change, *batches])


@differential(hits=4)
def test_the_order_of_tuples_of_tuples():
    class State:
        version = (5, (24, 0), "final")

    def step(x, n):
        later = State.version >= (5, (3,), "rc")
        varying = ((n, 2), 1) < ((5, 2), 1)
        return (x * 2 if later else x), State.version < (5, (24,)), varying

    return Program(step, [(torch.randn(3), n) for n in range(2, 10)])


@differential(hits=10)
def test_functions_of_c():
    activations = [torch.relu, torch.tanh]

    def step(x, activation):
        y = x * 2 if activation == torch.relu else x - 1
        return y, activation in (torch.tanh, len), activation != torch.tanh, len == len  # noqa: PLR0124

    return Program(step, calls(14, lambda i: activations[i // 7]))
