"""id() of what comes and goes, deep copies with a memo, partials as objects, and the attributes of a class."""

import copy
import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def batches(count):
    return [(torch.randn(5, 4),) for _ in range(count)]


def scaled(value, factor, shift=0.0):
    return value * factor + shift


class Strategy:
    def reduce(self, value, scale=1.0):
        return value * scale

    def other(self, value, scale=1.0):
        return value


@dataclasses.dataclass
class Sync:
    function: Callable
    is_wanted: bool = False
    name: str = "mean"

    def __post_init__(self):
        self.bound = functools.partial(self.function, scale=2.0)


@dataclasses.dataclass
class Settings:
    hook: str
    name: str
    on_step: bool = True
    sync: Any = None


def copied(data):
    """A dataclass whose fields are copied by hand and whose other attributes are copied deeply."""
    fields, memo = {}, {}
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        fields[field.name] = value
        memo[id(value)] = value
    result = copy.deepcopy(data, memo=memo)
    for name, value in fields.items():
        setattr(result, name, copied(value) if dataclasses.is_dataclass(value) else value)
    for name in filter(
        lambda key: isinstance(getattr(type(data), key), functools.cached_property),
        vars(type(data)),
    ):
        vars(result).pop(name, None)
    return result


class Metric:
    def __init__(self, settings):
        self.settings = settings
        self.total = torch.zeros(())
        self.update = self.update  # an attribute that hides a method

    def update(self, value):
        self.total = self.total + self.settings.sync.bound(value)

    def renewed(self):
        state = dict(self.__dict__)
        state["settings"] = copied(self.settings)
        self.__dict__.update(state)
        return self


