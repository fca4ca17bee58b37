"""What Python 3.14 brought: placeholders of partial functions, lengths that map() checks, annotations that are
evaluated when they are read, template strings."""

import functools
import inspect
import linecache
import operator
import sys
from types import ModuleType

import pytest
from differential import Program, differential

import torch
import torchjanus

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="it is there since Python 3.14")


def tensors(count=6):
    return [(torch.randn(3),) for _ in range(count)]


@differential()
def test_placeholder():
    empty = functools.Placeholder
    halved = functools.partial(operator.truediv, empty, 2)

    def step(x):
        from_two = functools.partial(torch.sub, empty, 2)
        of_three = functools.partial(torch.where, empty, empty, 0)
        filled = functools.partial(of_three, x > 0)
        return halved(x), from_two(x), of_three(x > 0, x), filled(x)

    return Program(step, tensors())


@differential(hits=0, reasons=["would_raise"])
def test_placeholder_that_stays_empty():
    halved = functools.partial(operator.truediv, functools.Placeholder, 2)

    def step(x):
        return halved() * x

    return Program(step, tensors())


@differential(hits=0, reasons=["unknown_callable"])
def test_placeholder_in_the_end():
    def step(x):
        return x + functools.partial(torch.mul, x, functools.Placeholder)(2)

    return Program(step, tensors())


@differential(hits=0, reasons=["unsupported_argument"])
def test_map_that_checks_lengths():
    def step(x):
        return x + sum(map(operator.mul, [1, 2], [3, 4, 5], strict=True))

    return Program(step, tensors())


TEXT = """
def of_later(x: Later, y: "text" = 2) -> Missing:
    z: Unknown = x * y
    def inner(a: Later, b: Missing) -> Unknown:
        return a + b
    return inner(z, x)

def of_local(x):
    Local = int
    def inner(a: Local):
        return a * 2
    return inner(x), inner

def with_signature(x):
    parameters = inspect.signature(of_local).parameters
    texts = inspect.signature(of_later, annotation_format=STRING).parameters
    return x * len(parameters), texts["x"].annotation

def with_template(x):
    template = t"{x.shape[0]} rows"
    return x * len(template.strings)
"""


def module() -> ModuleType:
    """The text as a module: older Pythons can't read it."""
    from annotationlib import Format

    made = ModuleType("since_3_14")
    made.inspect, made.STRING = inspect, Format.STRING
    file = "<since Python 3.14>"
    linecache.cache[file] = (len(TEXT), None, TEXT.splitlines(True), file)
    exec(compile(TEXT, file, "exec"), vars(made))
    return made


@differential()
def test_annotations_that_nobody_reads():
    return Program(module().of_later, tensors())


@differential()
def test_annotation_by_a_local_variable():
    def step(x):
        return of_local(x)[0]

    of_local = module().of_local
    return Program(step, tensors())


def test_annotations_of_a_converted_function():
    made = module()
    made.Later, made.Missing = int, float
    converted = torchjanus.function(made.of_later)
    for _ in range(6):
        converted(torch.randn(3))
    assert converted.__annotations__ == {"x": int, "y": "text", "return": float}


@differential(hits=0, reasons=["no_source"])
def test_annotations_as_texts():
    return Program(module().with_signature, tensors())


@differential(hits=0, reasons=["no_source"])
def test_template_string():
    return Program(module().with_template, tensors())
