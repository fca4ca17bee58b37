"""The differential harness: the same program from the same state, eagerly and converted, must agree
in everything that can be observed.

    @differential()                              # must run as a graph
    def test_momentum():
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        batches = [(torch.randn(5, 4), torch.randn(5, 3)) for _ in range(6)]
        return Program(step, batches, watch=[model, optimizer])

The decorated function builds the program anew for each run (after the same seeding), so both start
from the same state. `calls` holds argument tuples, `Call` objects with keywords, or functions
without parameters, which are run between calls to change something: the failing assumptions.

Compared after every call: the result or the exception (type, message, lines of the user's code),
printed text, the arguments, the watched objects, the random state. A lazy run is compared with what it
gives when it is looked at, in one of several ways (`lazy_looks.py`). Tensors are compared in dtype,
shape, strides, values, requires_grad, name of the grad_fn, and in who shares memory with whom. Versions
are compared for what existed before the call, by how far it moved them; a fresh result's or
gradient's only tells how often autograd's engine added to it.
"""

import contextlib
import functools
import io
import math
import os
import random
import re
import resource
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import numpy
from apart import in_a_thread
from lazy_looks import LOOKS, WITHOUT_RUNNER

import torch
import torchjanus
from torch import nn
from torchjanus import _core

torchjanus.options.disabled |= {"background"}  # a call is a graph's as soon as there is one

# Every differential program may run in another mode than converted: TORCHJANUS_TEST_MODE=lazy.
MODE = os.environ.get("TORCHJANUS_TEST_MODE", "converted")
PROFILED = 3  # calls before there is a graph


@dataclass
class Call:
    """One call with keyword arguments."""

    positional: tuple
    keywords: dict[str, Any] = field(default_factory=dict)


@dataclass
class Program:
    """A step, the calls to make of it, and the objects whose state counts.

    `convert` says how the step is converted; by default as `torchjanus.function(step)`. It returns
    the callable to use and the object whose `stats` tell what ran. `looks`: how a lazy run is looked at (LOOKS).
    """

    step: Callable
    calls: Sequence[Any]
    watch: Sequence[Any] = ()
    convert: Callable | None = None
    looks: str = LOOKS[0]


@dataclass
class Expectation:
    """How the converted run must have gone."""

    reasons: Sequence[str]
    hits: int | None
    graphs: int | None
    aborts: int | None


def differential(
    *,
    reasons: Sequence[str] = (),
    hits: int | None = None,
    graphs: int | None = None,
    aborts: int | None = None,
    tolerance: float = 1e-10,
    dtype: torch.dtype = torch.float64,
) -> Callable[[Callable[..., Program]], Callable[..., None]]:
    """Makes a test of a function that builds a Program.

    `reasons`: codes that must be reported; empty: graphs must have run. `hits`: at least so many calls
    ran as graphs; all but those that are profiled, if nothing is said. `graphs`: at most so many graphs
    were generated. `aborts`: at least so many runs were given up.
    """
    expectation = Expectation(reasons, hits, graphs, aborts)

    def decorate(build: Callable[..., Program]) -> Callable[..., None]:
        @functools.wraps(build)
        def test(**parameters: Any) -> None:
            with default_dtype(dtype):
                expected = observe(seeded(build, parameters), converted=False)
                actual = in_other_mode(build, parameters)
                for index, (one, other) in enumerate(
                    zip(expected.steps, actual.steps, strict=True)
                ):
                    compare(one, other, f"after call {index}", tolerance)
                if MODE == "converted":
                    check_expectation(actual.stats, expectation)

        return test

    return decorate


def in_other_mode(build: Callable[..., Program], parameters: Mapping[str, Any]) -> "Observed":
    is_lazy = MODE == "lazy"
    return observe(seeded(build, parameters), converted=not is_lazy, lazily=is_lazy)


