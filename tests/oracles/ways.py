"""The ways to run a step that is compared with eager: converted, and lazily."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import torchjanus
from torchjanus import _core


class Converted:
    """As a function that is converted."""

    calls = 3  # one profiled, one that makes the graph, one that finds it
    dtype = torch.float32  # of modules
    # Of a call, with what makes its arguments and looks at its results.
    scope = contextlib.nullcontext

    def __init__(self, step: Callable[..., Any]) -> None:
        self.function = torchjanus.function(step, profile_runs=1)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def stays_imperative(self, calls: int) -> bool:
        """Whether after so many calls no graph will come."""
        return calls > 1 and not self.ran_in_graph()

    def ran_in_graph(self) -> bool:
        return self.function.stats()["hits"] > 0

    def reasons(self) -> list[dict[str, Any]]:
        return self.function.stats()["reasons"]


class Lazily:
    """With its operators noted; all of a call run at its scope's end."""

    calls = 9  # some at once as what they are called with is new, three times one by one, then as a graph
    dtype = torch.float64  # in float32, gradients of attention lose more than the tolerance
    scope = torchjanus.lazy

    def __init__(self, step: Callable[..., Any]) -> None:
        self.step = step
        self.before = _core.lazy_counts()
        self.noted = 0  # in the last call

    def __call__(self, *arguments: Any) -> Any:
        before = _core.lazy_counts()["noted"]
        try:
            return self.step(*arguments)
        finally:
            self.noted = _core.lazy_counts()["noted"] - before

    def stays_imperative(self, calls: int) -> bool:
        return calls > 1 and not self.noted

    def ran_in_graph(self) -> bool:
        now = _core.lazy_counts()
        return self.noted > 0 and now["run_in_graphs"] > self.before["run_in_graphs"]

    def reasons(self) -> list[dict[str, Any]]:
        if self.noted == 0:
            return [{"code": "at_once", "sentence": "no operator is noted"}]
        return [{"code": "one_by_one", "sentence": "no graph of the segment"}]


WAYS = {"converted": Converted, "lazily": Lazily}
