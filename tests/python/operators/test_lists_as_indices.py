"""Lists as indices of tensors: some of them torch reads as a tuple, and warns."""

import collections

import pytest
from differential import Program, differential

import torch
import torchjanus

deque = collections.deque

NESTED = {
    "a row": lambda x: [[0, 1]],
    "two rows": lambda x: [[0, 0], [1, 1]],
    "tuples": lambda x: [(0, 0), (1, 1)],
    "flags": lambda x: [[True] * 4] * 3,
    "a number and a row": lambda x: [1, [0]],
    "tensors": lambda x: [torch.tensor([0, 1]), torch.tensor([1, 1])],
    "tensor without dimensions": lambda x: [torch.tensor(0), torch.tensor(1)],
    "slice": lambda x: [slice(0, 1)],
    "None": lambda x: [None, 0],
    "dots": lambda x: [..., 0],
    "range": lambda x: [range(2)],
    "text": lambda x: ["a"],
    "nothing within": lambda x: [[]],
    "deque": lambda x: deque([[0, 1]]),
    "within a deque": lambda x: [deque([0, 1])],
    "number of the run": lambda x: [[int(x[0, 0]) * 0], [1]],
    "constant": lambda x: KEPT,
}
KEPT = [[0, 1], [1, 1]]


def written(x, key):
    z = x * 2
    z[key] = 5
    return z


USES = {"read": lambda x, key: x[key] * 1, "written": written}
calls = [(torch.arange(12.0).reshape(3, 4) + i,) for i in range(6)]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", NESTED)
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@differential(reasons=["expression"])
def test_list_of_more_than_numbers(name, use):
    return Program(lambda x: USES[use](x, NESTED[name](x)), calls)


def test_what_is_said_of_it():
    @torchjanus.function
    def f(x):
        return x[[[0, 1]]]

    for call in calls:
        with pytest.warns(UserWarning, match="Using a non-tuple sequence"):
            assert f(*call).shape == (2, 4)
    sentences = [reason["sentence"] for reason in f.stats()["reasons"]]
    assert any("an index that is a list of more than numbers" in each for each in sentences)


def grown(x):
    """Only the run knows how long it is."""
    rows = []
    for row in x:
        if row.sum() > 6:
            rows.append(0)
    return rows


DATA = {
    "grown": grown,
    "numbers": lambda x: [1, 0],
    "flags": lambda x: [True, False, True],
    "within a tuple": lambda x: ([[0, 1]],),
    "rows within a tuple": lambda x: ([[0, 0], [1, 1]], [0, 1]),
    "a tuple within a tuple": lambda x: ((0, 1), (0, 1)),
    "beside a slice": lambda x: (slice(None), [[0, 1]]),
    "long": lambda x: [[0, 1]] * 32,
    "size of the run": lambda x: [x.shape[0] - 1, 0],
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", DATA)
@differential()
def test_list_of_data(name, use):
    return Program(lambda x: USES[use](x, DATA[name](x)), calls)
