"""Whether several threads are ever slower than one: steps of the benchmark programs as graphs, on each.

    python benchmarks/threads.py [PROGRAM …] [--rounds N] [--threads N]

Each number of threads has a copy of the program of its own, which takes its steps by turns with the others,
so that what else the machine does meets all of them. Given are the least time of a step, which that hardly
touches, and the median; programs whose both are more than 3 % longer on several threads are named at the end.
"""

import argparse
import statistics
import time
from collections.abc import Callable

from programs import BENCHMARKS, chosen

import torch
import torchjanus

SLOWER = 1.03


class Copy:
    """A program's step on so many threads, with state of its own."""

    def __init__(self, name: str, threads: int):
        torch.manual_seed(0)
        models, make_step, self.batches = BENCHMARKS[name].build()
        self.step: Callable = torchjanus.function(make_step(*models))
        self.threads = threads
        self.times: list[float] = []

    def take_steps(self, timed: bool) -> None:
        """One with each batch; the first, in which the threads gather, is not timed."""
        torch.set_num_threads(self.threads)
        self.step(*self.batches[-1])
        start = time.perf_counter()
        for batch in self.batches:
            self.step(*batch)
        if timed:
            self.times.append((time.perf_counter() - start) / len(self.batches) * 1e3)


def measure(name: str, threads: list[int], rounds: int, warm_up: int) -> list[Copy]:
    copies = [Copy(name, count) for count in threads]
    for index in range(warm_up + rounds):
        for copy in copies:
            copy.take_steps(timed=index >= warm_up)
    return copies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=6)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torchjanus.options.disabled = {"background"}
    slower = []
    for name in chosen(parser, options.programs):
        one, several = measure(name, [1, options.threads], options.rounds, options.warm_up)
        ratios = [of(several.times) / of(one.times) for of in (min, statistics.median)]
        cells = [
            f"{copy.threads}: {min(copy.times):8.3f} ms ({statistics.median(copy.times):8.3f})"
            for copy in (one, several)
        ]
        print(
            f"{name:24} {'  '.join(cells)}  {1 / ratios[0]:5.2f} × ({1 / ratios[1]:.2f})",
            flush=True,
        )
        if min(ratios) > SLOWER:
            slower.append(name)
    print("slower on several threads:", ", ".join(slower) or "none")


if __name__ == "__main__":
    main()
