"""inspect.signature and its like: parameters, kinds, defaults and annotations of functions, methods and
classes.
PYTEST_DONT_REWRITE"""

import functools
import inspect
import sys
from dataclasses import dataclass

import pytest
from differential import Program, differential

import torch
from torch import nn


def plain(x, scale: float = 2.0, *rest: int, keep=True, name: str = "n", **more) -> torch.Tensor:
    return x * scale


def positional(x, y, /, z=1):
    return x


def bare():
    pass


@functools.wraps(plain)
def wrapper(*arguments, **keywords):
    return plain(*arguments, **keywords)


class Base:
    def __init__(self, first, second=2):
        self.first = first

    def method(self, x, by=3):
        return x

    @classmethod
    def of_class(cls, x):
        return x

    @staticmethod
    def of_none(x, y=4):
        return x

    def __call__(self, called, times=1):
        return called


class Derived(Base):
    pass


class Made:
    def __new__(cls, made, by=None):
        return super().__new__(cls)


@dataclass
class Fields:
    x: float
    y: int = 3


class Layer(nn.Module):
    def forward(self, x, mask=None):
        return x


KEPT = Derived(1)
LAYER = Layer()
CALLABLES = {
    "a function": plain,
    "positional only": positional,
    "nothing": bare,
    "a wrapped function": wrapper,
    "a method": KEPT.method,
    "a class method": KEPT.of_class,
    "a static method": Base.of_none,
    "a function of a class": Derived.method,
    "a class": Derived,
    "a class with a constructor": Made,
    "a dataclass": Fields,
    "an object": KEPT,
    "a module": LAYER,
    "a module's method": LAYER.forward,
}


def calls(*between, count=7):
    made = [(torch.randn(3),) for _ in range(count)]
    for change in between:
        made += [change, *((torch.randn(3),) for _ in range(6))]
    return made


@differential(hits=4)
@pytest.mark.parametrize("name", CALLABLES)
def test_parameters(name):
    chosen = CALLABLES[name]

    def step(x):
        parameters = inspect.signature(chosen).parameters
        names = list(parameters)
        kinds = [each.kind.name for each in parameters.values()]
        given = [k for k, each in parameters.items() if each.default is not inspect.Parameter.empty]
        typed = [k for k, v in parameters.items() if v.annotation is not inspect.Parameter.empty]
        return x * len(parameters), names, kinds, given, typed, "scale" in parameters

    return Program(step, calls())


