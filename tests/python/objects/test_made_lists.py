"""Objects that the run makes of the program's own classes derived from list."""

import copy
import json
import pickle

import pytest
from differential import Program, differential

import torch


def batches(count=8):
    return [(torch.randn(3, 4),) for _ in range(count)]


class Plain(list):
    pass


class Chain(list):
    """As the lists of processors that transformers makes in each `generate`."""

    def __call__(self, x, **options):
        for each in self:
            x = each(x, **options)
        return x


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


class Named(list):
    """Fills itself and has attributes."""

    kind = "named"

    def __init__(self, name, *elements):
        super().__init__(elements)
        self.name = name

    @property
    def first(self):
        return self[0]


class Unfilled(list):
    """Does not call list's own initialiser."""

    def __init__(self, elements):
        self.given = elements


class Slotted(list):
    __slots__ = ("name",)


class Constructed(list):
    def __new__(cls, elements, name="constructed"):
        made = super().__new__(cls, elements)
        made.name = name
        return made

    def __init__(self, elements, name="constructed"):
        super().__init__(elements)


class Doubling(list):
    """Has its own say in all that it is asked."""

    def append(self, element):
        super().append(element)
        super().append(element)

    def __setitem__(self, index, element):
        super().__setitem__(index, element * 10)

    def __getitem__(self, index):
        return list.__getitem__(self, index) * 2

    def __iter__(self):
        for element in super().__iter__():
            yield element + 1

    def __len__(self):
        return super().__len__() + 100

    def __contains__(self, element):
        return element == "all"


class Joining(list):
    def __add__(self, other):
        return ("joined", *self, *other)

    def __radd__(self, other):
        return ("joined from the right", *self)

    def __iadd__(self, other):
        self.append(other)
        return self

    def __eq__(self, other):
        return "equal"


def chained(x):
    made = Chain()
    made.append(Scaled(2.0))
    made.append(Scaled(x.sum()))
    made.insert(0, Scaled(0.5))
    return made(x), len(made), bool(made), bool(Chain())


def elements(x):
    made = Plain([x, 1.0])
    made.extend((x * 2, 3.0))
    made[1] = x + 1
    del made[3]
    made += [x - 1]
    total = sum(each.sum() for each in made)
    first, *rest = made
    return total, first, rest, made[-1], made[1:], made.pop(0), len(made)


def returned(x):
    made = Named("result", x * 2, x.sum())
    made.more = [made[0]]
    return made, made.name, made.first, made.kind, vars(made), type(made), isinstance(made, list)


def unfilled(x):
    return Unfilled([x * 2]), len(Unfilled([x]))


def slotted(x):
    made = Slotted([x * 2])
    made.name = "slotted"
    return made, made.name, hasattr(made, "more")


def constructed(x):
    made = Constructed([x, x * 2])
    return made, made.name, Constructed((), name="other").name


def shared(x):
    made = Plain()
    made.append(made)
    pair = [made, made]
    return pair, pair[0] is pair[1], made[0] is made, x * 2


def overridden(x):
    made = Doubling()
    made.append(1)
    made[0] = 3
    told = made[0], made[1], list(made), len(made), bool(made), "all" in made, 1 in made
    return x * made[1], told, made, [*made], made.copy(), list.__len__(made)


def added(x):
    made, other = Plain([x, 1]), Joining([2])
    return (
        made + [3],
        made + Plain([3]),
        [3] + other,
        made * 2,
        2 * made,
        other + [1],
        x * 2,
    )


def added_in_place(x):
    made, other = Plain([x * 2]), Joining([2])
    first = made
    made += (1, 2)
    made *= 2
    other += 5
    return made, first is made, other, made + Plain([3])


def compared(x):
    made = Plain([1, 2])
    return (
        made == [1, 2],
        [1, 2] == made,
        made == Chain([1, 2]),
        made != [1],
        made == (1, 2),
        made < [1, 3],
        made == Joining([1, 2]),
        [1] == Joining([1]),
        x * 2,
    )


def reversed_list(x):
    made = Plain([x, x + 1])
    doubling = Doubling([1, 2, 3])
    return (
        list(reversed(made)),
        list(reversed(doubling)),
        made.reverse(),
        made,
        sorted(Plain([2, 1])),
    )


def taken_apart(x):
    match Plain([x, 2]):
        case [first, 2]:
            return first * 2
    return x


def refilled(x):
    made = Plain([1, 2])
    made.__init__([x])
    made.extend(made)
    made[1:1] = made
    return made, made.pop() * 2, made.copy(), made.clear(), made


def given_to_torch(x):
    return torch.stack(list(Plain([x, x]))), x.view(*Plain([4, 3])), x.sum(tuple(Plain([0, 1])))


