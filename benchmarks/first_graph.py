"""How soon a program runs as a graph: with nothing on disk, and where an earlier process has left its kernels.

    python benchmarks/first_graph.py [PROGRAM …]

Seconds from the program's first step to the end of the first one that ran as a graph, profiled steps and those
during compilation included; each in a process of its own, the libraries loaded.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

from programs import BENCHMARKS, chosen
from tables import seconds

import torch
import torchjanus

STARTS = ("cold", "warm")


def measure(name: str, limit: float = 60) -> float | None:
    """Seconds; None: no step ran as a graph within the limit."""
    torch.manual_seed(0)
    models, make_step, batches = BENCHMARKS[name].build()
    step = torchjanus.function(make_step(*models))
    start = time.perf_counter()
    for batch in itertools.cycle(batches):
        step(*batch)
        taken = time.perf_counter() - start
        if torchjanus.stats(step)["hits"]:
            return taken
        if taken > limit:
            return None


def starts(name: str) -> dict[str, float | None]:
    """By the kind of start."""
    command = [sys.executable, __file__, "--one", name]
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TORCHJANUS_CACHE": folder}
        for kind in STARTS:
            run = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, env=environment
            )
            result[kind] = json.loads(run.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    print("| program | first graph: cold start | warm start |")
    print("|---|--:|--:|")
    for name in chosen(parser, options.programs):
        cells = [seconds(value) for value in starts(name).values()]
        print(f"| {BENCHMARKS[name].title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
