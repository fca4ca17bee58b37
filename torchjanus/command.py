"""The command line: `torchjanus run SCRIPT ARGS…` runs a script with its loops as graphs, `torchjanus explain CODE`
says what a reason means."""

import argparse
import contextlib
import functools
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
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
    ranks,
    source_text,
    spawned,
    text_report,
    timeline,
)
from .snapshots import Snapshot

if TYPE_CHECKING:
    from . import data_parallel, live

_INTERRUPTED = -1  # by Ctrl-C: no exit code


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
    if problems := list(_not_writable(options)):
        print("\n".join(problems), file=sys.stderr)
        return 2
    parallel = _start_data_parallel(options)  # first: it may start Python once more
    ending = _Ending(options)
    try:
        with parallel or contextlib.nullcontext():
            code = _run(options.script, options.arguments, ending.stats, is_module=options.module)
            if parallel:
                parallel.exit_code = code
    finally:
        ending.write(parallel)
    if code == _INTERRUPTED:
        child_program.end_interrupted()
    return code


def _not_writable(options: argparse.Namespace) -> Iterator[str]:
    """Why files that are asked for can't be written: told before the program runs, not hours later."""
    files = [(each, False) for each in (options.stats, options.report, options.trace)]
    for file, is_folder in (*files, (options.tensorboard, True)):
        why = file and at_end.why_not(ranks.own_file(file).absolute(), is_folder=is_folder)
        if why:
            yield f"torchjanus: can't write {file}: {why}"


class _Ending:
    """What is written when the program has run; what has to be known before it runs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.title = options, Path(options.script).name
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
        """Files first. A forked process leaves by here, too: of it there are counters only."""
        is_first = os.getpid() == self.process
        for file, write in self.outputs.items() if is_first else ():
            at_end.attempt(str(file), write)
        if self.counters is not None:
            self.counters.write()
        if self.view is not None:
            at_end.flush_stdout()
            at_end.attempt("the live view", self.view.stop)
        if self.options.explain and is_first:
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
        program = source_text.first_remembered()
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


def _run(name: str, arguments: Sequence[str], stats: Path | None, *, is_module: bool) -> int:
    """Runs a script or module as `__main__`, as python itself would; returns the exit code.

    `stats`: where its counters will be written, for the processes that it spawns.
    """
    if is_module:
        sys.path.insert(0, os.getcwd())
        spec = importlib.util.find_spec(name)
        missing = name
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            missing = f"{name}.__main__; {name!r} is a package and cannot be directly executed"
        if spec is None or spec.origin is None:
            print(f"torchjanus: No module named {missing}", file=sys.stderr)
            return 1
        path = Path(spec.origin)
    else:
        spec, path = None, Path(name)
        if path.is_dir():
            path = path / "__main__.py"
        sys.path.insert(0, str(path.resolve().parent))
    try:
        source = path.read_bytes()
    except OSError as error:
        print(
            f"torchjanus: can't open file '{os.path.abspath(path)}': "
            f"[Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        return 2
    file = _absolute(path)
    # The program of `-m pytest` is what lies where it is started, as `python -m` imports it from there.
    started = [Path.cwd().resolve()] if is_module else []
    spawned.convert_from_here([path.resolve().parent, *started], stats)
    spawned.recall(path)
    sys.argv = [name if spec is None else file, *arguments]
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=file, __spec__=spec, __cached__=None)
    if sys.version_info < (3, 14):  # since then a module has them once they are read
        module.__annotations__ = {}
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", file)
    if spec is not None:
        module.__loader__ = spec.loader
        module.__package__ = spec.parent
    sys.modules["__main__"] = module
    return _execute(source, file, module)


def _absolute(path: Path) -> str:
    """The path as python names a script in `__file__` and tracebacks: absolute, links not followed."""
    return str(Path.cwd() / path)


def _execute(source: bytes, file: str, module: types.ModuleType) -> int:
    """Compiles and runs, threads included; an uncaught exception is shown without torchjanus's own frames."""
    try:
        exec(importing.compile_source(source, file), module.__dict__)
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
