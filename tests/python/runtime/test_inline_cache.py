"""Guards with an inline cache find every change that guards without one find."""

import gc
import random
import types
from collections import OrderedDict

import pytest

import torch
import torchjanus  # noqa: F401
from torch import nn
from torchjanus import _core

Guards = _core.testing.Guards

X = ("argument", 0)
Y = ("argument", 1)


def of(kind, source=X, **fields):
    return {"kind": kind, "source": source, **fields}


def tensor(source, *dims, **fields):
    return of("tensor", source, dtype="f32", dims=list(dims), **fields)


def function(x, y=None):
    return x, y


class Pair:
    """The same guards with and without the inline cache: they must always agree."""

    def __init__(self, assumptions, *arguments, of=function):
        self.cached = Guards(of, assumptions, *arguments)
        self.walking = Guards(of, assumptions, *arguments, recall=False)

    def holds(self, *arguments):
        found = self.cached.check(*arguments)
        assert found == self.walking.check(*arguments)
        return found is None

    def fill_cache(self, *arguments):
        for _ in range(4):
            assert self.holds(*arguments)
        before = self.cached.recalled
        assert self.holds(*arguments)
        assert self.cached.recalled == before + 1, "the cache is not hit"


class Thing:
    kind = "thing"

    def __init__(self, **values):
        self.__dict__.update(values)

    def method(self, factor=2):
        return factor


def value(name, base=X):
    return ("instance_value", base, name)


def set_attribute(thing):
    thing.a = 8


def set_and_put_back(thing):
    old = thing.a
    thing.a = 8
    thing.a = old
    return True


def change_another(thing):
    thing.__dict__["other"] = random.random()
    return True


def replace_dictionary(thing):
    thing.__dict__ = {"a": 8}


def same_in_new_dictionary(thing):
    thing.__dict__ = {"a": 7}
    return True


def change_class(thing):
    thing.__class__ = type("Thing", (Thing,), {})


@pytest.mark.parametrize(
    "change",
    [set_attribute, set_and_put_back, change_another, replace_dictionary, same_in_new_dictionary,
     change_class, lambda thing: delattr(thing, "a")],
)  # fmt: skip
@pytest.mark.parametrize("held", [7, 1234567, 2.5, "text" * 20])
def test_attribute(change, held):
    thing = Thing(a=held)
    pair = Pair([of("exact_type", object=Thing), of("equals", value("a"), object=held)], thing)
    pair.fill_cache(thing)
    if change is same_in_new_dictionary:
        thing.__dict__ = {"a": held}
        assert pair.holds(thing)
    else:
        still = bool(change(thing))
        assert pair.holds(thing) == still
    thing.__dict__ = {"a": held}
    pair.holds(thing)


def test_attribute_that_appears():
    thing = Thing(a=1)
    pair = Pair([of("missing_key", object="forward")], thing)
    pair.fill_cache(thing)
    thing.b = 1
    assert pair.holds(thing)
    thing.forward = 1
    assert not pair.holds(thing)
    del thing.forward
    assert pair.holds(thing)


def test_class():
    class Base:
        def forward(self):
            return 1

    class Derived(Base):
        pass

    old = Base.forward
    attribute = ("type_attribute", ("type", X), "forward")
    assumptions = [
        of("identity", attribute, object=old),
        of("identity", ("code", attribute), object=old.__code__),
        of("missing_attribute", ("type", X), object="backward"),
    ]
    pair = Pair(assumptions, Derived())
    thing = Derived()
    pair.fill_cache(thing)
    Base.other = 1
    assert pair.holds(thing)
    Base.backward = 1
    assert not pair.holds(thing)
    del Base.backward
    pair.fill_cache(thing)
    Derived.forward = lambda self: 2
    assert not pair.holds(thing)
    del Derived.forward
    pair.fill_cache(thing)
    code = old.__code__
    old.__code__ = (lambda self: 3).__code__
    assert not pair.holds(thing)
    old.__code__ = code
    assert pair.holds(thing)
    Derived.__bases__ = (Thing,)
    assert not pair.holds(thing)


def make_closure(value, default):
    def inner(x, factor=default, *, key=default):
        return value, factor, key

    def assign(new):
        nonlocal value
        value = new

    return inner, assign


def test_function():
    inner, assign = make_closure(1000003, 2.5)
    assumptions = [
        of("equals", ("closure", X, 0), object=1000003),
        of("equals", ("default_value", X, 0), object=2.5),
        of("equals", ("keyword_default", X, "key"), object=2.5),
    ]
    pair = Pair(assumptions, inner)
    pair.fill_cache(inner)
    assign(1000004)
    assert not pair.holds(inner)
    assign(1000003)
    assert pair.holds(inner)
    pair.fill_cache(inner)
    inner.__defaults__ = (3.5,)
    assert not pair.holds(inner)
    inner.__defaults__ = (2.5,)
    pair.fill_cache(inner)
    inner.__kwdefaults__["key"] = 4.5
    assert not pair.holds(inner)
    inner.__kwdefaults__ = {"key": 2.5}
    assert pair.holds(inner)
    inner.__kwdefaults__ = {"key": 5.5}
    assert not pair.holds(inner)


