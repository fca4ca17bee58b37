"""Where files lie that are not the program's own: Python's library and the installed packages."""

import os
import sysconfig


def folders(*kinds: str) -> tuple[str, ...]:
    """The folders of these kinds, as `sysconfig` calls them, each with a separator at its end."""
    return tuple(sorted({f"{sysconfig.get_path(kind)}{os.sep}" for kind in kinds}))


PACKAGES = folders("purelib", "platlib")
ALL = folders("stdlib", "platstdlib", "purelib", "platlib")
