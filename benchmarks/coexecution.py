"""Times the programs of Terra's evaluation (examples/terra) under each system, a process each, turn by turn.

    python benchmarks/coexecution.py [PROGRAM …] [--modes MODE …] [--steps N] [--turns N] [--limit S] [--name NAME]
                                     [--output FOLDER]

A mode is a way to start a program: options, environment. In its first process a program makes a few steps, and what
it prints must be what it prints eagerly, or the mode is wrong. That process also fills the folders of compiled code.
Then the modes run side by side: each has four seconds, in which all others are stopped, as the machine's speed changes
within minutes. Each process writes when its steps began and ended. What is given is the mean of the second half
of the steps, as what is lazy is computed in later steps, the least of the turns. torch.compile is used as users do: on
the training step, or on the models. Co-executed: only torchjanus.lazy() around the training step; nothing is converted.
Lazy: around the whole program. Both run on the program's thread alone, and with the runner's, where a choice decides
what runs ahead of Python; how long that worked and was waited for is given for a step.
Writes NAME.json into the output folder, anew after each program.
"""

import argparse
import contextlib
import importlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import record
import tables

PROGRAMS = record.ROOT / "examples" / "terra"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "common")
NUMBER = re.compile(r"-?\d+\.\d+")
CHECKED_STEPS = 12
TOLERANCE = 1e-2  # of printed numbers: relative, or absolute below 1


@dataclass(frozen=True)
class Mode:
    """How Python is called for a program, and in which environment."""

    before: tuple[str, ...] = ()  # the program's path
    environment: Mapping[str, str] = field(default_factory=dict)


def changed(how: str, without: str = "") -> Mode:
    return Mode((__file__, "--changed", how), {"TORCHJANUS_DISABLE": without})


#: Another way to run programs is another line here.
MODES: dict[str, Mode] = {
    "eager": Mode(),
    "torch.compile (step)": changed("compiled step"),
    "torch.compile (models)": changed("compiled models"),
    "torchjanus": Mode(("-m", "torchjanus", "run")),
    "co-executed, one thread": changed("lazy step", "graph_runner"),
    "co-executed": changed("lazy step"),
    "lazy, one thread": changed("lazy program", "graph_runner"),
    "lazy": changed("lazy program"),
}


#: Seconds that a process runs while the others are stopped. What decides by the clock, in a process, takes the stop for
#: a slow step: there have to be few.
SLICE = 4


@dataclass
class Run:
    printed: str = ""
    times: list[float] = field(default_factory=list)  # seconds of each step
    # Milliseconds a step that the runner worked, and was waited for.
    ahead: dict[str, float] = field(default_factory=dict)
    problem: str = ""  # why there are no times


class Process:
    """A program in a process, which can be stopped for a while."""

    def __init__(self, program: str, mode: Mode, arguments: Iterable[str], caches: Path) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=caches)
        self.slices: list[tuple[float, float]] = []  # when it ran
        self.seconds = 0.0  # of these
        environment = {
            **os.environ,
            "TORCHJANUS_CACHE": str(caches / "torchjanus"),
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "STEP_TIMES": str(self.path("times")),
            "AHEAD_TIMES": str(self.path("ahead")),
            **mode.environment,
        }
        command = [sys.executable, *mode.before, str(PROGRAMS / f"{program}.py"), *arguments]
        with self.path("printed").open("w") as out, self.path("errors").open("w") as errors:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=errors, env=environment, start_new_session=True
            )
        self.signal(signal.SIGSTOP)

    def path(self, name: str) -> Path:
        return Path(self.folder.name) / name

    def signal(self, which: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, which)

    def run_for(self, seconds: float) -> bool:
        """Lets it run alone. Whether it has not ended."""
        begin = time.monotonic()
        self.signal(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.signal(signal.SIGSTOP)
        self.slices.append((begin, time.monotonic()))
        self.seconds += self.slices[-1][1] - begin
        return self.process.returncode is None

    def kill(self) -> Run:
        self.signal(signal.SIGKILL)
        self.process.wait()
        return Run(problem=f"not ready after {self.seconds:.0f} s")

    def result(self) -> Run:
        """What it has left, when it has ended."""
        self.signal(signal.SIGKILL)  # what it may have started
        if self.process.returncode != 0:
            return Run(problem=f"fails: {name_of_error(self.path('errors').read_text())}")
        seconds = [self.running_in(*step) for step in json.loads(self.path("times").read_text())]
        ahead = self.path("ahead")
        told = json.loads(ahead.read_text()) if ahead.exists() else {}
        of_step = {name: each / len(seconds) * 1e3 for name, each in told.items()}
        return Run(self.path("printed").read_text(), seconds, of_step)

    def running_in(self, begin: float, end: float) -> float:
        """Seconds between the two in which it was not stopped."""
        return sum(max(0.0, min(end, b) - max(begin, a)) for a, b in self.slices)


def run(
    program: str, modes: Mapping[str, Mode], arguments: Iterable[str], caches: Path, limit: int
) -> dict[str, Run]:
    """The program in each mode, side by side; what runs for longer than `limit` seconds is killed."""
    arguments = [*arguments]
    left = {name: Process(program, mode, arguments, caches) for name, mode in modes.items()}
    done: dict[str, Run] = {}
    while left:
        for name, process in [*left.items()]:
            if not process.run_for(SLICE):
                done[name] = left.pop(name).result()
            elif process.seconds > limit:
                done[name] = left.pop(name).kill()
    return done


def name_of_error(errors: str) -> str:
    """What the last line of a traceback begins with; torch.compile adds lines of advice behind it."""
    named = re.findall(r"^([\w.]*(?:Error|Exception|Unsupported))\b", errors, re.MULTILINE)
    return named[-1].split(".")[-1] if named else "killed"


def is_as(expected: str, printed: str) -> bool:
    """The same text; numbers may differ by what another order of float32 sums makes of them."""
    if NUMBER.sub("#", expected) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE * max(1.0, abs(float(a))) for a, b in pairs)


