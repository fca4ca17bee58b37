"""How a cell of each part is measured; imported where that is done, as it loads torch."""

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import ablation
import coexecution
import distributed
from programs import BENCHMARKS, Benchmark
from torch.utils._python_dispatch import TorchDispatchMode
from variants import SYSTEMS

import torch
import torchjanus
from torchjanus import _core

from . import adversaries, backbones, convergence, correctness, speed


def effort(options: argparse.Namespace) -> speed.Effort:
    return speed.QUICK if options.quick else speed.FULL


def throughput(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    if column == "JAX":
        return of_jax(row, options)
    return speed.against_eager(BENCHMARKS[row], SYSTEMS[column], effort(options))


def of_jax(row: str, options: argparse.Namespace) -> dict[str, Any]:
    try:
        from . import jax_programs
    except ImportError:
        return {"problem": "JAX is not installed"}
    make_step = jax_programs.STEPS[row]
    return speed.against_eager(
        BENCHMARKS[row], lambda models, _: make_step(*models), effort(options)
    )


def gans(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    return speed.against_eager(adversaries.training(row), SYSTEMS[column], effort(options))


def inference(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    """A column is a system and a batch, as in "torchjanus, 4"."""
    system, batch = column.split(", ")
    size = 64 if options.quick else backbones.SIZE
    benchmark = backbones.inference(row, int(batch), size)
    return speed.against_eager(benchmark, SYSTEMS[system], effort(options))


def kinds(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    try:
        return {"verdicts": correctness.measure(row, column)}
    except ModuleNotFoundError as error:
        return {"problem": f"{error.name} is not installed"}


def convergences(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    how = convergence.Options(options.quick, options.sst, options.text)
    return convergence.measure(row, column, how)


def ablations(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    """A configuration, or what checks of assumptions cost."""
    _core.testing.let_times_decide(
        False
    )  # the graph is what is measured, also where eager is faster
    if column == "assertions":
        return assertions(BENCHMARKS[row], options)
    torchjanus.options.disabled = {*(ablation.CONFIGURATIONS[column] or ()), "background"}
    return speed.against_eager(BENCHMARKS[row], SYSTEMS["torchjanus"], effort(options))


def assertions(benchmark: Benchmark, options: argparse.Namespace) -> dict[str, Any]:
    """The share of a call that passes before its graph begins: the checks, and what they collect."""
    import overheads  # here, as it switches compilation in the background off

    plain, batches = overheads.build(benchmark)
    step = torchjanus.function(plain, profile_runs=overheads.PROFILED)
    for index in range(overheads.PROFILED + 2 * len(batches)):
        step(*batches[index % len(batches)])
    if not torchjanus.stats(step)["hits"]:
        return {"problem": "no graph"}
    rounds = 3 if options.quick else 20
    calls = [overheads.seconds_of_call(step, batches[i % len(batches)]) for i in range(rounds)]
    before, program, after = map(statistics.median, zip(*calls, strict=True))
    return {"before_us": before * 1e6, "share": before / (before + program + after)}


def fusion(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    """How many operators eager runs for a residual block, and the steps of the plan."""
    models, make_step, batches = backbones.residual_block().build()
    torchjanus.options.disabled |= {"background"}
    step = torchjanus.function(make_step(*models))
    for _ in range(6):
        step(*batches[0])
    (entry,) = step.snapshot()["cache"]
    steps = [line.strip() for line in entry["program"].splitlines() if line.startswith(" ")]
    computing = [line for line in steps if " = " in line or line.startswith("kernel")]
    before = operators(make_step(*models), batches[0])
    return {"operators": before, "computing": len(computing), "steps": steps}


def operators(step: Callable, batch: tuple) -> int:
    """How many eager runs, without those that only get memory."""

    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            self.count += any(isinstance(each, torch.Tensor) for each in arguments)
            return function(*arguments, **(named or {}))

    with Counting() as counting:
        step(*batch)
    return counting.count


def terra(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    """A column is a mode. What is tried in the first hundred steps is decided in the second half of so many."""
    asked = argparse.Namespace(
        modes=[column], steps=20 if options.quick else 480, turns=1, limit=150
    )
    found = coexecution.measure(row, asked)
    if column in found["out"]:
        return {"problem": found["out"][column]}
    eager, ms = found["ms"]["eager"], found["ms"][column]
    return {"eager_ms": eager, "ms": ms, "faster": eager / ms, "ahead": found["ahead"]}


def scale_factor(row: str, column: str, options: argparse.Namespace) -> dict[str, Any]:
    """Two processes' throughput over that of two single ones, gradients exchanged within memory."""
    asked = argparse.Namespace(
        systems=[] if column == "eager" else [column],
        rounds=2 if options.quick else 6, steps=3, warm_up=12, share=0.5, limit=150,
    )  # fmt: skip
    found = distributed.measure(row, asked)["systems"][column]
    for how in (found["one"], found["on"]):
        if "problem" in how:
            return {"problem": how["problem"]}
    return {"one_ms": found["one"]["ms"], "two_ms": found["on"]["ms"],
            "factor": found["one"]["ms"] / found["on"]["ms"]}  # fmt: skip
