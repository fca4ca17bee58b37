"""Reasons of programs that raise: the run is dropped, and Python raises its own error."""
# ruff: noqa: F401  (the statements use them)

import collections
import dataclasses
import functools
import inspect
import itertools
import operator
from collections import OrderedDict, deque

import pytest
from refusals import Refused, check_refusal

import torch


class Plain:
    def method(self):
        pass


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    y: float = 1.0


class Unreadable:
    hidden = property(None, lambda self, value: None)


class Slotted:
    __slots__ = ("a",)


class Returning:
    def __init__(self, x):
        return x


class Matched:
    __match_args__ = ("x",)
    x = 1


class BadlyMatched:
    __match_args__ = (1,)


class TextLength:
    def __len__(self):
        return "a"


class NegativeLength:
    def __len__(self):
        return -1


class Calling:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        traceback()


class Saving(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class TooFew(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return ()


def one(a, /, b, *, c):
    return a + b + c


def with_unbound_variable():
    late = 1

    def read():
        return late  # noqa: F821

    del late
    return read


def space():
    followed_up = torch.ones(2, requires_grad=True)
    followed_up.register_post_accumulate_grad_hook(lambda leaf: 3)
    return {
        **globals(),
        "followed_up": followed_up,
        "unbound_variable": with_unbound_variable(),
        "saving": Saving.forward,
        "leaving": Calling.__exit__,
    }


CASES = {
    "would_raise": [
        Refused(
            "unbound_variable()",
            "NameError: free variable 'late' is unbound",
            helper="unbound_variable",
        ),
        Refused(
            "(followed_up * x).sum().backward()",
            "RuntimeError: a hook after the accumulation gives something",
        ),
        Refused("{}['missing']", "KeyError"),
        Refused("Slotted().b = x", "AttributeError: b"),
        Refused("x * Unreadable().hidden", "AttributeError: unreadable attribute"),
        Refused("w.grad = 3", "TypeError: .grad of another class"),
        Refused("w.grad = torch.ones(3)", "RuntimeError: .grad of another shape or dtype"),
        Refused(
            "(w * x).backward()",
            "RuntimeError: grad can be implicitly created only for scalar outputs",
        ),
        Refused("(w * x).backward(torch.ones(3))", "RuntimeError: a seed of another shape"),
        Refused(
            "torch.autograd.grad((w * x).sum(), x)",
            "RuntimeError: an input of autograd.grad() does not require grad",
        ),
        Refused(
            "torch.autograd.grad((w * x).sum())", "TypeError: autograd.grad() misses an argument"
        ),
        Refused(
            "torch.autograd.grad((w * x).sum(), torch.ones(2, requires_grad=True))",
            "RuntimeError: a tensor was not used in the graph",
        ),
        Refused("torch.set_grad_enabled()", "TypeError: mode is missing"),
        Refused("max([])", "ValueError: an empty iterable"),
        Refused("next(iter([]))", "StopIteration"),
        Refused("list(zip([1, 2], [1], strict=True))", "ValueError: zip() of unequal lengths"),
        Refused(
            "inspect.signature(Plain.method).parameters['x'] = x",
            "TypeError: a proxy of a dict can't be changed",
        ),
        Refused("reversed({1, 2})", "TypeError: what has no positions is not reversed"),
        Refused("torch.ones(1).add_(x)", "RuntimeError: shape of an in-place operation"),
        Refused("one(x, 1, c=1, **{'c': 2})", "TypeError: a keyword is given twice"),
        Refused("one(x, 1, b=2, c=3)", "got multiple values for '"),
        Refused("one(x, 1, c=3, d=4)", "got an unexpected keyword argument '"),
        Refused("one(x, 1)", "missing the keyword argument '"),
        Refused("Pair(x)", "TypeError: a field of a named tuple is missing"),
        Refused("Pair(x, x, x)", "TypeError: arguments of a named tuple"),
        Refused("Pair(x, x)._replace(x)", "TypeError: arguments of _replace()"),
        Refused("Pair(x, x)._replace(middle=x)", "ValueError: unexpected fields of a named tuple"),
        Refused(
            "torch.utils.checkpoint.checkpoint()", "TypeError: checkpoint() misses the function"
        ),
        Refused("x < 'a'", "TypeError: comparison with a tensor"),
        Refused("len(x.sum())", "TypeError: len() of a 0-d tensor"),
        Refused("list(x.sum())", "TypeError: iteration over a 0-d tensor"),
        Refused("{{1: 2}.keys(): 1}", "TypeError: a view is not hashable"),
        Refused("{1: 2}.keys() + 1", "TypeError: a view"),
        Refused(
            "for pair in enumerate([1], strict=False): pass",
            "TypeError: a keyword argument of enumerate()",
        ),
        Refused("deque().popleft()", "IndexError: pop from an empty deque"),
        Refused("{1: 2}.keys() < [1]", "TypeError: views that have no order"),
        Refused("OrderedDict().popitem()", "KeyError: popitem(): dictionary is empty"),
        Refused("OrderedDict().move_to_end()", "TypeError: move_to_end()"),
        Refused("{}.update([(1, 2, 3)])", "ValueError: dictionary update sequence"),
        Refused("first, second = [x]", "values to unpack into"),
        Refused("x[..., ...]", "IndexError: more than one ellipsis"),
        Refused("x[0, 0]", "IndexError: too many indices for tensor"),
        Refused("x[5]", "IndexError: index out of range of a tensor"),
        Refused("[1][2]", "IndexError: index out of range"),
        Refused("Point(x, 1, 2)", "takes 3 positional arguments but 4 were given"),
        Refused("Point()", "missing the argument 'x'"),
        Refused("Point(x, x=x)", "got multiple values for 'x'"),
        Refused("Plain(x)", "TypeError: a class that takes no arguments"),
        Refused("Returning(x)", "TypeError: __init__() should return None"),
        Refused("Plain() < Plain()", "TypeError: objects that have no order"),
        Refused("no_such_name", "NameError: name '"),
        Refused("del unbound", "UnboundLocalError: cannot access local variable '"),
        Refused("(1,).index(2)", "ValueError: not in the sequence"),
        Refused("[1].remove(2)", "ValueError: list.remove(x): x not in list"),
        Refused("[1].sort(1)", "TypeError: arguments of list.sort()"),
        Refused("{1: 2}.keys()[0]", "TypeError: a view has no subscripts"),
        Refused("len(TextLength())", "TypeError:"),
        Refused("len(NegativeLength())", "ValueError: __len__() should return >= 0"),
        Refused(
            "x.sin().requires_grad_(False); w.sin().requires_grad_(False)",
            "RuntimeError: requires_grad of a tensor that is not a leaf",
        ),
        Refused("w.requires_grad = 1", "TypeError: requires_grad must be a bool"),
        Refused("functools.reduce(operator.add, [])", "TypeError: reduce() of an empty iterable"),
        Refused("itertools.islice([1], -1)", "ValueError: bounds of islice()"),
        Refused("operator.methodcaller('sin')()", "TypeError: arguments of a methodcaller"),
        Refused("operator.itemgetter(0)(x, x)", "TypeError: arguments of an itemgetter"),
        Refused("operator.attrgetter('grad')(x, x)", "TypeError: arguments of an attrgetter"),
        Refused("deque([1, 2])[:1]", "TypeError: a slice of a deque"),
        Refused("(1, 2)[0] = 3", "TypeError: a tuple does not change"),
        Refused("w.add_(1)", "RuntimeError: an in-place operation on a leaf that requires grad"),
        Refused("float(x)", "RuntimeError: a tensor with more than one element as a number"),
        Refused("frozenset([1]).add(2)", "AttributeError: a frozenset"),
        Refused("torch.broadcast_tensors(x, torch.ones(3))", "sizes that can't be broadcast"),
        Refused("assert x is None", "AssertionError"),
        Refused(
            "a = w * 2; a.register_hook(lambda g: 3); a.sum().backward()",
            "TypeError: what a hook gives",
        ),
        Refused(
            "with torch.autocast('cpu'): torch.stack([x, x.half()])",
            "RuntimeError: a type that autocast has not",
        ),
        Refused("Saving.apply(w)", "TypeError: save_for_backward()", helper="saving"),
        Refused("TooFew.apply(w).sum().backward()", "RuntimeError: too few gradients"),
        Refused(
            "with Calling(): raise ValueError(1)",
            "TypeError: a traceback is called",
            helper="leaving",
        ),
        Refused("try: raise KeyError(1)\nexcept 3: pass", "TypeError: a class of exceptions"),
        Refused(
            "match Matched():\n    case Matched(a, b): pass",
            "TypeError: too many positional sub-patterns",
        ),
        Refused(
            "match BadlyMatched():\n    case BadlyMatched(a): pass",
            "TypeError: __match_args__ elements",
        ),
    ],
}


@pytest.mark.parametrize(
    ("code", "case"),
    [
        pytest.param(code, case, id=case.statement)
        for code, cases in CASES.items()
        for case in cases
    ],
)
def test_statement_gives_its_reason(code, case):
    check_refusal(case, code, space)