def test_globals_and_builtins():
    module = types.ModuleType("made")
    exec("def f(x):\n    return LIMIT, len", module.__dict__)
    module.LIMIT = 1000003
    function_of = ("function",)
    assumptions = [
        of("equals", ("global", function_of, "LIMIT"), object=1000003),
        of("identity", ("global", function_of, "len"), object=len),
    ]
    pair = Pair(assumptions, 1, of=module.f)
    pair.fill_cache(1)
    module.other = 1
    assert pair.holds(1)
    module.LIMIT = 1000004
    assert not pair.holds(1)
    module.LIMIT = 1000003
    assert pair.holds(1)
    pair.fill_cache(1)
    module.len = print
    assert not pair.holds(1)
    module.len = len
    assert pair.holds(1)
    del module.len
    pair.fill_cache(1)


def test_module():
    module = types.ModuleType("made")
    module.value = 1000003
    pair = Pair([of("equals", ("attribute", X, "value"), object=1000003)], module)
    pair.fill_cache(module)
    module.value = 1000004
    assert not pair.holds(module)
    module.value = 1000003
    pair.fill_cache(module)
    module.__class__ = type("Strange", (types.ModuleType,), {"value": property(lambda self: 5)})
    assert not pair.holds(module)


@pytest.mark.parametrize("kind", [list, tuple])
def test_sequence(kind):
    thing = Thing(a=kind([1000003, "b"]))
    items = value("a")
    assumptions = [
        of("length", items, number=2),
        of("equals", ("index", items, 0), object=1000003),
        of("equals", ("index", items, 1), object="b"),
    ]
    pair = Pair(assumptions, thing)
    pair.fill_cache(thing)
    for other in ([1000004, "b"], [1000003, "c"], [1000003], [1000003, "b", 3]):
        thing.a = kind(other)
        assert not pair.holds(thing)
        thing.a = kind([1000003, "b"])
        assert pair.holds(thing)
    if kind is tuple:
        return
    pair.fill_cache(thing)
    thing.a[0] = 1000004
    assert not pair.holds(thing)
    thing.a[0] = 1000003
    assert pair.holds(thing)
    thing.a.append(1)
    assert not pair.holds(thing)
    thing.a.pop()
    assert pair.holds(thing)
    thing.a.insert(0, 5)
    del thing.a[0]
    assert pair.holds(thing)


@pytest.mark.parametrize("make", [dict, OrderedDict])
def test_dictionary(make):
    thing = Thing(a=make(b=1000003, c=2))
    items = value("a")
    assumptions = [
        of("equals", ("item", items, "b"), object=1000003),
        of("keys", items, object=("b", "c")),
        of("has_key", items, object="c"),
        of("missing_key", items, object="d"),
        of("truth", items, number=1),
    ]
    pair = Pair(assumptions, thing)
    pair.fill_cache(thing)
    thing.a["b"] = 1000004
    assert not pair.holds(thing)
    thing.a["b"] = 1000003
    pair.fill_cache(thing)
    thing.a["c"] = 5
    assert pair.holds(thing)
    thing.a["d"] = 5
    assert not pair.holds(thing)
    del thing.a["d"]
    pair.fill_cache(thing)
    del thing.a["b"]
    thing.a["b"] = 1000003
    assert not pair.holds(thing)
    thing.a = make(b=1000003, c=2)
    assert pair.holds(thing)
    thing.a.clear()
    assert not pair.holds(thing)


def test_set_and_emptiness():
    thing = Thing(a={1, 2}, hooks=OrderedDict(), flags=[])
    assumptions = [
        of("has_key", value("a"), object=1),
        of("length", value("a"), number=2),
        of("truth", value("hooks"), number=0),
        of("truth", value("flags"), number=0),
    ]
    pair = Pair(assumptions, thing)
    pair.fill_cache(thing)
    thing.a.add(3)
    assert not pair.holds(thing)
    thing.a.discard(3)
    assert pair.holds(thing)
    thing.a.discard(1)
    thing.a.add(7)
    assert not pair.holds(thing)
    thing.a = {1, 2}
    pair.fill_cache(thing)
    thing.hooks["hook"] = 1
    assert not pair.holds(thing)
    thing.hooks.clear()
    pair.fill_cache(thing)
    thing.flags.append(1)
    assert not pair.holds(thing)


