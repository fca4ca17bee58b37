"""Max pooling in graphs against eager's: values, indices, strides, also of special values and ties."""

import pytest
import torch.nn.functional as F

import torch
import torchjanus

CASES = [
    ((2, 3, 8, 8), 2, 2),
    ((1, 1, 5, 7), 3, 1),
    ((3, 2, 9, 13), 3, 2),
    ((2, 2, 10, 150), 2, 2),
    ((2, 2, 10, 200), (2, 3), (1, 3)),
    ((1, 4, 7, 7), 7, 7),
    ((3, 6, 6), 2, 3),
]


def fill(size: tuple, kind: str) -> torch.Tensor:
    if kind == "normal":
        return torch.randn(size)
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0])
    return special[torch.randint(0, 6 if kind == "special" else 1, size)]


@pytest.mark.parametrize("kind", ["normal", "special", "nan"])
@pytest.mark.parametrize(("size", "kernel", "stride"), CASES)
def test_max_pool_equals_eager(size, kernel, stride, kind):
    def pool(x):
        return F.max_pool2d(x, kernel, stride, return_indices=True)

    converted = torchjanus.function(pool)
    for _ in range(6):
        x = fill(size, kind)
        wanted, given = pool(x), converted(x)
        assert torch.equal(given[1], wanted[1])
        assert torch.equal(given[0].view(torch.int32), wanted[0].view(torch.int32))
        for a, b in zip(given, wanted, strict=True):
            assert a.stride() == b.stride()
            assert a.dtype == b.dtype
    assert torchjanus.stats(converted)["hits"] > 0
