"""`function` and what can be asked of its results."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

import torch

from . import _core, text_report
from ._core import Function, Region

T = TypeVar("T")


@overload
def function(f: T, *, profile_runs: int = 3) -> T: ...
@overload
def function(f: None = None, *, profile_runs: int = 3) -> Callable[[T], T]: ...
def function(f: Any = None, *, profile_runs: int = 3) -> Any:
    """Converts a function, method or module: its calls run as graphs where that changes nothing.

    The first `profile_runs` calls run imperatively and are watched. From then on a graph that rests on what was
    seen is tried, and the call runs imperatively whenever it does not fit. May be used as a decorator, with or
    without arguments.

    Args:
        f: A function, a method, a staticmethod or classmethod object, or a `torch.nn.Module`. Arguments and results
            of its calls may be anything; tensors of any shape and dtype on the CPU.
        profile_runs: How many calls are watched first, at least 0.

    Returns:
        A `Function` that takes the place of `f`. A module is converted in place and returned: its class, its
        parameters and the keys of its state_dict stay as they are, and copies and pickles of it are plain modules.
        A `Function` is returned as it is. Without `f`, a decorator.

    Raises:
        TypeError: `f` is a class, or can't be called.
        ValueError: `profile_runs` is negative.

    Source:
        The way of converting, by profiles and assumptions that are checked at run time: Jeong et al., "JANUS: Fast and
        Flexible Deep Learning via Symbolic Graph Execution of Imperative Programs", NSDI 2019.
    """
    if f is None:
        return lambda f: function(f, profile_runs=profile_runs)
    if isinstance(f, torch.nn.Module):
        f._compiled_call_impl = Function(f._call_impl, profile_runs=profile_runs)
        return f
    if isinstance(f, staticmethod | classmethod):
        return type(f)(function(f.__func__, profile_runs=profile_runs))
    if isinstance(f, Function):
        return f
    if isinstance(f, type) or not callable(f):
        raise TypeError(f"torchjanus.function: expected a function, method or module, got {f!r}")
    return Function(f, profile_runs=profile_runs)


def converted(f: Any) -> Function | Region:
    """The Function or Region behind `f`: itself, a method's, a module's. TypeError if none."""
    if isinstance(f, Function | Region):
        return f
    if isinstance(f, torch.nn.Module) and isinstance(f._compiled_call_impl, Function):
        return f._compiled_call_impl
    inner = getattr(f, "__func__", None)  # a bound method, a staticmethod
    if isinstance(inner, Function):
        return inner
    raise TypeError(f"not converted by torchjanus: {f!r}")


def explain(f: Any = None) -> str:
    """What became a graph, what was assumed, and what stayed imperative and why, as text.

    Args:
        f: What `function` gave: a `Function`, a converted module, or a method that is one. None: everything in the
            process that was converted, and a summary of ten lines before it.

    Returns:
        A report of several lines: counters; the source with a mark at each line (`graph`, `assumed`, `folded`,
        `after run`, `co-executed`, `imperative`, `cut`, `not taken`, `no operator`); reasons; and for each graph its
        assumptions. Python's prompt shows it line by line, a notebook the marked source.

    Raises:
        TypeError: `f` was not converted.
    """
    return text_report.explain_all() if f is None else text_report.explain(converted(f))


def report(f: Any, file: str | os.PathLike[str]) -> None:
    """Writes what `explain` tells, and more, as a page: one HTML file that needs no network and no server.

    Lines are marked as in `explain`. A click, or Enter, on a line shows what was assumed there, shapes and dtypes,
    reasons with what to do about them, and the kernels that it became. For each function there are its calls over time
    and its graphs: operators, assumptions, fused groups with the bytes that they save, and the plan of the memory.

    Args:
        f: What `function` gave: a `Function`, a converted module, or a method that is one. None: everything in the
            process that was converted.
        file: Where to write it; what is there is replaced.

    Returns:
        Nothing.

    Raises:
        TypeError: `f` was not converted.
        OSError: The file can't be written.
    """
    from . import page  # late: who asks for no page needs none of it

    if f is None:
        details = _core.all_details()
        page.write(Path(file), details, "torchjanus", text_report.summary_of(details))
    else:
        details = [converted(f)._details()]
        page.write(Path(file), details, details[0]["name"], text_report.summary_of(details))


def graph(f: Any) -> str:
    """The graphs in the cache of a converted function, in their textual form (docs/ir.md).

    Args:
        f: What `function` gave.

    Returns:
        The optimised graphs, one behind the other; empty before the first one.

    Raises:
        TypeError: `f` was not converted.
    """
    return text_report.graph(converted(f))


def stats(f: Any = None) -> dict[str, Any]:
    """Counters, durations, state and reasons of `f`; without `f` of the whole process.

    Args:
        f: What `function` gave, or None.

    Returns:
        A dict that JSON can hold. Of `f`:

        - `name`, `file`, `line`: what it is of;
        - `state`: `profiling`, `compiling`, `graph`, `cut` or `imperative`;
        - `calls`; `hits`, which ran as a graph; `misses`, which no graph fitted; `aborts`, which left one;
          `bypassed`, which were left alone because something watched them (a debugger, a mode of torch's);
          `profiled`, of which `profile_runs` come before the first graph; `passed`, which came after graphs were given
          up for good and are not in `calls`;
        - `graphs` in the cache, `generated` in all, `retired`, and `relaxations` of assumptions;
        - `backward_parts`: programs that the backward run of what a graph gives is divided into, at most; 0: nothing
          that it gives has a gradient;
        - `exchanged_buckets`: buckets of gradients that processes share within a graph, at most;
        - `communication`: of the graph with collectives that ran most often `collectives` of a run,
          `overlapped_milliseconds` of what is computed while one is on its way, and `exposed_milliseconds` in which
          the run waits for them, by runs that were timed; None: there is none;
        - `compiling`: whether kernels are being compiled;
        - `milliseconds`: `profiling`, `generating`, `optimising`, `compiling`, and `running` of the graphs;
        - `in_python`: `runs` in Python that were timed, and their `milliseconds`;
        - `conversion`: under `torchjanus run`, milliseconds of processor time: `spent` on converting it, `saved` by its
          graphs, and `passed` since its first call; None: it is not on account;
        - `speed`: None, or the milliseconds of a run `as_graph` and `in_python`; whether these took turns (`by_turns`;
          else the second is of a profiled run) and whether that is `decided`;
        - `holds_graphs`: whether it stays imperative because graphs within it take most of its time;
        - `reasons`: dicts with `code`, `sentence`, `file`, `line` and `count`;
        - `parts`: the same of the parts of a function that is cut.

        Without `f`: `functions`, a list of these, and `seconds_until_first_graph`.

    Raises:
        TypeError: `f` was not converted.
    """
    return text_report.stats_all() if f is None else converted(f).stats()
