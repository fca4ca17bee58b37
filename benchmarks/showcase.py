"""Trains five programs, each eagerly, by torch.compile and as torchjanus's graphs, with their curves side by side.

    python benchmarks/showcase.py [PROGRAM …] [--systems SYSTEM …] [--looks N] [--limit SECONDS] [--quick]
                                  [--output FOLDER]

Each system trains in a process of its own, and one at a time: the one that has trained for the least time goes on
until its next look at the quality, while the others are stopped. So all have the whole machine, and their clocks count
only what they trained. Looks are off the clock. At the end a page has the curves and reports of the converted runs.
"""

import argparse
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import record

sys.path.insert(0, str(record.ROOT / "examples"))

import terminal_curves
import training_page
from curves import curves
from evaluation.parts import FALLING, TRAINED_BY, TRAININGS
from evaluation.plots import seconds_until
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

PROGRAMS = ("lenet", "tree_lstm", "lstm", "gan", "ppo")
FOLDER = record.ROOT / "build" / "showcase"


class Trainer:
    """A system's process: it trains until the next look, each time it is told to."""

    def __init__(self, program: str, system: str, caches: str, options: argparse.Namespace) -> None:
        self.system, self.limit = system, options.limit
        self.points: list[tuple[float, float]] = []
        self.state = "not begun"
        self.report = options.output / f"{program}.html" if system == "torchjanus" else None
        command = [
            sys.executable,
            __file__,
            "--train",
            program,
            system,
            "--looks",
            str(options.looks),
        ]
        command += ["--quick"] * options.quick
        command += ["--report", str(self.report)] if self.report else []
        environment = {**os.environ, "TORCHJANUS_CACHE": caches, "TORCHINDUCTOR_CACHE_DIR": caches}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )

    @property
    def seconds(self) -> float:
        return self.points[-1][0] if self.points else 0.0

    @property
    def goes_on(self) -> bool:
        return self.process.returncode is None

    def advance(self) -> None:
        """To the next look, to its end, or to the end of its time."""
        self.state = "trains"
        self.signal(signal.SIGCONT)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], self.limit)[0]:
            return self.end(f"not ready after {self.limit} s")
        line = self.process.stdout.readline()
        if line:
            self.points.append(tuple(json.loads(line)))
            self.state = "waits"
            self.signal(signal.SIGSTOP)
        else:
            self.process.wait()
            self.end("done" if self.process.returncode == 0 else "fails")

    def signal(self, which: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, which)

    def end(self, state: str) -> None:
        self.state = state
        self.signal(signal.SIGKILL)
        self.process.wait()


def run_program(
    program: str, options: argparse.Namespace, console: Console
) -> training_page.Section:
    with tempfile.TemporaryDirectory() as caches:
        trainers = [Trainer(program, system, caches, options) for system in options.systems]
        try:
            with Live(console=console, refresh_per_second=4) as live:
                live.update(shown(program, trainers, console))
                while left := [each for each in trainers if each.goes_on]:
                    min(left, key=lambda each: each.seconds).advance()
                    live.update(shown(program, trainers, console))
        finally:
            for each in trainers:
                each.end(each.state)
    return section_of(program, trainers)


def lines_of(trainers: list[Trainer]) -> dict[str, list[tuple[float, float]]]:
    return {each.system: each.points for each in trainers if each.points}


def rows_of(program: str, trainers: list[Trainer]) -> list[list[str]]:
    """By system when it had reached what all reach that ended."""
    falls = program in FALLING
    best = min if falls else max
    ended = [each for each in trainers if each.state == "done"]
    target = (max if falls else min)(
        (best(quality for _, quality in each.points) for each in ended), default=None
    )
    rows = [["", "quality", "after", f"to {target:.4g}" if target is not None else "", "state"]]
    for each in trainers:
        reached = None if target is None else seconds_until(each.points, target, falls)
        rows.append(
            [
                each.system,
                f"{each.points[-1][1]:.4g}" if each.points else "–",
                f"{each.seconds:.1f} s",
                f"{reached:.1f} s" if reached is not None else "–",
                each.state,
            ]
        )
    return rows


def shown(program: str, trainers: list[Trainer], console: Console) -> Panel:
    """What the terminal has while they train."""
    head, *rows = rows_of(program, trainers)
    table = Table(*head, box=None, pad_edge=False)
    for number, row in enumerate(rows):
        table.add_row(*row, style=terminal_curves.STYLES[number])
    width = max(20, min(100, console.width - 4))
    picture = terminal_curves.drawn(lines_of(trainers), width, 12)
    return Panel(Group(picture, table), title=TRAININGS[program])


def section_of(program: str, trainers: list[Trainer]) -> training_page.Section:
    title, _, quality = TRAININGS[program].partition(": ")
    written = [each.report for each in trainers if each.report and each.report.exists()]
    reports = {f"The report of the converted run: {report.name}": report for report in written}
    picture = curves(lines_of(trainers), title, "seconds", quality)
    return training_page.Section(title, [picture], rows_of(program, trainers), reports)


def train(options: argparse.Namespace) -> None:
    """In a process of its own: a line on stdin, a line on stdout."""
    out = os.fdopen(os.dup(1), "w")  # what programs print goes elsewhere
    os.dup2(2, 1)
    from evaluation import convergence

    import torchjanus

    program, system = options.train
    looks = convergence.Options(options.quick, looks=options.looks)
    converted = []  # for the report, which has what is alive

    def convert(function):
        converted.append(convergence.SYSTEMS[system](function))
        return converted[-1]

    points = convergence.points(program, convert, looks)
    while sys.stdin.readline():
        point = next(points, None)
        if point is None:
            break
        print(json.dumps(point), file=out, flush=True)
    if options.report:
        torchjanus.report(None, options.report)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(TRAININGS))
    parser.add_argument("--systems", nargs="+", choices=TRAINED_BY, default=TRAINED_BY)
    parser.add_argument("--looks", type=int, default=40, help="at the quality, of each training")
    parser.add_argument("--limit", type=int, default=60, help="seconds between two looks")
    parser.add_argument("--quick", action="store_true", help="few steps")
    parser.add_argument("--output", type=Path, default=FOLDER, help="where the pages go")
    parser.add_argument("--train", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.programs) - set(TRAININGS):
        parser.error(f"no program {', '.join(sorted(unknown))}: choose from {', '.join(TRAININGS)}")
    return options


def main() -> None:
    options = parsed()
    if options.train:
        return train(options)
    options.output.mkdir(parents=True, exist_ok=True)
    console, sections = Console(), []
    page = options.output / "index.html"
    started = time.monotonic()
    for program in options.programs or PROGRAMS:
        sections.append(run_program(program, options, console))
        training_page.write(page, "Eager, torch.compile and torchjanus, side by side", sections)
    console.print(f"page: {page}, after {time.monotonic() - started:.0f} s", soft_wrap=True)


if __name__ == "__main__":
    main()
