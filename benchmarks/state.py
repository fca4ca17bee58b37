"""Whether a Python number that changes from call to call stays what it is in eager.

    python benchmarks/state.py [--calls N] [--output FOLDER]

In each program a step multiplies a float by 0.9 and a tensor by the float; only where the float is kept
differs. For torchjanus and for torch.compile: the first call whose result is not eager's, if there is one,
and the number of graphs. Writes state.json.
"""

import argparse
from collections.abc import Callable

import record
import tables
import torch._dynamo.utils

import torch
import torchjanus
from torch import nn

torchjanus.options.disabled |= {"background"}  # the graph's results are what is looked at
shared = 1.0


class Plain:
    pass


class Slotted:
    __slots__ = ("value",)


class WithProperty:
    @property
    def value(self) -> float:
        return self._value

    @value.setter
    def value(self, number: float) -> None:
        self._value = number


class Setting:
    def __setattr__(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)


def attribute_of(kind: type) -> Callable:
    owner = kind()
    owner.value = 1.0

    def step(x):
        owner.value = owner.value * 0.9
        return x * owner.value

    return step


def item_of(container, key) -> Callable:
    def step(x):
        container[key] = container[key] * 0.9
        return x * container[key]

    return step


def global_variable() -> Callable:
    global shared
    shared = 1.0

    def step(x):
        global shared
        shared = shared * 0.9
        return x * shared

    return step


def nonlocal_variable() -> Callable:
    value = 1.0

    def step(x):
        nonlocal value
        value = value * 0.9
        return x * value

    return step


PROGRAMS: dict[str, Callable[[], Callable]] = {
    "attribute": lambda: attribute_of(Plain),
    "slot": lambda: attribute_of(Slotted),
    "property": lambda: attribute_of(WithProperty),
    "attribute set by `__setattr__`": lambda: attribute_of(Setting),
    "attribute of an `nn.Module`": lambda: attribute_of(nn.Module),
    "item of a dict": lambda: item_of({"value": 1.0}, "value"),
    "item of a list": lambda: item_of([1.0], 0),
    "global": global_variable,
    "nonlocal variable": nonlocal_variable,
}


def results(step: Callable, calls: int) -> list[float]:
    x = torch.ones(3)
    return [step(x)[0].item() for _ in range(calls)]


def verdict(found: list[float], expected: list[float], graphs: int) -> str:
    wrong = [i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]]
    of_graphs = f"{graphs} graph{'s' if graphs != 1 else ''}"
    return f"wrong from call {wrong[0] + 1} on, {of_graphs}" if wrong else f"as eager, {of_graphs}"


def measure(name: str, build: Callable[[], Callable], calls: int) -> dict[str, str]:
    expected = results(build(), calls)
    ours = torchjanus.function(build())
    found = verdict(results(ours, calls), expected, len(ours.snapshot()["cache"]))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    theirs = results(torch.compile(build()), calls)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return {
        "title": name,
        "torchjanus": found,
        "torch.compile": verdict(theirs, expected, graphs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20)
    record.add_output(parser)
    options = parser.parse_args()
    rows = [measure(name, build, options.calls) for name, build in PROGRAMS.items()]
    record.write(options.output, "state", record.about(options.calls), rows)
    print(tables.state(rows))


if __name__ == "__main__":
    main()
