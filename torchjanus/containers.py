"""Containers that a graph's run gives and that no single call of Python makes."""

from typing import Any


def with_attributes(container: Any, attributes: dict[str, Any]) -> Any:
    """The container with these attributes of its own, as `_metadata` of a module's state."""
    vars(container).update(attributes)
    return container
