"""Finds extension modules that are built for tests only, beside the one that users get."""

import importlib.util
import os
import pathlib
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def load(name):
    """The module `name` out of the build folder (TORCHJANUS_BUILD, else build/dev)."""
    folder = pathlib.Path(os.environ.get("TORCHJANUS_BUILD", ROOT / "build" / "dev"))
    path = folder / "tests/python/support" / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    if not path.exists():
        pytest.skip(f"{path} is not built", allow_module_level=True)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
