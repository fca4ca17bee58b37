"""Small programs, each of a kind that graphs have trouble with: it gives its function, calls, and what it leaves."""

from collections.abc import Callable
from typing import Any

from .parts import KINDS

Program = tuple[Any, ...]  # a Subject's fields (correctness.py)

DCF, DT, IF = KINDS
POSITIVE, NEGATIVE = [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]


def branch() -> Program:
    def function(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    return function, [(POSITIVE,), (POSITIVE,), (POSITIVE,), (POSITIVE,), (NEGATIVE,)]


def loop_until() -> Program:
    def function(x):
        while x.sum() < 20:
            x = x * 2
        return x

    return function, [(POSITIVE,), (POSITIVE,), (POSITIVE,), ([0.1, 0.2, 0.3],), ([9.0, 9.0],)]


def loop_over_rows() -> Program:
    def function(x):
        state = x[0]
        for row in x[1:]:
            state = state * 0.5 + row
        return state

    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
    return function, [(rows[:2],), (rows[:2],), (rows[:3],), (rows,)]


def recursion() -> Program:
    def function(tree):
        if isinstance(tree, tuple):
            return function(tree[0]) * 0.5 + function(tree[1])
        return tree * 2

    leaf = [1.0, 2.0]
    return function, [((leaf, leaf),), (((leaf, leaf), leaf),), ((leaf, (leaf, (leaf, leaf))),)]


def other_dtype() -> Program:
    def function(x):
        return x * 2 + 1

    return function, [(POSITIVE,), (POSITIVE,), (POSITIVE,), ([1, 2, 3],)]


def other_rank() -> Program:
    def function(x):
        return x * x.sum(0)

    return function, [(POSITIVE,), (POSITIVE,), ([POSITIVE, NEGATIVE],), ([POSITIVE],)]


def none_or_array() -> Program:
    def function(x, mask):
        return x if mask is None else x * mask

    return function, [(POSITIVE, None), (POSITIVE, None), (POSITIVE, None), (POSITIVE, NEGATIVE)]


class Holder:
    """An object that functions write to."""

    value: Any = 1.0


def attribute_becomes_array() -> Program:
    holder = Holder()

    def function(x):
        result = x * holder.value
        holder.value = x.sum() if isinstance(holder.value, float) else 1.0
        return result

    return function, [(POSITIVE,), (NEGATIVE,)], lambda: holder.value


def attribute() -> Program:
    holder = Holder()

    def function(x):
        holder.value = holder.value * 0.9 + 1
        return x * holder.value

    return function, [(POSITIVE,)], lambda: holder.value


def state_array() -> Program:
    holder = Holder()

    def function(x):
        holder.value = holder.value * 0.9 + x.mean()
        return x * holder.value

    return function, [(POSITIVE,), (NEGATIVE,)], lambda: holder.value


counter = 0


def global_variable() -> Program:
    global counter
    counter = 0

    def function(x):
        global counter
        counter = counter + 1
        return x * counter

    return function, [(POSITIVE,)], lambda: counter


def appended() -> Program:
    history: list[Any] = []

    def function(x):
        history.append(x.sum())
        return x * len(history)

    return function, [(POSITIVE,), (NEGATIVE,)], lambda: history


def printed() -> Program:
    def function(x):
        print("called")
        return x * 2

    return function, [(POSITIVE,)]


PROGRAMS: dict[str, tuple[str, Callable[[], Program]]] = {
    "branch on a value": (DCF, branch),
    "loop until a value": (DCF, loop_until),
    "loop over as many rows as there are": (DCF, loop_over_rows),
    "recursion over trees": (DCF, recursion),
    "another dtype": (DT, other_dtype),
    "another rank": (DT, other_rank),
    "None or an array": (DT, none_or_array),
    "an attribute that is a number or an array": (DT, attribute_becomes_array),
    "a number kept in an attribute": (IF, attribute),
    "an array kept in an attribute": (IF, state_array),
    "a global number": (IF, global_variable),
    "a list that grows": (IF, appended),
    "print": (IF, printed),
}
