"""Packages of Debian and Ubuntu, unpacked to a folder and not installed. apt fetches them and checks their signatures;
it has lists of its own for that, so this machine's Debian is not told of another archive or architecture."""

import os
import shutil
import subprocess
from pathlib import Path

FETCHED = Path(__file__).resolve().parent.parent / "build" / "fetched"
DEBIAN, UBUNTU = "http://deb.debian.org/debian", "http://archive.ubuntu.com/ubuntu"
KEYS = Path("/usr/share/keyrings")


def packages(archive: str, suite: str, names: list[str]) -> Path:
    """A folder below FETCHED with the files of the packages, which the archive's owner has signed."""
    folder = FETCHED / f"{suite}-{'-'.join(names)}"
    unpack(names, folder, source=f"deb [signed-by={keyring(archive)}] {archive} {suite} main")
    return folder


def keyring(archive: str) -> Path:
    """The keys of the archive's owner. Ubuntu's are in a package of Debian's, from trixie on."""
    if archive == UBUNTU:
        unpacked = packages(DEBIAN, "trixie", ["ubuntu-keyring"])
        return unpacked / KEYS.relative_to("/") / "ubuntu-archive-keyring.gpg"
    return KEYS / "debian-archive-keyring.gpg"


def unpack(
    names: list[str], folder: Path, *, architecture: str = "amd64", source: str | None = None
) -> None:
    """Unpacks packages, unless the folder is there. `source`: a line of sources.list; else this machine's sources."""
    if folder.exists():
        return
    scratch = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for package in _download(names, scratch / "apt", architecture, source):
        subprocess.run(["dpkg-deb", "--extract", package, scratch / "files"], check=True)
    _turn_inwards(scratch / "files")
    (scratch / "files").rename(folder)  # now it is whole
    shutil.rmtree(scratch)


def _download(names: list[str], folder: Path, architecture: str, source: str | None) -> list[Path]:
    for each in ("lists/partial", "archives/partial", "packages"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    settings: dict[str, object] = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "root",  # who else could not write here
        "Acquire::Check-Valid-Until": "false",  # a mirror may stand still
        "Acquire::Languages": "none",
        "Dir::Cache": folder,
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": os.devnull,
    }
    if source is not None:
        (folder / "sources.list").write_text(f"{source}\n")
        settings |= {
            "Dir::Etc::SourceList": folder / "sources.list",
            "Dir::Etc::SourceParts": os.devnull,
        }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *names], check=True, cwd=folder / "packages")
    return sorted((folder / "packages").glob("*.deb"))


def _turn_inwards(folder: Path) -> None:
    """Links from the root of a system become links from that of this one."""
    for path in folder.rglob("*"):
        if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
            path.unlink()
            path.symlink_to(os.path.relpath(f"{folder}{target}", path.parent))
