"""Context managers of Python's library as programs, where its own code looks at more than can be known.

The front end inlines `leave_all` in the place of contextlib.ExitStack.__exit__. A context that lets an exception
through gives False, as those of contextlib do. Where one raises an exception of its own, the front end refuses the run:
what Python does then is not written here. `push_entered` is the end of ExitStack.enter_context, for contexts that the
interpreter enters itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType


def leave_all(
    stack: ExitStack,
    kind: type[BaseException] | None,
    exception: BaseException | None,
    traceback: TracebackType | None,
) -> bool:
    """Leaves what the stack has entered, the last first; whether the exception is handled."""
    is_raised, is_handled = kind is not None, False
    entered = stack._exit_callbacks  # type: ignore[attr-defined]
    while entered:
        _, leave = entered.pop()
        if leave(kind, exception, traceback):
            is_handled = True
            kind = exception = traceback = None
    return is_raised and is_handled


def push_entered(stack: ExitStack, leave: Callable[..., bool]) -> None:
    """Notes how a context is left that was entered."""
    stack._exit_callbacks.append((True, leave))  # type: ignore[attr-defined]
