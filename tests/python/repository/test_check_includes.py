"""tools/check_includes.py: which include cycles and upward includes it finds, and how it names them."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
TOOL = CHECKOUT / "tools" / "check_includes.py"


@pytest.fixture
def checkout(tmp_path):
    """A checkout of two rooms, of which `top` knows `base`."""
    write(
        tmp_path,
        "CMakeLists.txt",
        "janus_room(base)\nif(ON)\n  janus_room(top KNOWS base)\nendif()\n",
    )
    write(tmp_path, "src/base/number.h", "#pragma once\n")
    write(tmp_path, "src/top/shown.cpp", '#include "base/number.h"\n')
    return tmp_path


def write(checkout, name, text):
    path = checkout / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def includes(checkout, name, *targets):
    """Writes src/`name`, whose lines from the second on include `targets`."""
    lines = [f'#include "{target}"' for target in targets]
    write(checkout, f"src/{name}", "\n".join(["#pragma once", *lines, ""]))


def run(checkout):
    return subprocess.run(
        [sys.executable, TOOL, "--checkout", checkout], capture_output=True, text=True
    )


def circle(checkout, folder, size):
    for i in range(size):
        includes(checkout, f"{folder}/unit{i}.h", f"{folder}/unit{(i + 1) % size}.h")


def test_figures_of_a_clean_checkout(checkout):
    result = run(checkout)
    assert result.returncode == 0 and result.stderr == ""
    assert result.stdout == (
        "includes: 2 units, 1 arrows, 0 cycles of two units, 0 larger, 0 upward arrows\n"
    )


def test_header_and_source_file_are_one_unit(checkout):
    includes(checkout, "base/a.h")
    includes(checkout, "base/a.cpp", "base/a.h", "base/number.h")
    assert run(checkout).stdout.startswith("includes: 3 units, 2 arrows, 0 cycles of two")


def test_two_units_may_include_each_other(checkout):
    circle(checkout, "base", 2)
    result = run(checkout)
    assert result.returncode == 0 and "1 cycles of two units, 0 larger" in result.stdout


def test_cycle_of_three_units_is_named_with_its_lines(checkout):
    circle(checkout, "base", 3)
    result = run(checkout)
    assert result.returncode == 1 and "1 larger (3 units)" in result.stdout
    assert result.stderr == (
        "3 units include each other: base/unit0 base/unit1 base/unit2\n"
        "  the shortest cycle:\n"
        "    src/base/unit0.h:2 includes base/unit1.h\n"
        "    src/base/unit1.h:2 includes base/unit2.h\n"
        "    src/base/unit2.h:2 includes base/unit0.h\n"
    )


def test_cycle_by_a_source_file(checkout):
    includes(checkout, "base/a.cpp", "base/b.h")
    includes(checkout, "base/b.h", "base/c.h")
    includes(checkout, "base/c.cpp", "base/a.h")
    includes(checkout, "base/a.h")
    includes(checkout, "base/c.h")
    assert "src/base/c.cpp:2 includes base/a.h" in run(checkout).stderr


def test_shortest_cycle_of_a_larger_one(checkout):
    circle(checkout, "base", 6)
    includes(checkout, "base/unit2.h", "base/unit3.h", "base/unit0.h")
    shown = run(checkout).stderr.splitlines()
    assert shown[0].startswith("6 units include each other")
    assert shown[2:] == [
        "    src/base/unit0.h:2 includes base/unit1.h",
        "    src/base/unit1.h:2 includes base/unit2.h",
        "    src/base/unit2.h:3 includes base/unit0.h",
    ]


def test_long_chain_needs_no_deep_stack(checkout):
    circle(checkout, "base", 3000)
    assert "1 larger (3000 units)" in run(checkout).stdout


def test_each_larger_cycle_is_a_violation(checkout):
    circle(checkout, "base", 4)
    circle(checkout, "top", 3)
    result = run(checkout)
    assert result.returncode == 1 and "2 larger (4, 3 units)" in result.stdout
    named = [line for line in result.stderr.splitlines() if "include each other" in line]
    assert [line.split()[0] for line in named] == ["4", "3"]


def test_include_that_runs_up(checkout):
    includes(checkout, "base/number.h", "top/shown.h")
    includes(checkout, "top/shown.h")
    result = run(checkout)
    assert result.returncode == 1 and result.stdout.endswith("1 upward arrows\n")
    assert "src/base/number.h:2 includes top/shown.h, but base does not know top\n" in result.stderr


def test_what_a_known_room_knows_is_known(checkout):
    write(
        checkout,
        "CMakeLists.txt",
        "janus_room(base)\njanus_room(mid KNOWS base)\njanus_room(top KNOWS mid)\n",
    )
    assert run(checkout).returncode == 0


def test_rooms_within_a_folder(checkout):
    write(
        checkout,
        "CMakeLists.txt",
        "janus_room(base)\njanus_rooms(front values core\n  KNOWS base)  # janus_room(comment)\n"
        "janus_room(top KNOWS front)\n",
    )
    includes(checkout, "front/values/number.h", "base/number.h", "front/core/frame.h")
    includes(checkout, "front/core/frame.h", "front/values/number.h", "front/whole.h")
    includes(checkout, "front/whole.h", "front/values/number.h", "front/core/frame.h", "top/a.h")
    includes(checkout, "top/a.h", "front/core/frame.h", "base/number.h")
    upward = [line.removeprefix("src/") for line in run(checkout).stderr.splitlines()[-3:]]
    assert upward == [
        "front/core/frame.h:3 includes front/whole.h, but front/core does not know front",
        "front/values/number.h:3 includes front/core/frame.h, "
        "but front/values does not know front/core",
        "front/whole.h:4 includes top/a.h, but front does not know top",
    ]


def test_folder_within_a_folder_as_a_room_of_its_own(checkout):
    write(
        checkout,
        "CMakeLists.txt",
        "janus_room(base)\njanus_room(front/core KNOWS base)\njanus_room(top KNOWS front/core)\n",
    )
    includes(checkout, "front/core/frame.h", "base/number.h")
    includes(checkout, "top/shown.h", "front/core/frame.h")
    assert run(checkout).returncode == 0


def test_options_of_a_room(checkout):
    write(
        checkout,
        "CMakeLists.txt",
        "janus_room(base)\njanus_room(front FOR_EACH_TORCH KNOWS base)\njanus_room(top KNOWS base)\n",
    )
    includes(checkout, "front/main.cpp", "base/number.h", "top/shown.h")
    includes(checkout, "top/shown.h")
    assert run(checkout).stderr == (
        "src/front/main.cpp:3 includes top/shown.h, but front does not know top\n"
    )


def test_rooms_that_know_each_other(checkout):
    write(checkout, "CMakeLists.txt", "janus_room(base KNOWS top)\njanus_room(top KNOWS base)\n")
    assert "the room base knows itself" in run(checkout).stderr


def test_file_in_no_room(checkout):
    includes(checkout, "lost/file.h")
    assert run(checkout).stderr == "src/lost/file.h is in no room\n"


def test_room_that_does_not_exist(checkout):
    write(checkout, "CMakeLists.txt", "janus_room(base)\njanus_room(top KNOWS bsae)\n")
    result = run(checkout)
    assert result.returncode == 1 and "the room top KNOWS bsae, which is no room" in result.stderr


def test_this_checkout():
    result = run(CHECKOUT)
    assert result.returncode == 0, result.stderr
