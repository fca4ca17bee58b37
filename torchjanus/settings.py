"""The switches, as one object; at start they come from the environment."""

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from . import _core


class Options:
    """`torchjanus.options`: switches that may be changed while the program runs.

    The environment sets their first values: TORCHJANUS_STRICT, TORCHJANUS_DUMP, TORCHJANUS_LOG,
    TORCHJANUS_DISABLE.

    Raises:
        AttributeError: At the assignment of an option that does not exist.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            names = [each for each, is_ in vars(type(self)).items() if isinstance(is_, property)]
            raise AttributeError(_there_is_no(name, names))
        super().__setattr__(name, value)

    @property
    def strict(self) -> bool:
        """Whether a call that can't run as a graph for good, or an internal error, raises RuntimeError
        instead of running imperatively. What holds no tensor work is none of that.

        Raises:
            TypeError: At the assignment of what is no bool.
        """
        return _core.strict()

    @strict.setter
    def strict(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"torchjanus.options: strict is True or False, not {value!r}")
        _core.set_strict(value)

    @property
    def dump_folder(self) -> str:
        """The folder where every stage that changes a graph is written; empty: nowhere."""
        return _core.dump_folder()

    @dump_folder.setter
    def dump_folder(self, value: str | os.PathLike[str]) -> None:
        _core.set_dump_folder(os.fspath(value))

    def log_level(self, channel: str) -> int:
        """How much a channel prints to stderr.

        Args:
            channel: `merge`, `pass`, `profile`, `speculate`, `time` or `verify`.

        Returns:
            0: nothing; 1, or 2 for more.

        Raises:
            ValueError: There is no such channel.
        """
        _check_channel(channel)
        return _core.log_level(channel)

    def set_log_level(self, channel: str, level: int = 1) -> None:
        """Switches a channel on or off.

        Args:
            channel: As in `log_level`.
            level: 1, 2 for more, 0 for off.

        Raises:
            ValueError: There is no such channel, or the level is no int, or negative.
        """
        _check_channel(channel)
        _check_natural("a level", level)
        _core.set_log_level(channel, level)

    # --- what is left out

    def switches(self) -> dict[str, str]:
        """The optimisations that can be switched off by name: kinds of speculation and execution, and every
        pass. Results stay the same; switches show what an optimisation brings.

        Returns:
            What each means, by its name.
        """
        return dict(_core.switches())

    @property
    def disabled(self) -> frozenset[str]:
        """The switches that are off for graphs made from now on.

        Raises:
            ValueError: At the assignment of a name that is not among `switches()`.
        """
        return frozenset(_core.disabled())

    @disabled.setter
    def disabled(self, names: Iterable[str]) -> None:
        names = {names} if isinstance(names, str) else set(names)
        if unknown := names - _core.switches().keys():
            raise ValueError(_there_is_no(min(unknown), _core.switches().keys()))
        _core.set_disabled(names)

    @contextmanager
    def without(self, *names: str) -> Iterator[None]:
        """Switches these off as well, for graphs that are made inside of the `with` statement.

        Args:
            names: Of `switches()`.

        Raises:
            ValueError: There is no such switch.
        """
        before = self.disabled
        self.disabled = before | set(names)
        try:
            yield
        finally:
            self.disabled = before

    # --- limits

    @property
    def unroll_limit(self) -> int:
        """Iterations of a loop that may be unrolled; a function with more is refused.

        Raises:
            ValueError: At the assignment of what is no int, or negative.
        """
        return _core.limits()["rounds"]

    @unroll_limit.setter
    def unroll_limit(self, rounds: int) -> None:
        _set_limit("rounds", rounds)

    @property
    def inline_limit(self) -> int:
        """Depth of nested calls that are inlined; a function with deeper ones is refused.

        Raises:
            ValueError: At the assignment of what is no int, or negative.
        """
        return _core.limits()["inlining"]

    @inline_limit.setter
    def inline_limit(self, depth: int) -> None:
        _set_limit("inlining", depth)

    @property
    def operation_limit(self) -> int:
        """Operators of a graph; a function with more is refused.

        Raises:
            ValueError: At the assignment of what is no int, or negative.
        """
        return _core.limits()["operations"]

    @operation_limit.setter
    def operation_limit(self, count: int) -> None:
        _set_limit("operations", count)

    @property
    def generation_limit(self) -> int:
        """Seconds of processor time for one graph, before its kernels are compiled. A function that takes
        longer is refused, or cut into parts, each of which has half as long.

        Raises:
            ValueError: At the assignment of what is no int, or negative.
        """
        return _core.limits()["seconds"]

    @generation_limit.setter
    def generation_limit(self, seconds: int) -> None:
        _set_limit("seconds", seconds)

    @property
    def memory_limit(self) -> int:
        """Bytes that tensors made by lazy execution may take. Contents of the oldest ones above it lie in
        temporary files (in TMPDIR) until they are used. 0: no limit.

        Raises:
            ValueError: At the assignment of what is no int, or negative.
        """
        return _core.limits()["memory"]

    @memory_limit.setter
    def memory_limit(self, count: int) -> None:
        _set_limit("memory", count)

    @property
    def trace_graph(self) -> bool:
        """Whether lazy execution merges segments that differ in their paths or sizes into a TraceGraph, whose
        one graph serves all of them. Off at the beginning: where it was measured, steps took 0.6 to 1.6 times as long.

        Raises:
            TypeError: At the assignment of what is no bool.
        """
        return bool(_core.limits()["trace_graph"])

    @trace_graph.setter
    def trace_graph(self, is_on: bool) -> None:
        if not isinstance(is_on, bool):
            raise TypeError(f"torchjanus.options: trace_graph is a bool, not {is_on!r}")
        _set_limit("trace_graph", int(is_on))


def _there_is_no(name: str, names: Collection[str]) -> str:
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean {nearest[0]}?)" if nearest else ""
    return f"torchjanus.options: there is no {name}{hint}; there are {', '.join(sorted(names))}"


def _check_channel(channel: str) -> None:
    if channel not in _core.log_channels():
        raise ValueError(_there_is_no(channel, _core.log_channels()))


def _check_natural(what: str, number: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(
            f"torchjanus.options: {what} is an int that is not negative, not {number!r}"
        )


def _set_limit(name: str, limit: int) -> None:
    _check_natural("a limit", limit)
    _core.set_limit(name, limit)


options = Options()
