"""functools.singledispatch: the function is chosen by the class of the first argument."""

import collections.abc
import functools

from differential import Program, differential

import torch


def calls(*between):
    made = [(torch.randn(3),) for _ in range(7)]
    for change in between:
        made += [change, *((torch.randn(3),) for _ in range(6))]
    return made


def chosen():
    @functools.singledispatch
    def scaled(value, by=1):
        return by

    @scaled.register
    def _(value: torch.Tensor, by=1):
        return value * 2 * by

    @scaled.register(list)
    @scaled.register(tuple)
    def _(value, by=1):
        return [scaled(each, by) for each in value]

    @scaled.register(collections.abc.Mapping)
    def _(value, by=1):
        return {key: scaled(each, by=by) for key, each in value.items()}

    return scaled


@differential(hits=4)
def test_each_class_has_its_function():
    scaled = chosen()

    def step(x):
        return scaled(x), scaled([x, (x, 3)], 2), scaled({"a": x, "b": "text"}, by=3)

    return Program(step, calls())


@differential(hits=8)
def test_a_function_is_registered_later():
    scaled = chosen()

    def step(x):
        return x * scaled(3) + scaled("text")

    return Program(step, calls(lambda: scaled.register(int, lambda value: value * 5)))


class Own:
    pass


@differential(hits=8)
def test_another_class_comes():
    scaled = chosen()
    held = {"value": 3}

    def step(x):
        return x * 2, scaled(held["value"])

    return Program(
        step, calls(lambda: held.update(value=[Own.__name__]), lambda: held.update(value=4))
    )


@differential(hits=8)
def test_a_class_is_registered_with_an_abstract_one():
    class Late(dict):
        pass

    class Kind(collections.abc.Sized):
        pass

    scaled = chosen()
    scaled.register(Kind, lambda value: 7)
    held = Late()

    def step(x):
        return x * 2, str(scaled(held))

    return Program(step, calls(lambda: Kind.register(Late)))
