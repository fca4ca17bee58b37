"""Random imperative programs for the differential harness: written from a seed, compared, made small.

    python tests/python/harness/random_programs.py --programs 10000      compare that many programs
    python tests/python/harness/random_programs.py --show 17             print the program of a seed
    python tests/python/harness/random_programs.py --seeds 17,93         compare these seeds only
    python tests/python/harness/random_programs.py --kind effects        programs of `random_effects.py`
    python tests/python/harness/random_programs.py --way lazily          eagerly and under torchjanus.lazy()
    python tests/python/harness/random_programs.py --way "converted and lazily"   converted functions under it

A program is the text of a module with a function `build()` that gives a `differential.Program`:
`random_mixtures.py` writes those that mix kinds of statements, `random_effects.py` those about effects.
It is run eagerly and in another way: converted, or lazily. Lazily, its calls are made several times over, as
only what comes again is run by a graph.
Programs run in worker processes: a crash or a hang is a finding like any other. A program
that differs is made smaller (`random_program_shrinker.py`) and printed.
"""

import argparse
import collections
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import random_effects
import random_mixtures


class Shown(Mapping):
    """Variables that the harness watches, read anew each time."""

    def __init__(self, read):
        self.read = read

    def __getitem__(self, key):
        return self.read()[key]

    def __iter__(self):
        return iter(self.read())

    def __len__(self):
        return len(self.read())


def text_of(kind: str, seed: int) -> str:
    """The text of the program of this kind and seed."""
    return (random_effects if kind == "effects" else random_mixtures).write_program(seed)


def features_of(kind: str, seed: int) -> list[str]:
    if kind == "effects":
        return random_effects.EffectWriter(seed).effects
    return sorted(random_mixtures.Writer(seed).features)


# --- running --------------------------------------------------------------------------------------


# What is no finding.
AGREEING = ("same", "rounding", "unusable")

LAZY_WAYS = ("lazily", "converted and lazily")
WAYS = ("converted", *LAZY_WAYS)
LAZY_ROUNDS = 2  # of all calls


@dataclass
class Operators:
    """What became of the operators of a lazy run."""

    noted: int = 0
    at_once: int = 0
    run_in_graphs: int = 0
    run_eagerly: int = 0
    never_run: int = 0
    graphs: int = 0
    given_up: int = 0  # of the structures: they have no graph, or it failed
    ahead: int = 0  # segments

    def add(self, other: Mapping[str, int]) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + other[name])


@dataclass
class Outcome:
    """What became of one program."""

    seed: int
    kind: str  # same, differs, rounding, raises (outside its calls), internal error, crashed, hung, unusable
    message: str = ""
    calls: int = 0
    raised: int = 0
    hits: int = 0  # calls that ran as graphs; lazily: operators that ran in graphs
    operators: dict[str, int] = field(default_factory=dict)  # lazily: those of Operators
    reasons: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)


def observe(
    text: str, path: Path, *, way: str = "eagerly", rounds: int, nudge: bool = False
) -> Any:
    """Runs the program's calls so many times; `nudge`: from numbers that are others in the last bits."""
    import differential

    import torch

    with differential.default_dtype(torch.float64):
        namespace: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
        exec(compile(text, str(path), "exec"), namespace)
        program = differential.seeded(namespace["build"], {})
        if nudge:
            for tensor in given_tensors(program):
                if tensor.is_floating_point():
                    bits = torch.linspace(-4, 4, tensor.numel()).reshape(tensor.shape)
                    tensor.data.mul_(1 + bits * 2.0**-52)
        program.calls = list(program.calls) * rounds
        converted, lazily = way.startswith("converted"), way in LAZY_WAYS
        return differential.observe(program, converted=converted, lazily=lazily)


def given_tensors(program: Any) -> Iterator[Any]:
    """Arguments of its calls, and parameters of the modules that it watches."""
    import torch

    for call in program.calls:
        for argument in call if isinstance(call, tuple) else ():
            if isinstance(argument, torch.Tensor):
                yield argument
    for each in program.watch:
        if isinstance(each, torch.nn.Module):
            yield from each.parameters()


