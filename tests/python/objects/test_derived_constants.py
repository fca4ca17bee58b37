"""Objects whose class derives from a text or a number: compared, looked for and used as keys by what they hold."""

import enum

import pytest
from differential import Program, differential

import torch


class Text(str, enum.Enum):
    A = "a"
    B = "b"
    __slots__ = ()


class Plain(enum.Enum):
    A = 1
    B = 2


class Number(enum.IntEnum):
    A = 1
    B = 2


class Name(str):
    pass


class Size(int):
    pass


class Own(str):
    def __eq__(self, other):
        return isinstance(other, Text)

    __hash__ = str.__hash__


class State:
    def __init__(self, held):
        self.held = held


KEPT = {Text.A: 2.0, Text.B: 3.0, Plain.A: 5.0, Plain.B: 7.0, Number.B: 11.0}

TESTS = {
    "equal": lambda held: held == Text.A,
    "unequal": lambda held: held != Text.A,
    "a text": lambda held: held == "a",
    "a text first": lambda held: "a" == held,  # noqa: SIM300  (it is what is tested)
    "unequal to a text": lambda held: held != "a",
    "before": lambda held: held < "b",
    "in a tuple": lambda held: held in (Text.A, Plain.A),
    "in a list of texts": lambda held: held in ["c", "a"],
    "in a set": lambda held: held in {"a", "c"},
    "no number": lambda held: held == 1,
    "nothing": lambda held: held is None or held == None,  # noqa: E711
    "no list": lambda held: held == ["a"],
    "no other enumeration": lambda held: held == Plain.A,
    "a number": lambda held: held == 1 or held == "a",
}


def calls(*between):
    made = [(torch.randn(3),) for _ in range(7)]
    for change in between:
        made += [change, *((torch.randn(3),) for _ in range(6))]
    return made


def replaced(state, held):
    return lambda: setattr(state, "held", held)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Text.A, Text.B),
        (Name("a"), Name("b")),
        (Text.B, Name("a")),
        (Plain.A, Plain.B),
    ],
    ids=lambda held: f"{type(held).__name__}.{held}",
)
def test_comparisons(test, first, second):
    asked = TESTS[test]
    if test == "before" and isinstance(first, Plain):
        return  # such objects have no order

    @differential(hits=8)
    def agrees():
        state = State(first)

        def step(x):
            return x * 2 if asked(state.held) else x + 1

        return Program(step, calls(replaced(state, second), replaced(state, first)), [state])

    agrees()


@differential(hits=4)
def test_a_comparison_of_its_own():
    held = Own("a")

    def step(x):
        return x * 2 if held == Text.B and Text.B == held and held != "a" else x + 1

    return Program(step, calls())


@differential(reasons=["dynamic_value"], hits=0)
def test_a_key_by_a_comparison_of_its_own():
    held = Own("a")

    def step(x):
        return x * 2 if held in KEPT else x + 1

    return Program(step, calls())


@differential(hits=8)
def test_numbers_of_derived_classes():
    state = State(Size(3))

    def step(x):
        held = state.held
        return x * 2 if held == 3 and held != Size(4) and held < 5 else x + 1

    return Program(step, calls(replaced(state, Size(4)), replaced(state, Number.B)), [state])


@differential(hits=8)
@pytest.mark.parametrize("first", [Text.A, Plain.A, Number.B, Name("a")])
def test_keys(first):
    state = State(first)
    table = dict(KEPT)

    def step(x):
        own = {state.held: x * 3, "c": x}
        return own[state.held] * table[state.held], table.get(state.held, 1.0), len(own)

    changes = [replaced(state, Text.B), lambda: table.__setitem__(Text.B, 13.0)]
    return Program(step, calls(*changes), [state, table])


@differential(hits=8)
def test_a_text_finds_what_stands_under_a_member():
    table = {Text.A: torch.randn(3), "b": torch.randn(3)}

    def step(x):
        return x * table["a"] + table[Text.B], list(table), "a" in table, Text.B in table

    return Program(
        step,
        calls(
            lambda: table.update({Text.A: torch.randn(3)}), lambda: table.update(a=torch.ones(3))
        ),
    )


@differential(hits=8)
def test_the_class_gets_a_comparison_of_its_own():
    class Changed(str):
        pass

    state = State(Changed("a"))

    def step(x):
        return x * 2 if state.held == "a" else x + 1

    return Program(step, calls(lambda: setattr(Changed, "__eq__", lambda self, other: False)))


@differential(reasons=["guard_failed", "dynamic_value"])
def test_the_class_gets_a_hash_of_its_own():
    class Changed(str):
        pass

    state = State(Changed("a"))
    table = {"a": 2.0}

    def step(x):
        return x * table.get(state.held, 5.0)

    return Program(step, calls(lambda: setattr(Changed, "__hash__", lambda self: 1)))
