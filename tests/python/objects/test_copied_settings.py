"""Copies of configurations, which read some attributes under other names."""

import copy
import enum

from differential import Program, differential

import torch


def batches(count):
    return [(torch.randn(5, 4),) for _ in range(count)]


class Kind(enum.Enum):
    small = 1


class Settings:
    """A configuration: attributes, some of which are read under other names."""

    names = {"size": "hidden"}

    def __init__(self, **given):
        self.hidden, self.layers, self.dtype, self.kind = (
            3,
            [1, {"deep": 2}],
            torch.float32,
            Kind.small,
        )
        self.__dict__.update(given)

    def __getattribute__(self, name):
        names = super().__getattribute__("names")
        return super().__getattribute__(names.get(name, name))


@differential(hits=4, graphs=1)
def test_objects_are_copied():
    settings = Settings()
    settings.itself = settings

    def step(x):
        deep, flat = copy.deepcopy(settings), copy.copy(settings)
        deep.hidden, flat.hidden = 5, 7
        deep.layers[1]["deep"] = 4
        same = (flat.layers is settings.layers, deep.layers is settings.layers, deep.itself is deep)
        return x * deep.size * flat.size * settings.size, deep.layers, same, deep.kind, flat.dtype

    return Program(step, batches(8), watch=[settings])


@differential(hits=4, graphs=1)
def test_objects_that_the_run_makes_are_copied():
    def step(x):
        made = Settings(x=x * 2)
        first, second = copy.deepcopy([made, made])
        first.x += 1
        flat = copy.copy(made)
        return first is second, second.x, made.x, flat.x is made.x, first

    return Program(step, batches(8))


@differential(hits=4)
def test_a_copied_attribute_that_changes_between_calls():
    settings = Settings()

    def change():
        settings.layers[1]["deep"] = 10

    def step(x):
        return x * copy.deepcopy(settings).layers[1]["deep"]

    return Program(step, [*batches(5), change, *batches(5)])


class Counted(Settings):
    def __getstate__(self):
        return {"hidden": 11}


class Copied(Settings):
    def __deepcopy__(self, memo):
        return Settings(hidden=13)

    def __copy__(self):
        return Settings(hidden=17)


@differential(reasons=["unknown_callable"])
def test_an_object_that_says_what_is_copied():
    settings = Counted()
    return Program(lambda x: x.exp() * copy.deepcopy(settings).hidden, batches(5))


@differential(hits=2)
def test_an_object_that_copies_itself():
    settings = Copied()

    def step(x):
        return x * copy.copy(settings).hidden

    return Program(step, batches(5))