def difference(expected: Any, actual: Any, tolerance: float) -> str:
    """The first difference between two runs; empty if there is none."""
    import differential

    try:
        for index, (one, other) in enumerate(zip(expected.steps, actual.steps, strict=True)):
            differential.compare(one, other, f"after call {index}", tolerance)
    except AssertionError as error:
        return str(error)
    return ""


def differs_by_rounding(
    eagerly: Callable[..., Any], expected: Any, message: str, tolerance: float
) -> bool:
    """Whether eager's own numbers are lost in rounding in that call: the last bits of what the program
    begins with change them as well."""
    if "not close" not in message or difference(expected, eagerly(), tolerance):
        return False
    call = message.split(".", 1)[0]
    nudged = difference(expected, eagerly(nudge=True), tolerance)
    return "not close" in nudged and nudged.split(".", 1)[0] == call


def compare_program(text: str, folder: Path, name: str, way: str = "converted") -> Outcome:
    """Runs a program eagerly and in the other way, and compares everything that can be seen."""
    path = folder / f"{name}.py"
    path.write_text(text)
    tolerance = 1e-4 if ".float()" in text else 1e-9
    in_way = functools.partial(observe, text, path, rounds=LAZY_ROUNDS if way in LAZY_WAYS else 1)
    outcome = Outcome(-1, "same")
    runs = []
    for each in ("eagerly", way):
        try:
            runs.append(in_way(way=each))
        except Exception:
            kind = "unusable" if each == "eagerly" else "raises"
            return Outcome(-1, kind, traceback.format_exc(limit=-6))
    expected, actual = runs
    outcome.calls = len(expected.steps)
    outcome.raised = sum(step["error"] is not None for step in expected.steps)
    tell(outcome, actual.stats, way)
    outcome.message = difference(expected, actual, tolerance)
    if outcome.message:
        is_rounding = differs_by_rounding(in_way, expected, outcome.message, tolerance)
        outcome.kind = "rounding" if is_rounding else "differs"
    else:
        broken = [reason for reason in outcome.reasons if reason.startswith("internal_error")]
        if broken:
            outcome.kind, outcome.message = "internal error", broken[0]
    return outcome


def tell(outcome: Outcome, stats: dict[str, Any], way: str) -> None:
    """How it has run."""
    if way in LAZY_WAYS:
        outcome.hits = stats["run_in_graphs"]
        outcome.operators = {name: stats[name] for name in vars(Operators())}
    else:
        outcome.hits = stats["hits"]
        outcome.reasons = [f"{each['code']}: {each['sentence']}" for each in stats["reasons"]]


def compare_seed(seed: int, folder: Path, kind: str = "mixed", way: str = "converted") -> Outcome:
    outcome = compare_program(text_of(kind, seed), folder, f"program_{seed}", way)
    outcome.seed = seed
    outcome.features = features_of(kind, seed)
    return outcome


@functools.cache
def warm_up() -> None:
    """Loads what the first conversion of a process loads, so that children find it."""
    with tempfile.TemporaryDirectory() as folder:
        compare_program(FIRST_PROGRAM, Path(folder), "first_program")


FIRST_PROGRAM = """
import torch
from differential import Program
from torch import nn


def build():
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    return Program(step, [(torch.ones(1, 2),)] * 6)
"""


def kind_in_child(text: str, seconds: float, way: str = "converted") -> str:
    """The kind of outcome, found in a forked child: programs may crash or hang."""
    warm_up()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with tempfile.TemporaryDirectory() as folder:
            kind = compare_program(text, Path(folder), "program", way).kind
        os.write(writing, kind.encode())
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], seconds)
    kind = os.read(reading, 100).decode() if ready else "hung"
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return kind or "crashed"


