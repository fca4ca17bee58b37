"""How generation, entry and steps grow with the program's size, each over two orders of magnitude.

    python benchmarks/growth.py [QUANTITY …] [--rounds N] [--output FOLDER]

The quantities: `sequence` (words that a recurrent cell goes over in a Python loop), `trees` (syntax
trees that a recursive model sees in a step), `depth` (layers of a network), `parameters` (numbers in
the weights of a fixed number of layers). For each size, in a process of its own: milliseconds until
the first graph is there, microseconds of a call beyond its graph's instructions, and milliseconds of
an eager and of a converted step, turn by turn. Writes growth.json and, where matplotlib is installed,
growth.png into the output folder.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import record
import tables
import torch.nn.functional as F
from dynamic_programs import recursive_lstm
from overheads import PROFILED, seconds, seconds_of_call

import torch
import torchjanus
from torch import nn


class Recurrent(nn.Module):
    """A cell written by hand, and the loop over the words around it."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.width = width
        self.into = nn.Linear(width, width)
        self.onto = nn.Linear(width, width)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(words.shape[1], self.width)
        for word in words:
            state = torch.tanh(self.into(word) + self.onto(state))
        return state


class Residual(nn.Module):
    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


def trained(model: nn.Module, shape: tuple[int, ...]) -> tuple[Callable, list[tuple]]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x):
        loss = F.mse_loss(model(x), torch.zeros(shape[-2:]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, [(torch.randn(shape),) for _ in range(4)]


def sequence(length: int) -> tuple[Callable, list[tuple]]:
    return trained(Recurrent(), (length, 16, 64))


def depth(layers: int) -> tuple[Callable, list[tuple]]:
    return trained(Residual(layers, 64), (16, 64))


def parameters(count: int) -> tuple[Callable, list[tuple]]:
    width = round((count / 4) ** 0.5)
    return trained(Residual(4, width), (16, width))


def trees(count: int) -> tuple[Callable, list[tuple]]:
    (model,), make_step, batches = recursive_lstm(count)()
    return make_step(model), batches


@dataclass(frozen=True)
class Quantity:
    build: Callable[[int], tuple[Callable, list[tuple]]]
    title: str
    sizes: tuple[int, ...]


QUANTITIES = {
    "sequence": Quantity(sequence, "words in a sequence", (4, 12, 40, 120, 400)),
    "trees": Quantity(trees, "trees in a step", (1, 3, 10, 30, 100)),
    "depth": Quantity(depth, "layers", (2, 6, 20, 60, 200)),
    "parameters": Quantity(parameters, "parameters", (10**4, 10**5, 10**6)),
}


def measure(quantity: Quantity, size: int, rounds: int) -> dict:
    torch.manual_seed(0)
    plain, batches = quantity.build(size)
    torch.manual_seed(0)
    step = torchjanus.function(quantity.build(size)[0], profile_runs=PROFILED)
    for round_ in range(PROFILED + 5):
        step(*batches[round_ % len(batches)])
    eager, converted, entry = [], [], []
    for round_ in range(rounds):
        batch = batches[round_ % len(batches)]
        eager.append(seconds(plain, batch))
        before, program, after = seconds_of_call(step, batch)
        converted.append(before + program + after)
        entry.append(before + after)
    spent = step.stats()["milliseconds"]
    return {
        "size": size,
        "generation_ms": spent["generating"] + spent["optimising"] + spent["compiling"],
        "entry_us": 1e6 * statistics.median(entry),
        "eager_ms": 1e3 * statistics.median(eager),
        "converted_ms": 1e3 * statistics.median(converted),
        "hits": step.stats()["hits"],
    }


def measured_apart(name: str, size: int, rounds: int) -> dict:
    """In a process of its own: the first graph of a process pays for what later ones find."""
    command = [sys.executable, __file__, name, "--one", str(size), "--rounds", str(rounds)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


def plot(results: dict[str, dict], path: Path) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: pip install matplotlib", file=sys.stderr)
        return
    figure, axes = pyplot.subplots(3, len(results), figsize=(4 * len(results), 9), squeeze=False)
    for column, quantity in zip(axes.T, results.values(), strict=True):
        rows = quantity["sizes"]
        sizes = [row["size"] for row in rows]
        column[0].plot(sizes, [row["generation_ms"] for row in rows], "o-")
        column[0].set(title=quantity["title"], ylabel="generation, ms")
        column[1].plot(sizes, [row["entry_us"] for row in rows], "o-")
        column[1].set(ylabel="call beyond the graph, µs")
        column[2].plot(sizes, [row["eager_ms"] for row in rows], "o-", label="eager")
        column[2].plot(sizes, [row["converted_ms"] for row in rows], "o-", label="torchjanus")
        column[2].set(ylabel="step, ms", xlabel=quantity["title"])
        column[2].legend()
        for axis in column:
            axis.set(xscale="log", yscale="log")
            axis.grid(True, which="both", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("quantities", nargs="*", metavar="QUANTITY", help=", ".join(QUANTITIES))
    parser.add_argument("--rounds", type=int, default=12)
    record.add_output(parser)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = sorted(set(options.quantities) - set(QUANTITIES))
    if unknown:
        parser.error(f"no quantity {', '.join(unknown)}; there are {', '.join(QUANTITIES)}")
    if options.one is not None:
        quantity = QUANTITIES[options.quantities[0]]
        print(json.dumps(measure(quantity, options.one, options.rounds)))
        return
    about, results = record.about(options.rounds), {}
    for name in options.quantities or QUANTITIES:
        quantity = QUANTITIES[name]
        rows = [measured_apart(name, size, options.rounds) for size in quantity.sizes]
        results[name] = {"title": quantity.title, "sizes": rows}
        record.write(options.output, "growth", about, results)
        print(tables.growth({name: results[name]}), flush=True)
    plot(results, options.output / "growth.png")


if __name__ == "__main__":
    main()
