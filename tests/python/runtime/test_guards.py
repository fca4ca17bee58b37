"""Entry assumptions: each kind holds where it should, and says why where it does not."""

import gc

import pytest

import torch
import torchjanus  # noqa: F401
from torch import nn
from torchjanus import _core

Guards = _core.testing.Guards

X = ("argument", 0)
Y = ("argument", 1)


def function(x, y=None):
    return LIMIT, x, y


LIMIT = 3


def of(kind, source=X, **fields):
    return {"kind": kind, "source": source, **fields}


def tensor(source, dtype, *dims, **fields):
    return of("tensor", source, dtype=dtype, dims=list(dims), **fields)


def holds(assumptions, first, second):
    """Whether guards made for the arguments `first` hold for `second`."""
    guards = Guards(function, assumptions, *first)
    assert guards.check(*first) is None
    return guards.check(*second) is None


class Thing:
    kind = "thing"

    def __init__(self, **values):
        self.__dict__.update(values)


SOME = Thing(a=1)


@pytest.mark.parametrize(
    "assumption, good, bad",
    [
        (of("identity", object=SOME), SOME, Thing(a=1)),
        (of("identity", object=len), len, print),
        (of("exact_type", object=int), 3, True),
        (of("exact_type", object=Thing), SOME, 3),
        (of("equals", object=3), 3, 4),
        (of("equals", object=3), 3, 3.0),
        (of("equals", object=True), True, 1),
        (of("equals", object=0.0), 0.0, -0.0),
        (of("equals", object=10**30), 10**30, 10**30 + 1),
        (of("equals", object="train"), "tra" + "in", "eval"),
        (of("equals", object=b"a"), b"a", b"b"),
        (of("equals", object=(1, ("a", 2.0))), (1, ("a", 2.0)), (1, ("a", 2))),
        (of("equals", object=None), None, 0),
        (of("equals", object=slice(1, 2)), slice(1, 2), slice(1, 3)),
        (of("length", number=2), [1, 2], [1]),
        (of("length", number=2), (1, 2), 2),
        (of("length", number=1), {"a": 1}, {}),
        (of("keys", object=("a", "b")), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (of("keys", object=("a", "b")), {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}),
        (of("missing_key", object="b"), {"a": 1}, {"b": 1}),
        (of("missing_key", object="b"), Thing(a=1), Thing(b=1)),
        (of("missing_attribute", object="forward"), SOME, nn.Linear),
        (of("truth", number=0), {}, {"hook": 1}),
        (of("truth", number=1), [1], []),
        (of("integer"), 5, 2**70),
        (of("integer"), 5, True),
        (of("floating"), 0.5, 1),
        (of("boolean"), True, 1),
        (tensor(X, "f32", 2, 3), torch.zeros(2, 3), torch.zeros(2, 4)),
        (tensor(X, "f32", 2, 3), torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.float64)),
        (tensor(X, "f32", 2, 3), torch.zeros(2, 3), torch.zeros(2, 3, requires_grad=True)),
        (tensor(X, "f32", 2, 3), torch.zeros(2, 3), torch.zeros(3, 2).t()),
        (tensor(X, "f32", 2, 3), torch.zeros(2, 3), torch.zeros(6)),
        (tensor(X, "f32", 2, 3), torch.zeros(2, 3), nn.Parameter(torch.zeros(2, 3))),
        (tensor(X, "f32", "B", 3), torch.zeros(2, 3), torch.zeros(1, 3)),
        (tensor(X, "f32", "B", "B"), torch.zeros(2, 2), torch.zeros(2, 3)),
        (of("no_grad_value"), torch.zeros(2), 3),
    ],
)
def test_kind(assumption, good, bad):
    assert holds([assumption], [good], [good])
    assert not holds([assumption], [good], [bad])


@pytest.mark.parametrize(
    "source, good, bad",
    [
        (("instance_value", X, "a"), Thing(a=7), Thing(a=8)),
        (("instance_value", X, "a"), Thing(a=7), Thing()),
        (("attribute", X, "numerator"), 7, 8),
        (("item", X, "k"), {"k": 7}, {"k": 8}),
        (("item", X, "k"), {"k": 7}, {}),
        (("index", X, 1), [1, 7], [1, 8]),
        (("index", X, 1), (1, 7), (1,)),
        (("default_value", X, 0), lambda a=7: a, lambda a=8: a),
        (("keyword_default", X, "a"), lambda *, a=7: a, lambda *, a=8: a),
        (("closure", X, 0), (lambda v: lambda: v)(7), (lambda v: lambda: v)(8)),
        (("instance_value", ("bound_self", X), "a"), Thing.__init__.__get__(Thing(a=7)), len),
    ],
)
def test_path(source, good, bad):
    assert holds([of("equals", source, object=7)], [good], [good])
    assert not holds([of("equals", source, object=7)], [good], [bad])


def test_types_and_their_attributes():
    kind = ("type_attribute", ("type", X), "kind")
    assert holds([of("equals", kind, object="thing")], [SOME], [Thing()])

    class Other(Thing):
        kind = "other"

    assert not holds([of("equals", kind, object="thing")], [SOME], [Other()])


def test_globals_and_builtins(monkeypatch):
    assumptions = [
        of("equals", ("global", ("function",), "LIMIT"), object=3),
        of("identity", ("global", ("function",), "len"), object=len),
    ]
    guards = Guards(function, assumptions, 1)
    assert guards.check(1) is None
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert guards.check(1)[0] == "LIMIT"
    monkeypatch.setitem(globals(), "LIMIT", 3)
    monkeypatch.setitem(globals(), "len", print)
    assert guards.check(1)[0] == "len"


