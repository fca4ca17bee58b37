"""The first thing that happens in a Python process which a converted program starts (spawned.py).

It runs there what the process was started for, and converts it as `torchjanus run` converts the program. Most such
processes have nothing to do with torch. So this file is loaded by its path and needs Python's library only; torchjanus
is imported with torch, or before the first file of the program that speaks of torch.
"""

import atexit
import importlib.util
import os
import runpy
import signal
import sys
import threading
import types
from collections.abc import Callable, Sequence
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def run(
    how: str, what: str, line: list[str], folders: list[str], stats: str | None, parent: int
) -> None:
    """Runs a script, a module or code as `__main__`, as python itself would.

    Args:
        how: "", "-m" or "-c": what the interpreter was given.
        what: The script's path, the module's name, or the code.
        line: The command line of the process that was asked for.
        folders: Modules below them are the program's own, if they are not installed packages.
        stats: Where the program's counters go, if they are wanted.
        parent: The process that started this one.
    """
    place = {"": os.path.dirname(os.path.realpath(what)), "-m": os.getcwd(), "-c": ""}[how]
    if not sys.flags.safe_path:
        sys.path[0] = place
    sys.orig_argv = line
    sys.argv[0] = what if how == "" else how
    main = sys.modules["__main__"].__dict__
    for name in [each for each in main if not each.startswith("__")]:
        del main[name]
    waiting = _Waiting([*folders, place] if place else folders, (stats, parent))
    waiting.wait()
    if how == "-m":
        _run(waiting.run_module, what)
    elif how == "-c":
        main["__loader__"] = BuiltinImporter
        code = compile(what, "<string>", "exec", dont_inherit=True)
        # Since Python 3.13 tracebacks show the lines of `-c`.
        if register := getattr(sys.modules.get("linecache"), "_register_code", None):
            register(code, what, "<string>")
        _run(exec, code, main)
    else:
        file = os.path.join(os.getcwd(), what)
        with open(file, "rb") as opened:
            source = opened.read()
        main |= {
            "__file__": file,
            "__cached__": None,
            "__loader__": SourceFileLoader("__main__", file),
        }
        if sys.version_info < (3, 14):  # since then a module has them once they are read
            main.setdefault("__annotations__", {})
        _run(lambda: exec(waiting.compiled(source, file, program=file), main))


def _run(body: Any, *arguments: Any) -> None:
    """An uncaught exception is shown without the frames of this file."""
    try:
        body(*arguments)
    except SystemExit:
        raise
    except BaseException as error:
        show(error, lambda code: code.co_filename == __file__)
        if isinstance(error, KeyboardInterrupt):
            end_interrupted()
        sys.exit(1)


def show(error: BaseException, is_own: Callable[[types.CodeType], bool]) -> None:
    """Tells of an uncaught exception, without the frames of torchjanus that it left last.

    A SyntaxError comes from where torchjanus compiles a module: without those frames, too.
    """
    traceback = error.__traceback__
    while traceback is not None and is_own(traceback.tb_frame.f_code):
        traceback = traceback.tb_next
    frame = traceback if isinstance(error, SyntaxError) else None
    while frame is not None and frame.tb_next is not None:
        if is_own(frame.tb_next.tb_frame.f_code):
            frame.tb_next = frame.tb_next.tb_next
        else:
            frame = frame.tb_next
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)


def end_interrupted() -> None:
    """Ends the process as Python does after Ctrl-C: what is due at the end is done, then it ends by the signal."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


class _Waiting:
    """Waits for torch: a finder of modules that finds none itself, until one needs torchjanus."""

    def __init__(self, folders: Sequence[str], told: tuple[str | None, int]) -> None:
        self.folders = [os.path.join(os.path.realpath(each), "") for each in folders]
        self.told = told
        self.code_from_file = runpy._get_code_from_file  # type: ignore[attr-defined]

    def wait(self) -> None:
        sys.meta_path.insert(0, self)
        # By this, `multiprocessing` imports the script of the process that spawned this one.
        runpy._get_code_from_file = self.get_code_from_file  # type: ignore[attr-defined]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in ("torch", "torchjanus"):
            self.start()
            loaded = sys.modules.get(fullname)
            return None if loaded is None else ModuleSpec(fullname, _Loaded(loaded))  # type: ignore[arg-type]
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        if not self.is_of_program(spec.loader.path) or not _speaks_of_torch(spec.loader.path):
            return None
        return sys.meta_path[0].find_spec(fullname, path, target) if self.start() else None

    def is_of_program(self, file: str) -> bool:
        return os.path.realpath(file).startswith(tuple(self.folders))

    def start(self, program: str | None = None) -> bool:
        """Converts what is loaded from now on; false if there is no torchjanus here."""
        if self not in sys.meta_path:
            return "torchjanus.spawned" in sys.modules
        sys.meta_path.remove(self)
        try:
            file = os.path.join(_PACKAGE, "__init__.py")
            spec = importlib.util.spec_from_file_location("torchjanus", file)
            assert spec is not None and spec.loader is not None
            package = importlib.util.module_from_spec(spec)
            sys.modules["torchjanus"] = package
            spec.loader.exec_module(package)
            from torchjanus import spawned  # by its own name: this file is of no package here

            spawned.begin(self.folders, *self.told, program)
        except Exception:  # an environment without torch, for instance
            for name in [each for each in sys.modules if each.split(".")[0] == "torchjanus"]:
                del sys.modules[name]
            return False
        return True

    def compiled(self, source: bytes, file: str, program: str | None = None) -> types.CodeType:
        """The code of a file of the program, with regions if it speaks of torch."""
        if b"torch" in source and self.start(program):
            from torchjanus import importing

            return importing.compile_source(source, file)
        return compile(source, file, "exec", dont_inherit=True)

    def get_code_from_file(self, *arguments: Any) -> Any:
        found = self.code_from_file(*arguments)
        file = os.fspath(arguments[-1])
        if not _speaks_of_torch(file):
            return found
        with open(file, "rb") as opened:
            code = self.compiled(opened.read(), file)
        return (code, *found[1:]) if isinstance(found, tuple) else code

    def run_module(self, name: str) -> None:
        details = runpy._get_module_details  # type: ignore[attr-defined]

        def get_module_details(*arguments: Any) -> Any:
            runpy._get_module_details = details  # type: ignore[attr-defined]
            _, spec, code = found = details(*arguments)
            if type(spec.loader) is SourceFileLoader and self.is_of_program(spec.origin):
                code = self.compiled(spec.loader.get_data(spec.origin), spec.origin, spec.origin)
            return found[0], spec, code

        runpy._get_module_details = get_module_details  # type: ignore[attr-defined]
        runpy._run_module_as_main(name)  # type: ignore[attr-defined]


class _Loaded:
    """The loader of a module that was imported while it was looked for."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module, self.spec = module, module.__spec__
        module.__spec__ = None  # else importlib takes that one, and loads the module once more

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self.spec


def _speaks_of_torch(file: str) -> bool:
    try:
        with open(file, "rb") as opened:
            return b"torch" in opened.read()
    except OSError:
        return False
