"""Lazy execution: operators are noted, and run when the program looks at a value."""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ContextDecorator, suppress
from types import TracebackType
from typing import Any

import torch

from . import _core


class lazy(ContextDecorator):
    """Within it, operators of this thread run at the next look at a value that needs them.

        with torchjanus.lazy():
            for batch in batches:
                train_step(batch)

    Works as a decorator, too. A look is `item()`, `print`, `numpy()`, a test, and so on. What can raise
    because of what a tensor holds runs at once, so exceptions come from the same lines as without. At
    the end all that is noted has run.
    """

    def __enter__(self) -> "lazy":
        _depth.of_thread += 1
        if _depth.of_thread == 1:
            _core.begin_lazy()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _depth.of_thread -= 1
        if _depth.of_thread == 0:
            _core.end_lazy()
            _give_fetched_beside(error)

    def _recreate_cm(self) -> "lazy":
        return lazy()


class _Depth(threading.local):
    of_thread = 0


_depth = _Depth()


class _Fetches(threading.local):
    def __init__(self) -> None:
        self.waiting: deque[tuple[torch.Tensor, Callable[[torch.Tensor], Any]]] = deque()
        self.error: Exception | None = None  #: of a callback, that nobody has been told of


_fetches = _Fetches()


def fetch(tensor: torch.Tensor, callback: Callable[[torch.Tensor], Any]) -> None:
    """Calls `callback` with the value that `tensor` has now, once it is computed.

    The program does not wait for it. Callbacks come in the order of the fetches, at the latest when
    `synchronize` is called or the outermost `lazy` ends.

    Args:
        tensor: Any tensor.
        callback: Takes a tensor that shares nothing with others. What it returns is dropped.

    Returns:
        Nothing.

    Raises:
        TypeError: `tensor` is no tensor, or `callback` can't be called.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"fetch: expected a tensor, not {type(tensor).__name__}")
    if not callable(callback):
        raise TypeError(f"fetch: a {type(callback).__name__} can't be called")
    _fetches.waiting.append((tensor.detach().clone(), callback))
    _give_fetched()


def synchronize() -> None:
    """Runs all operators of this thread that are noted, and the callbacks of all fetches.

    Returns:
        Nothing, when all has run.

    Raises:
        RuntimeError: Memory ran out, or a callback raised.
    """
    _core.synchronize()
    error, _fetches.error = _fetches.error, None
    if error is not None:
        raise error
    _give_fetched()


def _run_before_fork() -> None:
    """The child has none of the threads that run large operators: to run there what is pending would hang.

    What fails stays pending, and whoever looks at it is told.
    """
    with suppress(Exception):
        _core.run_pending()


os.register_at_fork(before=_run_before_fork)


def _give_fetched_beside(error: BaseException | None) -> None:
    """The program's own `error` is on its way: a callback's must not take its place, and waits."""
    try:
        _give_fetched()
    except Exception as of_callback:
        if error is None:
            raise
        _fetches.error = _fetches.error or of_callback


def _give_fetched() -> None:
    waiting = _fetches.waiting
    while waiting and not _core.is_pending(waiting[0][0]):
        value, callback = waiting.popleft()
        callback(value)
