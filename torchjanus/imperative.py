"""What torchjanus offers where no compiled library fits (library.py): everything runs imperatively, and says so.

A program that uses torchjanus runs as it would without it. Whoever asks what became of it gets the sentence that
the import warned with.
"""

import functools
import json
import os
import types
from collections.abc import Callable, Collection, Iterator
from contextlib import ContextDecorator, contextmanager
from pathlib import Path
from typing import Any

import torch

from . import library

SENTENCE = library.sentence()
COUNTERS = (
    "calls", "hits", "misses", "aborts", "relaxations", "generated", "bypassed", "retired", "profiled", "passed",
    "graphs",
)  # fmt: skip
STAGES = ("profiling", "generating", "optimising", "compiling", "running")


def _reason(code: types.CodeType | None = None) -> dict[str, Any]:
    """In the form of those that graphs have; there is no page of its code."""
    file, line = (code.co_filename, code.co_firstlineno) if code else ("", 0)
    return {"code": "no_library", "sentence": SENTENCE, "file": file, "line": line, "count": 1}


class Function:
    """Takes the place of a function, as the compiled one does, and calls it."""

    def __init__(self, wrapped: Callable[..., Any], *, profile_runs: int = 3) -> None:
        if not callable(wrapped):
            kind = type(wrapped).__name__
            raise TypeError(f"torchjanus.function: expected a callable, got {kind}")
        if profile_runs < 0:
            raise ValueError(
                f"torchjanus.function: profile_runs must not be negative, got {profile_runs}"
            )
        if options.strict:
            raise RuntimeError(SENTENCE)
        self.__wrapped__ = wrapped
        functools.update_wrapper(self, wrapped)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        wrapped = self.__wrapped__  # a function is pickled by its name, which is ours now
        if isinstance(wrapped, types.FunctionType):
            return wrapped.__qualname__
        return Function, (wrapped,)

    def explain(self) -> str:
        return SENTENCE

    def graph(self) -> str:
        return ""

    def stats(self) -> dict[str, Any]:
        """What programs read of the compiled one's: here all of it is nothing."""
        code = getattr(self.__wrapped__, "__code__", None)
        return {
            "name": getattr(self, "__qualname__", repr(self.__wrapped__)),
            "file": code.co_filename if code else "",
            "line": code.co_firstlineno if code else 0,
            "state": "imperative",
            **dict.fromkeys(COUNTERS, 0),
            "speed": None,
            "compiling": False,
            "milliseconds": dict.fromkeys(STAGES, 0.0),
            "reasons": [_reason(code)],
        }


class Region:
    """Nothing is one here."""


def function(f: Any = None, *, profile_runs: int = 3) -> Any:
    """What takes the place of `f` and calls it; a module is returned as it is."""
    if f is None:
        return lambda f: function(f, profile_runs=profile_runs)
    if isinstance(f, staticmethod | classmethod):
        return type(f)(function(f.__func__, profile_runs=profile_runs))
    if isinstance(f, Function):
        return f
    if isinstance(f, type) or not callable(f):
        raise TypeError(f"torchjanus.function: expected a function, method or module, got {f!r}")
    made = Function(f, profile_runs=profile_runs)
    return f if isinstance(f, torch.nn.Module) else made


def explain(f: Any = None) -> str:
    """The sentence."""
    return SENTENCE


def graph(f: Any) -> str:
    """There are no graphs."""
    return ""


def stats(f: Any = None) -> dict[str, Any]:
    """Nothing was counted; the sentence is the reason."""
    if isinstance(f, Function):
        return f.stats()
    return {"functions": [], "seconds_until_first_graph": None, "reasons": [_reason()]}


def report(f: Any, file: str | os.PathLike[str]) -> None:
    """Writes the sentence as a page."""
    Path(file).write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><title>torchjanus</title><p>{SENTENCE}</p>\n',
        encoding="utf-8",
    )


@contextmanager
def trace(file: str | os.PathLike[str]) -> Iterator[None]:
    """Writes a timeline without events."""
    try:
        yield
    finally:
        empty = {"traceEvents": [], "otherData": {"torchjanus": SENTENCE}}
        Path(file).write_text(json.dumps(empty), encoding="utf-8")


class lazy(ContextDecorator):
    """Operators run at once."""

    def __enter__(self) -> "lazy":
        return self

    def __exit__(self, *error: object) -> None:
        pass


def fetch(tensor: torch.Tensor, callback: Callable[[torch.Tensor], Any]) -> None:
    """Calls back at once."""
    callback(tensor.detach().clone())


def synchronize() -> None:
    """All has run already."""


class Options:
    """Keeps what is set, as programs may ask for it; only `strict` has an effect."""

    def __init__(self) -> None:
        self.strict = os.environ.get("TORCHJANUS_STRICT") in ("1", "true", "yes", "on")
        self.dump_folder = os.environ.get("TORCHJANUS_DUMP", "")
        self.disabled: Collection[str] = frozenset()
        self.trace_graph = False
        self.unroll_limit = self.inline_limit = self.operation_limit = 0
        self.generation_limit = self.memory_limit = 0

    def log_level(self, channel: str) -> int:
        return 0

    def set_log_level(self, channel: str, level: int = 1) -> None:
        pass

    def switches(self) -> dict[str, str]:
        return {}

    @contextmanager
    def without(self, *names: str) -> Iterator[None]:
        yield


options = Options()


def load_ipython_extension(shell: Any) -> None:
    """Cells run as they are."""


def unload_ipython_extension(shell: Any) -> None:
    """Nothing was loaded."""


def find_kept(kind: str, key: str) -> bytes | None:
    """No cache without a compiled library: `torchjanus.code` compiles in each process."""
    return None


def keep(kind: str, key: str, made: bytes) -> None:
    pass
