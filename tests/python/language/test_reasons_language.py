"""Reasons of the language and its built-in objects."""

# ruff: noqa: F401  (the statements use them)
import collections
import contextvars
import functools
import itertools
import math
import operator
import sys
import types
import weakref
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass

import pytest
import torch.nn.functional as F
from differential import Call, Program, differential
from refusals import Refused, check_refusal

import torch
from torch import nn


class Plain:
    pass


class Asked(type):
    def __getattr__(cls, name):
        raise AttributeError(name)


class OfMetaclass(metaclass=Asked):
    pass


class Cached:
    @functools.cached_property
    def first(self):
        return 2


Cached.second = vars(Cached)["first"]
numbered = {}


class Holder:
    @functools.lru_cache  # noqa: B019
    def cached(self):
        return 2


@torch.jit.script
def draws(x: torch.Tensor):
    return torch.rand_like(x)


class Child(Plain):
    def own_class(self):
        return super().__class__


class Index:
    def __index__(self):
        return 1


class IndexLength:
    def __len__(self):
        return Index()


class MapLength:
    def __len__(self):
        return map(int, [1])


def double(x):
    return x * 2


def pairs():
    for i in range(4000):
        yield i
        yield i


def asked_module():
    module = types.ModuleType("module")
    exec("def __getattr__(name): raise AttributeError(name)", vars(module))
    return module


def space():
    return {
        **globals(),
        "Alias": int | str,
        "Rows": int | list[int],
        "chain": collections.ChainMap({1: 2}),
        "module": asked_module(),
        "many": set(range(5000)),
        "frozen": frozenset([1]),
        "own_class": Child.own_class,
        "reference": weakref.ref(Plain()),
        "variable": contextvars.ContextVar("variable", default=1),
    }


