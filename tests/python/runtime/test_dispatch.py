"""Policy: when a function is profiled, when a graph is made, entered, left and made again; and that
a converted function is in every other way the function it was.

Graphs are described by hand here, so that nothing depends on the generator.
"""

import copy
import gc
import inspect
import pickle
import sys
import threading
import weakref

import pytest

import torch
import torchjanus
from torch import nn
from torchjanus import _core

X = ("argument", 0)
Y = ("argument", 1)


def of(kind, source=X, **fields):
    return {"kind": kind, "source": source, **fields}


def tensor(source, dtype, *dims, **fields):
    return of("tensor", source, dtype=dtype, dims=list(dims), **fields)


def doubled(dims, dtype="f32"):
    """What a generator might make of `return x + x` for x of that shape."""
    kind = f"{dtype}[{','.join(map(str, dims))}]"
    return {
        "graph": f"""
            graph @doubled(%x: {kind}) {{
              %one = constant {{value=1}} : i64
              %y = add %x, %x, %one : {kind}
              return %y
            }}
        """,
        "inputs": [X],
        "assumptions": [tensor(X, dtype, *dims)],
        "result": ("result", 0),
    }


NAMES = {torch.float32: "f32", torch.float64: "f64"}


class Generator:
    """Gives what `make` makes of the arguments, and remembers how it was asked."""

    def __init__(self, make):
        self.make, self.asked = make, []

    def __call__(self, function, arguments, known):
        self.asked.append(known)
        return self.make(arguments, known)


@pytest.fixture
def generator():
    def install(make):
        made = Generator(make)
        _core.testing.set_generator(made)
        return made

    yield install
    _core.testing.set_generator(None)


def double(x):
    return x + x


def specialised(arguments, known):
    (x,) = arguments
    return doubled(x.shape, NAMES[x.dtype])


def relaxing(arguments, known):
    """Names the dimensions that varied, as the real generator does."""
    (x,) = arguments
    fact = known["paths"].get("x", "")
    dims = ["B" if "?" in fact and i == 0 else size for i, size in enumerate(x.shape)]
    return doubled(dims, NAMES[x.dtype])


def codes(f):
    return [reason["code"] for reason in f.stats()["reasons"]]


# --- the life of a function -----------------------------------------------------------------------


def test_profiles_then_runs_the_graph(generator):
    made = generator(specialised)
    f = torchjanus.function(double)
    x = torch.randn(4, 3)
    for calls in range(1, 7):
        assert torch.equal(f(x), x + x)
        stats = f.stats()
        assert stats["calls"] == calls
        assert stats["hits"] == max(0, calls - 3)
        assert stats["state"] == ("graph" if calls > 3 else "profiling")
    assert len(made.asked) == 1
    assert stats["graphs"] == stats["generated"] == 1
    assert stats["milliseconds"]["profiling"] > 0
    assert "add" in f.graph() or "fused" in f.graph()
    assert "argument 0: f32[4,3]" in f.explain()


def test_number_of_profile_runs(generator):
    generator(specialised)
    f = torchjanus.function(profile_runs=1)(double)
    f(torch.zeros(2))
    assert f.stats()["hits"] == 0
    f(torch.zeros(2))
    assert f.stats()["hits"] == 1


def test_another_shape_costs_one_imperative_run(generator):
    made = generator(relaxing)
    f = torchjanus.function(double)
    for size in (4, 4, 4, 4, 3, 5, 6, 4, 7, 3):
        x = torch.randn(size, 8)
        assert torch.equal(f(x), x + x)
    stats = f.stats()
    assert len(made.asked) == 2
    assert stats["misses"] == 2  # size 3, which relaxes, and size 5, which generates
    assert stats["hits"] == 6
    assert stats["relaxations"] == 1
    assert "f32[3,8]" in next(r["sentence"] for r in stats["reasons"])


def test_shapes_that_vary_while_profiling_are_known_at_once(generator):
    generator(relaxing)
    f = torchjanus.function(double)
    for size in (4, 3, 5, 6, 7, 8):
        f(torch.randn(size, 8))
    assert f.stats()["misses"] == 0
    assert f.stats()["hits"] == 3


