"""One system's version of a benchmark's step, warmed up and timed; a warm-up that may not end in time."""

import contextlib
import itertools
import signal
import statistics
import time
from collections.abc import Callable

from programs import Benchmark
from torch._dynamo.utils import counters
from torch._inductor.async_compile import shutdown_compile_workers

import torch
import torchjanus

#: How a user gives each of them a program's models, and what makes a step of them.
SYSTEMS: dict[str, Callable] = {
    "eager": lambda models, make: make(*models),
    "torchjanus": lambda models, make: torchjanus.function(make(*models)),
    "torch.compile (model)": lambda models, make: make(*[torch.compile(each) for each in models]),
    "torch.compile (step)": lambda models, make: torch.compile(make(*models)),
}


class TooLong(BaseException):
    """The time for warming up is over. No Exception, so that no compiler takes it for one of the program's."""


@contextlib.contextmanager
def at_most(seconds: int):
    """Raises TooLong where the body takes longer."""

    def stop(number, frame):
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Variant:
    """One system's version of the step, with its own copy of the program's state."""

    def __init__(self, name: str, benchmark: Benchmark, convert: Callable):
        torch.manual_seed(0)
        models, make_step, batches = benchmark.build()
        self.name = name
        self.step = convert(models, make_step)
        self.batches = itertools.cycle(batches)
        self.batch_count = len(batches)
        self.times: list[float] = []
        self.warm_up: list[float] = []
        self.result: object = None  # of the last step
        self.note = ""  # why it was not measured, or what is to be known of it
        self.is_out = False

    def run(self) -> float:
        batch = next(self.batches)
        start = time.perf_counter()
        self.result = self.step(*batch)
        return time.perf_counter() - start

    def warm(self, steps: int) -> None:
        self.warm_up = [self.run() for _ in range(steps)]

    def try_to_warm(self, steps: int, limit: int) -> None:
        """The same for a system that may fail, or not end in time: then it is out."""
        counters.clear()
        try:
            with at_most(limit):
                self.warm(steps)
        except TooLong:
            shutdown_compile_workers()  # they would go on beside what is timed
            self.note, self.is_out = f"not ready after {limit} s", True
        except Exception as error:
            self.note, self.is_out = f"fails: {type(error).__name__}", True
        else:
            breaks = sum(counters["graph_break"].values())
            self.note = f"{breaks} graph breaks" if breaks else ""

    @property
    def median(self) -> float:
        return statistics.median(self.times)


def warm_up_fully(variant: Variant) -> None:
    """Runs on until all batches have come up twice since a graph was last made or compiled."""
    made, quiet = 0, 0
    while quiet < 2 * variant.batch_count and len(variant.warm_up) < 2000:
        variant.warm_up.append(variant.run())
        stats = torchjanus.stats(variant.step)
        is_new = stats["compiling"] or stats["generated"] != made
        made, quiet = stats["generated"], 0 if is_new else quiet + 1