MADE = {
    each.__name__: each
    for each in (
        chained,
        elements,
        returned,
        unfilled,
        slotted,
        constructed,
        shared,
        overridden,
        added,
        added_in_place,
        compared,
        reversed_list,
        taken_apart,
        refilled,
        given_to_torch,
    )
}


@pytest.mark.parametrize("name", MADE)
@differential(hits=4)
def test_made(name):
    return Program(MADE[name], batches())


class Telling(list):
    def __repr__(self):
        return f"telling {list(self)}"


def told(x):
    made = Telling([1, 2])
    return x * 2, str(made), f"{made} {made!r}"


@differential(hits=4)
def test_the_text_of_the_class_itself():
    return Program(told, batches())


def shown(x):
    return x * 2, str(Plain([1, 2]))


def shown_formatted(x):
    return x * 2, f"{Named('n', 1)}"


def copied(x):
    return copy.copy(Plain([x]))


def copied_deeply(x):
    return copy.deepcopy(Plain([x]))


def dumped(x):
    return json.dumps(Plain([1, 2])), x * 2


def pickled(x):
    return pickle.dumps(Plain([1, 2])), x * 2


def stacked(x):
    return torch.stack(Plain([x, x]))


def printed(x):
    print(Plain([1, 2]))
    return x * 2


def added_to_a_list(x):
    return [1] + Plain([x * 2])


def added_from_the_right(x):
    return Plain([x * 2]) + Joining([1])


def without_keywords(x):
    try:
        return Plain(key=x)
    except TypeError as error:
        return str(error), x * 2


def hashed(x):
    try:
        return {Plain([1]): x}
    except TypeError as error:
        return str(error), x * 2


def compared_with_a_tuple(x):
    return x * 2, Plain([1]) < Joining([2]), Plain([1]) == {1: 2}


REFUSED = {
    "dynamic_value": (shown, shown_formatted, hashed),
    "unknown_callable": (copied, copied_deeply, dumped, pickled, stacked, printed),
    "expression": (added_to_a_list,),
}


@pytest.mark.parametrize(
    ("reason", "step"),
    [(reason, step) for reason, steps in REFUSED.items() for step in steps],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_refused(reason, step):
    differential(reasons=[reason], hits=0)(lambda: Program(step, batches()))()


@differential(hits=3)
def test_made_on_one_side_of_a_branch():
    def step(x):
        made = Plain([x])
        if x.sum() > 0:
            made.append(x * 3)
        else:
            made[0] = x + 1
            made.append(x)
        return made[1], made

    return Program(step, [(torch.full((3,), 1.0 if i % 2 else -1.0),) for i in range(14)])


@differential(hits=3)
def test_filled_in_a_loop():
    def step(x, iterations):
        made = Chain([])
        for i in range(iterations):
            made.append(x * i)
        return made, len(made), sum(made)

    return Program(step, [(torch.randn(3), 2 + i % 4) for i in range(24)])


@differential(hits=3)
def test_replaced_in_a_loop():
    def step(x, iterations):
        made = Plain([x])
        for i in range(iterations):
            made = Plain([made[0] * 2 + i])
        return made

    return Program(step, [(torch.randn(3), 2 + i % 4) for i in range(24)])


class Tree(Plain):
    def __init__(self, value, *children):
        super().__init__(children)
        self.value = value


@differential(hits=2)
def test_made_in_a_recursion():
    def build(x, depth):
        return Tree(x) if depth == 0 else Tree(x, build(x * 2, depth - 1), build(x + 1, depth - 1))

    def total(tree):
        return tree.value.sum() + sum(total(child) for child in tree)

    return Program(lambda x: total(build(x, 3)), batches())


class State:
    made = None


@differential(hits=4)
def test_stored():
    state = State()

    def step(x):
        before = 0 if state.made is None else len(state.made)
        state.made = Plain([x * 2, before])
        state.made.last = state.made
        return state.made[0] + before

    return Program(step, batches(10), watch=[state])


@differential(hits=4)
def test_with_gradients():
    weight = torch.randn(4, requires_grad=True)

    def step(x):
        weight.grad = None
        made = Chain([Scaled(weight), Scaled(2.0)])
        made(x).sum().backward()
        return made, weight.grad * 2

    return Program(step, batches(), watch=[weight])


@differential(hits=4)
def test_methods_that_change():
    calls = []

    class Noting(list):
        def append(self, element):
            calls.append(len(self))
            super().append(element)

    def step(x):
        made = Noting()
        made.append(x)
        made.append(x * 2)
        return sum(made)

    def change():
        Noting.append = lambda self, element: list.append(self, element + 1)

    return Program(step, [*batches(), change, *batches()], watch=[calls])


class Multiplied(list):
    def __mul__(self, other):
        return "multiplied"


@differential()
def test_repeated_in_place_by_its_own_mul():
    def step(x):
        made = Multiplied([1])
        made *= 2
        return made, x * 2

    return Program(step, [(torch.randn(3),) for _ in range(6)])
