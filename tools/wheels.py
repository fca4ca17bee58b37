"""Builds wheels for every Linux with glibc 2.27 or later: one for each Python, with a library for each torch; and one
without libraries for whoever else installs it.

    python tools/wheels.py                                 all of PYTHONS, for all of TORCHES
    python tools/wheels.py --pythons 3.13 --torches 2.13.0 2.15.0

All are built on this machine, which needs what `make packages` installs. Of the other Pythons only the headers are
used, and by tests the shared library; of the torches the headers and three libraries; and of an old Linux the
libraries to link with (cmake/OldLinux.cmake). They are fetched from the archives of Debian, Ubuntu and PyPI to
build/fetched, once. What the rooms without Python compile to is the same for all, so the compiler's cache has it after
the first.

Each wheel is checked before it lies in dist/: which versions of glibc's and the C++ library's symbols it asks for,
what its libraries show, which libraries they ask for, and its size.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unpacked_packages import FETCHED, UBUNTU, packages
from versions import PYTHONS, TORCHES, archive_of, library_of

CHECKOUT = Path(__file__).resolve().parent.parent
TORCH_FILES = re.compile(
    r"torch/(version\.py|include/.*|lib/(libc10|libtorch_cpu|libtorch_python)\.so)"
)
OLD_LINUX = (UBUNTU, "bionic", ["libc6", "libc6-dev", "libgcc1", "libstdc++6"])
# What may be asked for, at most: what Ubuntu 18.04 and Red Hat 8 have.
NEWEST = {"GLIBC": (2, 27), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
PLATFORM = "manylinux_2_27_x86_64"
FOREIGN = re.compile(  # what torch, Python and every Linux bring along
    r"lib(c10|torch_cpu|torch_python|c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so(\.\d+)?|ld-linux-x86-64\.so\.2"
    r"|libtorchjanus\..*\.so"
)
OWN = re.compile(r".*5janus.*|PyInit__core")
LARGEST = 40e6  # bytes


# --- fetching -------------------------------------------------------------------------------------------
def python_definitions(version: str) -> dict[str, str]:
    """Where the build finds its headers and its shared library: nothing to say of the Python that runs."""
    if version == ".".join(platform.python_version_tuple()[:2]):
        return {}
    release = PYTHONS[version]
    names = [f"libpython{version}-dev", library_of(version)]
    package = packages(archive_of(release), release, names)
    include = package / "usr" / "include"
    library = package / "usr" / "lib" / "x86_64-linux-gnu" / f"libpython{version}.so"
    return {
        "TORCHJANUS_PYTHON_HEADERS": f"{include / f'python{version}'};{include}",
        "TORCHJANUS_PYTHON_LIBRARY": str(library),
    }


def torch_folder(version: str) -> Path:
    """Its headers, and the libraries to link with; those of one Python have the same names as those of another."""
    folder = FETCHED / f"torch-{version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=FETCHED) as downloaded:
            _run(
                sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir",
                "--dest", downloaded, f"torch=={version}",
            )  # fmt: skip
            (wheel,) = Path(downloaded).glob("*.whl")
            unpacked = Path(downloaded) / "files"
            with zipfile.ZipFile(wheel) as opened:
                names = [name for name in opened.namelist() if TORCH_FILES.fullmatch(name)]
                opened.extractall(unpacked, names)
            unpacked.rename(folder)  # now it is whole
    return folder / "torch"


# --- building -------------------------------------------------------------------------------------------
def build_folder(python: str) -> Path:
    return CHECKOUT / "build" / f"wheel-{python}"


def build(python: str, torches: list[str], output: Path) -> Path:
    """A wheel of this checkout; its tag says which Python and Linux it is for."""
    definitions = {
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",  # as the tests' libraries are, so the cache has them
        "TORCHJANUS_WARNINGS_AS_ERRORS": "ON",
        "CMAKE_CXX_COMPILER": "clang++-19",
        "CMAKE_C_COMPILER": "clang-19",
        "CMAKE_LINKER_TYPE": "LLD",
        "CMAKE_CXX_COMPILER_LAUNCHER": CHECKOUT / "cmake" / "cached",
        "TORCHJANUS_OLD_LINUX": packages(*OLD_LINUX),
        "TORCHJANUS_TORCHES": ";".join(str(torch_folder(each)) for each in torches),
        "TORCHJANUS_TESTS": "ON",  # not built here, but see build_tests
        **python_definitions(python),
    }
    arguments = [f"-Ccmake.define.{name}={value}" for name, value in definitions.items()]
    with tempfile.TemporaryDirectory(dir=FETCHED) as made:
        _run(
            sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", made,
            f"-Cbuild-dir={build_folder(python)}", "-Cbuild.targets=libraries", *arguments,
            str(CHECKOUT),
        )  # fmt: skip
        tag = f"cp{python.replace('.', '')}"
        wheel = retagged(Path(made), tag, tag, PLATFORM)
        check(wheel)
        output.mkdir(exist_ok=True)
        return Path(shutil.copy(wheel, output))


def build_tests(python: str) -> list[Path]:
    """What the tests of a wheel need beside it, as paths in the build folder. The wheel has to be built."""
    modules = [f"_{name}_support" for name in ("profile", "syntax")]
    programs = [f"test_{room}" for room in ("python", "syntax", "speculate", "frontend")]
    tools = ["janus-opt", "list-ops"]
    folder = build_folder(python)
    _run("cmake", "--build", str(folder), "-t", *modules, *programs, *tools)
    built = [
        *(folder / "tools" / each for each in tools),
        *(folder / "tests" / "cpp" / each for each in programs),
        *(folder / "tests" / "python" / "support").glob("*.so"),
    ]
    return [each.relative_to(folder) for each in built]


def without_libraries(wheel: Path, output: Path) -> Path:
    """A wheel for all Pythons and machines that there is no other for: one warning, and programs run imperatively."""
    with tempfile.TemporaryDirectory() as made:
        _run(sys.executable, "-m", "wheel", "unpack", f"--dest={made}", str(wheel))
        (unpacked,) = Path(made).iterdir()
        shutil.rmtree(unpacked / "torchjanus" / "libraries")
        (description,) = unpacked.glob("*.dist-info/WHEEL")
        description.write_text(
            description.read_text().replace("Root-Is-Purelib: false", "Root-Is-Purelib: true")
        )
        _run(sys.executable, "-m", "wheel", "pack", f"--dest-dir={made}", str(unpacked))
        return Path(shutil.copy(retagged(Path(made), "py3", "none", "any"), output))


def retagged(folder: Path, python: str, abi: str, machine: str) -> Path:
    """The folder's only wheel, with a name that says what it is for."""
    (wheel,) = folder.glob("*.whl")
    _run(
        sys.executable, "-m", "wheel", "tags", "--remove", f"--python-tag={python}",
        f"--abi-tag={abi}", f"--platform-tag={machine}", str(wheel),
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


# --- checking -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Library:
    """What a shared library needs and shows, as objdump has it."""

    needed: list[str]
    versions: list[str]  # of symbols that it asks for, such as GLIBC_2.17
    shown: list[str]

    @classmethod
    def read(cls, file: Path) -> "Library":
        headers = _output("objdump", "-p", str(file))
        asked_for = headers.partition("Version References:")[2]
        symbols = _output("objdump", "-T", str(file)).splitlines()
        return cls(
            needed=re.findall(r"NEEDED +(\S+)", headers),
            versions=sorted(set(re.findall(r" 0x\w+ 0x\w+ \d+ (\S+)", asked_for))),
            shown=[each.split()[-1] for each in symbols if each[:1] == "0" and "*UND*" not in each],
        )

    def faults(self) -> Iterator[str]:
        for each in self.needed:
            if not FOREIGN.fullmatch(each):
                yield f"needs {each}, which is not everywhere"
        for version in self.versions:
            if not _is_old(version):
                yield f"asks for {version}"
        for each in self.shown:
            if not OWN.fullmatch(each):
                yield f"shows {each}"


def _is_old(version: str) -> bool:
    name, _, number = version.partition("_")
    parts = number.split(".")
    return all(each.isdigit() for each in parts) and tuple(map(int, parts)) <= NEWEST.get(name, ())


def check(wheel: Path) -> None:
    """Says what the wheel is, or ends the program with what is wrong with it."""
    faults = []
    size = wheel.stat().st_size
    if size > LARGEST:
        faults.append(f"{size} bytes are more than {LARGEST:.0f}")
    with tempfile.TemporaryDirectory() as unpacked, zipfile.ZipFile(wheel) as opened:
        opened.extractall(unpacked)
        libraries = sorted(Path(unpacked).rglob("*.so"))
        for file in libraries:
            name = file.relative_to(unpacked)
            faults += [f"{name} {fault}" for fault in Library.read(file).faults()]
    if faults or not libraries:
        raise SystemExit("\n".join([f"{wheel.name}:", *(faults or ["no library"])]))
    print(
        f"{wheel.name}: {size / 1e6:.1f} MB, {len(libraries)} libraries, nothing newer than {PLATFORM}"
    )


# --- the command ----------------------------------------------------------------------------------------
def _run(*command: str) -> None:
    # Versions are said here: what else this machine lets pip take does not count.
    subprocess.run(command, check=True, env={**os.environ, "PIP_CONSTRAINT": os.devnull})


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pythons", nargs="+", choices=PYTHONS, default=list(PYTHONS))
    parser.add_argument("--torches", nargs="+", default=TORCHES, metavar="VERSION")
    parser.add_argument("--check", type=Path, metavar="WHEEL", help="builds nothing, only checks")
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.check)
        return
    FETCHED.mkdir(parents=True, exist_ok=True)
    dist = CHECKOUT / "dist"
    wheels = [build(python, arguments.torches, dist) for python in arguments.pythons]
    without_libraries(wheels[0], dist)


if __name__ == "__main__":
    main()
