"""A mutation check of the tests: plants wrong changes of state, and shows which tests see them.

usage: mutations.py [--state attribute] [--most 3]

Each class of state that a run changes is changed wrongly at the commit or where the sides of a branch
are joined (src/base/mutation.h); the tests of that class run, and at least one has to fail. The table has
a row for each mutation: how many tests saw it (the run ends after `--most`), and the first one.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests" / "python"

# By class of state: its mutations, and the files with its tests.
MUTATIONS = {
    "attribute": ("not_written both_sides twice", "heap classes loop_effects sides one_sided_writes"),
    "slot": ("not_written both_sides twice", "heap classes containers sides one_sided_writes"),
    "item": ("not_written both_sides twice", "heap containers outside sides one_sided_writes"),
    "set": ("not_written both_sides", "heap containers sides one_sided_writes"),
    "list": ("not_written both_sides twice", "lists heap loop_effects sides one_sided_writes"),
    "variable": ("not_written both_sides twice", "outside heap context_variables sides one_sided_writes"),
    "met": ("not_written", "met_writes reached"),
    "grad": ("not_written twice", "autograd steps in_place_gradients"),
    "data": ("not_written", "data state replaced"),
    "hook": ("not_written twice", "leaf_hooks custom_gradients autograd"),
    "finalizer": ("not_written", "one_sided_writes freed"),
    "effect": ("not_written twice", "prints outside"),
    "key_order": ("not_written", "heap containers classes state"),
}  # fmt: skip


def tests_of(names: str) -> list[str]:
    paths = [TESTS / f"test_programs_{name}.py" for name in names.split()]
    return [str(path) for path in paths if path.exists()]


def failures(state: str, mutation: str, files: list[str], most: int) -> tuple[list[str], int]:
    """The tests that fail, and how many changes were made wrongly."""
    command = [sys.executable, "-m", "pytest", "-q", f"--maxfail={most}", "--tb=no", "-rf", *files]
    environment = {**os.environ, "TORCHJANUS_MUTATION": f"{state}:{mutation}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    planted = re.search(r"planted changes: (\d+)", done.stdout)
    failed = re.findall(r"^FAILED (?:.*/)?(\S+)", done.stdout, re.MULTILINE)
    return failed, int(planted[1]) if planted else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", action="append", choices=MUTATIONS, help="only this class")
    parser.add_argument("--most", type=int, default=3, help="stop after so many failing tests")
    options = parser.parse_args()
    unseen = []
    print(f"{'state':10} {'mutation':12} {'changes':>8} {'seen by':>8}  first")
    for state in options.state or MUTATIONS:
        mutations, names = MUTATIONS[state]
        for mutation in mutations.split():
            failed, changes = failures(state, mutation, tests_of(names), options.most)
            if not failed:
                unseen.append(f"{state} {mutation}")
            first = failed[0] if failed else "NONE"
            print(f"{state:10} {mutation:12} {changes:8} {len(failed):8}  {first}", flush=True)
    print(f"unseen: {', '.join(unseen) or 'none'}")
    return int(bool(unseen))


if __name__ == "__main__":
    sys.exit(main())
