"""Where files lie that are not the program's own: Python's library and the installed packages."""

import os
import sys
import sysconfig


def folders(*kinds: str) -> tuple[str, ...]:
    """The folders of these kinds, as `sysconfig` calls them, each with a separator at its end."""
    return tuple(sorted({f"{sysconfig.get_path(kind)}{os.sep}" for kind in kinds}))


def _of_others() -> set[str]:
    """Those of the user, and of the environment that this one extends: by the name that all of them have."""
    names = {"site-packages", "dist-packages"}
    return {os.path.join(each, "") for each in sys.path if os.path.basename(each) in names}


PACKAGES = tuple(sorted({*folders("purelib", "platlib"), *_of_others()}))
ALL = tuple(sorted({*folders("stdlib", "platstdlib"), *PACKAGES}))
