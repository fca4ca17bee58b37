"""tools/wheels.py: what it finds wrong with a wheel, and what the libraries of this build show."""

import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import wheels

import torchjanus

TOOL = Path(__file__).resolve().parents[3] / "tools" / "wheels.py"
MODULE = Path(torchjanus._core.__file__)
CORE = MODULE.parents[1] / f"libtorchjanus{sysconfig.get_config_var('EXT_SUFFIX')}"
LIBRARIES = (CORE.resolve(), MODULE.resolve())


def faults(tmp_path, text, *options):
    """What the tool says of a wheel with one library that is compiled of a text."""
    source, library, wheel = (tmp_path / name for name in ("a.c", "a.so", "a.whl"))
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library, *options], check=True)
    with zipfile.ZipFile(wheel, "w") as opened:
        opened.write(library, "torchjanus/libraries/a.so")
    done = subprocess.run([sys.executable, TOOL, "--check", wheel], capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_a_library_for_old_linux_is_taken(tmp_path):
    code, lines = faults(tmp_path, "int PyInit__core(void) { return 0; }")
    assert code == 0
    assert lines == ["a.whl: 0.0 MB, 1 libraries, nothing newer than manylinux_2_27_x86_64"]


def test_what_is_too_new_or_not_ours_is_found(tmp_path):
    text = """
        unsigned arc4random(void);
        int crc32(int, const char*, int);
        int LLVMAdd(void) { return arc4random() + crc32(0, "", 0); }
    """
    code, lines = faults(tmp_path, text, "-lz")
    assert code == 1
    assert lines == [
        "a.whl:",
        "torchjanus/libraries/a.so needs libz.so.1, which is not everywhere",
        "torchjanus/libraries/a.so asks for GLIBC_2.36",
        "torchjanus/libraries/a.so shows LLVMAdd",
    ]


def test_a_wheel_without_libraries_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as opened:
        opened.writestr("torchjanus/__init__.py", "")
    done = subprocess.run(
        [sys.executable, TOOL, "--check", tmp_path / "a.whl"], capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr == "a.whl:\nno library\n"


def test_a_wheel_without_libraries_is_for_everybody(tmp_path):
    for name, text in {
        "torchjanus/__init__.py": "",
        "torchjanus/libraries/a.so": "",
        "torchjanus-0.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torchjanus\nVersion: 0.1.0\n",
        "torchjanus-0.1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-any\n",
    }.items():
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / name).write_text(text)
    pack = [sys.executable, "-m", "wheel", "pack", f"--dest-dir={tmp_path}", tmp_path / "files"]
    subprocess.run(pack, check=True)
    made = wheels.without_libraries(next(tmp_path.glob("*.whl")), tmp_path)
    assert made.name == "torchjanus-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(made) as opened:
        names = [name for name in opened.namelist() if "dist-info" not in name]
        assert names == ["torchjanus/__init__.py"]
        assert "Root-Is-Purelib: true" in opened.read("torchjanus-0.1.0.dist-info/WHEEL").decode()


def test_libraries_show_only_our_own_names():
    for library in LIBRARIES:
        shown = wheels.Library.read(library).shown
        assert shown and [each for each in shown if not wheels.OWN.fullmatch(each)] == []


def test_state_is_in_one_library():
    """A variable that two libraries have is there once only if both show it: then one of them takes the other's."""
    variables = {library: _variables(library) for library in LIBRARIES}
    if not any(variables.values()):
        pytest.skip("the libraries of a wheel list no names that they do not show")
    hidden = [
        name
        for library, names in variables.items()
        for name in names - set(wheels.Library.read(library).shown)
    ]
    assert [name for name, count in Counter(hidden).items() if count > 1] == []
    assert all(variables.values())


def _variables(library):
    """Those of our namespace that can be written and whose names files share."""
    listed = subprocess.run(
        ["nm", "-P", library], capture_output=True, text=True, check=True
    ).stdout
    fields = [line.split() for line in listed.splitlines()]
    return {
        name
        for name, kind, *_ in fields
        if kind in "bBdDuV"
        and "5janus" in name
        and "_GLOBAL__N_" not in name
        and not name.startswith(("_ZTI", "_ZTV", "_ZTS", "_ZTT"))
    }
