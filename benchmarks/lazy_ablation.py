"""What each part of lazy execution brings: Jittor's ablation, on three training steps that nothing converts.

    python benchmarks/lazy_ablation.py [PROGRAM …] [--steps N] [--repeats N] [--output FOLDER]

The step runs under `torchjanus.lazy()`, and its loss is fetched. Then one part is left out: the program waits for
each loss; a look runs all that is pending, so that iterations don't flow into each other; nothing runs ahead of
Python; memory isn't planned; nothing is fused. Eager is Jittor's "without lazy execution". Each configuration runs in
processes of its own, turn by turn with the others; what is given is the least mean step time of the turns, as what is
lazy is computed in later steps. Writes
lazy_ablation.json into the output folder.
"""

import contextlib
import time

from ablation import Ablation
from programs import BENCHMARKS

import torch
import torchjanus

PROGRAMS = ["lenet", "gan", "small_cnn"]

#: What is left out of lazy execution; "fetches" is no switch.
CONFIGURATIONS = {
    "eager": None,
    "lazy": [],
    "no asynchronous fetches": ["fetches"],
    "no cross-iteration": ["cross_iteration"],
    "no runner": ["graph_runner"],
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


if __name__ == "__main__":
    Ablation(__file__, "lazy_ablation", CONFIGURATIONS, measure, steps=200, programs=PROGRAMS).main(
        __doc__
    )
