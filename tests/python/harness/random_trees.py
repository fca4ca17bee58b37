"""Trees of random form, for tests of recursion."""

import random
from collections.abc import Callable


def random_children(size: int, make: Callable) -> list:
    """What `make` gives for the sizes of the children of a node that is a tree of `size` nodes."""
    children = []
    size -= 1
    while size > 0:
        part = random.randrange(1, size + 1)
        children.append(make(part))
        size -= part
    return children
