"""Numbers that a dtype can't represent: the error comes at the line of the call, as ever."""

import pytest

import torch
import torchjanus
from torchjanus import _core

ZEROS = torch.zeros(8)
MASK = torch.arange(8) % 2 == 0

#: Operators on a number, and one that they can't take.
FILLS = {
    "masked_fill of int8": (lambda n: ZEROS.char().masked_fill(MASK, torch.tensor(int(n))), 1000),
    "masked_fill_ of half": (lambda n: ZEROS.half().masked_fill_(MASK, torch.tensor(n)), 1e6),
    "masked_fill of float": (
        lambda n: ZEROS.masked_fill(MASK, torch.tensor(n, dtype=torch.float64)),
        1e300,
    ),
    "full_like as int8": (lambda n: torch.full_like(ZEROS, n, dtype=torch.int8), 1000.0),
    "full_like as uint8": (lambda n: torch.full_like(ZEROS, n, dtype=torch.uint8), -700.0),
    "full_like as float8": (
        lambda n: torch.full_like(ZEROS, n, dtype=torch.float8_e5m2),
        60000.0,
    ),
    "fill_ of float8": (lambda n: ZEROS.to(torch.float8_e4m3fn).fill_(n), 1000.0),
}


def outcome(fill, number):
    step = "call"
    try:
        filled = fill(number)
        step = "look"
        return filled.float().tolist()
    except RuntimeError as error:
        return step, str(error)


@pytest.mark.parametrize("name", FILLS)
def test_the_call_raises(name):
    fill, overflowing = FILLS[name]
    expected = [outcome(fill, number) for number in (5.0, overflowing)]
    assert expected[1][0] == "call"
    with torchjanus.lazy():
        found = [outcome(fill, 5.0) for _ in range(12)]
        assert found == [expected[0]] * 12
        assert outcome(fill, overflowing) == expected[1]


def test_a_value_of_the_same_dtype_is_noted():
    with torchjanus.lazy():
        for i in range(8):
            filled = ZEROS.masked_fill(MASK, torch.tensor(1.0) * i)
            was_pending = _core.is_pending(filled)
            assert filled.tolist() == [float(i), 0.0] * 4
    assert was_pending