def test_bound_method():
    thing, other = Thing(a=1), Thing(a=1)
    bound = Thing(call=thing.method)
    assumptions = [
        of("identity", ("bound_self", value("call")), object=thing),
        of("identity", ("bound_function", value("call")), object=Thing.method),
        of("equals", value("a", ("bound_self", value("call"))), object=1),
    ]
    pair = Pair(assumptions, bound)
    pair.fill_cache(bound)
    bound.call = other.method
    assert not pair.holds(bound)
    bound.call = thing.method
    pair.fill_cache(bound)
    thing.a = 2
    assert not pair.holds(bound)


def test_arguments_that_are_others_at_each_call():
    pair = Pair([of("integer", Y, symbol="n"), tensor(X, "n", 3)], torch.zeros(4, 3), 4)
    for n in range(2, 20):
        assert pair.holds(torch.zeros(n, 3), n)
    assert pair.cached.recalled > 10
    assert not pair.holds(torch.zeros(4, 3), 5)
    assert not pair.holds(torch.zeros(1, 3), 1)


def test_two_objects():
    a, b = Thing(), Thing()
    holder = Thing(a=a, b=b)
    assumptions = [
        of("not_same_object", value("a"), other=value("b")),
        of("same_object", value("a"), other=Y),
    ]
    pair = Pair(assumptions, holder, a)
    pair.fill_cache(holder, a)
    assert not pair.holds(holder, b)
    holder.a = b
    assert not pair.holds(holder, b)
    holder.a = a
    assert pair.holds(holder, a)
    for _ in range(5):  # objects that are new each time
        holder.a = Thing()
        assert pair.holds(holder, holder.a)
        assert not pair.holds(holder, a)
        holder.b = Thing()
        assert pair.holds(holder, holder.a)


def add_gradient(parameter):
    parameter.grad = torch.zeros(4)


TENSOR_CHANGES = [
    lambda p: p.requires_grad_(False),
    lambda p: p.data.resize_(6) is None or setattr(p, "data", torch.zeros(6)),
    lambda p: setattr(p, "data", torch.zeros(5)),
    lambda p: setattr(p, "data", torch.zeros(4, dtype=torch.float64)),
    lambda p: setattr(p, "data", torch.zeros(8)[::2]),
    lambda p: p.register_hook(lambda g: g),
    lambda p: p.register_post_accumulate_grad_hook(lambda p: None),
    add_gradient,
    lambda p: setattr(p, "__class__", type("Mine", (nn.Parameter,), {})),
]


@pytest.mark.parametrize("change", TENSOR_CHANGES)
def test_tensor(change):
    layer = Thing(weight=nn.Parameter(torch.zeros(4)))
    weight = value("weight")
    assumptions = [
        tensor(weight, 4, requires_grad=True, is_parameter=True),
        of("no_grad_value", weight),
    ]
    pair = Pair(assumptions, layer)
    pair.fill_cache(layer)
    layer.weight.data = torch.ones(4)
    with torch.no_grad():
        layer.weight += 1
    assert pair.holds(layer)
    change(layer.weight)
    assert not pair.holds(layer)
    layer.weight = nn.Parameter(torch.zeros(4))
    assert pair.holds(layer)


def test_tensors_swapped():
    layer = Thing(weight=nn.Parameter(torch.zeros(4)))
    pair = Pair([tensor(value("weight"), 4, requires_grad=True, is_parameter=True)], layer)
    pair.fill_cache(layer)
    torch.utils.swap_tensors(layer.weight, nn.Parameter(torch.zeros(5)))
    assert not pair.holds(layer)


class Special(torch.Tensor):
    pass


def test_gradient():
    layer = Thing(weight=nn.Parameter(torch.zeros(4)), bias=nn.Parameter(torch.zeros(4)))
    weight, bias = ("grad", value("weight")), ("grad", value("bias"))
    assumptions = [
        tensor(weight, 4),
        tensor(bias, 4),
        tensor(value("weight"), 4, requires_grad=True, is_parameter=True),
        of("separate_memory", weight, number=1),
        of("separate_memory", bias, number=0),
        of("separate_memory", value("weight"), number=0),
    ]

    def fresh():
        layer.weight.grad, layer.bias.grad = torch.zeros(4), torch.zeros(4)

    fresh()
    pair = Pair(assumptions, layer)
    pair.fill_cache(layer)
    for _ in range(5):
        fresh()
        assert pair.holds(layer)
    assert pair.cached.recalled >= 6
    shared = torch.zeros(4)
    changes = [
        lambda: setattr(layer.weight, "grad", None),
        lambda: setattr(layer.weight, "grad", layer.bias.grad),
        lambda: setattr(layer.weight, "grad", layer.weight.detach()),
        lambda: layer.weight.grad.requires_grad_(),
        lambda: setattr(layer.weight, "grad", torch.zeros(4).as_subclass(Special)),
        lambda: setattr(layer.weight, "grad", shared[:4]) or setattr(layer.bias, "grad", shared),
    ]
    for change in changes:
        change()
        assert not pair.holds(layer)
        fresh()
        assert pair.holds(layer)


