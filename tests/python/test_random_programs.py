"""Random programs run the same eagerly and converted; `make fuzz-programs` tries many more."""

import os

import random_programs
from random_program_shrinker import shrink

PROGRAMS = int(os.environ.get("TORCHJANUS_RANDOM_PROGRAMS", "300"))


def test_random_programs_do_the_same():
    tally, failed = random_programs.Tally(), []
    seeds = list(range(PROGRAMS))
    for outcome in random_programs.run_seeds(seeds, jobs=os.cpu_count() or 1, seconds=120):
        tally.add(outcome)
        if outcome.kind != "same":
            failed.append(f"seed {outcome.seed}: {outcome.kind}: {outcome.message[:800]}")
    print(tally.text())
    assert not failed, "\n".join(failed)
    assert sum(tally.kinds.values()) == PROGRAMS
    # The comparison says something only where graphs ran and calls returned.
    assert tally.graphs > 0.3 * PROGRAMS, tally.text()
    assert tally.raised < 0.2 * tally.calls, tally.text()


def test_programs_depend_on_the_seed_only():
    assert random_programs.write_program(5) == random_programs.write_program(5)
    assert random_programs.write_program(5) != random_programs.write_program(6)


def test_shrinking_keeps_what_is_needed():
    text = random_programs.write_program(8)
    small = shrink(text, lambda each: "def step" in each and "COUNT = 0" in each, seconds=20)
    assert len(small) < len(text) / 4
    assert "COUNT = 0" in small and "def build" in small


def test_a_difference_is_found(tmp_path):
    """A step that counts how often it was called in the process: no second run can do the same."""
    program = tmp_path / "program.py"
    program.write_text(random_programs.HEAD + PROGRAM_THAT_DIFFERS)
    outcomes = random_programs.run_file(program, seconds=120)
    assert outcomes.kind == "differs"


PROGRAM_THAT_DIFFERS = """
CALLED = random.__dict__.setdefault("_called_in_a_test", [])


def build():
    def step(x):
        CALLED.append(1)
        return x + len(CALLED)

    return Program(step, [(torch.ones(2),)] * 5)
"""
