"""`torchjanus run --live`: the last rows of the terminal show how a program runs, while it runs.

The rows are kept out of the region in which the terminal scrolls, so what the program writes is shown above them and
stays as it is, whoever writes it: Python, a library in C, a process that it starts. The program's own files, signals
and threads (as `threading` counts them) are untouched. If stderr is no terminal, nothing is shown.
"""

import _thread
import io
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import _core, happenings, totals
from .messages import internal_error
from .snapshots import Snapshot, key, number_of
from .summary import percent

_SECONDS = 0.25  # from one look to the next
_WINDOW = 12  # looks, over which rates are taken
_EVENTS = 3
_ROWS = 2 + _EVENTS
_LEAST_ROWS_LEFT = 8  # for the program
_STDERR = 2
_BAR = 10


def begin(title: str) -> "View | None":
    """The view, or None where there is no terminal for it."""
    if not os.isatty(_STDERR) or os.environ.get("TERM", "dumb") == "dumb":
        return None
    view = View(title, Terminal(_STDERR))
    view.start()
    return view


class Terminal:
    """The last rows of a terminal. Each change is one write, which the terminal takes as a whole."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.device = self._device()
        self.size: os.terminal_size | None = None  # with which rows are kept

    def _device(self) -> tuple[int, int, int]:
        stat = os.fstat(self.file)
        return stat.st_dev, stat.st_ino, stat.st_rdev

    def is_there(self) -> bool:
        """Whether the program has left it where it was."""
        try:
            return self._device() == self.device
        except OSError:
            return False

    def prepare(self) -> int:
        """Keeps the rows, anew where the size has changed. Gives the columns; 0: there is no room."""
        size = os.get_terminal_size(self.file)
        if size != self.size:
            self.release()
            if size.lines < _ROWS + _LEAST_ROWS_LEFT:
                return 0
            # Room is made by scrolling, which moves no column; to set the region moves the cursor, which is restored.
            self._write(
                f"{_ESC}D" * _ROWS
                + f"{_ESC}[{_ROWS}A{_SAVE}{_ESC}[1;{size.lines - _ROWS}r{_RESTORE}"
            )
            self.size = size
        return size.columns

    def draw(self, lines: Sequence[str]) -> None:
        assert self.size is not None
        top = self.size.lines - _ROWS + 1
        rows = [f"{_ESC}[{top + i};1H{_ESC}[2K{line}" for i, line in enumerate(lines[:_ROWS])]
        self._write(f"{_SAVE}{''.join(rows)}{_RESTORE}")

    def release(self) -> None:
        """Gives the rows back, empty."""
        if self.size is not None:
            self.draw([""] * _ROWS)
            self._write(f"{_SAVE}{_ESC}[r{_RESTORE}")
            self.size = None

    def _write(self, text: str) -> None:
        os.write(self.file, text.encode())


_ESC = "\x1b"
_SAVE, _RESTORE = f"{_ESC}7", f"{_ESC}8"  # of the cursor


@dataclass
class _Look:
    """The counters at a moment."""

    seconds: float
    stats: list[Snapshot]


class View:
    """Looks at the counters again and again, on a thread that `threading` does not know of."""

    def __init__(self, title: str, terminal: Terminal) -> None:
        self.title, self.terminal = title, terminal
        self.start_time = time.perf_counter()
        self.looks: deque[_Look] = deque(maxlen=_WINDOW)
        self.events: deque[tuple[float, str]] = deque(maxlen=_EVENTS)
        self.process = os.getpid()
        self.error: Exception | None = None
        self.runs, self.ended = _thread.allocate_lock(), _thread.allocate_lock()

    def start(self) -> None:
        """The first look is made at once: what it imports, the program's thread imports."""
        self._refresh()
        self.runs.acquire()
        self.ended.acquire()
        _thread.start_new_thread(self._look_on, ())

    def stop(self) -> None:
        """Ends it and gives the rows back. In a process that was forked: no-op."""
        if os.getpid() != self.process:
            return
        self.runs.release()
        self.ended.acquire()
        if self.terminal.is_there():
            self.terminal.release()
        if self.error is not None:
            internal_error("the live view ended", self.error)

    def _look_on(self) -> None:
        while not self.runs.acquire(timeout=_SECONDS) and self.error is None:
            self._refresh()
        self.ended.release()

    def _refresh(self) -> None:
        try:
            if self.terminal.is_there() and (columns := self.terminal.prepare()):
                self._look()
                self.terminal.draw(list(self._lines(columns)))
        except Exception as error:
            self.error = error

    def _look(self) -> None:
        look = _Look(time.perf_counter() - self.start_time, _core.all_stats())
        before = self.looks[-1].stats if self.looks else []
        self.events += [(look.seconds, each) for each in happenings.between(before, look.stats)]
        self.looks.append(look)

    def _lines(self, columns: int) -> Iterator[str]:
        """The rows, with the escape sequences of their colours."""
        from rich.console import Console
        from rich.rule import Rule
        from rich.text import Text

        console = Console(file=io.StringIO(), force_terminal=True, width=columns, height=_ROWS)
        title = f"torchjanus · {_printable(self.title)} · {_clock(self.looks[-1].seconds)}"
        rows: list[Any] = [Rule(title, align="left", style="dim"), Text(figures(self.looks))]
        for seconds, event in self.events:
            rows.append(Text.assemble((f"{_clock(seconds)}  ", "dim"), _printable(event)))
        for row in rows:
            with console.capture() as captured:
                console.print(row, end="", no_wrap=True, overflow="ellipsis")
            yield captured.get().rstrip("\n")
        yield from [""] * (_ROWS - len(rows))


def _printable(text: str) -> str:
    """In one line, and without what a terminal would obey."""
    return "".join(each if each.isprintable() else " " for each in text)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def figures(looks: Sequence[_Look]) -> str:
    """A line: steps a second, and the share of time and of calls that ran as graphs, of the last seconds."""
    first, last = looks[0], looks[-1]
    if not any(each["calls"] or each["passed"] for each in last.stats):
        return "no function or loop that may run as a graph was entered yet"
    seconds = max(last.seconds - first.seconds, 1e-9)
    running = max(0.0, totals.running(last.stats) - totals.running(first.stats)) / 1e3
    share = running / seconds if len(looks) > 1 else 0.0
    hits, calls = totals.hits(last.stats), totals.calls(last.stats)
    filled = round(_BAR * min(1.0, share))
    graphs = totals.generated(last.stats)
    rate, name = _steps(first, last, seconds)
    told = [
        f"{rate:.4g} steps/s",
        f"{'█' * filled}{'░' * (_BAR - filled)} {percent(share)} as graphs",
        f"{hits} of {calls} calls",
        number_of("graph", graphs),
        _printable(name),
    ]
    return "   ".join(told)


def _steps(first: _Look, last: _Look, seconds: float) -> tuple[float, str]:
    """How often the function or loop is entered that most time goes into, and its name."""
    before = {key(each): each for each in first.stats}

    def since(what: Any, each: Snapshot) -> float:
        known = before.get(key(each))
        return float(what(each) - (what(known) if known is not None else 0))

    def spent(each: Snapshot) -> float:
        return totals.time_of(each) + totals.profiling([each])

    entered = [each for each in last.stats if first is not last and since(totals.steps, each) > 0]
    if not entered:
        return 0.0, ""
    busiest = max(entered, key=lambda each: since(spent, each))
    return since(totals.steps, busiest) / seconds, busiest["name"]
