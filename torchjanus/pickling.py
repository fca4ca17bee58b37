"""Pickles of converted functions: however a pickler takes a plain function, it takes a converted one.

`pickle` takes a function by reference; other picklers take one by value that its reader could not import. So the
pickler gets a plain function to decide about: a copy of the wrapped one, which is found by name behind its `Function`.
"""

import copy
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from ._core import Function

_COPY = "_for_pickles"  # the attribute of a Function that is its copy
_LEAST_PROTOCOL = 4  # that can name an attribute of an attribute
_OWN = {"__module__", "__name__", "__qualname__", "__doc__", "__wrapped__"}
_copies: weakref.WeakKeyDictionary[Function, types.FunctionType] = weakref.WeakKeyDictionary()
_known: weakref.WeakKeyDictionary[types.FunctionType, weakref.ref[Function]] = (
    weakref.WeakKeyDictionary()
)  # of functions that were pickled or read
_read: weakref.WeakSet[Function] = weakref.WeakSet()
_kept: set[Function] = set()


def reduce(f: Function, wrapped: Callable[..., Any], protocol: int) -> str | tuple[Any, ...]:
    """What `f.__reduce_ex__(protocol)` gives."""
    if not isinstance(wrapped, types.FunctionType) or _named(f.__module__, f.__qualname__) is not f:
        if isinstance(wrapped, types.FunctionType):
            _known.setdefault(wrapped, weakref.ref(f))
        return _converted, (wrapped, _profile_runs(f)), _own_attributes(f, wrapped) or None
    if protocol < _LEAST_PROTOCOL:
        return str(f.__qualname__)
    return _restored, (copy_of(f, wrapped), _profile_runs(f))


def deep_copy(f: Function, wrapped: Callable[..., Any], memo: dict[int, Any]) -> Function:
    """Functions are not copied; what a bound method or a callable object holds is."""
    if isinstance(wrapped, types.FunctionType):
        return f
    made = Function(copy.deepcopy(wrapped, memo), profile_runs=_profile_runs(f))
    vars(made).update(copy.deepcopy(_own_attributes(f, wrapped), memo))
    return made


def copy_of(f: Function, wrapped: types.FunctionType) -> types.FunctionType:
    """The copy of the wrapped function, as that is now: `f._for_pickles`, and named so."""
    made = _copies.get(f)
    if made is None:
        made = types.FunctionType(
            wrapped.__code__, wrapped.__globals__, wrapped.__name__, None, wrapped.__closure__
        )
        _copies[f] = made
    made.__code__ = wrapped.__code__
    made.__defaults__, made.__kwdefaults__ = wrapped.__defaults__, wrapped.__kwdefaults__
    made.__doc__ = wrapped.__doc__
    # Since Python 3.14 a function may make its annotations when they are read, which may fail.
    if annotate := getattr(wrapped, "__annotate__", None):
        setattr(made, "__annotate__", annotate)  # noqa: B010  (mypy knows 3.11's functions)
    else:
        made.__annotations__ = wrapped.__annotations__
    made.__dict__.clear()
    made.__dict__.update(vars(wrapped) | _own_attributes(f, wrapped))
    made.__module__, made.__qualname__ = f.__module__, f"{f.__qualname__}.{_COPY}"
    return made


def _restored(plain: types.FunctionType, profile_runs: int) -> Function:
    """The Function whose copy this is; a new one if the copy came by value, and may still be incomplete."""
    owner = _named(plain.__module__, plain.__qualname__.removesuffix(f".{_COPY}"))
    if isinstance(owner, Function) and _copies.get(owner) is plain:
        return owner
    plain.__qualname__ = plain.__qualname__.removesuffix(f".{_COPY}")
    return _converted(plain, profile_runs)


def _converted(wrapped: Callable[..., Any], profile_runs: int) -> Function:
    """The Function of what a pickle held: one for all pickles, so that its graphs live as long as it does."""
    if not isinstance(wrapped, types.FunctionType):
        return Function(wrapped, profile_runs=profile_runs)
    known = _known.get(wrapped)
    f = None if known is None else known()
    if f is None:
        f = Function(wrapped, profile_runs=profile_runs)
        _known[wrapped] = weakref.ref(f)
        _read.add(f)
        if _named(wrapped.__module__, wrapped.__qualname__) is wrapped:
            _kept.add(f)  # each task of a pool reads it anew, and shall find its graphs
    elif f in _read:
        # A recursive function is read before its attributes, and again with them.
        vars(f).update(vars(wrapped))
        for name in _OWN - {"__wrapped__"}:
            setattr(f, name, getattr(wrapped, name))
    return f


def _profile_runs(f: Function) -> int:
    runs: int = f.stats()["profile_runs"]
    return runs


def _own_attributes(f: Function, wrapped: Callable[..., Any]) -> dict[str, Any]:
    """What the program has set on the Function."""
    inherited = getattr(wrapped, "__dict__", {})
    return {
        name: value
        for name, value in vars(f).items()
        if name not in _OWN and (name not in inherited or inherited[name] is not value)
    }


def _named(module: str | None, name: str) -> Any:
    """What a pickler finds under that name; None: nothing."""
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
