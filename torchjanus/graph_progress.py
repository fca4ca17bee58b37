"""Notebooks show while a cell runs that graphs are being made, and then how many and how long it took.

That is an output of the cell beside what it prints. Where there is no notebook, nothing is shown.
"""

import html
import threading
import time
import uuid
from typing import Any

from . import _core
from .messages import internal_error
from .snapshots import duration, number_of

_Key = tuple[str, str, int]  # name, file, line
_MOST_NAMES = 3
_SECONDS_BETWEEN = 0.1  # a program may make hundreds of graphs
_BUSY = ("generating", "compiling")


def can_be_shown(shell: Any) -> bool:
    """Whether the shell is a notebook's: one with a kernel, which can change what it has shown."""
    return getattr(shell, "kernel", None) is not None


class Progress:
    """The output of the cell that runs."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.thread = threading.get_ident()
        self.told = Told({})
        self._begin()
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)
        _core.listen_to_stages(self.listen)

    def remove(self) -> None:
        """Leaves the shell as it was."""
        _core.listen_to_stages(None)
        self.shell.events.unregister("pre_run_cell", self._begin)
        self.shell.events.unregister("post_run_cell", self._end)

    def _begin(self, info: Any = None) -> None:
        self.identity, self.is_shown = uuid.uuid4().hex, False
        self.shown_at = 0.0
        self.told = Told(self.told.busy)

    def _end(self, result: Any = None) -> None:
        self.told.has_ended = True
        if self.is_shown:
            self._show()
        self._begin()

    def listen(self, stage: str, name: str, file: str, line: int) -> None:
        """What a graph that is being made has come to."""
        if threading.get_ident() != self.thread:
            return
        self.told.add(stage, (name, file, line), time.perf_counter())
        now = time.monotonic()
        if now - self.shown_at >= _SECONDS_BETWEEN:
            self.shown_at = now
            self._show()

    def _show(self) -> None:
        """The first time a new output, then in its place."""
        try:
            data, metadata = self.shell.display_formatter.format(self.told)
            transient = {"display_id": self.identity}
            self.shell.display_pub.publish(
                data, metadata, transient=transient, update=self.is_shown
            )
            self.is_shown = True
        except Exception as error:
            internal_error("progress could not be shown", error)


class Told:
    """What has been told since the cell began. `busy`: what goes on since an earlier one, as below."""

    def __init__(self, busy: dict[_Key, tuple[str, float]]) -> None:
        self.busy = busy  # stage, and when it began
        self.made: list[str] = []
        self.seconds = 0.0
        self.has_ended = False

    def add(self, stage: str, key: _Key, now: float) -> None:
        """A stage, at a time in seconds."""
        before = self.busy.pop(key, None)
        if before is not None:
            self.seconds += now - before[1]
        if stage in _BUSY:
            self.busy[key] = stage, now
        elif stage == "ready":
            self.made.append(key[0])

    def __repr__(self) -> str:
        parts = []
        if self.made:
            count = number_of("graph", len(self.made))
            parts.append(f"{count} ready after {duration(1e3 * self.seconds)}: {_names(self.made)}")
        if self.busy:
            (name, *_), (stage, _) = [*self.busy.items()][-1]
            how = " in the background" if stage == "compiling" else ""
            parts.append(f"{stage} a graph of {name}{how}")
        return (
            f"torchjanus: {'; '.join(parts) or 'no graph was made; torchjanus.explain() says why'}"
        )

    def _repr_html_(self) -> str:
        is_busy = self.busy and not self.has_ended
        bar = ' <progress style="width: 8em; height: 0.6em"></progress>' if is_busy else ""
        return f'<small style="opacity: 0.75">{html.escape(repr(self))}{bar}</small>'


def _names(names: list[str]) -> str:
    each = list(dict.fromkeys(names))
    more = f" and {len(each) - _MOST_NAMES} more" if len(each) > _MOST_NAMES else ""
    return f"{', '.join(each[:_MOST_NAMES])}{more}"
