"""Sums and products in another dtype than their operand's."""

import pytest
from differential import Program, differential

import torch
import torchjanus

SUMS = {
    "sum": torch.sum,
    "prod": torch.prod,
    "nansum": torch.nansum,
    "mean": torch.mean,
    "cumsum": lambda x, dtype: torch.cumsum(x, 1, dtype=dtype),
    "cumprod": lambda x, dtype: torch.cumprod(x, 1, dtype=dtype),
    "sum of rows": lambda x, dtype: torch.sum(x, 1, dtype=dtype),
    "prod of rows": lambda x, dtype: x.prod(1, dtype=dtype),
}
OPERANDS = {
    "fractions": torch.tensor([[0.5, -0.5, 2.7], [0, 0, 0], [1, 1, 0]]),
    "integers": torch.tensor([[2, 4, 256], [0, 0, 0], [1, 255, 1]]),
    "flags": torch.tensor([[True, True, False], [False] * 3, [True] * 3]),
}
DTYPES = (torch.bool, torch.uint8, torch.int64)
RAISES = [("mean", dtype) for dtype in DTYPES]
RAISES += [(name, torch.bool) for name in ("cumsum", "cumprod")]
GIVES = [(name, dtype) for name in SUMS for dtype in DTYPES if (name, dtype) not in RAISES]


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name, dtype", GIVES)
@differential()
def test_sum_as(name, dtype, operand):
    def f(x):
        return SUMS[name](x.flip(0), dtype=dtype), x + 1

    return Program(f, [(OPERANDS[operand].roll(i, 0),) for i in range(6)])


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name, dtype", RAISES)
def test_sum_that_raises(name, dtype, operand):
    def f(x):
        return SUMS[name](x.flip(0), dtype=dtype)

    converted = torchjanus.function(f)
    for _ in range(6):
        found = []
        for run in (f, converted):
            with pytest.raises(RuntimeError) as error:
                run(OPERANDS[operand])
            found.append(str(error.value))
        assert found[0] == found[1]
