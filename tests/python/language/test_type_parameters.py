"""Functions with type parameters of their own (PEP 695)."""

import linecache
import sys
from types import ModuleType

import pytest
from differential import Program, differential

import torch

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="type parameters are there since Python 3.12"
)

TEXT = """
def plain[T](x: T) -> T:
    return x * 2 + 1

def with_default[T, *Ts](x: T, by=lambda y: y * 3) -> T:
    return by(x)

def uses_its_parameter[T: (int, float)](x):
    return x + 1 if T.__name__ == "T" else x

class Scaled[T]:
    by = 2

    def scaled[U](self, x: U) -> U:
        return x * self.by

    def plainly(self, x: T) -> T:
        return x / self.by
"""


def module() -> ModuleType:
    """The text as a module: older Pythons can't read it."""
    made = ModuleType("with_type_parameters")
    file = "<with type parameters>"
    linecache.cache[file] = (len(TEXT), None, TEXT.splitlines(True), file)
    exec(compile(TEXT, file, "exec"), vars(made))
    return made


@differential()
def test_function():
    return Program(module().plain, [(torch.randn(3),) for _ in range(5)])


@differential()
def test_default_beside_type_parameters():
    return Program(module().with_default, [(torch.randn(3),) for _ in range(5)])


@differential()
def test_body_sees_its_type_parameter():
    return Program(module().uses_its_parameter, [(torch.randn(3),) for _ in range(5)])


@differential()
def test_callee_with_type_parameters():
    plain = module().plain

    def step(x):
        return plain(x) - 1

    return Program(step, [(torch.randn(3),) for _ in range(5)])


@differential()
def test_methods_of_a_generic_class():
    scaled = module().Scaled()

    def step(x):
        return scaled.scaled(x) + scaled.plainly(x)

    return Program(step, [(torch.randn(3),) for _ in range(5)])
