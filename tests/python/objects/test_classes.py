"""Classes that have a say in how their objects are made and looked at: `__new__`, `__getattribute__`, `super()` of
classes, classes derived from dict, and methods of modules that Python has frozen into itself."""

import collections.abc
import dataclasses
import functools
from typing import Generic, Protocol, TypeVar

import pytest
from differential import Program, differential

import torch

Kind = TypeVar("Kind")


class Renamed:
    """Reads and writes some attributes under other names, as the configurations of Hugging Face's models do."""

    names = {"size": "hidden"}

    def __init__(self):
        self.hidden = 3
        self.rate = 0.5
        self.count = 0

    def __setattr__(self, name, value):
        names = super().__getattribute__("names")
        super().__setattr__(names.get(name, name), value)

    def __getattribute__(self, name):
        if name != "names" and name in super().__getattribute__("names"):
            name = super().__getattribute__("names")[name]
        return super().__getattribute__(name)

    @property
    def double(self):
        return self.size * 2

    def scaled(self, x):
        return x * self.rate


class RenamedOrMade(Renamed):
    """What is nowhere is made of its name."""

    def __getattr__(self, name):
        if name.startswith("_no"):
            raise AttributeError(name)
        return len(name)


class Counted:
    """Counts in Python what is read of it."""

    def __init__(self):
        object.__setattr__(self, "reads", 0)
        self.scale = 2.0

    def __getattribute__(self, name):
        if not name.startswith("_") and name != "reads":
            object.__setattr__(self, "reads", object.__getattribute__(self, "reads") + 1)
        return object.__getattribute__(self, name)


@pytest.mark.parametrize("kind", [Renamed, RenamedOrMade])
@differential(hits=4)
def test_an_own_way_of_reading_attributes(kind):
    config = kind()

    def step(x):
        config.count += 1
        y = config.scaled(x) * config.size + config.double + getattr(config, "nothing", 7)
        return y + (1 if hasattr(config, "_no") else 0) + config.count

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[config])


@differential(hits=3)
def test_a_configuration_that_changes_between_calls():
    config = Renamed()

    def step(x):
        return config.scaled(x) * config.size

    def change():
        config.size = 9

    calls = [(torch.randn(3),) for _ in range(6)]
    return Program(step, [*calls, change, *calls], watch=[config])


@differential(hits=4)
def test_reads_that_count():
    counted = Counted()

    def step(x):
        return x * counted.scale + counted.scale, counted.reads

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[counted])


@differential(hits=4)
def test_objects_made_in_the_run_are_read_in_their_own_way():
    def step(x):
        config = Renamed()
        config.size = x.sum()
        return x * config.size + config.double

    return Program(step, [(torch.randn(3),) for _ in range(8)])


class Sample:
    """Made by a method that gives its objects an attribute before they are initialised."""

    def __new__(cls, value, *rest, weight=1):
        made = super().__new__(cls)
        made.weight = weight
        return made

    def __init__(self, value, *rest, weight=1):
        self.value = value

    @classmethod
    def heavy(cls, value):
        return cls(value, weight=3)


class NamedSample(Sample):
    def __new__(cls, value, **options):
        if value is None:
            return 5.0
        return super().__new__(cls, value, **options)

    @classmethod
    def heavy(cls, value):
        return super().heavy(value)


class Forbidden:
    def __new__(cls, *values):
        raise RuntimeError(f"{cls.__name__} can't be made")


@differential(hits=4)
def test_classes_that_make_their_objects():
    def step(x):
        sample, other = NamedSample.heavy(x), Sample(x * 2, weight=x.sum())
        try:
            Forbidden(1)
            way = 1
        except RuntimeError:
            way = 2
        return sample.value * sample.weight + other.value * other.weight + NamedSample(None) + way

    return Program(step, [(torch.randn(3),) for _ in range(8)])


@differential(hits=4)
def test_an_object_of_such_a_class_that_outlives_the_run():
    def step(x):
        return NamedSample(x * 2, weight=4)

    return Program(step, [(torch.randn(3),) for _ in range(8)])


class Single:
    """One object for the whole process."""

    only = None

    def __new__(cls):
        if cls.only is None:
            cls.only = super().__new__(cls)
            cls.only.scale = 2.0
        return cls.only


@differential(reasons=["unknown_callable"])
def test_a_constructor_that_gives_what_was_there():
    Single()
    return Program(lambda x: x * Single().scale, [(torch.randn(3),) for _ in range(8)])


