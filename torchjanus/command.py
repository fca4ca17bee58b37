"""The command line: `torchjanus run SCRIPT ARGS…` runs a script with its loops as graphs, `torchjanus explain CODE`
says what a reason means."""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import (
    _core,
    child_program,
    children,
    command_line,
    event_files,
    importing,
    ranks,
    spawned,
    text_report,
    timeline,
)

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
        The exit code: the script's own, 1 after an exception of the script, 2 if it can't be read; 2 for a code that
        doesn't exist.

    Raises:
        SystemExit: The script's own, or for a wrong command line.
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
    parallel = _start_data_parallel(options)  # first: it may start Python once more
    process, start = os.getpid(), time.perf_counter()
    stats, folder = options.stats and ranks.own_file(options.stats), None
    if stats is None and options.explain:
        folder = tempfile.mkdtemp(prefix="torchjanus")
        stats = Path(folder, "stats")
    files = children.StatsFiles(stats) if stats else None
    outputs = _outputs(options, start)
    view = _live(options)
    try:
        with parallel or contextlib.nullcontext():
            code = _run(options.script, options.arguments, stats, is_module=options.module)
            if parallel:
                parallel.exit_code = code
    finally:
        if view is not None:
            sys.stdout.flush()
            view.stop()
        if options.explain and files:
            sys.stdout.flush()
            took = time.perf_counter() - start
            told = text_report.explain_all(took, files.told_by_children())
            shared = parallel.report() if parallel else ""
            sys.stderr.write(
                f"{ranks.headline()}{shared}{told}\n"
            )  # at once: other ranks write, too
        if os.getpid() == process:
            for file, write in outputs.items():
                _write(file, write)
        if files:
            files.write()
        if folder is not None and os.getpid() == process:  # a forked process leaves by here, too
            shutil.rmtree(folder, ignore_errors=True)
    if code == _INTERRUPTED:
        child_program.end_interrupted()
    return code


def _live(options: argparse.Namespace) -> "live.View | None":
    """The view of the running program, where it is asked for and can be shown."""
    if not options.live or not ranks.is_first():
        return None
    from . import live  # late: who asks for none needs none of it

    return live.begin(Path(options.script).name)


def _write(file: Path, write: Callable[[], None]) -> None:
    """The program has run, so what fails here is told and changes nothing else."""
    try:
        write()
    except OSError as error:
        print(f"torchjanus: can't write {file}: {error.strerror}", file=sys.stderr)
    except Exception as error:
        text_report.internal_error(f"{file} could not be made", error)


def _outputs(options: argparse.Namespace, start: float) -> dict[Path, Callable[[], None]]:
    """What writes the files that are asked for at the end. The timeline begins."""
    title, outputs = Path(options.script).name, {}

    def own(file: Path) -> Path:
        return ranks.own_file(file).absolute()  # the program may change the folder

    def write_page() -> None:
        from . import page  # late: who asks for no page needs none of it

        details = _core.all_details()
        summary = text_report.summary_of(details, time.perf_counter() - start)
        page.write(report, details, title, summary)

    report = options.report and own(options.report)
    if report is not None:
        outputs[report] = write_page
    if options.trace is not None:
        file = own(options.trace)
        timeline.begin()
        outputs[file] = lambda: timeline.write(file, title)
    if options.tensorboard is not None:
        folder = own(options.tensorboard)
        outputs[folder] = lambda: event_files.write(folder, _core.all_details())
    return outputs


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
    module.__dict__.update(__file__=file, __spec__=spec, __cached__=None, __annotations__={})
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
    """Compiles and runs; an uncaught exception is shown without torchjanus's own frames."""
    try:
        exec(importing.compile_source(source, file), module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        child_program.show(error, _is_own)
        return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _is_own(code: types.CodeType) -> bool:
    return Path(code.co_filename).parent == Path(__file__).parent