CASES = {
    "dynamic_control": [
        Refused(
            "max([int(x.sum()), int(x.mean())], key=lambda v: [v])",
            "max by keys of different kinds",
        ),
    ],
    "dynamic_value": [
        Refused("len(MapLength())", "the class of what __len__ gives"),
        Refused("reference()", "a weak reference whose object is gone"),
        Refused("for v in torch.nn: v", "an iterable of a kind that is not known"),
        Refused(
            "global kept; kept = iter([x])",
            "a function, method or iterator that outlives the run",
            at_entry=True,
        ),
        Refused("len(slice(1))", "a length"),
        Refused("{1: 2, id([x]): 3}", "the id of an object among other numbers"),
        Refused("global kept; kept = id([x])", "the id of an object that is gone", at_entry=True),
        Refused("numbered[id([x]), 1] = 2", "the id of an object as a key of what existed before"),
        Refused("str(OrderedDict(a=1).keys())", "a view of a dict of another class"),
        Refused(
            "l = []; t = (l,); l.append(t)\nreturn t",
            "a tuple or set that contains itself",
            at_entry=True,
        ),
        Refused("not f'{x.sum()}'", "the truth of a value made after the run"),
        Refused("len(IndexLength())", "a length that is no int"),
    ],
    "expression": [
        Refused("x.output_nr", "the attribute output_nr of a tensor"),
        Refused("isinstance(map(int, [1]), int)", "isinstance()"),
        Refused(
            "isinstance('a', Rows)", "isinstance() of a union whose members are not all classes"
        ),
        Refused("callable(map(int, [1]))", "callable()"),
        Refused("str(ImportError('a'))", "the text of an exception"),
        Refused("Cached().second", "a cached property of another name"),
        Refused("object.__getattribute__(x, 'grad')", "object.__getattribute__ of"),
        Refused("round(x)", "round()"),
        Refused("divmod(x, 2)", "divmod() of objects"),
        Refused("max([1, 'a'], key=id)", "id()"),
        Refused("torch.Size([1]) + ('a',)", "a torch.Size with other than ints"),
        Refused("[x] < [x]", "the order of containers"),
        Refused("{1: 2}.keys() == Plain()", "the comparison of a view with an object"),
        Refused("{1: 2}.keys().mapping", "the method"),
        Refused("[a for a in range(3)][:: 2] = 1, 2", "assignment to a slice with a step"),
        Refused("x[Plain()]", "an index"),
        Refused(
            "x[torch.ones(2, dtype=torch.uint8)]", "an index that is a mask of bytes or one flag"
        ),
        Refused("[1] - [2]", "containers with"),
        Refused("'a' + Plain()", "a string"),
        Refused("~iter([1])", "the operator"),
        Refused("str(ValueError(x))", "the text of an object"),
        Refused("iter([1])[0]", "a subscript"),
        Refused("hasattr(OfMetaclass, 'missing')", "attributes of a class by its metaclass"),
        Refused("hasattr(module, 'missing')", "attributes of a module by its __getattr__"),
        Refused("Holder.cached", "the descriptor"),
        Refused("issubclass(1, int)", "issubclass()"),
        Refused("type(map(int, [1]))", "the type of such a value"),
        Refused("sum((i for i in [2, 1]), **{})", "** of a call"),
        Refused("{**Plain()}", "** of an object that is not a dict"),
        Refused("x.sum().item() @ 2", "a number"),
        Refused("Child().own_class()", "super().", helper="own_class"),
    ],
    "generator": [
        Refused("list(i async for i in [1])", "an async comprehension"),
    ],
    "heap_write": [
        Refused("frozen.add(2)", "a set"),
    ],
    "limit": [
        Refused("list(pairs())", "a generator of too many values", helper="pairs"),
        Refused("sum(itertools.repeat(1, 100000))", "sum() of too many elements"),
        Refused("many | {1}", "a set of many elements"),
    ],
    "statement": [
        Refused("from . import a", "a relative import"),
        Refused("del x[0]", "del of an item"),
        Refused(
            "match chain:\n    case {1: 2, **rest}: pass", "the rest of a mapping that is no dict"
        ),
        Refused("match 1:\n    case Alias(): pass", "a class pattern whose class is not a class"),
    ],
    "unknown_callable": [
        Refused("print(map(int, [1]), file=3)", "print of an object"),
        Refused("with Plain(): pass", "a context manager"),
        Refused("next(x)", "next"),
        Refused("draws(x)", "a scripted function that draws"),
    ],
    "unsupported_argument": [
        Refused("torch.no_grad(double)", "a grad mode applied to a function"),
        Refused("torch.Size([x])", "torch.Size of other than ints"),
        Refused("double(**Plain())", "** of an object that is not a dict"),
        Refused("variable.get(1, 2)", "a context variable"),
        Refused("variable.reset(1)", "ContextVar.reset"),
        Refused("double.__get__()", "__get__"),
        Refused("torch.set_autocast_enabled('cpu')", "a missing flag"),
        Refused("torch.set_autocast_dtype('cpu', None)", "the type of an autocast"),
        Refused("enumerate([1], first=2)", "arguments of enumerate()"),
        Refused("len(x, x)", "arguments of"),
        Refused(
            "torch.zeros_like(torch.ones(2, 3).t(), memory_format=torch.contiguous_format)",
            "the argument memory_format",
        ),
        Refused("[1].append()", "arguments of a container's method"),
        Refused("deque([1], maxlen=2).insert(0, 2)", "deque.insert"),
    ],
}


@pytest.mark.parametrize(
    ("code", "case"),
    [
        pytest.param(code, case, id=case.statement)
        for code, cases in CASES.items()
        for case in cases
    ],
)
def test_statement_gives_its_reason(code, case):
    check_refusal(case, code, space)


IMPERATIVE = {
    "generator": "generator",
    "class": "statement",
    "import": "statement",
    "attribute of a tensor": "heap_write",
    "opaque call": "unknown_callable",
    "eval": "unknown_callable",
}


class Counter:
    def __init__(self):
        self.count = 0
        self.items = [1]


@pytest.mark.parametrize("name", IMPERATIVE)
def test_stays_imperative_with_its_reason(name):
    def build():
        counter = Counter()

        def generator(x):
            yield x * 2

        def class_(x):
            class Local:
                scale = 2

            return x * Local.scale

        def import_(x):
            import colorsys as m  # for the first time

            del sys.modules["colorsys"]
            return x * len(m.__name__)

        def attribute(x):
            y = x * counter.count
            y.note = "seen"
            return y

        def opaque_call(x):
            import_function = open
            with import_function("/dev/null") as file:
                return x * file.fileno() * 0

        def eval_(x):
            return eval("x * 2")

        step = {
            "generator": lambda x: [*generator(x)],
            "class": class_,
            "import": import_,
            "attribute of a tensor": attribute,
            "opaque call": opaque_call,
            "eval": eval_,
        }[name]
        return Program(step, [(torch.randn(3),) for _ in range(7)], watch=[counter])

    differential(reasons=[IMPERATIVE[name]])(build)()
