"""What a list of the graph holds: the tensor, as the path left it that put it there, and once or more often."""

import itertools
import linecache
from collections import deque

import pytest
from differential import Program, differential

import torch


class Holder:
    def __init__(self, **values):
        vars(self).update(values)


def step_of(text, **names):
    """The function of that text, `step`."""
    file = f"<{text}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    return names["step"]


def sides(step, count=16, watch=()):
    """Calls whose tensor has a sum of each sign, with a number from 2 to 5."""
    calls = [((i % 3 - 0.9) * (torch.rand(3) + 0.1), 2 + i % 4) for i in range(count)]
    return Program(step, calls, watch=watch)


# --- written on the side that puts them there -----------------------------------------------------


@differential(hits=10, graphs=2)
def test_written_on_the_side_of_the_list():
    def step(x, n):
        y = x + 0
        if x.sum() > 0:
            y.add_(1)
            h = [y, y * 2]
        else:
            h = []
        return sum(h) if h else x

    return sides(step)


@differential(hits=6, graphs=3)
def test_written_on_one_side_and_in_both_lists():
    def step(x, n):
        y, z = x + 0, x * 3
        if x.sum() > 0:
            y.add_(1)
            h = [y, z]
        else:
            h = [z]
        return torch.stack(h)

    return sides(step)


@differential(hits=10, graphs=1)
def test_written_on_the_other_side():
    def step(x, n):
        y = x + 0
        if x.sum() > 0:
            h = [y, x]
        else:
            y.add_(1)
            h = [y]
        return sum(h)

    return sides(step)


@differential(hits=6, graphs=4)
def test_written_and_appended():
    def step(x, n):
        y, h = x + 0, []
        if x.sum() > 0:
            y.mul_(2)
            h.append(y)
            h.append(x)
        return sum(h) + x

    return sides(step)


@differential(hits=10, graphs=1)
def test_view_of_what_a_side_writes():
    def step(x, n):
        y, h = x + 0, []
        v = y[:2]
        if x.sum() > 0:
            y.mul_(2)
            h.append(v)
        else:
            h.append(v)
            h.append(v * 2)
        return sum(h)

    return sides(step)


@differential(hits=10, graphs=2)
def test_attribute_written_on_the_side_of_the_list():
    state = Holder(a=torch.ones(3))

    def step(x, n):
        h = [x]
        state.a.add_(1)
        if x.sum() > 0:
            state.a.mul_(0.5)
            h = [state.a, x]
        total = x * 0
        for each in h:
            total = total + each
        return total

    return sides(step, watch=[state])


# --- written by later iterations ------------------------------------------------------------------

WRITING = {
    "list": ("h = []", "y.add_(1); h.append(y)"),
    "list of the start": ("h = [y]", "y.add_(1); h.append(x)"),
    "deque": ("h = deque([x])", "y.add_(1); h.append(y)"),
    "attribute": ("state.h = h = []", "y.add_(1); h.append(y)"),
    "view": ("h = []", "y.add_(1); h.append(y[:2])"),
    "new list": ("h = []", "y.add_(1); h = h + [y]"),
    "some iterations": ("h = [x]", "y.add_(1)\n        if y.sum() > 1: h.append(y)"),
    "inner loop": ("h = []", "y.add_(1)\n        for _ in range(n): h.append(y)"),
    "while": ("h = []", "y.mul_(1.5)\n        while len(h) < n: h.append(y)"),
}


@pytest.mark.parametrize("case", WRITING)
@differential(hits=1)
def test_one_tensor_written_in_each_iteration(case):
    before, body = WRITING[case]
    state = Holder(h=None)
    text = f"""
def step(x, n):
    y = x + 1
    {before}
    for _ in range(n):
        {body}
    return sum(h)
"""
    return sides(step_of(text, state=state, deque=deque), count=24, watch=[state])


# --- lists from before the call -------------------------------------------------------------------

READS = ["any(v == 77 for v in state.skip)", "sum(state.skip) > 99", "state.skip[0] > 5"]
KEPT = ["y = y + sum(state.history)", "y = y + state.history[0]"]


@pytest.mark.parametrize(("test", "read"), list(itertools.product(READS, KEPT)))
@differential(hits=4)
def test_two_lists_read_on_one_side(test, read):
    state = Holder(skip=[3.0, 4.0], history=[5.0, 6.0])
    text = f"""
def step(x, n):
    y = x * 1
    if x.sum() > 0:
        if {test}: y = y * 3
        {read}
    state.history.append(n)
    return y
"""

    def shorten():
        del state.history[2:]

    calls = [each for call in sides(None, 12).calls for each in (call, shorten)]
    return Program(step_of(text, state=state), calls, watch=[state])


