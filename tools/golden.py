"""Checks the golden files of the passes (tests/ir/**/*.ir), or rewrites them.

    python tools/golden.py             show what differs
    python tools/golden.py --update    take what janus-opt gives now; then review the diff

The format is described in tools/golden.h.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def find_janus_opt(build: Path | None) -> Path:
    """The newest janus-opt under build/, or the one of the given build folder."""
    folders = [build] if build else sorted((ROOT / "build").glob("*"))
    found = [folder / "tools" / "janus-opt" for folder in folders]
    found = [path for path in found if path.exists()]
    if not found:
        sys.exit("janus-opt is not built: cmake --build build/core --target janus-opt")
    return max(found, key=lambda path: path.stat().st_mtime)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--update", action="store_true", help="rewrite the files that differ")
    parser.add_argument("--build", type=Path, help="build folder (default: the newest)")
    parser.add_argument("files", nargs="*", type=Path, help="default: all of tests/ir")
    arguments = parser.parse_args()
    files = arguments.files or sorted((ROOT / "tests" / "ir").rglob("*.ir"))
    command = [str(find_janus_opt(arguments.build)), "--golden"]
    if arguments.update:
        command.append("--update")
    return subprocess.run([*command, *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
