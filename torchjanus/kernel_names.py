"""Tells the compiled part when kernels in Python are registered or go: graphs would not call them."""

from collections.abc import Iterable

import torch.library

from ._core import kernel_registered, kernel_removed
from .behind_pending import behind_pending


class KernelNames(set[str]):
    """torch's set of the names of all kernels in Python, such as "aten/sin/CPU"."""

    def __init__(self, names: Iterable[str]) -> None:
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        if name not in self:
            super().add(name)
            kernel_registered(name)

    def __isub__(self, names: object) -> "KernelNames":
        for name in self & names:  # type: ignore[operator]
            self.remove(name)
            kernel_removed(name)
        return self


if isinstance(getattr(torch.library, "_impls", None), set):
    torch.library._impls = KernelNames(torch.library._impls)
    torch._C._DispatchModule.impl = behind_pending(torch._C._DispatchModule.impl)  # type: ignore[method-assign]
