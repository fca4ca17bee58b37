"""What the front end makes of each program of tests/programs is what its golden file says."""

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

# Since torch 2.15 it is written in C, so that the graph assumes something else of it.
APPLY_IS_IN_C = not hasattr(torch.autograd.Function.apply, "__func__")


@pytest.mark.parametrize(
    "program", all_programs(), ids=lambda program: f"{program.parent.name}/{program.stem}"
)
def test_golden_graph(program):
    text, eager, ours = run_program(program)
    compare_runs(eager, ours)
    if program.stem == "custom_function" and APPLY_IS_IN_C:
        return
    if found := difference(program, text):
        pytest.fail(f"{found}\n{HOW_TO_UPDATE}", pytrace=False)


def test_each_golden_file_has_its_program():
    assert sorted(PROGRAMS.rglob("*.ir")) == [golden_of(each) for each in all_programs()]
