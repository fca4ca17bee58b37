"""Runs a sample of the programs of tests/programs, eagerly and converted, and compares all that can be observed.

    python tools/smoke.py               30 programs, spread evenly over the subjects; about a minute
    python tools/smoke.py --programs 8

It is what a pair of Python and torch is tried with where the whole suite takes too long. It needs no pytest. What
the graphs look like is not compared. The last line is the result: `30 programs: 30 passed, 0 failed, 28 as graphs`.
"""

import argparse
import os
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python" / "harness"))
# A call is a graph's as soon as there is one, whatever it costs.
os.environ["TORCHJANUS_DISABLE"] = "background,budget"
os.environ.setdefault("TORCHJANUS_LOG", "verify")

from golden_programs import all_programs, compare_runs, run_program  # noqa: E402

from torchjanus import _core  # noqa: E402


def sample(count: int) -> list[Path]:
    programs = all_programs()
    return [programs[i * len(programs) // count] for i in range(min(count, len(programs)))]


def ran_as_graph(program: Path) -> bool:
    """Whether some call of the converted program ran as a graph. Raises where it does not do what eager does."""
    _, eager, ours = run_program(program)
    compare_runs(eager, ours)
    return bool(ours.stats["hits"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=30)
    _core.testing.let_times_decide(False)
    passed = failed = graphs = 0
    for program in sample(parser.parse_args().programs):
        try:
            graphs += ran_as_graph(program)
            passed += 1
        except Exception:
            print(f"{program.relative_to(ROOT)} failed:\n{traceback.format_exc()}", flush=True)
            failed += 1
    print(f"{passed + failed} programs: {passed} passed, {failed} failed, {graphs} as graphs")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