@differential(hits=8, graphs=1)
def test_a_logged_value_copies_its_settings():
    """What a trainer's `log` does at each step: its settings are other objects every time."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    strategy = Strategy()
    metrics = {"loss": Metric(Settings("step", "loss", sync=Sync(strategy.reduce)))}

    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        settings = Settings("step", "loss", sync=Sync(strategy.reduce))
        if settings != metrics["loss"].settings:
            raise ValueError("other settings")
        metrics["loss"].renewed().update(loss.detach())
        return loss

    return Program(step, batches(12), watch=[model, metrics["loss"].__dict__])


@differential(hits=4, graphs=1)
def test_ids_are_keys_of_a_dict():
    def step(x):
        first, second, text = [x], [x], "text"
        seen = {id(first): "first", id(second): "second", id(None): "none", id(text): text}
        again = first
        return (
            x * 2,
            seen[id(again)],
            seen[id(second)],
            id(first) == id(second),
            id([]) in seen,
            len(seen),
        )

    return Program(step, batches(8))


@differential(hits=4, graphs=1)
def test_functions_and_objects_share_a_dict():
    sync = Sync(F.relu)

    def step(x):
        seen = {id(F.relu): 1, id(sync): 2, id(Sync): 3}
        return x * seen[id(sync)] + seen[id(sync.function)], id(sync) == id(F.relu)

    return Program(step, batches(8))


class Holder:
    pass


@differential(hits=4, graphs=1)
def test_an_id_that_outlives_the_run():
    holder = Holder()

    def step(x):
        made = [x.sum()]
        holder.made = made
        holder.number = id(made)
        return x * 2, id(made) == holder.number

    return Program(step, batches(8))


@pytest.mark.parametrize("kind", ["item", "tuple", "update", "set", "ordered", "memo"])
def test_an_id_is_a_key_of_what_existed_before(kind):
    by_id, ordered, members, kept = {}, OrderedDict(), set(), []

    def step(x):
        made = [x.sum()]
        kept.append(made)
        if kind == "item":
            by_id[id(made)] = made
        elif kind == "tuple":
            by_id[id(made), "first"] = made
        elif kind == "update":
            by_id.update({id(made): made})
        elif kind == "set":
            members.add(id(made))
        elif kind == "ordered":
            ordered[id(made)] = made
        else:
            copy.deepcopy(made, by_id)
        return x * 2

    converted = torchjanus.function(step)
    for call in range(8):
        x = torch.full((2,), float(call))
        assert converted(x).tolist() == [2 * call, 2 * call]
    assert [made[0].item() for made in kept] == [2 * call for call in range(8)]
    numbers = {id(made) for made in kept}
    assert members == (numbers if kind == "set" else set())
    assert set(ordered) == (numbers if kind == "ordered" else set())
    if kind in ("item", "update"):
        assert set(by_id) == numbers
    if kind == "tuple":
        assert set(by_id) == {(number, "first") for number in numbers}
    if kind == "memo":
        assert numbers <= set(by_id)


@differential(hits=4, graphs=1)
def test_a_memo_gets_the_copies():
    shared = [1, 2]
    settings = Settings("step", "loss", sync=Sync(scaled))
    settings.extra = {"first": shared, "second": shared}

    def step(x):
        memo = {id(settings.sync): settings.sync}
        made = copy.deepcopy(settings, memo)
        again = copy.deepcopy(settings, memo)
        kept = len(memo[id(memo)])
        return (
            x + 1, made.sync is settings.sync, again is made, memo[id(settings)] is made, made.extra,
            made.extra["first"] is made.extra["second"], made.extra["first"] is shared, kept, len(memo),
        )  # fmt: skip

    return Program(step, batches(8))


@differential(hits=4, graphs=1)
def test_deep_copies_of_partials():
    limits = [0.5, 2.0]
    scale = functools.partial(scaled, factor=limits)

    def step(x):
        made = copy.deepcopy(scale)
        local = functools.partial(scaled, shift=x.mean())
        twice = functools.partial(local, factor=3.0)
        return (
            twice(x), made.func is scaled, made.keywords, made.keywords["factor"] is limits, made.args,
            twice.func is scaled, sorted(twice.keywords),
        )  # fmt: skip

    return Program(step, batches(8))


@differential(hits=4, graphs=1)
def test_a_partial_outlives_the_run():
    holder = Holder()

    def step(x):
        holder.scale = functools.partial(scaled, x, factor=2.0)
        holder.bound = holder.strategy.reduce
        return holder.scale(shift=1.0), holder.bound(x, scale=0.5)

    holder.strategy = Strategy()
    return Program(step, batches(8), watch=[])


@differential(hits=4, graphs=1)
def test_bound_methods_are_compared():
    one, two = Strategy(), Strategy()
    hooks = [one.reduce, two.reduce]

    def step(x):
        return (
            x * 2, one.reduce == hooks[0], one.reduce == two.reduce, one.reduce != one.other, hooks[1] == two.reduce,
            hooks[0] == hooks[1], one.reduce == 3,
        )  # fmt: skip

    return Program(step, batches(8))


@differential(hits=6, graphs=2)
def test_another_bound_method():
    one, two = Strategy(), Strategy()
    hooks = {"now": one.reduce}

    def step(x):
        return x * 2 if hooks["now"] == one.reduce else x * 3

    calls = batches(10)
    calls.insert(6, lambda: hooks.update(now=two.reduce))
    return Program(step, calls)


class Growing:
    limit = 3

    @property
    def doubled(self):
        return 2 * self.limit


@differential(hits=6, graphs=2)
def test_the_attributes_of_a_class():
    Changing = type("Changing", (Growing,), {"scale": 2.0, "name": "first"})
    value = Changing()

    def step(x):
        names = [name for name in vars(type(value)) if not name.startswith("__")]
        total = x * 0
        for name in names:
            if isinstance(getattr(type(value), name), float):
                total = total + getattr(value, name) * x
        return (
            total,
            names,
            "limit" in vars(Growing),
            isinstance(Growing.__dict__["doubled"], property),
        )

    calls = batches(10)
    calls.insert(6, lambda: setattr(Changing, "shift", 1.0))
    return Program(step, calls)


@differential(hits=4, graphs=1)
def test_a_method_is_hidden_through_dict():
    strategy = Strategy()

    def step(x):
        strategy.__dict__.update(reduce=scaled, count=x.sum())
        return strategy.reduce(x, 3.0)

    return Program(step, batches(8), watch=[strategy.__dict__])


class Results(TypedDict):
    callback: dict
    total: float


class Counted(type):
    made = 0

    def __call__(cls, *arguments):
        return cls.make(*arguments)


class Recipe(metaclass=Counted):
    @classmethod
    def make(cls, x, factor):
        return x * factor


@differential(hits=4, graphs=1)
def test_classes_that_their_metaclass_calls():
    def step(x):
        results = Results(callback={"sum": x.sum()}, total=2.0)
        return results, type(results) is dict, Recipe(x, 3.0)

    return Program(step, batches(8))


class Updating:
    """Counts its updates under another path than the one by which the count is read first."""

    def __init__(self):
        self.count = 0
        update = self.update

        def wrapped(x):
            self.count += 1
            return update(x)

        self.update = wrapped

    def update(self, x):
        return x * 2


@differential(hits=5, graphs=1)
def test_a_count_that_changes_by_another_path():
    metrics = {"loss": Updating()}

    def step(x):
        metrics["loss"].__dict__.update(dict(metrics["loss"].__dict__))
        return metrics["loss"].update(x), metrics["loss"].count

    return Program(step, batches(9))


@differential(hits=6, graphs=2)
def test_a_method_that_becomes_a_property():
    class Late:
        def total(self):
            return 1

    late = Late()

    def step(x):
        late.__dict__["total"] = x.sum()
        return x * 2

    calls = batches(10)
    calls.insert(6, lambda: setattr(Late, "total", 5))
    return Program(step, calls, watch=[late.__dict__])
