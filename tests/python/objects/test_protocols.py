"""Special methods of the program's classes: what Python asks of their results, and that they are called
when Python calls them, not while a graph is made.
PYTEST_DONT_REWRITE"""

import math

import pytest
from differential import Program, differential

import torch
import torchjanus


def at_once(step):
    return (torchjanus.function(step, profile_runs=0),) * 2


def program(step, *watch, count=4):
    return Program(step, [(torch.randn(3),) for _ in range(count)], watch=watch, convert=at_once)


def class_with(method, result, log):
    """A class whose method notes that it was called."""

    def noted(self, *arguments):
        log.append(method)
        return result(self) if callable(result) else result

    return type("Noting", (), {method: noted})


ANSWERS = {
    "a bool": lambda self: False,
    "an int": lambda self: 1,
    "zero": lambda self: 0,
    "None": lambda self: None,
    "a text": lambda self: "yes",
    "a tensor": lambda self: torch.ones(()),
}
LENGTHS = {
    "an int": lambda self: 2,
    "a bool": lambda self: True,
    "a negative one": lambda self: -1,
    "a float": lambda self: 2.0,
    "None": lambda self: None,
    "a great one": lambda self: 2**70,
}
ITERATORS = {
    "an iterator": lambda self: iter([1, 2]),
    "a generator": lambda self: (i for i in range(3)),
    "a list": lambda self: [1, 2],
    "a range": lambda self: range(3),
    "itself": lambda self: self,
    "None": lambda self: None,
}
TEXTS = {"a text": lambda self: "abc", "an int": lambda self: 5, "None": lambda self: None}


@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize(
    ("method", "results", "use"),
    [
        ("__bool__", ANSWERS, lambda it: 5 if it else 3),
        ("__bool__", ANSWERS, lambda it: 5 if bool(it) else 3),
        ("__bool__", ANSWERS, lambda it: 5 if not it else 3),
        ("__len__", LENGTHS, lambda it: len(it) + 0.5),
        ("__len__", LENGTHS, lambda it: 5 if it else 3),
        ("__iter__", ITERATORS, lambda it: len(list(it))),
        ("__iter__", ITERATORS, lambda it: sum(2 for _ in it)),
        ("__str__", TEXTS, lambda it: len(str(it))),
        ("__repr__", TEXTS, lambda it: len(f"{it!r}")),
        ("__format__", TEXTS, lambda it: len(f"{it}")),
    ],
)
def test_results_that_python_checks(method, results, use, is_made):
    for result in results.values():

        @differential(hits=4, graphs=1)
        def check(result=result):
            log = []
            kind = class_with(method, result, log)
            existing = kind()

            def step(x):
                it = kind() if is_made else existing
                try:
                    return x * use(it)
                except (TypeError, ValueError, OverflowError):
                    return x - 1

            return program(step, log)

        try:
            check()
        except AssertionError as error:  # what is refused stays imperative, and is eager's
            if "no graph ran" not in str(error):
                raise


@differential(hits=4, graphs=1)
@pytest.mark.parametrize("result", [1, "yes", None])
def test_truth_of_what_is_no_bool(result):
    class Answering:
        def __bool__(self):
            return result

    existing = Answering()

    def step(x):
        try:
            return x * (2 if existing else 3)
        except TypeError:
            return x - 1

    return program(step)


@differential(hits=3)
def test_a_length_that_varies_and_is_negative_at_times():
    class Sized:
        def __init__(self):
            self.length = 2

        def __len__(self):
            return self.length

    sized = Sized()

    def step(x, length):
        sized.length = length
        try:
            return x * len(sized)
        except ValueError:
            return x - 1

    lengths = [2, -1, 3, 4, -2, 5, 0, 7]
    return Program(step, [(torch.randn(3), n) for n in lengths], watch=[sized], convert=at_once)


@differential(reasons=["dynamic_value"])
@pytest.mark.parametrize(
    ("method", "use"),
    [
        ("__index__", lambda it: [4, 5, 6][it]),
        ("__index__", lambda it: len([4, 5, 6][it:])),
        ("__index__", lambda it: len(range(it))),
        ("__float__", lambda it: math.sqrt(it)),
        ("__floor__", lambda it: math.floor(it)),
    ],
)
def test_methods_that_python_calls_for_a_number(method, use):
    log = []
    existing = class_with(method, 1.0 if method == "__float__" else 1, log)()

    def step(x):
        return x * use(existing)

    return program(step, log)


@differential(hits=4, graphs=1)
def test_a_metaclass_that_says_what_its_objects_are():
    log = []

    class Asked(type):
        def __instancecheck__(cls, instance):
            log.append("instance")
            return "yes"

        def __subclasscheck__(cls, subclass):
            log.append("subclass")
            return 0

    class Anything(metaclass=Asked):
        pass

    def step(x):
        return x * (2 if isinstance(3, Anything) else 5) + (3 if issubclass(int, Anything) else 7)

    return program(step, log)


class OwnLength(dict):
    def __len__(self):
        return 7


@differential(hits=4, graphs=1)
def test_a_dict_with_a_length_of_its_own():
    held = OwnLength(a=1)
    return program(lambda x: x * len(held), held)


# --- reversed ---------------------------------------------------------------------------------------


class Counting:
    def __len__(self):
        return 3

    def __iter__(self):
        return iter([1, 2])

    def __getitem__(self, position):
        return position + 10


class OnlyIterating:
    def __iter__(self):
        return iter([1, 2])


@differential(hits=4, graphs=1)
def test_positions_are_reversed_and_no_iteration():
    existing = Counting()

    def step(x):
        total = 0
        for i, element in enumerate(reversed(existing)):
            total += (i + 1) * element
        return x * total

    return program(step)


@differential(reasons=["would_raise"])
def test_what_only_iterates_is_not_reversed():
    existing = OnlyIterating()
    return program(lambda x: x * sum(reversed(existing)))


@differential(hits=4, graphs=1)
@pytest.mark.parametrize("make", [lambda: {1, 2}, lambda: iter([1, 2]), lambda: zip([1], [2])])
def test_what_has_no_positions_is_not_reversed(make):
    def step(x):
        try:
            return x * len(list(reversed(make())))
        except TypeError:
            return x - 1

    return program(step)


@differential(hits=4, graphs=1)
def test_a_list_that_changes_while_it_is_reversed():
    def step(x):
        elements, seen = [1, 2, 3], []
        for each in reversed(elements):
            seen.append(each)
            elements[0] = 9
        for each in reversed(elements):
            seen.append(each)
            elements.pop()
        return x * 2, seen

    return program(step)
