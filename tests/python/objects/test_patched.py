"""What the program puts in the place of methods and functions, of torch's and of its own."""

import builtins
import weakref

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn

multiply = torch.Tensor.mul


def patched(owner, name, value):
    """Functions that put `value` under the name, and that put back what was there."""
    is_own = not isinstance(owner, type) or name in vars(owner)
    before = getattr(owner, name, None)

    def restore():
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)

    return (lambda: setattr(owner, name, value)), restore


def with_patch(step, owner, name, value, watch=()):
    """Calls before, with, and after the patch."""
    calls = [(torch.ones(3) * i,) for i in range(12)]
    on, off = patched(owner, name, value)
    return Program(step, [*calls[:5], on, *calls[5:8], off, *calls[8:]], watch=watch)


def in_place(x):
    y = x * 2
    y += x
    return y


SPECIAL = {
    "__add__": (lambda x: x + 1, lambda a, b: multiply(a, b) * 10),
    "__radd__": (lambda x: 1 + x, lambda a, b: multiply(a, b) * 10),
    "__iadd__": (in_place, lambda a, b: multiply(a, b) * 10),
    "__rsub__": (lambda x: 1 - x, lambda a, b: multiply(a, b) * 10),
    "__neg__": (lambda x: -x, lambda a: multiply(a, 3)),
    "__getitem__": (lambda x: x[1] * 2, lambda a, b: multiply(a, 3)),
    "__lt__": (lambda x: x < 1, lambda a, b: multiply(a, 3)),
    "__bool__": (lambda x: x * 2 if x.sum() >= 0 else x * 5, lambda a: False),
    "__len__": (lambda x: x * len(x), lambda a: 17),
    "__float__": (lambda x: x * float(x.sum()), lambda a: 17.0),
    "__iter__": (lambda x: sum(list(x)), lambda a: iter([torch.ones(2)])),
    "__imatmul__": (lambda x: x @ x, lambda a, b: 3),
    "shape": (lambda x: x * x.shape[0], property(lambda a: (9,))),
    "requires_grad": (lambda x: x * (2 if x.requires_grad else 3), property(lambda a: True)),
    "reciprocal": (lambda x: 1 / (x + 1), lambda a: multiply(a, 3)),
}


@pytest.mark.parametrize("name", sorted(SPECIAL))
@differential(hits=4, graphs=1, reasons=["mode_active"])
def test_special_method_of_tensors(name):
    step, replacement = SPECIAL[name]
    return with_patch(step, torch.Tensor, name, replacement)


@differential(hits=0, graphs=0, reasons=["mode_active"])
def test_special_method_replaced_from_the_start():
    program = with_patch(lambda x: x + 1, torch.Tensor, "__add__", SPECIAL["__add__"][1])
    return Program(program.step, [*program.calls[5:10]])


@differential(hits=4, reasons=["mode_active"])
def test_special_method_of_parameters():
    weight = nn.Parameter(torch.randn(3))
    return with_patch(
        lambda x: (weight + x).sum(), nn.Parameter, "__add__", lambda a, b: multiply(a, 10)
    )


@differential(hits=9, graphs=1)
def test_method_that_only_shows():
    return with_patch(lambda x: x * 2, torch.Tensor, "__repr__", lambda a: "tensor")


