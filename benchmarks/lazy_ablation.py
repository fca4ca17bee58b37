"""What each part of lazy execution brings: Jittor's ablation, on three training steps that nothing converts.

    python benchmarks/lazy_ablation.py [PROGRAM …] [--steps N] [--repeats N] [--output FOLDER]

The step runs under `torchjanus.lazy()`, and its loss is fetched. Then one part is left out: the program waits for
each loss; a look runs all that is pending, so that iterations don't flow into each other; memory isn't planned; nothing
is fused. Eager is Jittor's "without lazy execution". Each configuration runs in processes of its own, turn by turn with
the others; what is given is the least mean step time of the turns, as what is lazy is computed in later steps. Writes
lazy_ablation.json into the output folder.
"""

import argparse
import contextlib
import subprocess
import sys
import time

import record
import tables
from programs import BENCHMARKS, chosen

import torch
import torchjanus

PROGRAMS = ["lenet", "gan", "small_cnn"]

#: What is left out of lazy execution; "fetches" is no switch.
CONFIGURATIONS = {
    "eager": None,
    "lazy": [],
    "no asynchronous fetches": ["fetches"],
    "no cross-iteration": ["cross_iteration"],
    "no memory plan": ["memory_plan"],
    "no fusion": ["kernels"],
}


def measure(name: str, configuration: str, steps: int) -> float:
    """Milliseconds of a step."""
    left_out = CONFIGURATIONS[configuration]
    torch.manual_seed(0)
    models, make_step, batches = BENCHMARKS[name].build()
    step = make_step(*models)
    waits = left_out is None or "fetches" in left_out
    torchjanus.options.disabled = {*(left_out or ())} - {"fetches"}
    losses: list[float] = []

    def train(count: int) -> None:
        for index in range(count):
            result = step(*batches[index % len(batches)])
            for value in result if isinstance(result, tuple) else (result,):
                if waits:
                    losses.append(value.item())
                else:
                    torchjanus.fetch(value, lambda each: losses.append(each.item()))

    with contextlib.nullcontext() if left_out is None else torchjanus.lazy():
        train(steps)  # graphs are made
        torchjanus.synchronize()
        start = time.perf_counter()
        train(steps)
        torchjanus.synchronize()
        return (time.perf_counter() - start) / steps * 1e3


def run(name: str, configuration: str, steps: int) -> float:
    command = [sys.executable, __file__, "--steps", str(steps), "--one", name, configuration]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def row(name: str, steps: int, repeats: int) -> dict:
    turns = [{c: run(name, c, steps) for c in CONFIGURATIONS} for _ in range(repeats)]
    return {
        "title": BENCHMARKS[name].title,
        "ms": {c: min(turn[c] for turn in turns) for c in CONFIGURATIONS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    record.add_output(parser)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(measure(*options.one, options.steps))
        return
    about, rows = record.about(options.repeats), []
    for name in chosen(parser, options.programs or PROGRAMS):
        rows.append(row(name, options.steps, options.repeats))
        record.write(options.output, "lazy_ablation", about, rows)
        print(tables.ablation(rows[-1:]), flush=True)


if __name__ == "__main__":
    main()
