"""`place += tensor` and its like: the place's object and key are evaluated once, what the place holds
is read, the operand is evaluated, and what the operator gives is stored, also where that is the same object.
PYTEST_DONT_REWRITE"""

import collections
import dataclasses
import types

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def at_once(step):
    return (torchjanus.function(step, profile_runs=0),) * 2


def program(step, *watch, count=6):
    return Program(step, [(torch.randn(3),) for _ in range(count)], watch=watch, convert=at_once)


def numbers():
    return torch.tensor([1.0, 2.0, 3.0])


# --- places that are told of the store --------------------------------------------------------------


class Counted:
    """A property that counts how often it is set."""

    def __init__(self, value=None):
        self._place = numbers() if value is None else value
        self.stores = 0

    @property
    def place(self):
        return self._place

    @place.setter
    def place(self, value):
        self.stores += 1
        self._place = value


class Halved(Counted):
    @property
    def place(self):
        return self._place

    @place.setter
    def place(self, value):
        self._place = value * 0.5


class OwnSetattr:
    def __init__(self):
        object.__setattr__(self, "place", numbers())
        object.__setattr__(self, "stores", 0)

    def __setattr__(self, name, value):
        object.__setattr__(self, "stores", self.stores + 1)
        object.__setattr__(self, name, value)


class Described:
    class Descriptor:
        def __get__(self, owner, kind):
            return owner.held

        def __set__(self, owner, value):
            owner.stores += 1
            owner.held = value

    place = Descriptor()

    def __init__(self):
        self.held = numbers()
        self.stores = 0


class Slotted:
    __slots__ = ("place",)

    def __init__(self):
        self.place = numbers()


@differential(hits=6, graphs=1)
@pytest.mark.parametrize("kind", [Counted, Halved, OwnSetattr, Described, Slotted])
def test_attributes_of_classes_with_rules_of_their_own(kind):
    holder = kind()
    held = holder.place

    def step(x):
        holder.place += x
        return holder.place * 2

    return program(step, held, *([] if kind is Slotted else [holder]))


@differential(hits=6, graphs=1)
def test_attributes_that_the_run_made():
    def step(x):
        holder = Counted(x * 1)
        holder.place += x
        holder.place *= 2
        return holder.place, holder.stores

    return program(step)


@differential(hits=12, graphs=1)
def test_on_the_sides_of_a_branch():
    holder = Counted()

    def step(x):
        if x.sum() > 0:
            holder.place += x
        else:
            holder.place -= 2 * x
        return holder.place * 2

    return program(step, holder, count=12)


@differential(hits=2)
@pytest.mark.parametrize("kind", [Counted, Halved])
def test_in_a_loop(kind):
    holder = kind()

    def step(x, count):
        for _ in range(count):
            holder.place += x
        return holder.place * 2

    calls = [(torch.randn(3), count) for count in (3, 2, 5, 4, 7, 1, 6)]
    return Program(step, calls, watch=[holder])


class OwnItems:
    def __init__(self):
        self.held = {"a": numbers()}
        self.stores = 0

    def __getitem__(self, key):
        return self.held[key]

    def __setitem__(self, key, value):
        self.stores += 1
        self.held[key] = value * 0.5


@differential(hits=6, graphs=1)
def test_items_of_a_class_with_rules_of_its_own():
    holder = OwnItems()

    def step(x):
        holder["a"] += x
        return holder["a"] * 2

    return program(step, holder)


class HalvedItems(dict):
    def __setitem__(self, key, value):
        dict.__setitem__(self, key, value * 0.5)


@differential(reasons=["unknown_callable"])
def test_items_of_a_dict_that_asks_its_own_method():
    holder = HalvedItems()
    dict.__setitem__(holder, "a", numbers())

    def step(x):
        holder["a"] += x
        return holder["a"] * 2

    return program(step, holder)


class PlainItems(dict):
    pass


@differential(hits=5)
@pytest.mark.parametrize(
    "kind", [dict, PlainItems, collections.OrderedDict, lambda **given: [given["a"], given["b"]]]
)
def test_items_of_containers(kind):
    holder = kind(a=numbers(), b=numbers())
    key = "a" if isinstance(holder, dict) else 0

    def step(x):
        holder[key] += x
        return holder[key] * 2

    return program(step, holder)


class ModuleOfBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("held", numbers())
        self.plain = numbers()
        self.weight = nn.Parameter(numbers())

    def forward(self, x):
        self.held += x
        self.plain -= x
        with torch.no_grad():
            self.weight *= 0.5
        return self.held * self.plain


@differential(hits=6, graphs=1)
def test_buffers_and_parameters():
    model = ModuleOfBuffers()
    return program(lambda x: model(x), model)


# --- places that are not where the value was read ---------------------------------------------------


class WithClassAttribute:
    held = None


@differential(hits=5)
def test_what_the_class_holds_becomes_the_object_s():
    WithClassAttribute.held = numbers()
    first, second = WithClassAttribute(), WithClassAttribute()

    def step(x):
        first.held += x
        return first.held * 2

    return program(step, first, second, WithClassAttribute.held)