def resident_mib() -> float:
    """What of this process is in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def rise_mib(work: Callable[[], Any]) -> float:
    """How far what is in memory rises at most while `work` runs."""
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_mib()
    work()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024 - before
    raise RuntimeError("the system does not say what the most resident memory was")


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterable[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def seeded(build: Callable[..., Program], parameters: Mapping[str, Any]) -> Program:
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)
    return build(**parameters)


@dataclass
class Observed:
    steps: list[dict[str, Any]]
    stats: dict[str, Any] | None = None


def observe(program: Program, *, converted: bool = False, lazily: bool = False) -> Observed:
    """Runs all calls and records, after each, everything that can be seen; `lazily`: in a thread of its
    own, whose lazy execution knows nothing of earlier programs."""
    if lazily:
        return in_a_thread(lambda: observe_lazily(program, converted))
    step, watched = converted_step(program) if converted else (program.step, None)
    steps = observed_calls(program, step)
    return Observed(steps, None if watched is None else torchjanus.stats(watched))


def observe_lazily(program: Program, converted: bool) -> Observed:
    step, _ = converted_step(program) if converted else (program.step, None)

    def apart(*positional: Any, **keywords: Any) -> Any:
        with torchjanus.lazy():
            return step(*positional, **keywords)

    switches = ("graph_runner",) if program.looks in WITHOUT_RUNNER else ()
    with torchjanus.options.without(*switches):
        if program.looks == "apart":
            steps = observed_calls(program, apart)
        else:
            with torchjanus.lazy():
                steps = observed_calls(program, step, lambda outcome: look(program.looks, outcome))
    return Observed(steps, _core.lazy_counts())


def converted_step(program: Program) -> tuple[Callable, Any]:
    convert = program.convert or (lambda f: (torchjanus.function(f),) * 2)
    return convert(program.step)


def look(looks: str, outcome: dict[str, Any]) -> None:
    """Looks at what was recorded of a call."""
    if looks == "all":
        torchjanus.synchronize()
    elif looks in ("ahead", "result", "each"):
        for each in views_in(outcome if looks == "each" else outcome["result"]):
            torch.equal(each.values, each.values)


def views_in(value: Any) -> Iterator["TensorView"]:
    if isinstance(value, TensorView):
        yield value
        yield from views_in(value.grad)
    elif isinstance(value, dict):
        yield from views_in(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from views_in(each)


def observed_calls(
    program: Program, step: Callable, look: Callable[[dict[str, Any]], None] = lambda outcome: None
) -> list[dict[str, Any]]:
    """Makes all calls; what can be seen after each of them."""
    observed = []
    for call in program.calls:
        if callable(call):
            call()
            continue
        positional, keywords = (
            (call.positional, call.keywords) if isinstance(call, Call) else (call, {})
        )
        before: dict[Any, Any] = {"versions": {}}
        snapshot([positional, keywords, list(program.watch)], before)
        outcome = run(step, positional, keywords)
        memo: dict[Any, Any] = {"fresh": True, "versions_before": before["versions"]}
        result = snapshot(outcome["result"], memo)
        memo["fresh"] = False
        outcome.update(
            result=result,
            arguments=snapshot([positional, keywords], memo),
            watched=snapshot(list(program.watch), memo),
            torch_random=torch.get_rng_state().clone(),
            python_random=hash(random.getstate()),
        )
        look(outcome)
        observed.append(outcome)
    return observed


def run(step: Callable, positional: tuple, keywords: dict[str, Any]) -> dict[str, Any]:
    printed = io.StringIO()
    result, error = None, None
    with contextlib.redirect_stdout(printed):
        try:
            result = step(*positional, **keywords)
        except Exception as raised:
            lines = [
                (frame.name, frame.lineno)
                for frame in traceback.extract_tb(raised.__traceback__)
                if frame.filename != __file__ and "torch/" not in frame.filename
            ]
            error = (type(raised), str(raised), lines)
    return {"error": error, "result": result, "printed": rounded(printed.getvalue())}


def rounded(text: str) -> str:
    """The text without the last digits of its numbers: kernels add sums up in another order."""
    return re.sub(r"-?\d+\.\d{5,}(e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


@dataclass
class TensorView:
    """What can be seen of one tensor."""

    kind: type
    values: torch.Tensor
    strides: tuple[int, ...]
    requires_grad: bool
    is_leaf: bool
    grad_fn: str  # as it is printed; empty: none
    version: int  # how far the call moved it; -1 for a tensor that the call made
    identity: int  # number in order of first appearance: aliases have equal ones
    storage: int
    grad: Any


PLAIN = (int, float, str, bytes, bool, type(None), complex)


def snapshot(value: Any, memo: dict[Any, Any]) -> Any:
    """A comparable copy. Objects seen before become their number, so sharing is compared too."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, torch.Tensor):
        return snapshot_tensor(value, memo)
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, (torch.dtype, torch.device, torch.Size, type, slice)):
        return value
    known = memo.setdefault("objects", {})
    if id(value) in known:
        return ("seen", known[id(value)][0])
    known[id(value)] = (len(known), value)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        return [type(value).__name__, *(snapshot(item, memo) for item in items)]
    if isinstance(value, Mapping):
        return {
            "type": type(value).__name__,
            "items": [(snapshot_key(k, memo), snapshot(v, memo)) for k, v in value.items()],
        }
    if isinstance(value, torch.optim.Optimizer):
        state = {
            index: value.state[p]
            for index, p in enumerate(parameters_of(value))
            if p in value.state
        }
        return {"state": snapshot(state, memo), "groups": snapshot(value.param_groups, memo)}
    if isinstance(value, nn.Module):
        own = {k: v for k, v in vars(value).items() if k != "_compiled_call_impl"}
        return {"module": type(value).__name__, "values": snapshot(own, memo)}
    if is_dataclass(value) or hasattr(value, "__dict__") or slots_of(value):
        own = {**getattr(value, "__dict__", {}), **slots_of(value)}
        return {"object": type(value).__name__, "values": snapshot(own, memo)}
    return type(value).__name__


