"""Random programs run the same eagerly, converted and lazily; `make fuzz-programs` tries many more."""

import os

import pytest
import random_mixtures
import random_programs
from random_program_shrinker import shrink

PROGRAMS = int(os.environ.get("TORCHJANUS_RANDOM_PROGRAMS", "300"))


def compare_programs(
    kind: str, seeds: list[int], least_share: float, way: str = "converted"
) -> random_programs.Tally:
    tally, failed = random_programs.Tally(), []
    for outcome in random_programs.run_seeds(seeds, os.cpu_count() or 1, 120, kind, way):
        tally.add(outcome)
        if outcome.kind != "same":
            failed.append(f"seed {outcome.seed}: {outcome.kind}: {outcome.message[:800]}")
    print(tally.text())
    assert not failed, "\n".join(failed)
    assert sum(tally.kinds.values()) == len(seeds)
    # The comparison says something only where graphs ran and calls returned.
    assert tally.graphs > least_share * len(seeds), tally.text()
    assert tally.raised < 0.2 * tally.calls, tally.text()
    return tally


def test_random_programs_do_the_same():
    compare_programs("mixed", list(range(PROGRAMS)), 0.8)


def test_programs_about_effects_do_the_same():
    compare_programs("effects", list(range(PROGRAMS // 2)), 0.68)


@pytest.mark.parametrize("kind", ["mixed", "effects"])
def test_programs_do_the_same_lazily(kind):
    seeds = list(range(500, 500 + PROGRAMS // 12))
    tally = compare_programs(kind, seeds, 0.5, "lazily")
    assert tally.operators.run_in_graphs > 0.1 * tally.operators.noted, tally.text()


def test_programs_depend_on_the_seed_only():
    assert random_mixtures.write_program(5) == random_mixtures.write_program(5)
    assert random_mixtures.write_program(5) != random_mixtures.write_program(6)


def test_shrinking_keeps_what_is_needed():
    text = random_mixtures.write_program(8)
    small = shrink(text, lambda each: "def step" in each and "COUNT = 0" in each, seconds=20)
    assert len(small) < len(text) / 4
    assert "COUNT = 0" in small and "def build" in small


@pytest.mark.parametrize("way", random_programs.WAYS)
def test_a_difference_is_found(way, tmp_path):
    """A step that counts how often it was called in the process: no second run can do the same."""
    program = tmp_path / "program.py"
    program.write_text(random_mixtures.HEAD + PROGRAM_THAT_DIFFERS)
    outcomes = random_programs.run_file(program, seconds=120, way=way)
    assert outcomes.kind == "differs"


PROGRAM_THAT_DIFFERS = """
CALLED = random.__dict__.setdefault("_called_in_a_test", [])


def build():
    def step(x):
        CALLED.append(1)
        return x + len(CALLED)

    return Program(step, [(torch.ones(2),)] * 5)
"""


@pytest.mark.parametrize("shown, kind", [("lost", "rounding"), ("whole", "differs")])
def test_what_rounding_decides_is_no_difference(shown, kind, tmp_path):
    """The converted run is off in the last bits, which show only where eager's own do, or in all."""
    program = tmp_path / "program.py"
    program.write_text(random_mixtures.HEAD + PROGRAM_THAT_ROUNDS.replace("SHOWN", shown))
    assert random_programs.run_file(program, seconds=120).kind == kind


PROGRAM_THAT_ROUNDS = """
import torchjanus

CONVERTED = []


def convert(step):
    CONVERTED.append(1)
    return (torchjanus.function(step),) * 2


def build():
    def step(x):
        lost = (x * (1 + len(CONVERTED) * 2.0**-51) * 1e12).sin()
        whole = x.sin() * (1 + len(CONVERTED))
        return SHOWN

    return Program(step, [(torch.linspace(1, 2, 4),)] * 5, convert=convert)
"""
