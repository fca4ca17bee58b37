"""Views among the results of graphs, which Python takes when the run is over."""

from collections.abc import Callable
from typing import Any

import torch


def taken_with_gradients(view: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What `view` gives where gradients are enabled."""
    with torch.enable_grad():
        return view(*arguments, **keywords)


def taken_without_gradients(view: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """What `view` gives where gradients are not enabled."""
    with torch.no_grad():
        return view(*arguments, **keywords)
