"""What dynamic control flow, dynamic types and impure functions become under each system, beside eager.

The programs use nothing but operators and methods that arrays of torch and of JAX share, so that all systems are given
the same source. A system is right where each call gives what it gives eagerly and leaves what it leaves eagerly.
"""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch._dynamo

import torch
import torchjanus

from .programs_of_kinds import PROGRAMS

CALLS = 12


@dataclass
class Subject:
    """A program: its function, the arguments of its calls as plain lists, and what it leaves behind."""

    function: Callable
    calls: list[tuple]
    left: Callable[[], Any] = field(default=lambda: None)


class Tracing:
    """torch.jit.trace: the first call is recorded, and the record is run from then on."""

    def __init__(self, function: Callable) -> None:
        self.function, self.traced = function, None

    def __call__(self, *arguments: Any) -> Any:
        if self.traced is None:
            self.traced = torch.jit.trace(self.function, arguments, check_trace=False)
        return self.traced(*arguments)


def of_torch(value: Any) -> Any:
    """Lists become tensors; tuples stay what they are."""
    if isinstance(value, list):
        return torch.tensor(value)
    return tuple(map(of_torch, value)) if isinstance(value, tuple) else value


def of_jax(value: Any) -> Any:
    import jax

    if isinstance(value, list):
        return jax.numpy.asarray(value)
    return tuple(map(of_jax, value)) if isinstance(value, tuple) else value


def jitted(function: Callable) -> Callable:
    import jax

    return jax.jit(function)


SYSTEMS: dict[str, tuple[Callable, Callable]] = {
    "torchjanus": (torchjanus.function, of_torch),
    "torch.compile": (torch.compile, of_torch),
    "torch.jit.trace": (Tracing, of_torch),
    "jax.jit": (jitted, of_jax),
}


def observed(subject: Subject, function: Callable, made: Callable) -> Iterator[Any]:
    """After each call: its result, what it has printed and what it has left, as numbers."""
    for number in range(CALLS):
        arguments = map(made, subject.calls[number % len(subject.calls)])
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            result = function(*arguments)
        yield plain(result), printed.getvalue(), plain(subject.left())


@dataclass(frozen=True)
class Array:
    """What a system's array holds."""

    dtype: str
    elements: Any  # a number, or lists of numbers


def plain(value: Any) -> Any:
    """Numbers, arrays, and lists of them; whatever the system's arrays are."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return Array(str(value.dtype), value.tolist()) if hasattr(value, "tolist") else value


def is_near(one: Any, other: Any) -> bool:
    """Arrays have equal dtypes as well. A number may have become an array: a user sees little of it."""
    if isinstance(one, Array) and isinstance(other, Array):
        return one.dtype == other.dtype and is_near(one.elements, other.elements)
    if isinstance(other, Array):
        return is_near(one, other.elements)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_near, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-4 * max(1.0, abs(one))
    return one == other


def verdict(build: Callable, system: str) -> str:
    convert, made = SYSTEMS[system]
    eager = Subject(*build())
    expected = [*observed(eager, eager.function, made)]
    subject = Subject(*build())
    function = convert(subject.function)
    found = observed(subject, function, made)
    for number, wanted in enumerate(expected, 1):
        try:
            given = next(found)
        except Exception as error:
            return f"fails at call {number}: {type(error).__name__}"
        if not all(map(is_near, wanted, given)):
            return f"wrong from call {number} on"
    if isinstance(function, torchjanus.Function):
        return f"as eager, {torchjanus.stats(function)['hits']} calls as graphs"
    return "as eager"


def measure(kind: str, system: str) -> dict[str, str]:
    """What became of each program of the kind, by its name."""
    torchjanus.options.disabled |= {"background"}  # the graph's results are what is looked at
    verdicts = {}
    for name, (of_kind, build) in PROGRAMS.items():
        if of_kind != kind:
            continue
        torch._dynamo.reset()
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdicts[name] = verdict(build, system)
    return verdicts
