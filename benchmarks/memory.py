"""Peak memory of a step: eager beside torchjanus.

    python benchmarks/memory.py [PROGRAM …] [--steps N]

Each system runs each program in a process of its own. What is given is how far the process's
resident memory rises in a step, at its highest, above what it was when the program had been built
and the libraries, the compiler among them, were loaded and had run once. For torchjanus that holds
what generating and compiling the program's graphs left behind, beside what a step needs.
"""

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

from programs import BENCHMARKS, chosen

import torch
import torchjanus

SYSTEMS = ("eager", "torchjanus")


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


def measure(name: str, system: str, steps: int) -> float:
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
    return (peak_bytes() - before) / 2**20


def peaks(name: str, steps: int) -> dict[str, float]:
    """MiB of each system, each in a process of its own."""
    result = {}
    for system in SYSTEMS:
        command = [sys.executable, __file__, "--steps", str(steps), "--one", name, system]
        # What an earlier process left on disk must not decide whether the compiler is needed.
        environment = {
            **os.environ, "TORCHJANUS_CACHE": "0", "TORCHJANUS_DISABLE": "background"
        }  # fmt: skip
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        result[system] = float(run.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(measure(*options.one, options.steps))
        return
    print("| program | eager MiB | torchjanus MiB |\n|---|--:|--:|")
    for name in chosen(parser, options.programs):
        cells = [f"{mib:.0f}" for mib in peaks(name, options.steps).values()]
        print(f"| {BENCHMARKS[name].title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
