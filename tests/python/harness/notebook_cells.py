"""Cells in a shell of IPython, as notebooks run them."""

import contextlib
import io
import textwrap
from collections.abc import Iterator
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

import torchjanus

SETUP = """
    import torch, torchjanus
    import torch.nn.functional as F
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(32, 8, dtype=torch.float64), torch.randint(0, 3, (32,))
"""


class Notebook:
    def __init__(self) -> None:
        self.shell = InteractiveShell()

    def cell(self, text: str) -> tuple[Any, str]:
        """The value of the cell's last line, and what it printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            done = self.shell.run_cell(textwrap.dedent(text))
        done.raise_error()
        return done.result, printed.getvalue()

    def value(self, expression: str) -> Any:
        return self.cell(expression)[0]


@contextlib.contextmanager
def without_watch() -> Iterator[None]:
    """The extension starts a watch for the rest of the process, in whose windows other tests' calls stay in Python."""
    before = torchjanus.options.disabled
    torchjanus.options.disabled = before | {"entry_points"}
    try:
        yield
    finally:
        torchjanus.options.disabled = before
