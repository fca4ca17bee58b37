"""`%%torchjanus`: a cell that shows its own lines when it has run, with what became of each and why.

The cell runs as any other does. Its first line is taken as a line magic, which notes what had run so far; so line
numbers, tracebacks, `await` and the value of the last line are the cell's own. The report is made when IPython says
that the cell has ended, with or without an error.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

from . import _core, line_marks, text_report, totals
from .convert import converted
from .messages import internal_error
from .snapshots import Snapshot, duration, has_tensor_work, key, number_of, was_called
from .source_text import Sources, divided
from .summary import percent

_MAGIC = "torchjanus"


class Magic:
    """`%%torchjanus` of a shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.begun: _Begun | None = None
        self.open: list[
            Any
        ] = []  # what is told of the cells that run: one may run another one, as %%capture does
        shell.input_transformers_cleanup.append(as_line_magic)
        shell.register_magic_function(self.run, "line_cell", _MAGIC)
        shell.events.register("pre_run_cell", self._note)
        shell.events.register("post_run_cell", self.end)

    def remove(self) -> None:
        """Leaves the shell as it was."""
        self.shell.input_transformers_cleanup.remove(as_line_magic)
        self.shell.events.unregister("pre_run_cell", self._note)
        self.shell.events.unregister("post_run_cell", self.end)
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop(_MAGIC, None)

    def run(self, line: str, cell: str | None = None) -> None:
        """Shows, when the cell has run, its lines with what became of each and why, and how fast it was.

        Loops and functions of a cell run as graphs since `%load_ext torchjanus`, with or without this.
        """
        if cell is not None:  # called by name, as `get_ipython().run_cell_magic`
            self.shell.run_cell(f"%{_MAGIC}\n{cell}").raise_error()
        elif self.begun is None:
            self.begun = _Begun(_file_of_cell(self.shell.user_ns), self.open[-1:])

    def _note(self, info: Any) -> None:
        """What IPython calls at the beginning of a cell."""
        self.open.append(info)

    def end(self, result: Any) -> None:
        """What IPython calls at the end of a cell; of an empty one it has not told the beginning."""
        if self.open and self.open[-1] is result.info:
            self.open.pop()
        if self.begun is not None and self.begun.cell in ([], [result.info]):
            begun, self.begun = self.begun, None
            self._show(begun, result.info.raw_cell)

    def _show(self, begun: "_Begun", text: str) -> None:
        try:
            report = begun.report(text)
            self.shell.display_pub.publish(*self.shell.display_formatter.format(report))
        except Exception as error:
            internal_error("the report of a cell could not be made", error)


class Modules:
    """Converted modules are shown as functions are: `torchjanus.function(model)` gives the model itself.

    What the program itself shows of modules goes before.
    """

    def __init__(self, shell: Any) -> None:
        self.formatter = shell.display_formatter.formatters["text/html"]
        self.before = self.formatter.for_type(torch.nn.Module, self._as_html)

    def remove(self) -> None:
        """Leaves the shell as it was."""
        if self.formatter.type_printers.get(torch.nn.Module) != self._as_html:
            return  # the program has set another one since
        self.formatter.pop(torch.nn.Module)
        if self.before is not None:
            self.formatter.for_type(torch.nn.Module, self.before)

    def _as_html(self, module: torch.nn.Module) -> str | None:
        from IPython.utils.dir2 import get_real_method

        shows = self.before or self.formatter.type_printers.get(object)
        if shows is not None:
            return shows(module)  # type: ignore[no-any-return]
        method = get_real_method(module, self.formatter.print_method)
        if method is not None:
            return method()  # type: ignore[no-any-return]
        try:
            return text_report.as_html(converted(module))
        except TypeError:
            return None


def as_line_magic(lines: list[str]) -> list[str]:
    """A cell whose first line is `%%torchjanus` with that as a line magic; another cell magic may follow it."""
    if not lines or lines[0].split()[:1] != [f"%%{_MAGIC}"]:
        return lines
    from IPython.core.inputtransformer2 import cell_magic

    return [lines[0].replace("%%", "%", 1), *cell_magic(lines[1:])]  # type: ignore[no-untyped-call]


