"""How training steps with torch's recurrent layers run as graphs, beside eager: interleaved, medians.

    python benchmarks/recurrent.py [--rounds N] [--output FOLDER]

Each row: the layer, length, batch, units; milliseconds of a step (a linear head on the last output, cross entropy,
Adam) in eager and as a graph, for a length that is always the same and for lengths drawn of a dozen between half of
it and it, once each of them has come up (the first run of a size plans its memory). Writes recurrent.json.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

import record
import tables

import torch
import torchjanus
from torch import nn

PROFILED = 12
ROWS = [
    (nn.GRU, 50, 32, 128),
    (nn.GRU, 300, 8, 64),
    (nn.GRU, 20, 1, 64),
    (nn.LSTM, 50, 32, 128),
    (nn.LSTM, 20, 8, 64),
    (nn.RNN, 50, 32, 128),
]


def training_step(kind: type[nn.RNNBase], units: int) -> Callable[..., float]:
    layer, head = kind(units // 2, units, batch_first=True), nn.Linear(units, 10)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], 1e-3)

    def step(x: torch.Tensor, y: torch.Tensor) -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(layer(x)[0][:, -1]), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def medians(
    kind: type[nn.RNNBase], lengths: list[int], warm_up: int, batch: int, units: int
) -> tuple[float, float]:
    """Milliseconds of a step behind so many: eager, torchjanus."""
    ways = [training_step(kind, units), torchjanus.function(training_step(kind, units))]
    times: list[list[float]] = [[], []]
    for number, length in enumerate(lengths):
        x, y = torch.randn(batch, length, units // 2), torch.randint(0, 10, (batch,))
        for way, taken in zip(ways, times, strict=True):
            start = time.perf_counter()
            way(x, y)
            if number >= warm_up:
                taken.append((time.perf_counter() - start) * 1e3)
    eager, graph = map(statistics.median, times)
    return eager, graph


def measure(
    kind: type[nn.RNNBase], length: int, batch: int, units: int, varies: bool, rounds: int
) -> dict:
    least = length // 2 if varies else length
    drawn = [*range(least, length, max(1, length // 24)), length]
    warm_up = random.choices(drawn, k=PROFILED) + 2 * drawn
    lengths = warm_up + random.choices(drawn, k=rounds)
    eager, graph = medians(kind, lengths, len(warm_up), batch, units)
    return {
        "layer": f"nn.{kind.__name__}",
        "length": f"{least} to {length}" if varies else str(length),
        "batch": batch,
        "units": units,
        "eager_ms": eager,
        "torchjanus_ms": graph,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    record.add_output(parser)
    options = parser.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    about, rows = record.about(options.rounds), []
    for kind, length, batch, units in ROWS:
        for varies in (False, True):
            rows.append(measure(kind, length, batch, units, varies, options.rounds))
            record.write(options.output, "recurrent", about, rows)
            print(tables.recurrent(rows[-1:]), flush=True)


if __name__ == "__main__":
    main()