def test_another_dtype_has_a_graph_of_its_own(generator):
    generator(specialised)
    f = torchjanus.function(double)
    for dtype in (torch.float32,) * 5 + (torch.float64, torch.float64, torch.float32) * 3:
        x = torch.randn(4, dtype=dtype)
        assert f(x).dtype == dtype
    stats = f.stats()
    assert stats["graphs"] == 2
    assert stats["misses"] == 2
    assert stats["hits"] == 14 - 3 - 1


def test_setting_of_torch_is_an_assumption(generator):
    generator(specialised)
    f = torchjanus.function(double)
    for _ in range(5):
        f(torch.zeros(2))
    with torch.no_grad():
        f(torch.zeros(2))
    assert f.stats()["misses"] == 1
    f(torch.zeros(2))
    assert f.stats()["hits"] == 3


def test_number_of_graphs_is_bounded(generator):
    def by_flag(arguments, known):
        x, flag = arguments
        made = doubled(x.shape)
        made["assumptions"].append(of("equals", Y, object=flag))
        return made

    made = generator(by_flag)
    f = torchjanus.function(lambda x, flag: x + x)
    for i in range(300):
        f(torch.zeros(2), f"flag {i // 3}")
    assert len(made.asked) <= 32
    assert f.stats()["graphs"] <= 16


# --- refusals -------------------------------------------------------------------------------------


def test_refusal_is_reported_and_tried_again_later(generator):
    made = generator(lambda arguments, known: ("dynamic_value", "x.kind"))
    f = torchjanus.function(double)
    for _ in range(40):
        assert f(torch.ones(2)).tolist() == [2, 2]
    assert f.stats()["state"] == "imperative"
    assert codes(f) == ["dynamic_value"]
    assert f.stats()["reasons"][0]["sentence"].startswith("x.kind varies")
    assert len(made.asked) == 3  # the fourth call, the one after it, ten later
    assert "stays imperative" in f.explain()


def test_graph_is_kept_when_a_later_generation_is_refused(generator):
    def only_matrices(arguments, known):
        (x,) = arguments
        return doubled(x.shape) if x.dim() == 2 else ("limit", "no vectors")

    made = generator(only_matrices)
    f = torchjanus.function(double)
    for _ in range(30):
        f(torch.zeros(2, 2))
        f(torch.zeros(2))
    stats = f.stats()
    assert stats["state"] == "graph"
    assert stats["hits"] == 30 - 2
    assert len(made.asked) <= 5
    assert "limit" in codes(f)


def test_no_source():
    namespace = {}
    exec("def f(x):\n    return x + x", namespace)
    f = torchjanus.function(namespace["f"])
    assert f(2) == 4
    assert f.stats()["state"] == "imperative"
    assert codes(f) == ["no_source"]


def test_builtin_and_generator_function():
    f = torchjanus.function(len)
    assert f([1]) == 1
    assert codes(f) == ["no_source"]

    @torchjanus.function
    def counting(n):
        yield from range(n)

    assert list(counting(3)) == [0, 1, 2]
    assert codes(counting) == ["generator"]


def test_no_tensor_work(generator):
    generator(
        lambda arguments, known: {
            "graph": "graph @g(%n: i64) {\n  return %n\n}",
            "inputs": [X],
            "assumptions": [of("integer")],
            "result": ("result", 0),
        }
    )
    f = torchjanus.function(lambda n: n)
    assert [f(i) for i in range(6)] == list(range(6))
    assert codes(f) == ["no_tensor_work"]


# --- internal errors ------------------------------------------------------------------------------


def test_internal_error_is_reported_once_and_survived(generator, capfd):
    def broken(arguments, known):
        raise ZeroDivisionError("in the generator")

    generator(broken)
    f = torchjanus.function(double)
    for _ in range(6):
        assert f(torch.ones(1)).item() == 2
    text = capfd.readouterr().err
    assert text.count("internal error") == 1
    assert "in the generator" in text and "TORCHJANUS_STRICT" in text
    assert codes(f) == ["internal_error"]


