"""Unpacks what C++ programs for arm64 are compiled, linked and run with: Debian's packages of that architecture.

python tools/arm64_sysroot.py build/arm64/sysroot
"""

import sys
from pathlib import Path

from unpacked_packages import unpack

# fmt: off
PACKAGES = [
    "libc6", "libc6-dev", "libcrypt-dev", "linux-libc-dev", "libgcc-s1", "libgcc-12-dev", "libstdc++6",
    "libstdc++-12-dev", "llvm-19-dev", "libzstd-dev", "zlib1g-dev", "libgtest-dev", "libgmock-dev",
]
# fmt: on


def main() -> None:
    sysroot = Path(sys.argv[1]).resolve()
    unpack(PACKAGES, sysroot, architecture="arm64")
    (sysroot / "ready").touch()


if __name__ == "__main__":
    main()
