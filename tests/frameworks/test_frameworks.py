"""Programs that are built on packages print under `torchjanus run` what they print under python; no internal errors.

`make test-frameworks` installs the packages. Where they are not, the tests are skipped.
"""

import ast
import importlib.util
from pathlib import Path

import frameworks
import pytest


def missing(program: Path) -> list[str]:
    """The packages that it imports and that are not installed."""
    named = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            named |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            named.add(node.module.split(".")[0])
    return sorted(name for name in named if importlib.util.find_spec(name) is None)


@pytest.mark.parametrize(
    "program", sorted(frameworks.PROGRAMS.glob("*.py")), ids=lambda path: path.stem
)
def test_prints_what_it_prints_eagerly(program: Path, tmp_path: Path) -> None:
    if absent := missing(program):
        pytest.skip(f"not installed: {', '.join(absent)}")
    eager, converted = (frameworks.run(program, tmp_path, converted=each) for each in (False, True))
    assert eager.code == 0, eager.errors
    assert converted.code == 0, converted.errors
    assert "internal error" not in converted.errors
    result, worst = frameworks.difference(eager.lines, converted.lines)
    assert result != "differs", worst