@differential(hits=6, graphs=1)
@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("place", ["attribute", "item", "element"])
def test_an_operand_that_rebinds_the_place(place, deletes):
    holder = types.SimpleNamespace(held=numbers(), other=1)
    items = {"held": numbers(), "other": 1} if place == "item" else [numbers()]
    key = "held" if place == "item" else 0

    def reset(x):
        if place == "attribute":
            holder.held = holder.held * 0.5
            if deletes:
                del holder.held
        else:
            items[key] = items[key] * 0.5
            if deletes and place == "item":
                del items[key]
        return x

    def step(x):
        if place == "attribute":
            holder.held += reset(x)
            return holder.held * 2
        items[key] += reset(x)
        return items[key] * 2

    return program(step, holder, items)


held_by_module = None


@differential(hits=6, graphs=1)
@pytest.mark.parametrize("rebinds", [False, True])
def test_global_variables(rebinds):
    global held_by_module
    held_by_module = numbers()

    def reset(x):
        global held_by_module
        if rebinds:
            held_by_module = held_by_module * 0.5
        return x

    def step(x):
        global held_by_module
        held_by_module += reset(x)
        return held_by_module * 2

    return program(step, held_by_module)


@differential(hits=6, graphs=1)
@pytest.mark.parametrize("rebinds", [False, True])
def test_variables_of_an_enclosing_function(rebinds):
    held = numbers()

    def reset(x):
        nonlocal held
        if rebinds:
            held = held * 0.5
        return x

    def step(x):
        nonlocal held
        held += reset(x)
        return held * 2

    return program(step, held)


@differential(hits=6, graphs=1)
def test_gradients():
    weight = nn.Parameter(numbers())
    weight.grad = numbers()

    def step(x):
        weight.grad *= 0.5
        weight.grad += x
        return weight.grad * 2

    return program(step, weight)


# --- stores that raise, after the operator has written ----------------------------------------------


@dataclasses.dataclass(frozen=True)
class Frozen:
    held: torch.Tensor


Named = collections.namedtuple("Named", "held other")


class ReadOnly:
    def __init__(self):
        self._held = numbers()

    @property
    def held(self):
        return self._held


class Refusing:
    def __init__(self):
        object.__setattr__(self, "held", numbers())

    def __setattr__(self, name, value):
        raise AttributeError("no")


STORES = {
    "frozen": (lambda: Frozen(numbers()), ["no_source"]),
    "named": (lambda: Named(numbers(), 1), ["heap_write"]),
    "read_only": (ReadOnly, ["would_raise"]),
}


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("kind", STORES)
def test_attributes_that_are_not_written(kind, handled):
    make, reasons = STORES[kind]

    @differential(reasons=reasons)
    def check():
        holder = make()

        def step(x):
            if not handled:
                holder.held += x
            try:
                holder.held += x
            except AttributeError:
                return holder.held * 3
            return holder.held * 2

        return program(step, holder.held)

    check()


@differential(hits=6, graphs=1)
def test_a_store_that_raises_in_the_program():
    holder = Refusing()

    def step(x):
        try:
            holder.held += x
        except AttributeError:
            return holder.held * 3
        return holder.held * 2

    return program(step, holder.held)


@differential(reasons=["heap_write"])
@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("element", [numbers, lambda: [1]])
def test_elements_of_a_tuple(element, handled):
    holder = (element(), 2)

    def step(x):
        try:
            holder[0] += x if isinstance(holder[0], torch.Tensor) else [2]
        except TypeError:
            if not handled:
                raise
        return x * len(holder[0])

    return program(step, holder)


@differential(reasons=["heap_write"])
def test_attributes_of_a_tensor_that_have_no_setter():
    def step(x):
        y = x[None] * torch.ones(2, 1)
        y.T += 1
        return y

    return program(step)


# --- the operators, and what is no tensor -----------------------------------------------------------


@differential(hits=6, graphs=1)
def test_all_operators():
    holder = Counted()
    whole, flags = Counted(torch.tensor([1, 2, 3])), Counted(torch.tensor([True, False, True]))

    def step(x):
        holder.place -= x
        holder.place *= 2
        holder.place /= 3
        holder.place //= 0.25
        holder.place %= 5
        holder.place **= 2
        holder.place @= torch.eye(3)
        whole.place <<= 1
        whole.place >>= 1
        whole.place |= 4
        whole.place &= 7
        whole.place ^= 1
        flags.place |= x > 0
        flags.place &= x > -1
        flags.place ^= x > 2
        return holder.place + whole.place

    return program(step, holder, whole, flags)


class Total:
    def __init__(self, value):
        self.value = value

    def __iadd__(self, other):
        self.value = self.value + other
        return self


@differential(hits=5)
def test_lists_dicts_numbers_and_objects():
    numbers_, lists, dicts = Counted(3), Counted([1]), Counted({1: 2})
    totals = Counted(Total(numbers()))

    def step(x):
        numbers_.place += 1
        lists.place += [2]
        dicts.place |= {3: 4}
        totals.place += x
        return x * lists.stores + len(lists.place)

    return program(step, numbers_, lists, dicts, totals)


@differential(hits=6, graphs=1)
def test_each_part_is_evaluated_once_in_order():
    items, log = {"a": numbers()}, []

    def noted(name, value):
        log.append(name)
        return value

    def step(x):
        noted("object", items)[noted("key", "a")] += noted("operand", x)
        return items["a"] * 1

    return program(step, items, log)