class Registry(dict):
    """A dict that is asked for other keys than it has."""

    def get(self, key):
        return super().get(str(key)) or {}

    def __getitem__(self, key):
        return 100


class Keyless(dict):
    """Gives others of its items than it has, but not where it is copied as a dict."""

    def keys(self):
        return ["a"]

    def __getitem__(self, key):
        return super().__getitem__(key) * 10


@differential(hits=4)
def test_such_a_dict_of_before_the_call_is_copied_as_it_is():
    kept = Keyless(a=1.0, b=2.0)
    return Program(lambda x: (x * 2, dict(kept), kept["b"]), [(torch.randn(3),) for _ in range(8)])


@pytest.mark.parametrize("grows", [False, True])
@differential(hits=2)
def test_a_dict_of_a_class_of_the_programs(grows):
    registry = Registry({"1": {"a": 2.0}})

    def step(x):
        total = sum(value * len(key) for key, value in registry.get(1).items())
        known = 1 if "1" in registry else 0
        return x * total + len(registry.get(2)) + registry["?"] + known + len(registry)

    def change():
        if grows:
            dict.__setitem__(registry, "2", {"b": 1})

    calls = [(torch.randn(3),) for _ in range(5)]
    return Program(step, [*calls, change, *calls])


class Row(collections.abc.Sequence):
    def __init__(self, *values):
        self.values = values

    def __getitem__(self, index):
        return self.values[index]

    def __len__(self):
        return len(self.values)


class Table(collections.abc.Mapping):
    def __init__(self, **values):
        self.items_by_name = values

    def __getitem__(self, name):
        return self.items_by_name[name]

    def __len__(self):
        return len(self.items_by_name)

    def __iter__(self):
        return iter(self.items_by_name)


@differential(hits=4)
def test_methods_that_abstract_classes_bring_along():
    row, table = Row(1, 2, 3), Table(a=1, b=2)

    def step(x):
        total = sum(value * x for value in row)
        total = total + table["a"] + table.get("z", 3) + sum(table.values()) + row.index(3)
        return total + (1 if "b" in table else 0)

    return Program(step, [(torch.randn(3),) for _ in range(8)])


class Record(dict):
    """Its items are attributes as well."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value


class Shouting(dict):
    """Stores under another key than the one that it is given."""

    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)


class Defaulting(dict):
    def __missing__(self, key):
        return 0.0


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """What a model gives, in the manner of transformers: a dict without what is None, a tuple, and attributes."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    hidden: tuple | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __getitem__(self, key):
        if isinstance(key, str):
            return dict(self.items())[key]
        return self.to_tuple()[key]

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


def record(x):
    made = Record(a=x, b=2)
    made.c = made.a * made.b
    made["d"] = made["c"] + len(made)
    made.update(e=made.d.sum())
    del made["b"]
    total = sum(value.sum() for value in made.values())
    return made, list(made), total + (1 if "a" in made else 0), made.get("z", 5), made.pop("a")


def shouting(x):
    made = Shouting()
    made["a"] = x
    made.update(b=x * 2)
    return made["A"] + made["b"], dict(made), bool(made), isinstance(made, dict)


def output(x):
    made = Output(logits=x * 2, loss=x.sum())
    made.hidden = (x, x + 1)
    made["hidden"] = (x,)
    first, *rest = made.to_tuple()
    return made, made[0] + made["logits"], rest, made.hidden, len(made), vars(made)


def output_used_inside(x):
    made = Output(loss=x.sum())
    return made.loss * 2 + made[0]


class Grid(collections.abc.Mapping):
    """No dict, but what `dict()` takes for one."""

    def __init__(self, **rows):
        self.rows = rows

    def __getitem__(self, name):
        return self.rows[name]

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)


def copied_mapping(x):
    made = Keyless(a=x, b=x)
    return dict(Grid(ab=x, cd=x * 2)), dict(Record(ef=x)), dict(made), list(made.keys()), made["b"]


MADE = {
    each.__name__: each for each in (record, shouting, output, output_used_inside, copied_mapping)
}


@pytest.mark.parametrize("name", MADE)
@differential(hits=4)
def test_dicts_of_the_programs_classes_made_in_the_run(name):
    return Program(MADE[name], [(torch.randn(3),) for _ in range(8)])


@differential(hits=3)
def test_such_a_dict_made_on_one_side_of_a_branch():
    def step(x):
        made = Record(y=x)
        if x.sum() > 0:
            made["y"] = x * 3
        return made["y"], made

    return Program(step, [(torch.full((3,), 1.0 if i % 2 else -1.0),) for i in range(14)])


