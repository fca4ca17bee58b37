"""A loop of a script whose conversion is paid from an account, with the processor's time simulated.

What is counted is in which call something happens.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import scripts

import torchjanus
from torchjanus import _core
from torchjanus._core import testing

LOOP = """
import torch
from torchjanus._core import testing

def steps():
    for i in range({steps}):
        testing.simulate_processor_time(1 + i * {milliseconds}, {milliseconds})
        yield i

w = torch.zeros(3, requires_grad=True)
losses = []
for i in steps():
    loss = ((w - 1) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    losses.append(loss.item())
"""


@contextlib.contextmanager
def accounts() -> Iterator[Callable[[float], None]]:
    """Gives what opens an account of which so many milliseconds are spent; the program has used none."""

    def begin(spent: float = 0) -> None:
        testing.close_conversion_account()
        testing.simulate_processor_time(0, 0)
        torchjanus.options.disabled -= {"budget"}
        _core.open_conversion_account(spent)

    before = torchjanus.options.disabled
    testing.close_conversion_account()
    yield begin
    testing.close_conversion_account()
    testing.end_simulated_processor_time()
    torchjanus.options.disabled = before


def ran(folder: Path, **values: Any) -> dict[str, Any]:
    """The statistics of the loop, which prints and leaves what it does eagerly."""
    return of_loop(scripts.run_both(LOOP.format(**values), folder))


def of_loop(told: list[dict[str, Any]]) -> dict[str, Any]:
    """Those of its newest copy."""
    return [each for each in told if each["name"].startswith("<module>")][-1]
