"""What each kind of speculation brings: the benchmark programs with more and more of it.

    python benchmarks/ablation.py [PROGRAM …] [--steps N] [--repeats N] [--output FOLDER]

Graphs without any of it (base), then with loops unrolled, with shapes, numbers and branches
specialised, on several threads, with fused kernels, and layouts and memory planned for these shapes,
and at last with invocations of a recursion and iterations of loops computed together: the switches of
`torchjanus.options`. Each configuration runs in processes of its own, turn by turn with the others;
what is given is the least median step time of the turns, and how much faster than eager that is.
Writes ablation.json into the output folder.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import record
import tables
from programs import BENCHMARKS, chosen

import torch
import torchjanus

SPECIALISATIONS = ["specialise_shapes", "specialise_numbers", "specialise_branches"]
EXECUTION = ["kernels", "layouts", "memory_plan"]

#: What is left out.
CONFIGURATIONS = {
    "eager": None,
    "base": ["unroll", *SPECIALISATIONS, *EXECUTION, "parallel", "batch"],
    "+unroll": [*SPECIALISATIONS, *EXECUTION, "parallel", "batch"],
    "+specialise": [*EXECUTION, "parallel", "batch"],
    "+parallel": [*EXECUTION, "batch"],
    "+fuse": ["batch"],
    "+batch": [],
}


def measure(name: str, configuration: str, steps: int) -> float:
    """Milliseconds of a step."""
    left_out = CONFIGURATIONS[configuration]
    torch.manual_seed(0)
    models, make_step, batches = BENCHMARKS[name].build()
    step = make_step(*models)
    if left_out is not None:
        torchjanus.options.disabled = {*left_out, "background"}
        step = torchjanus.function(step)
    times = []
    warm_up = min(100, 12 + 2 * len(batches))  # all lengths, trees and branches
    for index in range(steps + warm_up):
        start = time.perf_counter()
        step(*batches[index % len(batches)])
        times.append(time.perf_counter() - start)
    return statistics.median(times[warm_up:]) * 1e3


@dataclass
class Ablation:
    """Programs under several configurations, turn by turn, each in processes of its own."""

    script: str  # that main() runs in
    result: str  # the name of the file of results
    configurations: Mapping[str, list[str] | None]
    measure: Callable[
        [str, str, int], float
    ]  # program, configuration, steps: milliseconds of a step
    steps: int
    programs: Sequence[str] = ()  # that are measured where none is named; all if there are none

    def run(self, name: str, configuration: str, steps: int) -> float:
        command = [sys.executable, self.script, "--steps", str(steps), "--one", name, configuration]
        environment = {k: v for k, v in os.environ.items() if k != "TORCHJANUS_DISABLE"}
        ran = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        return float(ran.stdout)

    def row(self, name: str, steps: int, repeats: int) -> dict:
        turns = [{c: self.run(name, c, steps) for c in self.configurations} for _ in range(repeats)]
        return {
            "title": BENCHMARKS[name].title,
            "ms": {c: min(turn[c] for turn in turns) for c in self.configurations},
        }

    def main(self, document: str) -> None:
        parser = argparse.ArgumentParser(description=document.splitlines()[0])
        parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
        parser.add_argument("--steps", type=int, default=self.steps)
        parser.add_argument("--repeats", type=int, default=3)
        record.add_output(parser)
        parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
        options = parser.parse_args()
        if options.one:
            print(self.measure(*options.one, options.steps))
            return
        about, rows = record.about(options.repeats), []
        for name in chosen(parser, options.programs or self.programs):
            rows.append(self.row(name, options.steps, options.repeats))
            record.write(options.output, self.result, about, rows)
            print(tables.ablation(rows[-1:]), flush=True)


if __name__ == "__main__":
    Ablation(__file__, "ablation", CONFIGURATIONS, measure, steps=40).main(__doc__)