# --- one tensor in several places -----------------------------------------------------------------


def made(x, n):
    return [x * j for j in range(n)]


def put_there_on_one_side(x, n):
    y, h = x + 1, made(x, n)
    if x[0] > x[1]:
        h.append(y)
    return h, y


def in_two_lists(x, n):
    h = made(x, n)
    return h, list(h)


def some_in_two_lists(x, n):
    h = made(x, n)
    return h, [v for v in h if v.sum() > 0]


def in_two_lists_at_once(x, n):
    h, g = [], []
    for j in range(n):
        y = x * j
        h.append(y)
        g.append(y)
    return h, g


def by_an_inner_loop(x, n):
    y, h = x + 1, []
    for _ in range(n):
        for _ in range(n):
            y = y * 2
            h.append(y)
    return h, y


def before_another_loop(x, n):
    y, h = x + 1, []
    for _ in range(n):
        y = y * 2
        h.append(y)
    for j in range(n):
        h.append(y * j)
    return h, y


def through_tuples(x, n):
    y, h = x + 1, []
    for _ in range(n):
        y = y * 2
        h.append(y)
    h = [(v, n) for v in h]
    return [v for v, _ in h], y


def taken_by_turns(x, n):
    y, z, h = x + 0, x * 1, []
    for _ in range(n):
        h.append(y)
        y, z = z, y
    return y, h[0]


def greatest_of_some(x, n):
    z, h = x * 1, []
    for j in range(n):
        if x.sum() > j:
            h.append(x + j)
        else:
            h.append(z)
    z = max(h, key=lambda v: float(v.sum()))
    return z, h


def in_one_of_two_lists(x, n):
    y, h = x + 0, []
    if n > 2:
        y = y * 0.5
    else:
        h = [y]
    h = h + []
    return y, h


def on_some_sides(x, n):
    z, h = x * 2, []
    if n == 3:
        h.append(z)
    if x.sum() > 0:
        h.append(z)
    if x[0] > x[1]:
        h.append(z)
    return h


def twice_from_before(x, n):
    y = x + 1
    h = [y, y]
    for j in range(n):
        h.append(x * j)
    return h


def one_element_each_time(x, n):
    g, h = made(x, n), []
    for _ in range(n):
        h.append(g[0])
    return h


def elements_in_each_round(x, n):
    g, h = made(x, 2 + n), []
    for _ in range(n):
        for v in g:
            h.append(v)
    return h


def elements_in_two_loops(x, n):
    g, h = made(x, n), []
    for v in g:
        h.append(v)
    for v in g:
        h.append(v)
    return h


def with_itself(x, n):
    h = made(x, n)
    return h + h


def extended_by_itself(x, n):
    h = made(x, n)
    h.extend(h[1:])
    return h


def last_element(x, n):
    h, total = made(x, n), 0
    for v in h:
        total = total + v.sum()
    return h, v, total


def taken_and_put_back(x, n):
    h = made(x, n)
    v = h.pop()
    h.insert(1, v)
    h.append(v)
    return h


SHARING = [each for each in list(globals().values()) if getattr(each, "__code__", None)]
SHARING = SHARING[SHARING.index(put_there_on_one_side) :]


@pytest.mark.parametrize("made_of", SHARING, ids=lambda each: each.__name__)
@differential(hits=1)
def test_one_tensor_in_several_places(made_of):
    def step(x, n):
        result = made_of(x, n)
        lists = result if isinstance(result, tuple) else (result,)
        return result, len(lists)

    return sides(step, count=24)


@differential(hits=10, graphs=1)
def test_values_that_follow_each_other():
    def step(x, n):
        a, b, h = x + 0, x + 1, []
        for _ in range(n):
            h.append(a * 2)
            a, b = b, a + b
        return a, b, h

    return sides(step)


@differential(hits=10, graphs=1)
def test_elements_of_another_list():
    def step(x, n):
        g, h = made(x, n), []
        for v in g:
            h.append(v)
        return h

    return sides(step)


@differential(hits=10, graphs=1)
def test_elements_taken_from_another_list():
    def step(x, n):
        g, h = made(x, n), []
        while g:
            h.append(g.pop())
        return h

    return sides(step)


@differential(hits=10)
def test_list_that_is_emptied_before_another_takes_its_place():
    def step(x, n):
        h = [x * 2]
        for _ in range(n):
            h.clear()
            h = [v + 1 for v in h]
        return h, x * 3

    return sides(step)
