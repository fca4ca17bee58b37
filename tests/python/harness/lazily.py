"""The same program eagerly and with lazy execution."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torchjanus
from torchjanus import _core


def assert_as_eager(program: Callable[[], Sequence[Any]], *, runs: bool = True) -> None:
    """The program gives the same numbers and tensors. `runs`: operators were noted, and have run."""
    torch.manual_seed(0)
    expected = program()
    before = _core.lazy_counts()
    torch.manual_seed(0)
    with torchjanus.lazy():
        found = program()
    after = _core.lazy_counts()
    has_run = sum(after[key] - before[key] for key in ("run_eagerly", "run_in_graphs"))
    assert (has_run > 0) == runs, (before, after)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
