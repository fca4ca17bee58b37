"""What the front end makes of each program of tests/programs is what its golden file says."""

import sys

import pytest
from golden_programs import (
    HOW_TO_UPDATE,
    PROGRAMS,
    all_programs,
    compare_runs,
    difference,
    golden_of,
    run_program,
)

import torch

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])

# Graphs tell what they assume of library code, which is another in these versions.
TOLD_OTHERWISE = {
    *(("custom_function", "torch_decorator", "distribution") if TORCH >= (2, 15) else ()),
    *(("signature",) if sys.version_info >= (3, 14) else ()),
}


@pytest.mark.parametrize(
    "program", all_programs(), ids=lambda program: f"{program.parent.name}/{program.stem}"
)
def test_golden_graph(program):
    text, eager, ours = run_program(program)
    compare_runs(eager, ours)
    if program.stem in TOLD_OTHERWISE:
        return
    if found := difference(program, text):
        pytest.fail(f"{found}\n{HOW_TO_UPDATE}", pytrace=False)


def test_each_golden_file_has_its_program():
    assert sorted(PROGRAMS.rglob("*.ir")) == [golden_of(each) for each in all_programs()]