FUNCTIONS = {
    "torch.add": (lambda x: torch.add(x, 1), torch, "add"),
    "torch.abs": (lambda x: torch.abs(x) * 2, torch, "abs"),
    "F.relu": (lambda x: F.relu(x) * 2, F, "relu"),
    "Tensor.sum": (lambda x: x.sum() * 2, torch.Tensor, "sum"),
    "Tensor.mean": (lambda x: x.mean() * 2, torch.Tensor, "mean"),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@differential(hits=6)
def test_function_of_torch(name):
    step, owner, attribute = FUNCTIONS[name]
    return with_patch(step, owner, attribute, lambda a, *rest: multiply(a, 10))


@differential(hits=6)
def test_function_that_a_module_of_torch_calls():
    relu = nn.ReLU()
    return with_patch(lambda x: relu(x) * 2, F, "relu", lambda a, inplace=False: multiply(a, 10))


@differential(hits=6)
def test_forward_of_a_module_of_torch():
    linear = nn.Linear(3, 3)
    return with_patch(
        lambda x: linear(x) * 2, nn.Linear, "forward", lambda self, a: multiply(a, 10)
    )


@differential(hits=6)
def test_step_of_an_optimizer():
    weight = nn.Parameter(torch.randn(3))
    optimizer = torch.optim.SGD([weight], 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def halve(self, closure=None):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(0.5)

    return with_patch(step, torch.optim.SGD, "step", halve, watch=[weight])


# --- the code of functions -----------------------------------------------------------------------


def other(x, a=4, *, b=5):
    return x * a * b + 1


REPLACED = {
    "code": lambda f: setattr(f, "__code__", other.__code__),
    "defaults": lambda f: setattr(f, "__defaults__", (7,)),
    "keyword defaults": lambda f: setattr(f, "__kwdefaults__", {"b": 9}),
    "a keyword default": lambda f: f.__kwdefaults__.update(b=9),
}


@pytest.mark.parametrize("what", sorted(REPLACED))
@pytest.mark.parametrize("whose", ["its own", "a callee's"])
@differential(hits=3, graphs=2)
def test_replaced_part_of_a_function(what, whose):
    def callee(x, a=2, *, b=3):
        return x * a * b

    def caller(x):
        return callee(x) + 1

    calls = [(torch.ones(3) * i,) for i in range(14)]
    return Program(
        callee if whose == "its own" else caller,
        [*calls[:5], lambda: REPLACED[what](callee), *calls[5:]],
    )


@differential(hits=3)
def test_replaced_code_of_a_function_that_was_cut():
    def step(x):
        y = (x * 2).sum() + 1
        y = y * 3 + x
        open("/dev/null").close()
        return y * 2

    def replacement(x):
        return x * 5

    calls = [(torch.ones(3) * i,) for i in range(30)]
    return Program(
        step, [*calls[:15], lambda: setattr(step, "__code__", replacement.__code__), *calls[15:]]
    )


@differential(hits=6)
def test_replaced_code_of_a_function_of_torch():
    def replacement(input, inplace=False):
        return input * 5

    before = F.relu.__code__
    calls = [(torch.ones(3) * i,) for i in range(12)]
    return Program(
        lambda x: F.relu(x) + 1,
        [
            *calls[:5],
            lambda: setattr(F.relu, "__code__", replacement.__code__),
            *calls[5:8],
            lambda: setattr(F.relu, "__code__", before),
            *calls[8:],
        ],
    )


@differential(hits=3, graphs=2)
def test_replaced_contents_of_a_closure():
    factor = 2.0

    def callee(x):
        return x * factor

    def change():
        callee.__closure__[0].cell_contents = 5.0

    calls = [(torch.ones(3) * i,) for i in range(10)]
    return Program(lambda x: callee(x) + 1, [*calls[:5], change, *calls[5:]])


# --- when objects end ----------------------------------------------------------------------------


class Noted:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("freed")


class Thing:
    pass


def referred(log):
    thing = Thing()
    weakref.finalize(thing, log.append, "freed")
    return thing


ENDING = {
    "a finalizer": Noted,
    "a weak reference": referred,
    "a finalizer in a list": lambda log: [Noted(log)],
}


@pytest.mark.parametrize("how", ["deleted", "rebound"])
@pytest.mark.parametrize("kind", sorted(ENDING))
@differential(reasons=["unknown_callable"])
def test_end_of_an_object_in_a_cut_function(kind, how):
    log = []
    make = ENDING[kind]

    def deleted(x):
        held = make(log)
        y = (x * 2).sum() + 1
        y = (y * 3 + x).relu()
        del held
        log.append("after")
        y = (y * 2).sum() + 1
        return y * 3 + x

    def rebound(x):
        held = make(log)
        y = (x * 2).sum() + 1
        y = (y * 3 + x).relu()
        held = None
        log.append("after")
        y = (y * 2).sum() + 1
        return y * 3 + x, held

    calls = [(torch.ones(3) * i,) for i in range(24)]
    return Program(deleted if how == "deleted" else rebound, calls, watch=[log])


@pytest.mark.parametrize("kind", sorted(ENDING))
@differential(reasons=["unknown_callable"], hits=12)
def test_end_of_an_object_that_a_variable_of_later_calls_has(kind):
    log, makes = [], [False]

    def step(x):
        held = ENDING[kind](log) if makes[0] else None
        open("/dev/null").close()
        y = (x * 2).sum() + 1
        y = (y * 3 + x).relu()
        held = None
        log.append(len(log))
        return y * 3 + x, held

    def change():
        makes[0] = not makes[0]

    calls = [(torch.ones(3) * i,) for i in range(24)]
    return Program(step, [*calls[:16], change, *calls[16:19], change, *calls[19:]], watch=[log])


class World:
    def __init__(self):
        self.thing = None
        self.slotted = Slotted()
        self.table, self.elements = {"thing": None}, [None]


class Slotted:
    __slots__ = ("thing",)

    def __init__(self):
        self.thing = None


def replace_attribute(world):
    world.thing = None


def replace_in_slot(world):
    world.slotted.thing = None


def replace_item(world):
    world.table["thing"] = None


def delete_item(world):
    world.table.pop("thing", None)


def clear_items(world):
    world.table.clear()


def replace_element(world):
    world.elements[0] = None


PLACES = [
    replace_attribute, replace_in_slot, replace_item, delete_item, clear_items, replace_element,
]  # fmt: skip


@pytest.mark.parametrize("kind", sorted(ENDING))
@pytest.mark.parametrize("replace", PLACES)
@differential(reasons=["unknown_callable"], hits=4)
def test_end_of_an_object_that_a_write_replaces(replace, kind):
    log = []
    world = World()

    def step(x):
        log.append("before")
        replace(world)
        log.append(len(log))
        return x * 2

    def fill():
        thing = ENDING[kind](log)
        if replace is replace_attribute:
            world.thing = thing
        elif replace is replace_in_slot:
            world.slotted.thing = thing
        elif replace is replace_element:
            world.elements[0] = thing
        else:
            world.table["thing"] = thing

    made = [(torch.ones(3) * i,) for i in range(12)]
    return Program(step, [*made[:8], fill, made[8], fill, *made[9:]], watch=[log])


def test_nothing_lives_longer_for_a_cut_function():
    log = []

    def step(x):
        held = Noted(log)
        open("/dev/null").close()
        y = (x * 2).sum() + 1
        y = (y * 3 + x).relu()
        del held
        log.append("after")
        open("/dev/null").close()
        return y

    converted = torchjanus.function(step)
    for _ in range(20):
        converted(torch.ones(3))
        assert log == ["freed", "after"]
        log.clear()
    assert torchjanus.stats(converted)["state"] == "cut"


# --- special methods that a class gets later -------------------------------------------------------


def answers(value):
    return lambda *_: value


LATER = {
    "__bool__": (lambda x, a, A: x * (1 if a else 2), False),
    "__len__": (lambda x, a, A: x * (3 if not a else 2), 0),
    "__eq__": (lambda x, a, A: x * (a == 1), True),
    "__ne__": (lambda x, a, A: x * (a != 1), False),
    "__iter__": (lambda x, a, A: x * (3 if hasattr(a, "__iter__") else 2), 5),
    "__call__": (lambda x, a, A: x * (3 if callable(a) else 2), 5),
}
OF_METACLASS = {
    "__instancecheck__": (lambda x, a, A: x * (3 if isinstance(1, A) else 2), True),
    "__subclasscheck__": (lambda x, a, A: x * (3 if issubclass(int, A) else 2), True),
    "__call__": (lambda x, a, A: x * (3 if type(A()) is A else 2), 5),
}


def later(step, owner, name, value, a, A):
    calls = [(torch.ones(3) * i,) for i in range(12)]
    return Program(
        lambda x: step(x, a, A), [*calls, lambda: setattr(owner, name, answers(value)), *calls]
    )


@pytest.mark.parametrize("base", [object, nn.Module])
@pytest.mark.parametrize("name", sorted(LATER))
@differential(hits=14)
def test_class_that_gets_a_special_method(name, base):
    class A(base):
        pass

    step, value = LATER[name]
    return later(step, A, name, value, A(), A)


@pytest.mark.parametrize(
    "step",
    [
        lambda x, a, b: x * len({a, b}),
        lambda x, a, b: x * len({a: 1, b: 2}),
        lambda x, a, b: x * (3 if b in {a} else 2),
        lambda x, a, b: x * {a: 1}.get(b, 5),
    ],
)
@differential(hits=9)
def test_class_whose_objects_become_equal(step):
    class A:
        pass

    a, b = A(), A()
    calls = [(torch.ones(3) * i,) for i in range(12)]
    changes = [
        lambda: setattr(A, "__eq__", answers(True)),
        lambda: setattr(A, "__hash__", answers(5)),
    ]
    return Program(lambda x: step(x, a, b), [*calls, *changes, *calls])


@pytest.mark.parametrize("name", sorted(OF_METACLASS))
@differential(hits=9)
def test_metaclass_that_gets_a_special_method(name):
    class Meta(type):
        pass

    class A(metaclass=Meta):
        pass

    step, value = OF_METACLASS[name]
    return later(step, Meta, name, value, A(), A)


@differential(hits=3)
def test_print_in_whose_place_stands_a_function_that_prints():
    original = builtins.print

    def step(x, number):
        print("number", number)
        return x + 1

    def patched(*values):
        original("patched", *values)

    on, off = globals_patched("print", patched)
    calls = [(torch.ones(3), i) for i in range(24)]
    return Program(step, [*calls[:8], on, *calls[8:16], off, *calls[16:]])


def globals_patched(name, value):
    before = getattr(builtins, name)
    return (lambda: setattr(builtins, name, value)), (lambda: setattr(builtins, name, before))
