"""Runs pytest with the extension module of a sanitizers' build.

usage: sanitized_pytest.py BUILD_FOLDER PYTEST_ARGUMENTS...

Python is not instrumented, so the sanitizers' library is loaded before it, and the C++ library before that looks for
what throws. The package is a folder of links, so that the checkout keeps the module that it has.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("libclang_rt.asan-x86_64.so", "libstdc++.so.6")


def package_of_links(build: Path) -> Path:
    """A folder for PYTHONPATH with torchjanus in it."""
    folder = build / "package"
    package = folder / "torchjanus"
    package.mkdir(parents=True, exist_ok=True)
    sources = [each for each in (ROOT / "torchjanus").iterdir() if each.name != "libraries"]
    for source in (*sources, build / "libraries"):
        link = package / source.name
        link.unlink(missing_ok=True)
        link.symlink_to(source)
    return folder


def library(name: str) -> str:
    found = subprocess.run(["clang-19", f"-print-file-name={name}"], capture_output=True, text=True)
    return found.stdout.strip()


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(library(name) for name in LIBRARIES),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(package_of_links(build)),
        "PYTHONSAFEPATH": "1",  # the checkout's own package is not in front
        "TORCHJANUS_BUILD": str(build),
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", *sys.argv[2:]], env=environment
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
