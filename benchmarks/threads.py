"""Whether several threads are ever slower than one: steps of the benchmark programs as graphs, on each.

    python benchmarks/threads.py [PROGRAM …] [--rounds N] [--threads N] [--output FOLDER]

Each number of threads has a copy of the program of its own, which takes its steps by turns with the others,
so that what else the machine does meets all of them. Given are the least time of a step, which that hardly
touches, and the median; programs whose both are more than 3 % longer on several threads are named at the end.
Writes threads.json.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import record
import tables
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


def row(name: str, copies: list[Copy]) -> dict:
    return {
        "title": BENCHMARKS[name].title,
        "least_ms": {str(copy.threads): min(copy.times) for copy in copies},
        "median_ms": {str(copy.threads): statistics.median(copy.times) for copy in copies},
    }


def is_slower(copies: list[Copy]) -> bool:
    """Whether several threads take longer, by the least time and by the median."""
    one, several = copies
    return all(of(several.times) > SLOWER * of(one.times) for of in (min, statistics.median))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=6)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    record.add_output(parser)
    options = parser.parse_args()
    torchjanus.options.disabled = {"background"}
    about, rows, slower = record.about(options.rounds), [], []
    for name in chosen(parser, options.programs):
        copies = measure(name, [1, options.threads], options.rounds, options.warm_up)
        rows.append(row(name, copies))
        record.write(options.output, "threads", about, rows)
        print(tables.threads(rows[-1:]), flush=True)
        if is_slower(copies):
            slower.append(name)
    print("slower on several threads:", ", ".join(slower) or "none")


if __name__ == "__main__":
    main()
