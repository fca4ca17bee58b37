"""Warnings of torch's operators inside of graphs are Python's: shown, counted, turned into exceptions
by the same filters, with the same text and line."""

import re
import warnings

import pytest

import torch
import torchjanus


def variance(x):
    return (x * 2).var(0)


def helper_line(x):
    doubled = x * 2
    return variance(doubled) + doubled.sum(0)


ROW = torch.randn(1, 8)  # too few for a variance: torch warns
MANY = torch.randn(4, 8)


def converted(function, *arguments):
    graph = torchjanus.function(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            graph(*arguments)
    assert hits(graph) == 1
    return graph


def hits(graph):
    return torchjanus.stats(graph)["hits"]


def told_by(function, *arguments):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        function(*arguments)
    return [(each.category, str(each.message), each.filename, each.lineno) for each in told]


@pytest.mark.parametrize("function", [variance, helper_line])
def test_category_text_and_line(function):
    graph = converted(function, ROW)
    expected = told_by(function, ROW)
    assert len(expected) == 1
    assert told_by(graph, ROW) == expected
    assert hits(graph) == 2


def test_nothing_is_said_where_nothing_is_wrong():
    graph = converted(variance, MANY)
    assert told_by(graph, MANY) == []


def test_filters_that_ignore(capfd):
    graph = converted(variance, ROW)
    for arguments in [{"category": UserWarning}, {"message": "var"}, {"module": __name__}]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", **arguments)
            graph(ROW)
    assert hits(graph) == 4
    assert capfd.readouterr().err == ""


def test_shown_once_for_a_line():
    graph = converted(variance, ROW)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            graph(ROW)
        variance(ROW)
    assert len(told) == 1
    assert hits(graph) == 4


@pytest.mark.parametrize(
    "arguments", [{}, {"category": UserWarning}, {"message": "var"}, {"module": __name__}]
)
def test_filters_that_raise(arguments):
    weight, seen = torch.zeros(8), []

    def step(x):
        weight.add_(x.sum(0))
        seen.append(len(seen))
        y = x.var(0)
        weight.mul_(2)
        return y

    graph = torchjanus.function(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            graph(ROW)
        before, count = hits(graph), len(seen)
        assert before == 1
        warnings.filterwarnings("error", **arguments)
        started = weight.clone()
        with pytest.raises(UserWarning, match=re.escape("degrees of freedom")):
            graph(ROW)
        torch.testing.assert_close(weight, started + ROW[0])  # what eager did before it raised
        assert len(seen) == count + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph(ROW)
    assert hits(graph) == before + 1


def test_other_filters_that_raise_do_not_matter():
    graph = converted(variance, ROW)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.filterwarnings("error", category=DeprecationWarning)
        warnings.filterwarnings("error", message="something else")
        warnings.filterwarnings("error", module="another_module")
        graph(ROW)
    assert len(told) == 1
    assert hits(graph) == 2


def test_an_exception_of_who_shows_them(monkeypatch):
    graph = converted(variance, ROW)

    def refuse(*_arguments, **_keywords):
        raise ArithmeticError("not here")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", refuse)
        with pytest.raises(ArithmeticError, match="not here"):
            graph(ROW)


def test_gradients_outside_of_the_graph():
    def step(x):
        return (x * 2).var(0).nan_to_num()

    x = ROW.clone().requires_grad_()
    graph = converted(step, x)
    expected = told_by(lambda: step(x).sum().backward())
    assert told_by(lambda: graph(x).sum().backward()) == expected