def slots_of(value: Any) -> dict[str, Any]:
    """What the slots hold that are set."""
    named = (vars(each).get("__slots__", ()) for each in type(value).__mro__)
    names = [name for each in named for name in ([each] if isinstance(each, str) else each)]
    return {
        name: getattr(value, name)
        for name in names
        if name not in ("__dict__", "__weakref__") and hasattr(value, name)
    }


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def snapshot_key(key: Any, memo: dict[Any, Any]) -> Any:
    is_tensor = type(key) not in PLAIN and isinstance(key, torch.Tensor)
    return snapshot(key, memo) if is_tensor else repr(key)


def snapshot_tensor(tensor: torch.Tensor, memo: dict[Any, Any]) -> Any:
    tensors = memo.setdefault("tensors", {})
    if id(tensor) in tensors:
        return ("seen tensor", tensors[id(tensor)][0])
    tensors[id(tensor)] = (len(tensors), tensor)
    storages = memo.setdefault("storages", {})
    if tensor.layout != torch.strided:
        return [str(tensor.layout), snapshot(tensor.detach().to_dense(), memo)]
    storage = storages.setdefault(tensor.untyped_storage()._cdata, len(storages))
    if "versions" in memo:  # nothing else is asked for
        memo["versions"][id(tensor)] = tensor._version
        return snapshot(tensor.grad, memo) if tensor.is_leaf else None
    earlier = memo.get("versions_before", {}).get(id(tensor))
    fresh = memo.get("fresh", False) or earlier is None
    grad = None
    if tensor.is_leaf:
        grad = snapshot(tensor.grad, {**memo, "fresh": True})
    return TensorView(
        kind=type(tensor),
        values=tensor.detach().clone(),
        strides=tensor.stride(),
        requires_grad=tensor.requires_grad,
        is_leaf=tensor.is_leaf,
        grad_fn=tensor.grad_fn.name() if tensor.grad_fn is not None else "",
        version=-1 if fresh else tensor._version - earlier,
        identity=tensors[id(tensor)][0],
        storage=storage,
        grad=grad,
    )


