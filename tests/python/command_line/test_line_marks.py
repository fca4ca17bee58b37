"""Lines of which graphs have nothing are not marked as if they were in one."""

import pytest

import torch
import torchjanus
from torchjanus import line_marks
from torchjanus.source_text import Sources

empty = []
known = {"a": 1}


def helper(y):
    return y * 3


def step(x, flag):
    try:
        y = x.tanh()  # graph
    except ValueError:
        y = x * 7  # no operator
    try:
        r = known["b"]  # graph
    except KeyError:
        r = 5  # no operator
    while flag:
        y = y * 8  # no operator
    while False:
        y = y * 8  # not taken
    while True:
        y = y + 1  # graph
        break
        y = y * 8  # not taken
    for each in empty:
        y = y * each  # not taken
    for number in range(2):
        y = y + number  # graph
    else:
        y = y + 2  # graph
    match flag:
        case True:
            y = y * 10  # no operator
        case _:
            y = y * 1.5  # graph
    if flag:
        y = helper(y)  # not taken
    if flag:
        print("never")  # not taken
    elif r == 5:
        k = 2  # no operator
        k += r  # no operator
    else:
        y = y * 12  # no operator
    if flag: y = y * 13  # graph  # fmt: skip

    def inner():
        return y * 2  # no operator

    if y.sum() > 1e9:
        y = y - 1  # not taken
        if flag:
            y = y - 2  # not taken
    with torch.no_grad():
        return y.sum() * k  # graph
        y = 1  # not taken
    k = 3  # no operator


def blocks(converted):
    return list(line_marks.blocks(converted.snapshot(), Sources()))


def marks_of(block):
    """The line, its mark, and the one that its comment has."""
    return [
        (line.number, line.mark, line.text.split("  # ")[1].strip())
        for line in block.lines
        if "  # " in line.text
    ]


def run(function, *arguments, times=6):
    converted = torchjanus.function(function)
    for _ in range(times):
        converted(*arguments)
    assert converted.stats()["hits"] > 0
    return converted


def test_bodies_of_which_a_graph_has_nothing():
    (block,) = blocks(run(step, torch.ones(3), False))
    marks = marks_of(block)
    assert len(marks) > 20
    assert [each for each in marks if each[1] != each[2]] == []


def test_in_a_called_function_too():
    converted = run(lambda x: step(x, False), torch.ones(3))
    (block,) = (each for each in blocks(converted) if each.name == "step")
    assert [each for each in marks_of(block) if each[1] != each[2]] == []


def test_what_one_graph_has_is_marked_for_all():
    converted = run(step, torch.ones(3), False)

    def branch(x, flag):
        if flag:
            return x * 2  # graph
        return x * 3  # graph

    converted = run(branch, torch.ones(3), False)
    for _ in range(6):
        converted(torch.ones(3), True)
    assert converted.stats()["hits"] > 3
    (block,) = blocks(converted)
    assert [each for each in marks_of(block) if each[1] != each[2]] == []


def test_a_branch_that_was_assumed_away_until_python_ran_it():
    def branch(x):
        y = x * 2
        if y.sum() > 10:
            y = y * 3
        return y

    converted = run(branch, torch.ones(3))
    line = branch.__code__.co_firstlineno + 3

    def mark():
        (block,) = blocks(converted)
        (found,) = (each.mark for each in block.lines if each.number == line)
        return found

    assert mark() == "not taken"
    assert converted(torch.ones(3) * 9).tolist() == [54.0] * 3
    assert converted.stats()["aborts"] == 1 and mark() == "imperative"


def test_decorated_functions_are_their_own():
    @torchjanus.function
    def plain(x):
        k = 3
        return x.sin() * k

    for _ in range(6):
        plain(torch.ones(3))
    (block,) = blocks(plain)
    assert [line.mark for line in block.lines] == ["", "graph", "graph", "graph"]


@pytest.mark.parametrize("mark", ["graph", "not taken", "no operator"])
def test_page_and_notebook_know_the_mark(mark, tmp_path):
    converted = run(step, torch.ones(3), False)
    torchjanus.report(converted, tmp_path / "r.html")
    shown = (tmp_path / "r.html").read_text()
    label = {"not taken": "not run"}.get(mark, mark)
    assert f"<b>{label}</b>" in shown and f'"{mark}"' in shown
    assert f">{label}</li>" in converted._repr_html_()
