"""What the convolutions and matrix products of a step take by themselves: no step that does them is faster.

Each is done by the faster of MKL and oneDNN, which is found out by timing both for each form that comes up. What
the program calls one by one stays so: where torchjanus does the products of many calls as one, its step may lie below.
"""

import functools
import statistics
import time
from collections.abc import Callable

from torch.utils._python_dispatch import TorchDispatchMode

import torch

PRODUCTS = {
    "mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "mkldnn_convolution",
    "addmv", "mv", "linear",
}  # fmt: skip

Way = Callable[[], object]


class RecordProducts(TorchDispatchMode):
    """Notes every convolution and matrix product with its operands."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ in PRODUCTS:
            self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def without_onednn(call: Way) -> Way:
    def run():
        torch._C._set_mkldnn_enabled(False)
        try:
            return call()
        finally:
            torch._C._set_mkldnn_enabled(True)

    return run


def product_by_onednn(x: torch.Tensor, weight: torch.Tensor) -> Way:
    """x @ weight.t()"""
    return lambda: torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


def ways_of(func, args: tuple, kwargs: dict) -> list[Way]:
    """The call as eager does it, and with the other library where torch can be asked for that."""
    name = func.overloadpacket.__name__
    result: list[Way] = [lambda: func(*args, **kwargs)]
    if "convolution" in name and name != "mkldnn_convolution":
        result.append(without_onednn(result[0]))
    elif torch.backends.mkldnn.is_available() and args[0].dtype == torch.float32:
        if name == "mm":
            result.append(product_by_onednn(args[0], args[1].t()))
        elif name == "addmm":
            result.append(product_by_onednn(args[1], args[2].t()))
        elif name == "linear":
            result.append(product_by_onednn(args[0], args[1]))
    return result


def form_of(func, args: tuple, kwargs: dict) -> tuple:
    """Calls that are alike in it take as long."""

    def of(value):
        if isinstance(value, torch.Tensor):
            return value.dtype, tuple(value.shape), value.stride()
        return tuple(map(of, value)) if isinstance(value, list | tuple) else value

    return func, of(args), of(tuple(kwargs.items()))


def seconds_of(way: Way) -> float:
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def is_able(way: Way) -> bool:
    """Whether the library takes such operands."""
    try:
        way()
    except RuntimeError:
        return False
    return True


def fastest(ways: list[Way]) -> int:
    """The index of what is the fastest at its best, in turns; nothing but the first if that is not clear."""
    able = [index for index, way in enumerate(ways) if is_able(way)]
    least = [
        min(times)
        for times in zip(*[[seconds_of(ways[i]) for i in able] for _ in range(10)], strict=True)
    ]
    best = min(range(len(able)), key=least.__getitem__)
    return able[best] if least[best] < 0.95 * least[0] else 0


def fastest_ways(calls: list[tuple]) -> list[Way]:
    """For each call the way that is the fastest for its form."""
    chosen: dict[tuple, int] = {}
    result = []
    for call in calls:
        ways = ways_of(*call)
        form = form_of(*call)
        if form not in chosen:
            chosen[form] = fastest(ways)
        result.append(ways[chosen[form]])
    return result


def measure_floor(run_step: Callable[[], object], rounds: int, steps: int = 8) -> float:
    """Median seconds of a step's products; some steps, as not all are alike where lengths or trees differ."""
    with RecordProducts() as record:
        for _ in range(steps):
            run_step()
    with torch.no_grad():
        choices = [[ways_of(*call)[0] for call in record.calls], fastest_ways(record.calls)]
        # What is fastest alone need not be so behind others: the better of both.
        times = [
            [seconds_of(functools.partial(in_turn, ways)) for ways in choices]
            for _ in range(rounds + 3)
        ]
    return min(map(statistics.median, zip(*times[3:], strict=True))) / steps


def in_turn(ways: list[Way]) -> None:
    for way in ways:
        way()
