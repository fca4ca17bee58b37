"""What stands for torch's objects while the front end follows torch.distributed's functions.

Those take their options in objects of C++ and give back another one. In a graph a collective is begun by one node and
waited for by another one, so the front end follows these classes instead (src/frontend/torch_library/
program_collectives.h). Nothing of them is ever run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Options:
    """What a process group is asked for: torch's AllreduceOptions, BroadcastOptions and the like."""

    def __init__(self) -> None:
        self.reduceOp: Any = None  # a sum
        self.rootRank = 0
        self.rootTensor = 0
        self.asyncOp = True


class Work:
    """A collective that has begun.

    Args:
        finish: Waits for it, the first time that it is called.
    """

    def __init__(self, finish: Callable[..., None]) -> None:
        self._finish = finish

    def wait(self, *arguments: Any) -> bool:
        """True, as torch's gives it.

        Args:
            arguments: None that a graph knows: with a time to wait for, the collective is left to Python.
        """
        self._finish(*arguments)
        return True

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