def test_optimizer_state_is_loaded():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step():
        optimizer.zero_grad()
        model(torch.randn(4, 3)).sum().backward()
        optimizer.step()

    step()
    group = ("index", value("param_groups"), 0)
    buffer = ("item", ("item", value("state"), model.weight), "momentum_buffer")
    assumptions = [
        of("equals", ("item", group, "lr"), object=0.1),
        of("identity", ("index", ("item", group, "params"), 0), object=model.weight),
        tensor(buffer, 2, 3),
    ]
    pair = Pair(assumptions, optimizer)
    pair.fill_cache(optimizer)
    step()
    pair.fill_cache(optimizer)
    optimizer.param_groups[0]["lr"] = 0.05
    assert not pair.holds(optimizer)
    optimizer.param_groups[0]["lr"] = 0.1
    assert pair.holds(optimizer)
    optimizer.load_state_dict(optimizer.state_dict())
    pair.fill_cache(optimizer)
    optimizer.state[model.weight]["momentum_buffer"] = torch.zeros(3, 2)
    assert not pair.holds(optimizer)
    optimizer.state.clear()
    assert not pair.holds(optimizer)


def test_death():
    class Owner:
        pass

    owner = Owner()
    owner.part = Thing(a=1)
    pair = Pair([of("identity", value("part"), object=owner.part)], owner)
    pair.fill_cache(owner)
    for _ in range(200):  # until one lies where the first one lay
        owner.part = None
        owner.part = Thing(a=1)
        assert not pair.holds(owner)
    gc.collect()


class World:
    """Objects that refer to each other, assumptions about them, and changes."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.root = Thing()
        self.places = []  # (source, container, key)
        self.grow(self.root, X, 3)

    def leaf(self):
        return self.random.choice(
            [1000000 + self.random.randrange(3), 0.5 + self.random.randrange(3), None, True,
             "text" * (1 + self.random.randrange(3)), (5000 + self.random.randrange(3), "a")]
        )  # fmt: skip

    def grow(self, thing, source, depth):
        for name in "abc":
            at = value(name, source)
            made = self.leaf()
            if depth > 0 and self.random.random() < 0.6:
                made = self.random.choice([Thing, dict, list, tuple])()
            if isinstance(made, tuple) and not made:
                made = (self.leaf(), self.leaf())
            thing.__dict__[name] = made
            self.places.append((at, thing.__dict__, name))
            if isinstance(made, Thing):
                self.grow(made, at, depth - 1)
            elif isinstance(made, dict):
                for key in "xy":
                    made[key] = self.leaf()
                    self.places.append((("item", at, key), made, key))
            elif isinstance(made, list):
                made.extend(self.leaf() for _ in range(2))
                self.places.extend((("index", at, i), made, i) for i in range(2))

    def assumptions(self):
        made = []
        for source, container, key in self.places:
            held = container[key]
            made.append(of("exact_type", source, object=type(held)))
            if isinstance(held, (int, float, str, tuple, type(None))):
                made.append(of("equals", source, object=held))
            if isinstance(held, (dict, list)):
                made.append(of("length", source, number=len(held)))
            if isinstance(held, dict):
                made.append(of("keys", source, object=tuple(held)))
            if isinstance(held, Thing):
                made.append(of("missing_key", source, object="d"))
        return made

    def change(self):
        """Changes something, and gives a function that puts it back."""
        source, container, key = self.random.choice(self.places)
        old = container[key]
        kind = self.random.randrange(4)
        if kind == 0 and isinstance(container, dict):
            container["d"] = 1
            return lambda: container.pop("d")
        if kind == 1 and isinstance(old, (dict, list)):
            container[key] = type(old)(old)
            return lambda: None
        if kind == 2 and isinstance(old, Thing):
            container[key] = Thing(**old.__dict__)
            return lambda: container.__setitem__(key, old)
        container[key] = self.leaf()

        def put_back():
            container[key] = old

        return put_back


@pytest.mark.parametrize("seed", range(60))
def test_random_worlds(seed):
    world = World(seed)
    pair = Pair(world.assumptions(), world.root)
    pair.fill_cache(world.root)
    for _ in range(60):
        put_back = world.change()
        pair.holds(world.root)
        put_back()
        pair.holds(world.root)
