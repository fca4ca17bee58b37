"""How much of the machine's copy bandwidth compiled kernels reach on arrays larger than the cache.

    python benchmarks/kernels.py [--megabytes 64] [--rounds 15]

Each row is one kernel: bytes that have to cross memory (what it reads and writes, once) over the best
time of the rounds, in GB/s and as a share of what copying an array reaches; and eager's time. Rows
and the copy take turns, so that they see the same machine. What only reads cannot be measured by a
copy, which also writes: the first row reads an array and does nothing else (the C library looks for
a byte that there is not)."""

from __future__ import annotations

import argparse
import ctypes
import inspect
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=64, help="size of each array")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    columns = 1024
    rows = arguments.megabytes * (1 << 20) // (4 * columns)
    operands = [torch.randn(rows, columns) for _ in range(2)]
    target = torch.empty_like(operands[0])
    bytes_of_array = target.numel() * target.element_size()
    torchjanus.options.disabled |= {"background"}
    converted = {}
    for name, (function, _, _) in KERNELS.items():
        converted[name] = torchjanus.function(function)
        for _ in range(4):
            converted[name](*operands_of(function, operands))
    reading = Reading(arguments.megabytes)
    read = min(seconds(reading, []) for _ in range(3))
    copy = min(seconds(target.copy_, operands[:1]) for _ in range(3))
    best = dict.fromkeys(KERNELS, float("inf"))
    eager = dict.fromkeys(KERNELS, float("inf"))
    for _ in range(arguments.rounds):
        for name, (function, _, _) in KERNELS.items():
            given = operands_of(function, operands)
            best[name] = min(best[name], seconds(converted[name], given))
            eager[name] = min(eager[name], seconds(function, given))
            copy = min(copy, seconds(target.copy_, operands[:1]))
        read = min(read, seconds(reading, []))
    bandwidth = 2 * bytes_of_array / copy
    print(f"copy: {bandwidth / 1e9:.1f} GB/s on {torch.get_num_threads()} threads")
    print(f"{'kernel':24}{'ms':>9}{'GB/s':>9}{'share':>8}{'eager ms':>11}")
    rate = bytes_of_array / read
    print(f"{'reading alone':24}{read * 1e3:9.2f}{rate / 1e9:9.1f}{rate / bandwidth:8.0%}")
    for name, (_, reads, writes) in KERNELS.items():
        rate = (reads + writes) * bytes_of_array / best[name]
        print(
            f"{name:24}{best[name] * 1e3:9.2f}{rate / 1e9:9.1f}{rate / bandwidth:8.0%}"
            f"{eager[name] * 1e3:11.2f}"
        )


if __name__ == "__main__":
    main()
