"""What comes on top of the graphs themselves, for the benchmark programs.

    python benchmarks/overheads.py [PROGRAM …] [--rounds N] [--output FOLDER]

For each program: microseconds that a call of the converted step takes before the instructions of its graph
(assumptions, entry) and after them (commit, the result's objects); the time of a profiled step beside that of
a plain one; and milliseconds from the end of the last profiled step to the end of the first one that ran as a
graph, with an empty cache of kernels and with what a process before has left there; how many kernels were
compiled in the first process, and the median of the processor's milliseconds that one took. Then
the microseconds of a call of a graph that adds ten small tensors, the nanoseconds that a call takes
longer for each thing more that it assumes and for each kernel more, and those of an iteration of a loop in
the graph. Writes overheads.json into the output folder.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import record
import tables
from programs import BENCHMARKS, Benchmark, chosen

import torch
import torchjanus
from torchjanus import _core

PROFILED = 3
torchjanus.options.disabled |= {"background"}  # the call after the profile's end is the graph's


def seconds(step: Callable, batch: tuple) -> float:
    start = time.perf_counter()
    step(*batch)
    return time.perf_counter() - start


def program_seconds(step) -> float:
    return sum(entry["program_seconds"] for entry in step.snapshot()["cache"])


def seconds_of_call(step: Callable, batch: tuple) -> tuple[float, float, float]:
    """Of a call: seconds before the instructions of its graph, of them, and after them."""
    earlier = program_seconds(step)
    start = time.perf_counter()  # the clock of program_started, on Linux
    result = step(*batch)
    end = time.perf_counter()
    del result
    started = max(entry["program_started"] for entry in step.snapshot()["cache"])
    program = program_seconds(step) - earlier
    return started - start, program, end - started - program


def build(benchmark: Benchmark) -> tuple[Callable, list[tuple]]:
    torch.manual_seed(0)
    models, make_step, batches = benchmark.build()
    return make_step(*models), batches


def entry_costs(benchmark: Benchmark, rounds: int) -> dict:
    """Of a call that runs as a graph: what it takes before and after the graph's instructions."""
    plain, batches = build(benchmark)
    step = torchjanus.function(plain, profile_runs=PROFILED)
    for index in range(PROFILED):
        step(*batches[index])
    first = seconds(step, batches[PROFILED])
    for batch in batches * 2:
        step(*batch)
    calls = [seconds_of_call(step, batches[i % len(batches)]) for i in range(rounds * 5)]
    before, _, after = zip(*calls, strict=True)
    return {
        "first_graph_ms": first * 1e3,
        "entry_us": statistics.median(before) * 1e6,
        "leaving_us": statistics.median(after) * 1e6,
        "entry_and_leaving_fastest_us": min(map(sum, zip(before, after, strict=True))) * 1e6,
        "kernels_ms": [round(taken * 1e3, 2) for taken in _core.testing.compilation_seconds()],
        "cells_and_assumptions": len(step.snapshot()["cache"][0]["assumptions"]),
    }


def ten_inputs(*tensors):
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


