"""Operators in place whose form in new memory has an overload of another name."""

import pytest

import torch
import torchjanus
from torchjanus import _core


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.pow_(3),
        lambda x: x.square_(),
        lambda x: x.float_power_(2),
        lambda x: x.pow_(x.new_full((), 2)),
    ],
    ids=["pow_", "square_", "float_power_", "pow_.Tensor"],
)
def test_powers(change, dtype):
    x = torch.linspace(-2, 3, 12).to(dtype)
    expected = change(x * 2) + 1
    _core.testing.let_times_decide(False)
    before = _core.lazy_counts()
    try:
        with torchjanus.lazy():
            for _ in range(9):
                y = change(x * 2) + 1
                torchjanus.synchronize()
                torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    finally:
        _core.testing.let_times_decide(True)
    assert _core.lazy_counts()["run_in_graphs"] > before["run_in_graphs"]


@pytest.mark.parametrize("change", [lambda x: x.polygamma_(1), lambda x: x.ldexp_(x)])
def test_forms_without_a_counterpart(change):
    x = torch.rand(12, dtype=torch.float64) + 1
    expected = change(x * 2)
    with torchjanus.lazy():
        for _ in range(9):
            torch.testing.assert_close(change(x * 2), expected)