def test_internal_error_is_raised_if_strict(generator, monkeypatch):
    generator(lambda arguments, known: doubled((99,)))  # does not hold for the call at hand
    monkeypatch.setattr(torchjanus.options, "strict", True)
    try:
        f = torchjanus.function(double)
        for _ in range(3):
            f(torch.ones(1))
        with pytest.raises(RuntimeError, match="internal error"):
            f(torch.ones(1))
        assert f(torch.ones(1)).item() == 2
    finally:
        torchjanus.options.strict = False


def test_keyboard_interrupt_goes_through(generator):
    def interrupted(arguments, known):
        raise KeyboardInterrupt

    generator(interrupted)
    f = torchjanus.function(double)
    for _ in range(3):
        f(torch.ones(1))
    with pytest.raises(KeyboardInterrupt):
        f(torch.ones(1))
    assert f.stats()["reasons"] == []


def test_exception_of_the_function_is_its_own(generator):
    generator(specialised)
    f = torchjanus.function(double)
    for _ in range(6):
        with pytest.raises(TypeError, match="unsupported operand"):
            f(object())


# --- leaving a graph ------------------------------------------------------------------------------


def branching(f):
    """A generator for `x + x if n > 0 else x * x` that follows one side."""

    def make(arguments, known):
        positive = dict(known["chosen"]).get(0, True)
        return {
            "graph": f"""
                graph @branching(%x: f32[2], %n: i64) {{
                  %zero = constant {{value=0}} : i64
                  %one = constant {{value=1}} : i64
                  %ok = {"scalar_gt" if positive else "scalar_le"} %n, %zero : bool
                  guard %ok {{id=0}}
                  %y = {"add %x, %x, %one" if positive else "mul %x, %x"} : f32[2]
                  return %y
                }}
            """,
            "inputs": [X, Y],
            "assumptions": [tensor(X, "f32", 2), of("integer", Y)],
            "tests": [(f.__code__, 0, positive)],
            "result": ("result", 0),
        }

    return make


def branch(x, n):
    return x + x if n > 0 else x * x


def test_one_graph_for_each_outcome(generator):
    made = generator(branching(branch))
    f = torchjanus.function(branch)
    x = torch.tensor([3.0, 5.0])
    for n in [1, 1, 1, 1, 1, -1, -1, -1, 1, -1, 1, 1]:
        assert torch.equal(f(x, n), branch(x, n))
    stats = f.stats()
    assert stats["aborts"] == 2  # the first -1 is profiled, the second generates
    assert stats["graphs"] == 2
    assert stats["hits"] == 12 - 3 - 1
    assert made.asked[1]["chosen"] == [(0, False)]
    assert "branch_changed" in codes(f)


def test_refused_outcome_leaves_the_other_graph_alone(generator):
    follow = branching(branch)

    def only_positive(arguments, known):
        return ("dynamic_control", "n > 0") if known["chosen"] else follow(arguments, known)

    made = generator(only_positive)
    f = torchjanus.function(branch)
    x = torch.tensor([3.0, 5.0])
    for i in range(200):
        assert torch.equal(f(x, 1 if i % 20 else -1), x + x if i % 20 else x * x)
    stats = f.stats()
    assert stats["state"] == "graph"
    assert len(made.asked) == 1 + 2 * 2  # twice, with n as a varying number and as this one
    assert stats["hits"] > 180


def test_unstable_outcome_disables_the_function(generator):
    follow = branching(branch)

    def only_positive(arguments, known):
        return ("dynamic_control", "n > 0") if known["chosen"] else follow(arguments, known)

    generator(only_positive)
    f = torchjanus.function(branch)
    x = torch.tensor([3.0, 5.0])
    for i in range(400):
        f(x, 1 if i < 10 or i % 3 == 0 else -1)
    assert f.stats()["state"] == "imperative"
    assert codes(f)[-1] == "unstable"


# --- what a graph does to the world ---------------------------------------------------------------


