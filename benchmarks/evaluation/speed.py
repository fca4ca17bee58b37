"""How much faster than eager a system takes a program's steps: compared first, then timed turn by turn."""

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch._inductor.config
from programs import Benchmark
from torch._dynamo.utils import counters
from torch._inductor.async_compile import shutdown_compile_workers
from variants import TooLong, Variant, at_most, warm_up_fully

import torch
import torchjanus

#: Of what float32 steps give: as a share of the greatest element; of a number below 1 absolute.
TOLERANCE = 2e-2
#: A training may be chaotic: so many times what eager's own steps differ by, if its parameters are rounded otherwise.
OWN_DIFFERENCES = 4


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to look."""

    checked: int  # steps whose results are compared; a third of them where steps are long
    rounds: int  # of three steps each, or of a cycle of steps that differ
    seconds: float  # for these, and for the steps that are compared
    limit: int  # seconds until a system has to be ready


FULL = Effort(checked=24, rounds=40, seconds=8, limit=75)
QUICK = Effort(checked=6, rounds=2, seconds=1, limit=100)


class Differs(Exception):
    """A step gives what eager does not give."""


def against_eager(benchmark: Benchmark, convert: Callable, effort: Effort) -> dict[str, Any]:
    """Milliseconds of both, or the problem that the system has."""
    eager = Variant("eager", benchmark, lambda models, make: make(*models))
    other = Variant("other", benchmark, convert)
    counters.clear()
    try:
        with at_most(effort.limit):
            deviation = compared(eager, other, benchmark, effort)
            warm_up(other)
    except TooLong:
        shutdown_compile_workers()
        return {"problem": f"not ready after {effort.limit} s"}
    except Differs as error:
        return {"problem": f"wrong: {error}"}
    except Exception as error:
        return {"problem": f"fails: {type(error).__name__}"}
    for _ in range(len(other.warm_up)):  # training may change what a step does
        eager.run()
    rounds = take_turns(eager, other, effort, benchmark.cycle * -(-3 // benchmark.cycle))
    return {
        "eager_ms": eager.median * 1e3,
        "ms": other.median * 1e3,
        "faster": eager.median / other.median,
        "deviation": deviation,
        "rounds": rounds,
        **graphs(other),
    }


def warm_up(variant: Variant) -> None:
    """All batches come up twice after the last of them has been compiled, as far as that is known."""
    if is_converted(variant):
        return warm_up_fully(variant)
    variant.warm(2 * variant.batch_count)


def is_converted(variant: Variant) -> bool:
    return isinstance(variant.step, torchjanus.Function)


def compared(eager: Variant, other: Variant, benchmark: Benchmark, effort: Effort) -> float:
    """The greatest difference of what steps of equal draws give: of so many, and of those until graphs are there."""
    rounded = Variant("rounded otherwise", benchmark, rounded_otherwise)
    deviation, own, number, end = 0.0, 0.0, 0, time.perf_counter() + effort.seconds
    while number < effort.checked or is_compiling(other):
        is_late = number >= effort.checked // 3 and time.perf_counter() > end
        if is_late and has_run_graphs(other):
            break
        torch.manual_seed(number)
        before = torch.get_rng_state()
        eager.run()
        if number == 0 and not torch.equal(before, torch.get_rng_state()):
            torch._inductor.config.fallback_random = True  # else compiled code has draws of its own
        torch.manual_seed(number)
        other.run()
        torch.manual_seed(number)
        rounded.run()
        number += 1
        own = max(own, difference(eager.result, rounded.result))
        differs = difference(eager.result, other.result)
        if not differs <= max(TOLERANCE, OWN_DIFFERENCES * own):
            raise Differs(f"step {number} differs by {differs:.3g} of its greatest element")
        deviation = max(deviation, differs)
        if is_compiling(other):
            time.sleep(0.05)  # a step of the few that are compared is not to be one of Python's
    return deviation


def has_run_graphs(variant: Variant) -> bool:
    """If there are to be any: two."""
    return not is_converted(variant) or torchjanus.stats(variant.step)["hits"] >= 2


def is_compiling(variant: Variant) -> bool:
    return is_converted(variant) and torchjanus.stats(variant.step)["compiling"]


def rounded_otherwise(models: list[torch.nn.Module], make_step: Callable) -> Callable:
    """The eager step of models whose parameters differ in the last bit."""
    with torch.no_grad():
        for parameter in (each for model in models for each in model.parameters()):
            parameter.mul_(1 + torch.finfo(parameter.dtype).eps)
    return make_step(*models)


def difference(expected: Any, found: Any) -> float:
    """The greatest, as a share."""
    greatest = 0.0
    for one, another in zip(numbers(expected), numbers(found), strict=True):
        most = (one - another).abs().max().item() if one.numel() else 0.0
        scale = one.abs().max().item() if one.numel() else 0.0
        if one.numel() == 1:
            scale = max(1.0, scale)
        share = most / scale if scale else float(most > 0)
        greatest = max(greatest, share) if share == share else float("inf")
    return greatest


def numbers(value: Any) -> Iterator[torch.Tensor]:
    """Tensors and numbers of a step's result."""
    if isinstance(value, torch.Tensor):
        yield value.detach().double()
    elif isinstance(value, (int, float)):
        yield torch.tensor(float(value), dtype=torch.float64)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from numbers(each)
    elif hasattr(value, "tolist"):  # an array of another system's
        yield torch.tensor(value.tolist(), dtype=torch.float64)


def take_turns(eager: Variant, other: Variant, effort: Effort, steps: int) -> int:
    """Rounds of so many steps, until the time is over. A time is the mean of a round's steps; gives how many rounds."""
    end = time.perf_counter() + effort.seconds
    for round_ in range(effort.rounds):
        if round_ >= 3 and time.perf_counter() > end:
            return round_
        for variant in (eager, other):
            variant.run()  # brings its own data back into the caches
            variant.times.append(statistics.mean(variant.run() for _ in range(steps)))
    return effort.rounds


def graphs(variant: Variant) -> dict[str, Any]:
    """What became of the step."""
    if not is_converted(variant):
        breaks = sum(counters["graph_break"].values())
        return {"note": f"{breaks} graph breaks"} if breaks else {}
    stats = torchjanus.stats(variant.step)
    share = stats["hits"] / max(1, stats["hits"] + stats["misses"] + stats["bypassed"])
    return {"graphs": stats["generated"], "state": stats["state"], "as_graph": share}