@differential(hits=4)
def test_defaults_and_annotations():
    def step(x):
        signature = inspect.signature(plain)
        parameters = signature.parameters
        assert signature.return_annotation is torch.Tensor
        assert parameters["scale"].annotation is float
        assert parameters.get("missing") is None
        takes_more = any(p.kind == inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        return x * parameters["scale"].default + takes_more, parameters["name"].default

    return Program(step, calls())


@differential(hits=4)
def test_methods_made_in_the_run():
    def step(x):
        made = Base(x)
        names = set(inspect.signature(made.method).parameters)
        return (
            x * len(names),
            sorted(names),
            list(inspect.signature(LAYER.forward).parameters.keys()),
        )

    return Program(step, calls())


@differential(hits=4)
def test_getfullargspec():
    def step(x):
        spec = inspect.getfullargspec(plain)
        return x * len(spec.args), spec.args, spec.varargs, spec.varkw, spec.kwonlyargs

    return Program(step, calls())


@differential(hits=4)
def test_a_signature_that_outlives_the_call():
    kept = {}

    def step(x):
        kept["signature"] = inspect.signature(plain)
        return x * 2, str(kept["signature"].parameters["scale"].default)

    def look():
        assert str(kept["signature"]) == str(inspect.signature(plain))
        assert isinstance(kept["signature"].parameters, type(int.__dict__))

    return Program(step, calls(look))


@differential(hits=8)
def test_the_signature_changes():
    def changed(x, scale=2.0):
        return x

    def other(x, scale, more, keep=True):
        return x

    def step(x):
        parameters = inspect.signature(changed).parameters
        default = parameters["scale"].default
        return x * len(parameters), default is inspect.Parameter.empty, "more" in parameters

    def replace(**attributes):
        return lambda: [setattr(changed, name, value) for name, value in attributes.items()]

    return Program(
        step,
        calls(
            replace(__defaults__=None),
            replace(__code__=other.__code__),
            replace(__wrapped__=plain),
        ),
    )


@differential(hits=8)
def test_an_explicit_signature_is_asked_for():
    def changed(x, scale=2.0):
        return x

    def step(x):
        return x * len(inspect.signature(changed).parameters)

    def give():
        changed.__signature__ = inspect.signature(plain)

    def take():
        del changed.__signature__

    return Program(step, calls(give, take))


@differential(hits=8)
def test_annotations_and_keyword_defaults_change():
    def changed(x, *, scale: float = 2.0, keep: int = 1):
        return x

    def step(x):
        parameters = inspect.signature(changed).parameters
        return x * parameters["scale"].default, parameters["keep"].annotation is int

    return Program(
        step,
        calls(
            lambda: changed.__kwdefaults__.update(scale=5.0),
            lambda: changed.__annotations__.update(keep=str),
        ),
    )


@differential(hits=8)
def test_a_class_gets_another_initialiser():
    class Own:
        def __init__(self, first):
            self.first = first

    def step(x):
        return x * len(inspect.signature(Own).parameters)

    def replace():
        Own.__init__ = lambda self, first, second: None

    return Program(step, calls(replace))


@differential(hits=4)
def test_a_proxy_is_no_dict_and_does_not_change():
    def step(x):
        parameters = inspect.signature(plain).parameters
        assert not isinstance(parameters, dict)
        assert not hasattr(parameters, "update")
        try:
            parameters["y"] = 1
        except TypeError:
            x = x * 2
        try:
            del parameters["x"]
        except TypeError:
            x = x * 3
        return x, {**parameters}.keys() == parameters.keys(), bool(parameters)

    return Program(step, calls())


def asked(held):
    return (
        inspect.isfunction(held),
        inspect.ismethod(held),
        inspect.isclass(held),
        inspect.ismodule(held),
        inspect.isbuiltin(held),
        inspect.isroutine(held),
        inspect.isgeneratorfunction(held),
        callable(held),
    )


@differential(hits=4)
@pytest.mark.parametrize("held", [plain, KEPT.method, Base, inspect, len, KEPT, LAYER.forward])
def test_kinds_of_objects(held):
    def step(x):
        return x * 2, asked(held)

    return Program(step, calls())


@differential(hits=8)
def test_the_recursion_limit():
    limit = sys.getrecursionlimit()

    def step(x):
        return x * (2 if sys.getrecursionlimit() > limit else 3)

    return Program(
        step,
        calls(lambda: sys.setrecursionlimit(limit + 1), lambda: sys.setrecursionlimit(limit)),
    )


@differential(hits=8)
def test_a_method_of_a_frozen_set():
    held = {"names": frozenset(["a", "b"])}

    def step(x):
        return x * (2 if held["names"].__contains__("a") else 3)

    return Program(step, calls(lambda: held.update(names=frozenset(["b"]))))


@differential(hits=3)
def test_parameters_of_a_signature_that_is_kept():
    def called(x, scale=2.0, *, shift=1.0, **others):
        return x * scale + shift

    kept = inspect.signature(called)
    any_keywords = inspect.Parameter.VAR_KEYWORD

    def step(x):
        parameters = kept.parameters
        names = [name for name in parameters.keys() if name in {"scale", "shift"}]
        takes_all = any(each.kind == any_keywords for each in parameters.values())
        defaults = {name: each.default for name, each in parameters.items() if name in names}
        return called(x, **defaults), names, takes_all, parameters.get("nothing")

    return Program(step, [(torch.randn(3),) for _ in range(6)])