def test_effects_run_after_the_commit_in_order(generator):
    said = []

    def make(arguments, known):
        made = doubled((2,))
        made["result"] = ("place", 0, ("result", 0))
        made["effects"] = [
            ("call", said.append, [("constant", "first")]),
            ("call", said.append, [("shared", 0)]),
        ]
        return made

    generator(make)
    f = torchjanus.function(double, profile_runs=0)
    x = torch.ones(2)
    y = f(x)
    assert said[0] == "first" and said[1] is y


def test_exception_of_an_effect_is_raised(generator):
    def fail(text):
        raise OSError(text)

    def make(arguments, known):
        made = doubled((2,))
        made["effects"] = [("call", fail, [("constant", "disk full")])]
        return made

    generator(make)
    f = torchjanus.function(double, profile_runs=0)
    for _ in range(3):
        with pytest.raises(OSError, match="disk full"):
            f(torch.ones(2))
    assert f.stats()["hits"] == 0 and f.stats()["state"] == "graph"


def test_results_keep_their_form_and_their_sharing(generator):
    def make(arguments, known):
        made = doubled((2,))
        made["result"] = (
            "dict",
            [
                ("constant", "pair"),
                ("tuple", [("place", 3, ("result", 0)), ("shared", 3), ("source", X)]),
                ("constant", "list"),
                ("list", [("constant", None), ("constant", 3)]),
            ],
        )
        return made

    generator(make)
    f = torchjanus.function(double, profile_runs=0)
    x = torch.ones(2)
    result = f(x)
    assert list(result) == ["pair", "list"]
    assert result["pair"][0] is result["pair"][1]
    assert result["pair"][2] is x
    assert result["list"] == [None, 3]
    assert result["list"] is not f(x)["list"]


def test_state_is_written(generator):
    class Holder:
        count = 0

    holder, seen = Holder(), {"n": 0}

    def make(arguments, known):
        return {
            "graph": """
                graph @g(%x: f32[2]) {
                  %one = constant {value=1} : i64
                  %w = state {cell="w"} : f32[2]
                  %new = add %w, %x, %one : f32[2]
                  %n = state {cell="n"} : i64
                  %m = scalar_add %n, %one : i64
                  commit %new {cell="w"}
                  rebind %m {cell="n"}
                  rebind %m {cell="k"}
                  return %m
                }
            """,
            "inputs": [X],
            "assumptions": [
                tensor(X, "f32", 2),
                tensor(("instance_value", Y, "w"), "f32", 2),
                of("integer", ("instance_value", Y, "n")),
            ],
            "cells": [
                {"name": "w", "kind": "tensor", "source": ("instance_value", Y, "w")},
                {"name": "n", "kind": "attribute", "source": Y, "key": "n"},
                {"name": "k", "kind": "item", "source": ("argument", 2), "key": "k"},
            ],
            "result": ("result", 0),
        }

    generator(make)
    f = torchjanus.function(lambda x, holder, seen: None, profile_runs=0)
    holder.w, holder.n = torch.zeros(2), 5
    w = holder.w
    for i in range(3):
        assert f(torch.ones(2), holder, seen) == 6 + i
    assert holder.w is w and w.tolist() == [3, 3]
    assert holder.n == 8 and seen == {"n": 0, "k": 8}


def test_reentrant_and_threads(generator):
    inner, depth = [], []

    def make(arguments, known):
        made = doubled((2,))
        made["effects"] = [("call", again, [("source", X)])]
        return made

    def again(x):
        if len(depth) < 3:
            depth.append(1)
            inner.append(f(x))

    generator(make)
    f = torchjanus.function(double, profile_runs=0)
    assert f(torch.ones(2)).tolist() == [2, 2]
    assert [each.tolist() for each in inner] == [[2, 2]] * 3

    failures = []

    def work():
        for i in range(200):
            x = torch.full((2,), float(i))
            if not torch.equal(f(x), x + x):
                failures.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert f.stats()["hits"] == 804


# --- what is watched runs imperatively ------------------------------------------------------------


def test_trace_function(generator):
    generator(specialised)
    f = torchjanus.function(double)
    for _ in range(4):
        f(torch.ones(2))
    lines = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: lines.append(frame.f_code.co_name))
    try:
        f(torch.ones(2))
    finally:
        sys.settrace(before)
    assert "double" in lines
    assert f.stats()["bypassed"] == 1
    assert codes(f) == ["mode_active"]


