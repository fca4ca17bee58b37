"""Where the command `torchjanus` and `python -m torchjanus` begin."""

from typing import TYPE_CHECKING

from . import library

if TYPE_CHECKING or library.is_there():
    from .command import main
else:
    from .imperative_command import main

__all__ = ["main"]
