"""Peak memory of a step: eager beside torchjanus.

    python benchmarks/memory.py [PROGRAM …] [--steps N]

Each system runs each program in a process of its own. Two things are given. What a step takes: how
far resident memory rises in one, at its highest, above what it was before, when all that was free
had gone back to the system; for torchjanus as a graph. And the process's peak in steps: how far it
lies above what was resident when the program had been built and the libraries, the compiler among
them, were loaded and had run once. That holds what outlives steps (gradients, the optimizer's
state), the code of torch's operators that the program touches and, for torchjanus, the program's
graphs, its own code, and what generating and compiling left behind.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import tables
from programs import BENCHMARKS, chosen

import torch
import torchjanus
from torchjanus import _core

SYSTEMS = ("eager", "torchjanus")
MEASURED = ("step", "process")


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the system does not say what the most resident memory was")


def load_libraries() -> None:
    """Converts and runs a small training step."""
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        model(x).tanh().sum().backward()
        optimizer.step()

    converted = torchjanus.function(step)
    for _ in range(6):
        converted(torch.randn(2, 1, 4, 4))


def rise_in_one(step: Callable, batch: tuple) -> int:
    _core.give_back_free_memory()
    before = resident_bytes()
    reset_peak()
    step(*batch)
    return peak_bytes() - before


def measure(name: str, system: str, steps: int) -> dict[str, float]:
    """MiB of each of MEASURED."""
    load_libraries()
    torch.manual_seed(0)
    models, make_step, batches = BENCHMARKS[name].build()
    step = make_step(*models)
    if system == "torchjanus":
        step = torchjanus.function(step)
    before = resident_bytes()
    for index in range(6):
        step(*batches[index % len(batches)])
    reset_peak()
    for index in range(steps):
        step(*batches[index % len(batches)])
    process = peak_bytes() - before
    _core.testing.let_times_decide(False)  # runs in Python, to compare, are none of a graph's steps
    one = max(rise_in_one(step, batches[index % len(batches)]) for index in range(steps))
    return {"step": one / 2**20, "process": process / 2**20}


def peaks(name: str, steps: int) -> dict[str, dict[str, float]]:
    """By what is MEASURED, MiB of each system, each in a process of its own."""
    result: dict[str, dict[str, float]] = {what: {} for what in MEASURED}
    for system in SYSTEMS:
        command = [sys.executable, __file__, "--steps", str(steps), "--one", name, system]
        # What an earlier process left on disk must not decide whether the compiler is needed.
        environment = {
            **os.environ, "TORCHJANUS_CACHE": "0", "TORCHJANUS_DISABLE": "background"
        }  # fmt: skip
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        for what, mib in json.loads(run.stdout).items():
            result[what][system] = mib
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.steps)))
        return
    for name in chosen(parser, options.programs):
        row = {"title": BENCHMARKS[name].title, "peak_mib": peaks(name, options.steps)}
        print(tables.memory([row]), flush=True)


if __name__ == "__main__":
    main()
