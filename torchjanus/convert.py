"""`function` and what can be asked of its results."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import torch

from . import report
from ._core import Function, Region

T = TypeVar("T")


@overload
def function(f: T, *, profile_runs: int = 3) -> T: ...
@overload
def function(f: None = None, *, profile_runs: int = 3) -> Callable[[T], T]: ...
def function(f: Any = None, *, profile_runs: int = 3) -> Any:
    """Converts a function, method or module: its calls run as graphs where that changes nothing.

    The first `profile_runs` calls run imperatively and are watched; from then on a graph that
    rests on what was seen is tried, and the call runs imperatively whenever it does not fit.

    A function or method (also a staticmethod or classmethod object) gives a `Function` that takes
    its place. A `torch.nn.Module` is converted in place and returned: its class, its parameters and
    the keys of its state_dict stay as they are, and copies and pickles of it are plain modules.

    May be used as a decorator, with or without arguments.
    """
    if f is None:
        return lambda f: function(f, profile_runs=profile_runs)
    if isinstance(f, torch.nn.Module):
        f._compiled_call_impl = Function(f._call_impl, profile_runs=profile_runs)
        return f
    if isinstance(f, staticmethod | classmethod):
        return type(f)(function(f.__func__, profile_runs=profile_runs))
    if isinstance(f, Function):
        return f
    if isinstance(f, type) or not callable(f):
        raise TypeError(f"torchjanus.function: expected a function, method or module, got {f!r}")
    return Function(f, profile_runs=profile_runs)


def converted(f: Any) -> Function | Region:
    """The Function or Region behind `f`: itself, a method's, a module's. TypeError if none."""
    if isinstance(f, Function | Region):
        return f
    if isinstance(f, torch.nn.Module) and isinstance(f._compiled_call_impl, Function):
        return f._compiled_call_impl
    inner = getattr(f, "__func__", None)  # a bound method, a staticmethod
    if isinstance(inner, Function):
        return inner
    raise TypeError(f"not converted by torchjanus: {f!r}")


def explain(f: Any) -> str:
    """What became a graph, what was assumed, and what stayed imperative and why, as text."""
    return report.explain(converted(f))


def graph(f: Any) -> str:
    """The graphs in the cache of a converted function, in their textual form."""
    return report.graph(converted(f))


def stats(f: Any = None) -> dict[str, Any]:
    """Counters, milliseconds, state and reasons of `f`; without `f` of the whole process."""
    return report.stats_all() if f is None else converted(f).stats()
