"""Containers among the results of graphs that no single Python call makes."""

from typing import Any


def with_attributes(container: Any, attributes: dict[str, Any]) -> Any:
    """Sets attributes of the container, such as `_metadata` of a module's state; returns it."""
    vars(container).update(attributes)
    return container