def median_call(step: Callable, arguments: tuple, calls: int = 20_000) -> float:
    """Seconds of a call, once it runs as a graph."""
    for _ in range(1000):
        step(*arguments)
    rounds = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(calls // 20):
            step(*arguments)
        rounds.append((time.perf_counter() - start) / (calls // 20))
    return statistics.median(rounds)


def call_of_ten_inputs() -> float:
    """Microseconds of a call of a graph with ten inputs, its one kernel included."""
    step = torchjanus.function(ten_inputs, profile_runs=PROFILED)
    return median_call(step, tuple(torch.randn(4) for _ in range(10))) * 1e6


class Part:
    """One of many objects whose attributes a step reads, all of which it assumes to stay."""

    def __init__(self, name: str):
        self.name, self.active, self.weight = name, False, 0.5


def over_parts(parts: list[Part], x: torch.Tensor) -> torch.Tensor:
    for part in parts:
        if part.active and part.name != "none":
            x = x * part.weight
    return x + 1


def cost_of_an_assumption(few: int = 8, many: int = 200) -> float:
    """Nanoseconds by which a call grows with each assumption: the graph itself stays the same."""
    times, counts = [], []
    for count in (few, many):
        parts, x = [Part(f"part {index}") for index in range(count)], torch.randn(4)
        step = torchjanus.function(lambda x, parts=parts: over_parts(parts, x))
        times.append(median_call(step, (x,)))
        counts.append(len(step.snapshot()["cache"][0]["assumptions"]))
    return (times[1] - times[0]) / (counts[1] - counts[0]) * 1e9


def cost_of_a_kernel(few: int = 10, many: int = 60) -> float:
    """Nanoseconds by which a call grows with each kernel more, on four elements."""

    def chain(x: torch.Tensor, kernels: int) -> torch.Tensor:
        for _ in range(kernels):
            x = torchjanus.meta.stop_fuse(x * 0.5 + 1)
        return x

    times = []
    for kernels in (few, many):
        step = torchjanus.function(lambda x, kernels=kernels: chain(x, kernels))
        times.append(median_call(step, (torch.randn(4),)))
    return (times[1] - times[0]) / (many - few) * 1e9


def sum_in_loop(x: torch.Tensor, iterations: int) -> torch.Tensor:
    total, index = 0, 0
    while index < iterations:
        total = total + index * 3
        index += 1
    return x + total


def tensor_in_loop(x: torch.Tensor, iterations: int) -> torch.Tensor:
    index = 0
    while index < iterations:
        x = x * 0.5 + 1
        index += 1
    return x


def cost_of_an_iteration(function: Callable, few: int = 1000, many: int = 11_000) -> float:
    """Nanoseconds by which a call grows with each iteration of its loop in the graph."""
    step, x = torchjanus.function(function, profile_runs=PROFILED), torch.randn(4)
    for iterations in range(few, few + 200):
        step(x, iterations)
    times = [min(seconds(step, (x, iterations)) for _ in range(200)) for iterations in (few, many)]
    return (times[1] - times[0]) / (many - few) * 1e9


def profiling_cost(benchmark: Benchmark, rounds: int) -> dict:
    """A profiled step beside a plain one, turn by turn."""
    plain, batches = build(benchmark)
    watched, _ = build(benchmark)
    profiled = torchjanus.function(watched, profile_runs=rounds + 10)
    first = seconds(profiled, batches[0])
    for batch in batches[:3]:
        plain(*batch)
        profiled(*batch)
    times = {"plain": [], "profiled": []}
    for round_ in range(rounds):
        batch = batches[round_ % len(batches)]
        times["plain"].append(seconds(plain, batch))
        times["profiled"].append(seconds(profiled, batch))
    return {
        "plain_ms": statistics.median(times["plain"]) * 1e3,
        "profiled_ms": statistics.median(times["profiled"]) * 1e3,
        "profiled_ratio": statistics.median(times["profiled"]) / statistics.median(times["plain"]),
        "first_profiled_ms": first * 1e3,
    }


def measure(name: str, rounds: int) -> dict:
    """One program in two processes: the first graph of a process pays for what later ones find."""
    command = [sys.executable, __file__, "--one", name, "--rounds", str(rounds)]
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TORCHJANUS_CACHE": cache}
        for _ in range(2):
            run = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, env=environment
            )
            rows.append(json.loads(run.stdout))
    return rows[0] | {"first_graph_again_ms": rows[1]["first_graph_ms"]}


def costs_alone() -> dict[str, str]:
    """Of what no program is needed for."""
    return {
        "a call of a graph with 10 inputs, in all": f"{call_of_ten_inputs():.1f} µs",
        "an assumption more, of objects that nobody has changed": f"{cost_of_an_assumption():.1f} ns",
        "a kernel more, on 4 elements": f"{cost_of_a_kernel():.0f} ns",
        "an iteration of a loop in the graph over numbers": f"{cost_of_an_iteration(sum_in_loop):.0f} ns",
        "an iteration of a loop in the graph with a kernel": f"{cost_of_an_iteration(tensor_in_loop):.0f} ns",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=40)
    record.add_output(parser)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        benchmark = BENCHMARKS[options.one]
        row = {"title": benchmark.title}
        row |= entry_costs(benchmark, options.rounds)
        row |= profiling_cost(benchmark, options.rounds)
        print(json.dumps(row))
        return
    about = record.about(options.rounds)
    programs = [measure(name, options.rounds) for name in chosen(parser, options.programs)]
    rows = {"programs": programs, "alone": costs_alone()}
    record.write(options.output, "overheads", about, rows)
    print(tables.overheads(rows))


if __name__ == "__main__":
    main()
