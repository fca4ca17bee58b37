"""A dimension that has no elements in some calls is divided into no parts."""

import pytest
from differential import Program, differential

import torch

PARTS = {
    "unbind": lambda x: (x.sum(), x.unbind()),
    "each": lambda x: [part * 2 for part in x.unbind()] + [x.sum()],
    "counted": lambda x: x.sum() + len(x.unbind(0)),
    "of columns": lambda x: (x[:, None].unbind(0), x.sum()),
    "unpacked": lambda x: (*x.unbind(), x.amax() if x.numel() else x.sum()),
}


@pytest.mark.parametrize("name", PARTS)
@differential(hits=2)
def test_no_parts(name):
    return Program(
        PARTS[name], [(torch.randn(size),) for size in (3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 3)]
    )