@differential(hits=3)
def test_such_a_dict_in_a_loop():
    def step(x, iterations):
        made = Record(y=x)
        for i in range(iterations):
            made["y"] = made["y"] * 2 + i
        return made

    return Program(step, [(torch.randn(3), 2 + i % 4) for i in range(24)])


class Ordered(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)


@dataclasses.dataclass
class Partly:
    value: torch.Tensor
    given: int = dataclasses.field(init=False, default=3)
    made: list = dataclasses.field(init=False, default_factory=list)


@differential(hits=4)
def test_fields_that_no_argument_gives():
    def step(x):
        partly = Partly(x)
        return partly.value * partly.given, vars(partly)

    return Program(step, [(torch.randn(3),) for _ in range(8)])


class Asked(torch.nn.Module):
    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def forward(self, x):
        return x * 2


@differential(reasons=["expression"])
def test_modules_that_are_asked_for_their_attributes():
    module = Asked()
    return Program(lambda x: module(x), [(torch.randn(3),) for _ in range(8)], watch=[module])


def made_by_another_class(x):
    for maker, kind in ((object, Record), (dict, Sample), (object, functools.partial)):
        try:
            maker.__new__(kind)
        except TypeError:
            x = x + 1
    return x


def several_dicts(x):
    try:
        return Record({1: 2}, {3: 4})
    except TypeError:
        return x * 2


@pytest.mark.parametrize("step", [made_by_another_class, several_dicts])
def test_what_python_does_not_make(step):
    reason = "unknown_callable" if step is made_by_another_class else "would_raise"
    calls = [(torch.randn(3),) for _ in range(8)]
    differential(reasons=[reason])(lambda: Program(step, calls))()


def updated(x):
    made = Ordered()
    made.update(a=x)
    return made["a"] * 2


def missing(x):
    return x + Defaulting(a=1)["b"]


@pytest.mark.parametrize("step", [updated, missing])
@differential(reasons=["unknown_callable"])
def test_methods_that_go_by_methods_of_the_object(step):
    return Program(step, [(torch.randn(3),) for _ in range(8)])


@dataclasses.dataclass
class Watched:
    value: torch.Tensor
    rate: float = 0.5

    def __setattr__(self, name, value):
        super().__setattr__("writes", getattr(self, "writes", 0) + 1)
        super().__setattr__(name, value)


@differential(hits=4)
def test_a_dataclass_with_a_way_of_its_own_to_set_attributes():
    def step(x):
        watched = Watched(x)
        return watched.value * watched.rate, watched.writes

    return Program(step, [(torch.randn(3),) for _ in range(8)])


class Slotted:
    __slots__ = ("first",)


class DerivedSlotted(Slotted):
    __slots__ = ("second",)


@dataclasses.dataclass(slots=True)
class SlottedFields:
    value: float


@pytest.mark.parametrize("build", [Slotted, DerivedSlotted, lambda: SlottedFields(1.0)])
@differential(reasons=["would_raise"])
def test_an_attribute_without_a_slot(build):
    def step(x):
        made = build()
        y = x.exp()
        try:
            made.third = y
        except AttributeError as error:
            return y, str(error)
        return y

    return Program(step, [(torch.randn(3),) for _ in range(5)])


class Undivided(Slotted):
    pass


@differential(hits=2)
def test_an_attribute_beside_slots():
    def step(x):
        made = Undivided()
        made.first = x.exp()
        made.third = made.first + 1
        return made, made.third + made.first

    return Program(step, [(torch.randn(3),) for _ in range(5)])


@differential(reasons=["expression"])
def test_the_dictionary_of_an_object_with_slots():
    def step(x):
        made = Undivided()
        made.first = x.exp()
        made.third = made.first + 1
        return list(vars(made)), made.third

    return Program(step, [(torch.randn(3),) for _ in range(5)])


class Kept(Generic[Kind]):
    def __init__(self, value: Kind):
        self.value = value


class Doubles(Protocol):
    def doubled(self, x): ...


class Doubler(Doubles):
    def doubled(self, x):
        return x * 2


@differential(hits=4)
def test_objects_of_generic_classes():
    """Which derive from a class in C since Python 3.12."""
    kept = Kept(None)

    def step(x):
        kept.value = Kept[torch.Tensor](Doubler().doubled(x))
        return kept.value.value + Kept(3).value

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[kept])