def test_torch_mode(generator):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    seen = []
    generator(specialised)
    f = torchjanus.function(double)
    for _ in range(4):
        f(torch.ones(2))
    x = torch.ones(2)
    with Mode():
        f(x)
    assert seen
    assert f.stats()["hits"] == 1


# --- lifetime -------------------------------------------------------------------------------------


def test_graph_dies_with_what_it_is_about(generator):
    def make(arguments, known):
        module, x = arguments
        made = doubled(x.shape)
        made["inputs"] = [Y]
        made["assumptions"] = [of("identity", object=module), tensor(Y, "f32", *x.shape)]
        return made

    generator(make)
    f = torchjanus.function(lambda module, x: x + x, profile_runs=0)
    module = nn.Linear(2, 2)
    gone = weakref.ref(module)
    for _ in range(3):
        f(module, torch.ones(2))
    assert f.stats()["hits"] == 3
    del module
    gc.collect()
    assert gone() is None
    f(nn.Linear(2, 2), torch.ones(2))
    assert f.stats()["retired"] == 1


def test_function_is_collected(generator):
    generator(specialised)
    f = torchjanus.function(lambda x: x + x)
    for _ in range(5):
        f(torch.ones(2))
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


# --- in every other way the function it was -------------------------------------------------------


@torchjanus.function
def decorated(x, *, scale: float = 1.0):
    """Scales."""
    return x * scale


decorated.mark = "kept"


def test_identity_of_a_function():
    assert decorated.__name__ == decorated.__qualname__ == "decorated"
    assert decorated.__module__ == __name__
    assert decorated.__doc__ == "Scales."
    assert decorated.mark == decorated.__dict__["mark"] == "kept"
    assert str(inspect.signature(decorated)) == "(x, *, scale: float = 1.0)"
    assert decorated.__kwdefaults__ == {"scale": 1.0}
    assert decorated.__code__ is decorated.__wrapped__.__code__
    assert inspect.unwrap(decorated) is decorated.__wrapped__
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated
    assert weakref.ref(decorated)() is decorated
    assert "decorated" in repr(decorated)
    with pytest.raises(AttributeError, match="nothing"):
        _ = decorated.nothing
    assert torchjanus.function(decorated) is decorated
    assert decorated(torch.ones(1), scale=3.0).item() == 3


def test_wrong_arguments_raise_as_ever():
    with pytest.raises(TypeError, match=r"decorated\(\) takes 1 positional argument"):
        decorated(1, 2)
    with pytest.raises(TypeError, match="expected a function"):
        torchjanus.function(3)
    with pytest.raises(ValueError, match="profile_runs"):
        torchjanus.function(double, profile_runs=-1)


class Methods:
    def __init__(self, scale):
        self.scale = scale

    @torchjanus.function
    def plain(self, x):
        return x * self.scale

    @torchjanus.function
    @staticmethod
    def static(x):
        return x + 1

    @torchjanus.function
    @classmethod
    def of_class(cls, x):
        return cls.__name__, x

    @staticmethod
    @torchjanus.function
    def inner_static(x):
        return x + 2


def test_methods():
    a, b = Methods(2), Methods(3)
    assert [a.plain(1), b.plain(1), Methods.plain(a, 5)] == [2, 3, 10]
    bound = a.plain
    assert bound(4) == 8 and bound.__self__ is a and bound.__func__ is Methods.plain
    assert a.static(1) == Methods.static(1) == 2
    assert a.of_class(1) == Methods.of_class(1) == ("Methods", 1)
    assert a.inner_static(1) == 3
    assert torchjanus.stats(a.plain)["calls"] == 4


