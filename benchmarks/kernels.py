"""How much of the machine's copy bandwidth compiled kernels reach on arrays larger than the cache.

    python benchmarks/kernels.py [--megabytes 64] [--rounds 15] [--output FOLDER]

Each row is one kernel: bytes that have to cross memory (what it reads and writes, once) over the best
time of the rounds, in GB/s and as a share of what copying an array reaches; and eager's time. Rows
and the copy take turns, so that they see the same machine. What only reads cannot be measured by a
copy, which also writes: the first row reads an array and does nothing else (the C library looks for
a byte that there is not). Writes kernels.json."""

from __future__ import annotations

import argparse
import ctypes
import inspect
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import record
import tables
import torch.nn.functional as F

import torch
import torchjanus

Kernel = Callable[..., object]


def cross_entropy(x: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, torch.zeros(len(x), dtype=torch.int64))


def gradient_of_cross_entropy(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(cross_entropy(x), x)
    return gradient


KERNELS: dict[str, tuple[Kernel, int, int]] = {
    # what is computed; how often arrays are read, and written
    "x * 2 + 1": (lambda x: x * 2 + 1, 1, 1),
    "x * y + x": (lambda x, y: x * y + x, 2, 1),
    "tanh(x) * y": (lambda x, y: torch.tanh(x) * y, 2, 1),
    "gelu(x) + y": (lambda x, y: F.gelu(x) + y, 2, 1),
    "sum of rows": (lambda x: (x * 2).sum(1), 1, 0),
    "sum of columns": (lambda x: (x * 2).sum(0), 1, 0),
    "maximum of rows": (lambda x: (x * 2).amax(1), 1, 0),
    "relu backward, bias": (lambda x, y: (d := x * (y > 0), d.sum(0)), 2, 1),
    "softmax(x / 2)": (lambda x: F.softmax(x * 0.5, 1), 1, 1),
    "log_softmax(x / 2)": (lambda x: F.log_softmax(x * 0.5, 1), 1, 1),
    "cross_entropy(x)": (cross_entropy, 1, 0),
    "with its gradient": (gradient_of_cross_entropy, 2, 1),
    "layer_norm(x + y)": (lambda x, y: F.layer_norm(x + y, x.shape[1:]), 2, 1),
}


class Reading:
    """Reads an array once, on as many threads as torch has."""

    def __init__(self, megabytes: int) -> None:
        self.threads = torch.get_num_threads()
        self.pool = ThreadPoolExecutor(self.threads)
        self.array = torch.empty(megabytes << 20, dtype=torch.uint8).zero_()
        self.look_for = ctypes.CDLL(None).memchr
        self.look_for.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
        self.look_for.restype = ctypes.c_void_p

    def __call__(self) -> None:
        part = len(self.array) // self.threads
        first = self.array.data_ptr()
        starts = [first + part * thread for thread in range(self.threads)]
        assert not any(self.pool.map(lambda start: self.look_for(start, 1, part), starts))


def operands_of(kernel: Kernel, arrays: list[torch.Tensor]) -> list[torch.Tensor]:
    return arrays[: len(inspect.signature(kernel).parameters)]


def seconds(function: Kernel, operands: list[torch.Tensor]) -> float:
    start = time.perf_counter()
    function(*operands)
    return time.perf_counter() - start


class Best:
    """The least seconds of everything, in turns, so that all see the same machine."""

    def __init__(self, operands: list[torch.Tensor], megabytes: int) -> None:
        self.operands = operands
        self.target = torch.empty_like(operands[0])
        self.reading = Reading(megabytes)
        self.converted = {
            name: torchjanus.function(kernel) for name, (kernel, _, _) in KERNELS.items()
        }
        self.times: dict[tuple[str, str], float] = {}

    def note(self, what: str, name: str, taken: float) -> None:
        self.times[what, name] = min(self.times.get((what, name), float("inf")), taken)

    def take_a_turn(self) -> None:
        for name, (kernel, _, _) in KERNELS.items():
            given = operands_of(kernel, self.operands)
            self.note("torchjanus", name, seconds(self.converted[name], given))
            self.note("eager", name, seconds(kernel, given))
            self.note("copy", "", seconds(self.target.copy_, self.operands[:1]))
        self.note("read", "", seconds(self.reading, []))

    def rows(self) -> list[dict]:
        size = self.target.numel() * self.target.element_size()
        bandwidth = 2 * size / self.times["copy", ""]

        def row(title: str, taken: float, arrays: int) -> dict:
            rate = arrays * size / taken
            return {
                "title": title,
                "ms": taken * 1e3,
                "gigabytes": rate / 1e9,
                "share": rate / bandwidth,
            }

        result = [
            row("copy", self.times["copy", ""], 2),
            row("reading alone", self.times["read", ""], 1),
        ]
        for name, (_, reads, writes) in KERNELS.items():
            made = row(f"`{name}`", self.times["torchjanus", name], reads + writes)
            result.append(made | {"eager_ms": self.times["eager", name] * 1e3})
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=64, help="size of each array")
    parser.add_argument("--rounds", type=int, default=15)
    record.add_output(parser)
    options = parser.parse_args()
    columns = 1024
    rows = options.megabytes * (1 << 20) // (4 * columns)
    torchjanus.options.disabled |= {"background"}
    best = Best([torch.randn(rows, columns) for _ in range(2)], options.megabytes)
    for _ in range(options.rounds + 4):  # the first are profiled, and only slower
        best.take_a_turn()
    found = best.rows()
    record.write(options.output, "kernels", record.about(options.rounds), found)
    print(tables.kernels(found))


if __name__ == "__main__":
    main()
