"""The command line: `torchjanus run SCRIPT ARGS…` runs a script with its loops as graphs, `torchjanus explain CODE`
says what a reason means."""

import argparse
import builtins
import contextlib
import functools
import importlib.machinery
import importlib.util
import marshal
import os
import runpy
import shutil
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import (
    _core,
    at_end,
    child_program,
    children,
    command_line,
    event_files,
    importing,
    messages,
    outputs,
    ranks,
    source_text,
    spawned,
    text_report,
    timeline,
)
from .program import Program
from .snapshots import Snapshot

if TYPE_CHECKING:
    from . import data_parallel, live

_INTERRUPTED = -1  # by Ctrl-C: no exit code
_HEADER_OF_BYTE_CODE = 16  # bytes of a .pyc file


def _start_data_parallel(options: argparse.Namespace) -> "data_parallel.DataParallel | None":
    """None where a single process trains alone."""
    if not options.data_parallel or ranks.is_alone():
        return None
    if "PYTHONHASHSEED" not in os.environ:  # sets of texts have to have one order on all ranks
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, sys.orig_argv)
    from . import data_parallel

    return data_parallel.DataParallel(
        split_batches=options.split_batches,
        shard_sequential=options.shard_sequential,
        print_from=options.print_from,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command.

    Args:
        arguments: Those of the command line behind its name; by default the process's.

    Returns:
        The exit code: the script's own, 1 after an exception of the script, 2 if it can't be read or a file that is
        asked for can't be written; 2 for a code that doesn't exist.

    Raises:
        SystemExit: The script's own, if that has a number or nothing, or for a wrong command line.
    """
    options = command_line.parser().parse_args(arguments)
    if options.command == "explain":
        return command_line.explain(options.code)
    if options.data_parallel and not ranks.are_launched():
        print(
            "torchjanus: --data-parallel: RANK and WORLD_SIZE are not set; start it by a launcher: "
            "torchrun --nproc-per-node=2 -m torchjanus run --data-parallel SCRIPT",
            file=sys.stderr,
        )
        return 2
    if options.tensorboard is not None and (why_not := event_files.why_not()) is not None:
        print(f"torchjanus: {why_not}", file=sys.stderr)
        return 2
    program = Program(
        options.script,
        options.arguments,
        is_module=options.module,
        is_own_process=arguments is None,
    )
    if problems := list(outputs.problems(options, program.file)) or list(program.read()):
        print("\n".join(problems), file=sys.stderr)
        return 2
    parallel = _start_data_parallel(options)  # first: it may start Python once more
    ending = _Ending(options, program)
    try:
        with parallel or contextlib.nullcontext():
            code = _run(program, ending.stats)
            if parallel:
                parallel.exit_code = code
    finally:
        ending.write(parallel)
    if code == _INTERRUPTED:
        child_program.end_interrupted()
    return code


class _Ending:
    """What is written when the program has run; what has to be known before it runs."""

    def __init__(self, options: argparse.Namespace, program: Program) -> None:
        self.options, self.program, self.title = options, program, Path(options.script).name
        self.process, self.start = os.getpid(), time.perf_counter()
        self.stats: Path | None = options.stats and ranks.own_file(options.stats)
        self.folder: str | None = None
        if self.stats is None and (options.explain or options.report):
            self.folder = tempfile.mkdtemp(prefix="torchjanus")
            self.stats = Path(self.folder, "stats")
        self.counters = children.StatsFiles(self.stats) if self.stats else None
        self.outputs = self._outputs()
        self.view = _live(options)

    def _outputs(self) -> dict[Path, Callable[[], None]]:
        """What writes the files that are asked for. The timeline begins."""
        options, outputs = self.options, dict[Path, Callable[[], None]]()

        def own(file: Path) -> Path:
            return ranks.own_file(file).absolute()  # the program may change the folder

        if options.report is not None:
            outputs[own(options.report)] = functools.partial(self._page, own(options.report))
        if options.trace is not None:
            timeline.begin()
            outputs[own(options.trace)] = functools.partial(
                timeline.write, own(options.trace), self.title
            )
        if options.tensorboard is not None:
            folder = own(options.tensorboard)
            outputs[folder] = lambda: event_files.write(folder, _core.all_details())
        return outputs

    def write(self, parallel: "data_parallel.DataParallel | None") -> None:
        """Files first. A forked process leaves by here, too: of it there are counters only.

        Where nothing ran, nothing is written: files keep what an earlier run found out.
        """
        has_begun, is_first = self.program.has_begun, os.getpid() == self.process
        for file, write in self.outputs.items() if has_begun and is_first else ():
            at_end.attempt(str(file), write)
        if self.counters is not None and has_begun:
            self.counters.write()
        if self.view is not None:
            at_end.flush_stdout()
            at_end.attempt("the live view", self.view.stop)
        if self.options.explain and has_begun and is_first:
            at_end.flush_stdout()
            at_end.attempt("the report", functools.partial(self._explain, parallel))
        if self.folder is not None and is_first:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _children(self) -> dict[int, list[Snapshot]]:
        return self.counters.told_by_children() if self.counters is not None else {}

    def _page(self, file: Path) -> None:
        from . import page  # late: who asks for no page needs none of it

        details, processes = _core.all_details(), self._children()
        seconds = time.perf_counter() - self.start
        summary = text_report.summary_of(details, seconds, processes)
        own = self.program.file
        program = source_text.printable(str(own)) if own else source_text.first_remembered()
        page.write(file, details, self.title, summary, program=program, children=processes)

    def _explain(self, parallel: "data_parallel.DataParallel | None") -> None:
        told = text_report.explain_all(time.perf_counter() - self.start, self._children())
        shared = parallel.report() if parallel else ""
        messages.tell(f"{ranks.headline()}{shared}{told}")  # at once: other ranks write, too


def _live(options: argparse.Namespace) -> "live.View | None":
    """The view of the running program, where it is asked for and can be shown."""
    if not options.live or not ranks.is_first():
        return None
    from . import live  # late: who asks for none needs none of it

    return live.begin(Path(options.script).name)


def _run(program: Program, stats: Path | None) -> int:
    """Runs it as `__main__`, as python itself would; returns the exit code.

    `stats`: where its counters will be written, for the processes that it spawns.
    """
    spawned.convert_from_here(program.folders, stats, program.mains)
    spawned.recall(program.file or Path(program.name))
    program.enter()
    main = types.ModuleType("__main__")
    if sys.version_info < (3, 14):  # since then a module has them once they are read
        main.__annotations__ = {}
    main.__dict__["__builtins__"] = builtins  # `exec` would give it the module's dictionary
    main.__loader__ = importlib.machinery.BuiltinImporter
    sys.modules["__main__"] = main
    if program.source is None:
        return _execute(lambda: _run_by_runpy(program))
    return _execute(lambda: _run_file(program, main))


def _run_file(program: Program, main: types.ModuleType) -> None:
    source, file = program.source, program.path
    assert source is not None
    main.__dict__.update(__file__=file, __cached__=None)
    has_magic = source.startswith(importlib.util.MAGIC_NUMBER)
    if has_magic or file.endswith(".pyc"):
        if not has_magic:
            raise RuntimeError("Bad magic number in .pyc file")
        _leave_alone(program, "it is byte code")
        code = marshal.loads(source[_HEADER_OF_BYTE_CODE:])
        main.__loader__ = importlib.machinery.SourcelessFileLoader("__main__", file)
    else:
        code = importing.compile_source(source, file)
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    program.has_begun = True
    exec(code, main.__dict__)


def _run_by_runpy(program: Program) -> None:
    """As Python runs modules, folders and archives; they are converted because they are imported."""
    if program.is_archive:
        _leave_alone(program, "it is an archive")
    program.has_begun = True  # packages around a module run first
    try:
        if program.is_module:
            runpy._run_module_as_main(program.name)  # type: ignore[attr-defined]
        else:
            runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
    except (SystemExit, SyntaxError) as error:
        program.has_begun = _is_of_program(error)
        raise


def _is_of_program(error: BaseException) -> bool:
    """Whether the program raised it, not runpy, which did not find the program or could not compile it."""
    runs = runpy._run_code.__code__  # type: ignore[attr-defined]
    return any(frame.f_code is runs for frame, _ in traceback.walk_tb(error.__traceback__))


def _leave_alone(program: Program, why: str) -> None:
    messages.leave_alone(program.name, why, "run the source files themselves")


def _execute(body: Callable[[], object]) -> int:
    """Runs it, threads included; an uncaught exception is shown without torchjanus's own frames."""
    try:
        body()
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            raise
        messages.tell(str(error.code))  # as Python does, before it waits for threads
        return 1
    except BaseException as error:
        child_program.show(error, _is_own)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    finally:
        at_end.wait_for_threads()
    return 0


def _is_own(code: types.CodeType) -> bool:
    return Path(code.co_filename).parent == Path(__file__).parent