def test_form_of_the_call():
    guards = Guards(function, [], 1, y=2)
    assert guards.check(5, y=6) is None
    assert guards.check(5) is not None
    assert guards.check(5, 6) is not None
    assert guards.check(5, z=6) is not None


def test_keyword_argument():
    guards = Guards(function, [of("equals", ("keyword", "y"), object=2)], 1, y=2)
    assert guards.check(1, y=2) is None
    assert guards.check(1, y=3) is not None


def test_settings_of_torch():
    guards = Guards(function, [], 1)
    with torch.no_grad():
        assert "grad mode" in guards.check(1)[1]
    assert guards.check(1) is None


def test_symbols_mean_one_size():
    assumptions = [tensor(X, "f32", "B", 3), tensor(Y, "i64", "B")]
    guards = Guards(function, assumptions, torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64))
    assert guards.check(torch.zeros(9, 3), torch.zeros(9, dtype=torch.int64)) is None
    assert guards.check(torch.zeros(9, 3), torch.zeros(8, dtype=torch.int64)) is not None


def test_symbol_of_an_int():
    assumptions = [of("integer", Y, symbol="n"), tensor(X, "f32", "n")]
    guards = Guards(function, assumptions, torch.zeros(4), 4)
    assert guards.check(torch.zeros(5), 5) is None
    assert guards.check(torch.zeros(5), 4) is not None


def test_two_objects():
    a, b = torch.zeros(3), torch.zeros(3)
    assert holds([of("same_object", other=Y)], [a, a], [b, b])
    assert not holds([of("same_object", other=Y)], [a, a], [a, b])
    assert not holds([of("not_same_object", other=Y)], [a, b], [a, a])


def test_separate_memory():
    read, written = of("separate_memory", number=0), of("separate_memory", Y, number=1)
    a, b = torch.zeros(3), torch.zeros(3)
    assert holds([read, written], [a, b], [b, a])
    assert not holds([read, written], [a, b], [a, a.view(3)])
    assert not holds([written, read], [a, b], [a, a.view(3)])
    assert holds([read, of("separate_memory", Y, number=0)], [a, b], [a, a.view(3)])
    guards = Guards(function, [read, written], a, b)
    assert guards.check(a, a[1:])[1] == "assumed that argument 1 shares no memory with argument 0"


def test_separate_memory_of_many():
    """More tensors than the set holds without memory of its own, at any two places the same."""
    tensors = [torch.zeros(2) for _ in range(300)]
    each = [of("separate_memory", ("index", X, i), number=i % 2) for i in range(300)]
    guards = Guards(function, each, tensors)
    assert guards.check(tensors) is None
    for one, other in [(0, 1), (7, 299), (150, 151), (3, 5)]:
        changed = list(tensors)
        changed[one] = tensors[other]
        assert guards.check(changed) is not None
    changed = list(tensors)
    changed[2] = tensors[8]  # both only read
    assert guards.check(changed) is None


def test_reason_says_what_was_expected_and_found():
    guards = Guards(function, [tensor(X, "f32", 4, 8)], torch.zeros(4, 8))
    path, sentence, dead = guards.check(torch.zeros(3, 8))
    assert path == "argument 0"
    assert sentence == "assumed that argument 0: f32[4,8], found f32[3,8]"
    assert not dead
    assert guards.describe() == ["argument 0: f32[4,8]"]


def test_guards_keep_nothing_alive():
    module = nn.Linear(2, 2)
    weight = module.weight
    guards = Guards(
        function,
        [of("identity", object=module), of("equals", ("item", Y, weight), object=1)],
        module,
        {weight: 1},
    )
    assert guards.check(module, {weight: 1}) is None
    alive = torch.utils.weak.WeakTensorKeyDictionary()
    alive[weight] = 1
    del module, weight
    gc.collect()
    assert len(alive) == 0
    assert guards.check(nn.Linear(2, 2), {})[2]


def test_no_code_of_the_user_runs():
    class Loud:
        def __getattr__(self, name):
            raise AssertionError(name)

        def __eq__(self, other):
            raise AssertionError("compared")

        def __bool__(self):
            raise AssertionError("truth")

        __hash__ = None

    loud = Loud()
    for assumption in (
        of("equals", object=3),
        of("truth", number=1),
        of("length", number=0),
        of("missing_attribute", object="x"),
        of("equals", ("instance_value", X, "a"), object=3),
    ):
        Guards(function, [assumption], 3).check(loud)


def test_speed():
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(8)))
    assumptions = [of("identity", object=model)]
    for i in range(8):
        layer = ("item", ("instance_value", X, "_modules"), str(i))
        assumptions.append(of("identity", layer, object=model[i]))
        assumptions.append(of("missing_key", layer, object="forward"))
        assumptions.append(of("truth", ("instance_value", layer, "_forward_hooks"), number=0))
        for name, dims in (("weight", (4, 4)), ("bias", (4,))):
            parameter = ("item", ("instance_value", layer, "_parameters"), name)
            assumptions.append(
                tensor(parameter, "f32", *dims, requires_grad=True, is_parameter=True)
            )
    guards = Guards(function, assumptions, model)
    best = min(guards.nanoseconds(2000, model) for _ in range(5))
    assert best / len(assumptions) < 150  # a loose bound: the machine may be busy
