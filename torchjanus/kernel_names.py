"""Tells the compiled part when kernels in Python are registered or go: graphs would not call them."""

import torch.library

from ._core import kernel_names_changed


class KernelNames(set[str]):
    """torch's set of the names of all kernels in Python, such as "aten/sin/CPU"."""

    def add(self, name: str) -> None:
        super().add(name)
        kernel_names_changed()

    def __isub__(self, names: object) -> "KernelNames":
        self.difference_update(names)  # type: ignore[arg-type]
        kernel_names_changed()
        return self


if isinstance(getattr(torch.library, "_impls", None), set):
    torch.library._impls = KernelNames(torch.library._impls)