def _file_of_cell(names: dict[str, Any]) -> str:
    """The file name of the running code with these global names."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals is not names:
        frame = frame.f_back
    return frame.f_code.co_filename


# --- what ran in the cell -------------------------------------------------------------------------


class _Begun:
    """What had run when the cell began."""

    def __init__(self, file: str, cell: list[Any]) -> None:
        """`cell`: what IPython has told of it; empty if it began before anything was listened to."""
        self.file, self.cell = file, cell
        before = _core.all_stats()
        self.runs = {key(each): totals.steps(each) for each in before}
        self.sums = _Sums(before)
        self.start = time.perf_counter()

    def report(self, text: str) -> "CellReport":
        """`text`: the cell as it was written."""
        seconds = time.perf_counter() - self.start
        with_work = [each for each in _core.all_snapshots() if has_tensor_work(each)]
        after = {key(each): each for each in with_work}  # of two alike the newer one
        ran = [each for name, each in after.items() if totals.steps(each) > self.runs.get(name, 0)]
        own = [each for each in after.values() if each["file"] == self.file and was_called(each)]
        others = [each for each in ran if each["file"] != self.file]
        lines = _lines_of(own, _numbered(text), self.file)
        summary = self.sums.told(_Sums(with_work), seconds, [*own, *others])
        return CellReport(lines, others, summary)


class _Sums:
    """Of all functions and regions, at a moment."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self.hits, self.calls = totals.hits(snapshots), totals.calls(snapshots)
        self.graphs = totals.generated(snapshots)
        self.running, self.making = totals.running(snapshots), totals.making(snapshots)

    def told(self, later: "_Sums", seconds: float, ran: Sequence[Snapshot]) -> str:
        """Lines about what happened until then, and how fast it was. What has died meanwhile is not counted."""
        hits, calls = max(0, later.hits - self.hits), max(0, later.calls - self.calls)
        running, graphs = max(0.0, later.running - self.running), later.graphs - self.graphs
        whole = f"this cell: {duration(1e3 * seconds)}"
        if not calls:
            return f"{whole}, and nothing in it may run as a graph"
        share = percent(running / 1e3 / seconds)
        lines = [f"{whole}, {share} of it as graphs; {hits} of {calls} calls ran as graphs"]
        if graphs > 0:
            made = duration(max(0.0, later.making - self.making))
            lines.append(f"{number_of('graph', graphs)} made in {made}")
        for each in ran:
            lines.append(
                f"{each['name']}: {'; '.join([text_report.state(each), *text_report.counted(each)])}"
            )
        return "\n".join(lines)


def _lines_of(
    snapshots: Sequence[Snapshot], written: list[str], file: str
) -> list[line_marks.Line]:
    """The lines of the cell behind the first one, with the marks of all that is defined in it."""
    lines = {
        number: line_marks.Line(number, text.rstrip(), "", [], [])
        for number, text in enumerate(written, start=1)
    }
    sources = Sources()
    for snapshot in sorted(snapshots, key=totals.time_of):  # that which took most time decides
        for block in line_marks.blocks(snapshot, sources):
            for line in block.lines if block.file == file else ():
                _add(lines.setdefault(line.number, line), line)
    return [line for number, line in sorted(lines.items()) if number > 1]


def _numbered(text: str) -> list[str]:
    """The lines of a cell as Python numbers them: IPython leaves out empty ones before the first."""
    from IPython.core.inputtransformer2 import leading_empty_lines

    return leading_empty_lines(divided(text))  # type: ignore[no-any-return, no-untyped-call]


def _add(line: line_marks.Line, found: line_marks.Line) -> None:
    line.mark = found.mark or line.mark
    line.notes += [each for each in found.notes if each not in line.notes]
    line.reasons += [each for each in found.reasons if each not in line.reasons]


class CellReport:
    """What is shown under a cell: HTML in a notebook, text in a terminal."""

    def __init__(self, lines: list[line_marks.Line], others: list[Snapshot], summary: str) -> None:
        self.lines, self.others, self.summary = lines, others, summary

    def _repr_html_(self) -> str:
        from .page import fragment

        return fragment.of_cell(self.lines, self.others, self.summary)

    def __repr__(self) -> str:
        first, *rest = divided(self.summary)
        marked = text_report.marked_lines(self.lines)
        return "\n".join([first, *(f"  {each}" for each in rest), "", *marked])
