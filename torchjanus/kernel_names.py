"""Tells the compiled part when kernels in Python are registered or go: graphs would not call them."""

import functools
from collections.abc import Callable, Iterable
from typing import ParamSpec

import torch.library

from ._core import kernel_registered, kernel_removed, run_pending

Arguments = ParamSpec("Arguments")


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


def behind_pending(register: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """`register`, behind all operators that were called before: they run by the kernels that there were."""

    @functools.wraps(register)
    def register_behind_pending(*arguments: Arguments.args, **keyed: Arguments.kwargs) -> None:
        run_pending()
        return register(*arguments, **keyed)

    return register_behind_pending


if isinstance(getattr(torch.library, "_impls", None), set):
    torch.library._impls = KernelNames(torch.library._impls)
    torch._C._DispatchModule.impl = behind_pending(torch._C._DispatchModule.impl)  # type: ignore[method-assign]
