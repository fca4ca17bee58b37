"""Unpacks what C++ programs for arm64 are compiled, linked and run with: Debian's packages of that architecture.

    python tools/arm64_sysroot.py build/arm64/sysroot

Nothing is installed, and Debian is not told of another architecture: apt has lists of its own below the folder
beside it, which it checks as it checks any other."""

import os
import subprocess
import sys
from pathlib import Path

# fmt: off
PACKAGES = [
    "libc6", "libc6-dev", "libcrypt-dev", "linux-libc-dev", "libgcc-s1", "libgcc-12-dev", "libstdc++6",
    "libstdc++-12-dev", "llvm-19-dev", "libzstd-dev", "zlib1g-dev", "libgtest-dev", "libgmock-dev",
]
# fmt: on


def download(folder: Path) -> list[Path]:
    for each in ("lists/partial", "archives/partial", "packages"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",  # who else could not write here
        "Acquire::Languages": "none",
        "Dir::Cache": folder,
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": os.devnull,
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *PACKAGES], check=True, cwd=folder / "packages")
    return sorted((folder / "packages").glob("*.deb"))


def turn_inwards(sysroot: Path) -> None:
    """Links from the root of a system become links from that of this one."""
    for path in sysroot.rglob("*"):
        if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
            path.unlink()
            path.symlink_to(os.path.relpath(f"{sysroot}{target}", path.parent))


def main() -> None:
    sysroot = Path(sys.argv[1]).resolve()
    for package in download(sysroot.parent / "apt"):
        subprocess.run(["dpkg-deb", "--extract", package, sysroot], check=True)
    turn_inwards(sysroot)
    (sysroot / "ready").touch()


if __name__ == "__main__":
    main()