def run_file(path: Path, seconds: float, way: str = "converted") -> Outcome:
    """Compares the program in a file in a process of its own."""
    command = [sys.executable, __file__, "--file", str(path), "--way", way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    lines = [line for line in done.stdout.splitlines() if line.startswith("outcome ")]
    return Outcome(**json.loads(lines[-1][8:])) if lines else Outcome(-1, "crashed", done.stderr)


def serve(seeds: list[int], folder: Path, kind: str, way: str) -> None:
    """A worker: says which program begins and how it ended, a line each."""
    real = os.fdopen(os.dup(1), "w")
    for seed in seeds:
        print(f"begin {seed}", file=real, flush=True)
        outcome = compare_seed(seed, folder, kind, way)
        print("outcome " + json.dumps(vars(outcome)), file=real, flush=True)


def run_seeds(
    seeds: list[int],
    jobs: int,
    seconds: float,
    kind: str = "mixed",
    way: str = "converted",
    batch: int = 200,
) -> Iterator[Outcome]:
    """Compares all seeds in worker processes; a worker that dies is replaced."""
    import queue
    import threading

    todo: queue.Queue[list[int]] = queue.Queue()
    batch = max(1, min(batch, -(-len(seeds) // jobs)))
    for start in range(0, len(seeds), batch):
        todo.put(seeds[start : start + batch])
    done: queue.Queue[Outcome | None] = queue.Queue()

    def work() -> None:
        while True:
            try:
                chunk = todo.get_nowait()
            except queue.Empty:
                done.put(None)
                return
            while chunk:
                chunk = run_chunk(chunk, seconds, kind, way, done)

    for _ in range(jobs):
        threading.Thread(target=work, daemon=True).start()
    running = jobs
    while running:
        outcome = done.get()
        if outcome is None:
            running -= 1
        else:
            yield outcome


def run_chunk(seeds: list[int], seconds: float, kind: str, way: str, done: Any) -> list[int]:
    """Lets one worker compare these seeds; gives those that are left when it died."""
    import threading

    left = list(seeds)
    with tempfile.TemporaryDirectory() as folder:
        worker = subprocess.Popen(
            [sys.executable, __file__, "--serve", ",".join(map(str, seeds)), "--folder", folder]
            + ["--kind", kind, "--way", way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **os.environ},
        )
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.append(worker.stderr.read()), daemon=True)
        reader.start()
        hung = threading.Event()

        def stop() -> None:
            hung.set()
            worker.kill()

        alarm = threading.Timer(seconds, stop)
        alarm.start()
        for line in worker.stdout:
            alarm.cancel()
            alarm = threading.Timer(seconds, stop)
            alarm.start()
            if line.startswith("outcome "):
                outcome = Outcome(**json.loads(line[8:]))
                left.remove(outcome.seed)
                done.put(outcome)
        alarm.cancel()
        worker.wait()
        reader.join(5)
    if left and worker.returncode != 0:
        kind = "hung" if hung.is_set() else "crashed"
        done.put(Outcome(left[0], kind, "".join(errors)[-1500:]))
        return left[1:]
    return left


# --- reporting ------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Figures over many programs."""

    kinds: collections.Counter = field(default_factory=collections.Counter)
    graphs: int = 0
    calls: int = 0
    raised: int = 0
    hits: int = 0
    operators: Operators = field(default_factory=Operators)
    reasons: collections.Counter = field(default_factory=collections.Counter)
    with_feature: collections.Counter = field(default_factory=collections.Counter)
    graphs_with_feature: collections.Counter = field(default_factory=collections.Counter)

    def add(self, outcome: Outcome) -> None:
        self.kinds[outcome.kind] += 1
        self.calls += outcome.calls
        self.raised += outcome.raised
        self.hits += outcome.hits
        if outcome.operators:
            self.operators.add(outcome.operators)
        ran = outcome.hits > 0
        self.graphs += ran
        self.reasons.update({generalised(reason) for reason in outcome.reasons})
        self.with_feature.update(outcome.features)
        if ran:
            self.graphs_with_feature.update(outcome.features)

    def text(self) -> str:
        programs = sum(self.kinds.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        lines = [
            f"{programs} programs: {kinds}",
            f"ran as graphs: {self.graphs} programs ({self.graphs / max(1, programs):.0%}), "
            f"{self.ran_as_graphs()}; {self.raised} of {self.calls} calls raised in eager",
            "share with a graph by feature: "
            + ", ".join(
                f"{name} {self.graphs_with_feature[name] / count:.0%}"
                for name, count in sorted(self.with_feature.items())
            ),
        ]
        if self.reasons:
            lines.append("most frequent reasons:")
        lines += [f"  {count:5} {reason}" for reason, count in self.reasons.most_common(25)]
        return "\n".join(lines)

    def ran_as_graphs(self) -> str:
        each = self.operators
        if not each.noted:
            return f"{self.hits} calls"
        return (
            f"{each.run_in_graphs} of {each.noted} noted operators ({each.run_in_graphs / each.noted:.0%}) in "
            f"{each.graphs} graphs, {each.run_eagerly} one by one, {each.never_run} never, and "
            f"{each.at_once} at once; {each.ahead} segments ahead, {each.given_up} structures given up"
        )


def generalised(reason: str) -> str:
    """A reason without the names and numbers of one program."""
    import re

    return re.sub(r"'[^']*'", "'…'", re.sub(r"\b[a-z]+\d+\b|\d+", "#", reason))[:110]


def let_graphs_run_at_once() -> None:
    """Not only where they are measured to be faster."""
    from torchjanus import _core

    _core.testing.let_times_decide(False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", help="compare these seeds only: 3,17")
    parser.add_argument("--kind", choices=("mixed", "effects"), default="mixed")
    parser.add_argument("--way", choices=WAYS, default="converted")
    parser.add_argument("--show", type=int, help="print the program of this seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=60, help="limit for one program")
    parser.add_argument("--shrink", type=int, default=5, help="make so many failing programs small")
    parser.add_argument("--output", type=Path, help="write failing programs into this folder")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help="compare the program in this file")
    options = parser.parse_args()
    if options.way in LAZY_WAYS:
        let_graphs_run_at_once()
    if options.show is not None:
        print(text_of(options.kind, options.show))
        return 0
    if options.serve:
        seeds = [int(seed) for seed in options.serve.split(",")]
        serve(seeds, options.folder, options.kind, options.way)
        return 0
    if options.file:
        text, folder = options.file.read_text(), options.file.parent
        outcome = compare_program(text, folder, "program_of_file", options.way)
        print("outcome " + json.dumps(vars(outcome)))
        return int(outcome.kind not in AGREEING)
    seeds = list(range(options.first, options.first + options.programs))
    if options.seeds:
        seeds = [int(seed) for seed in options.seeds.split(",")]
    return report(seeds, options)


def report(seeds: list[int], options: argparse.Namespace) -> int:
    from random_program_shrinker import shrink

    started, tally, failed = time.time(), Tally(), []
    for outcome in run_seeds(seeds, options.jobs, options.seconds, options.kind, options.way):
        tally.add(outcome)
        if outcome.kind not in AGREEING:
            failed.append(outcome)
            print(f"seed {outcome.seed}: {outcome.kind}: {outcome.message[:600]}", flush=True)
        elif outcome.kind != "same":
            print(f"seed {outcome.seed}: {outcome.kind}: {outcome.message[-300:]}", flush=True)
    for outcome in failed[: options.shrink]:
        text = shrink(
            text_of(options.kind, outcome.seed),
            lambda text, kind=outcome.kind: kind_in_child(text, 5.0, options.way) == kind,
        )
        print(f"\n--- seed {outcome.seed}: {outcome.kind}, made small ---\n{text}", flush=True)
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
            (options.output / f"program_{outcome.seed}.py").write_text(text)
    print(tally.text())
    if failed:
        print("failing seeds: " + ",".join(str(outcome.seed) for outcome in failed))
    print(f"{time.time() - started:.0f} s")
    return int(bool(failed))


if __name__ == "__main__":
    # The programs import this module by its name: there must be one class Shown.
    sys.modules["random_programs"] = sys.modules["__main__"]
    sys.exit(main())