def compare(expected: Any, actual: Any, where: str, tolerance: float) -> None:
    """Raises AssertionError that names the place of the first difference."""
    assert type(expected) is type(actual), f"{where}: {expected!r} against {actual!r}"
    if isinstance(expected, TensorView):
        compare_tensors(expected, actual, where, tolerance)
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(expected, actual), f"{where}: random states differ"
    elif isinstance(expected, float):
        close = expected == actual or math.isclose(
            expected, actual, rel_tol=tolerance, abs_tol=tolerance * 1e-3
        )
        assert close or (math.isnan(expected) and math.isnan(actual)), (
            f"{where}: {expected!r} against {actual!r}"
        )
    elif isinstance(expected, dict):
        assert list(expected) == list(actual), (
            f"{where}: keys {list(expected)} against {list(actual)}"
        )
        for key in expected:
            compare(expected[key], actual[key], f"{where}.{key}", tolerance)
    elif isinstance(expected, (list, tuple)):
        for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
            compare(one, other, f"{where}[{index}]", tolerance)
        assert len(expected) == len(actual), f"{where}: {expected!r} against {actual!r}"
    else:
        assert expected == actual, f"{where}: {expected!r} against {actual!r}"


# What a tensor is called that different operators made on the two sides of a branch, and what eager
# calls a view that was written; the graph's names for these are its own.
TWO_SIDES = "Backward0"
WRITTEN_VIEW = "AsStridedBackward0"
COMPARED = (
    "kind", "strides", "requires_grad", "is_leaf", "grad_fn", "version", "identity", "storage"
)  # fmt: skip


def compare_tensors(expected: TensorView, actual: TensorView, where: str, tolerance: float) -> None:
    for name in COMPARED:
        one, other = getattr(expected, name), getattr(actual, name)
        if name == "grad_fn" and one and other and (other == TWO_SIDES or one == WRITTEN_VIEW):
            continue
        assert one == other, f"{where}: {name} is {one} against {other}"
    compare_values(expected.values, actual.values, where, tolerance)
    compare(expected.grad, actual.grad, f"{where}.grad", tolerance)


def compare_values(
    expected: torch.Tensor, actual: torch.Tensor, where: str, tolerance: float
) -> None:
    with contextlib.suppress(NotImplementedError):  # for a dtype
        if expected.dtype == actual.dtype and torch.equal(expected, actual):
            return  # as most are, and this is faster
    try:
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from None


def check_expectation(stats: dict[str, Any], expectation: Expectation) -> None:
    codes = [reason["code"] for reason in stats["reasons"]]
    if expectation.reasons:
        missing = set(expectation.reasons) - set(codes)
        assert not missing, f"expected the reasons {missing}, but there are {stats['reasons']}"
    elif expectation.hits is None:
        least = max(1, stats["calls"] - PROFILED)
        assert stats["hits"] >= least, f"{stats['hits']} hits, not {least}: {stats}"
    else:
        assert stats["hits"] > 0, f"no graph ran: {stats['state']}, {stats['reasons']}"
    if "internal_error" not in expectation.reasons:
        assert "internal_error" not in codes, stats["reasons"]
    if expectation.hits is not None:
        assert stats["hits"] >= expectation.hits, f"{stats['hits']} hits: {stats}"
    if expectation.graphs is not None:
        assert stats["generated"] <= expectation.graphs, f"{stats['generated']} graphs: {stats}"
    if expectation.aborts is not None:
        assert stats["aborts"] >= expectation.aborts, f"{stats['aborts']} aborts: {stats}"