def checked(program: str, modes: Mapping[str, Mode], caches: Path, limit: int) -> dict[str, str]:
    """What is wrong with each mode that can't be timed. The first mode is eager, which is right."""
    arguments = ("--steps", str(CHECKED_STEPS), "--every", "1")
    exact = {"TERRA_EAGER_DRAWS": "1"}
    exactly = {
        name: Mode(mode.before, {**mode.environment, **exact}) for name, mode in modes.items()
    }
    ran = run(program, exactly, arguments, caches, limit)
    expected = ran["eager"]
    if expected.problem:
        sys.exit(f"{program} {expected.problem}")
    verdicts = {
        name: one.problem or ("" if is_as(expected.printed, one.printed) else "wrong")
        for name, one in ran.items()
    }
    return {name: verdict for name, verdict in verdicts.items() if verdict}


def step_ms(one: Run) -> float:
    return statistics.fmean(one.times[len(one.times) // 2 :]) * 1e3


def measure(program: str, options: argparse.Namespace) -> dict:
    modes = {name: MODES[name] for name in ("eager", *options.modes)}
    arguments = ("--steps", str(options.steps)) if options.steps else ()
    found: dict[str, list[float]] = {name: [] for name in modes}
    ahead: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:  # nobody finds what was compiled before
        out = checked(program, modes, Path(folder), options.limit)
        for _ in range(options.turns):
            timed_modes = {name: mode for name, mode in modes.items() if name not in out}
            for name, one in run(
                program, timed_modes, arguments, Path(folder), options.limit
            ).items():
                if one.problem:
                    out[name] = one.problem
                else:
                    found[name].append(step_ms(one))
                    ahead |= {name: one.ahead} if any(one.ahead.values()) else {}
    timed = {name: min(times) for name, times in found.items() if times and name not in out}
    taken = {"title": program, "steps": options.steps or "its own number", "modes": [*modes]}
    return taken | {"ms": timed, "out": out, "ahead": ahead}


def run_changed(how: str, path: Path, arguments: list[str]) -> None:
    """The program as a user compiles it, or makes it lazy."""
    sys.path.insert(0, str(path.parent))
    program = importlib.import_module(path.stem)
    around: contextlib.AbstractContextManager = contextlib.nullcontext()
    match how.split():
        case ["compiled", what]:
            compile_it(program, what)
        case ["lazy", what]:
            import torchjanus

            if what == "step":
                program.train_step = torchjanus.lazy()(program.train_step)
            else:
                around = torchjanus.lazy()
    sys.argv = [str(path), *arguments]
    with around:
        program.common.call(program.main, program.__doc__)
    if how.startswith("lazy") and (named := os.environ.get("AHEAD_TIMES")):
        from torchjanus import _core

        counts = _core.lazy_counts()
        told = {"worked": counts["seconds_ahead"], "waited": counts["seconds_waited"]}
        Path(named).write_text(json.dumps(told))


def compile_it(program: ModuleType, what: str) -> None:
    """Where results are compared, compiled code draws eager's numbers."""
    import torch._inductor.config

    import torch

    torch._inductor.config.fallback_random = "TERRA_EAGER_DRAWS" in os.environ
    if what == "step":
        program.train_step = torch.compile(program.train_step)
        return
    make_models = program.make_models

    def make_compiled(*sizes):
        models = make_models(*sizes)
        for model in models:
            model.compile()
        return models

    program.make_models = make_compiled


def main() -> None:
    if sys.argv[1:2] == ["--changed"]:
        _, _, how, path, *arguments = sys.argv
        return run_changed(how, Path(path), arguments)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(NAMES))
    others = [name for name in MODES if name != "eager"]
    parser.add_argument("--modes", nargs="+", choices=others, default=others, metavar="MODE")
    parser.add_argument(
        "--steps", type=int, help="of each process; else as many as the program says"
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--name", default="coexecution", help="of the results")
    parser.add_argument("--limit", type=int, default=300, help="seconds that a process may take")
    record.add_output(parser)
    options = parser.parse_args()
    if unknown := set(options.programs) - set(NAMES):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    about, rows = record.about(options.turns), []
    for name in options.programs or NAMES:
        rows.append(measure(name, options))
        record.write(options.output, options.name, about, rows)
        print(tables.coexecution(rows[-1:]), flush=True)
    print(tables.coexecution(rows))


if __name__ == "__main__":
    main()