def test_module_is_converted_in_place():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    keys = list(model.state_dict())
    x = torch.randn(4, 2)
    expected = model(x)
    assert torchjanus.function(model) is model
    assert type(model) is nn.Sequential
    assert list(model.state_dict()) == keys
    for _ in range(6):
        assert torch.equal(model(x), expected)
    assert torchjanus.stats(model)["calls"] == 6
    assert "Sequential" in torchjanus.explain(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other._compiled_call_impl is None
        assert torch.equal(other(x), expected)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_asking_about_something_that_is_not_converted():
    for ask in (torchjanus.explain, torchjanus.stats, torchjanus.graph):
        with pytest.raises(TypeError, match="not converted"):
            ask(double)


def test_stats_of_the_process():
    stats = torchjanus.stats()
    assert set(stats) == {"seconds_until_first_graph", "functions"}
    assert any(each["name"] == "decorated" for each in stats["functions"])


def test_reason_codes_are_unique():
    names = _core.reason_codes()
    assert len(names) == len(set(names)) and "internal_error" in names


def test_many_graphs():
    """Graphs that differ in one place are passed over there, and still found."""

    def step(x, mode, thing):
        return x * len(mode) + thing.offset if mode != "aaa" else x - thing.offset

    class Thing:
        offset = 1.0

    modes = ["a" * n for n in range(1, 9)]
    thing, x = Thing(), torch.arange(3.0)
    converted = torchjanus.function(step)
    for _ in range(6):
        for mode in modes:
            assert torch.equal(converted(x, mode, thing), step(x, mode, thing))
    before = converted.stats()
    for _ in range(3):
        for mode in reversed(modes):
            assert torch.equal(converted(x, mode, thing), step(x, mode, thing))
    after = converted.stats()
    assert after["hits"] - before["hits"] == 3 * len(modes)
    assert after["misses"] == before["misses"]
    Thing.offset = 2.0  # of all graphs
    for _ in range(4):
        for mode in modes:
            assert torch.equal(converted(x, mode, thing), step(x, mode, thing))
    y = x.double()
    for mode in modes:
        assert torch.equal(converted(y, mode, thing), step(y, mode, thing))


def test_model_that_dies_with_its_graph():
    """The graph holds the last reference to optimizer state whose death it waits for."""
    for _ in range(3):
        model = torch.nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            return loss

        converted = torchjanus.function(step)
        for _ in range(8):
            converted(torch.ones(4, 6))
        assert converted.stats()["hits"] >= 3
        del model, optimizer, step, converted
        gc.collect()


def test_profiler_shows_runs():
    f = torchjanus.function(lambda x: (x * 2 + 1).sum())
    for _ in range(5):
        f(torch.ones(3))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        f(torch.ones(3))
    assert {event.key: event.count for event in profile.key_averages()}["torchjanus::graph"] == 1


def events_of(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return [event.name for event in profile.events()]


def test_profiler_shows_kernels_by_operators_and_line():
    @torchjanus.function
    def f(x, y):
        z = (x * 2 + 1).tanh()
        return z @ y

    x, y = torch.ones(3, 3), torch.ones(3, 3)
    for _ in range(6):
        f(x, y)
    hits = f.stats()["hits"]
    names = events_of(lambda: f(x, y))
    assert f.stats()["hits"] == hits + 1
    (kernel,) = (name for name in names if name.startswith("torchjanus::") and "graph" not in name)
    line = inspect.currentframe().f_lineno - 10
    assert kernel.startswith("torchjanus::mul add tanh (") and kernel.endswith(f".py:{line})")
    assert any(name.startswith("aten::") for name in names)  # the product
    assert not any(name.startswith("torchjanus::") for name in events_of(lambda: x * 2))


def test_world_that_changes_while_a_graph_is_made(generator):
    """What generation imports may change what was assumed: it is made once more."""
    x, made = torch.arange(3.0), []

    def make(arguments, known):
        made.append(len(arguments[0].shape))
        wanted = doubled([3])
        if len(made) == 1:  # an assumption that does not hold any more when it is checked
            wanted["assumptions"] = [tensor(X, "f32", 4)]
        return wanted

    generator(make)
    converted = torchjanus.function(lambda x: x + x)
    for _ in range(6):
        assert torch.equal(converted(x), x + x)
    stats = converted.stats()
    assert (len(made), stats["hits"], stats["state"]) == (2, 3, "graph")
