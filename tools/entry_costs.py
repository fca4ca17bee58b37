"""Measures with each Python what LeNet's step costs beside its graph: the check of all assumptions, and what follows.

    python3 tools/entry_costs.py [PYTHON …] [--torch 2.15.0] [--turns 5] [--roots FOLDER]

Uses the roots of tools/matrix.py, each with this checkout's wheel for its Python. The Pythons take turns, a process for
each, with one thread. What is kept in benchmarks/results/entry_costs.json are medians over the turns; the table in
docs/versions.md is made of them.
"""

import argparse
import json
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path

import matrix
from versions import PYTHONS, Pair

RESULTS = matrix.CHECKOUT / "benchmarks" / "results" / "entry_costs.json"
BEGIN = "<!-- made by tools/entry_costs.py: begin -->"
END = "<!-- made by tools/entry_costs.py: end -->"
MEASURE = """\
import json, overheads, programs
print(json.dumps(overheads.entry_costs(programs.BENCHMARKS['lenet'], rounds=40)))"""
COLUMNS = {
    "entry_us": "before the graph, µs",
    "leaving_us": "after it, µs",
    "entry_and_leaving_fastest_us": "both, the least, µs",
}

Costs = dict[str, float]


def roots(pythons: list[str], torch: str, folder: Path) -> dict[str, matrix.Root]:
    pairs = {each: Pair(each, torch, PYTHONS[each], "smoke") for each in pythons}
    return {
        each: matrix.Root(folder / pair.release, pair, (torch,)) for each, pair in pairs.items()
    }


def measure(root: matrix.Root) -> Costs:
    output = root.run(f'cd benchmarks && OMP_NUM_THREADS=1 python -c "{MEASURE}"')
    found: Costs = json.loads(output.splitlines()[-1])
    return {name: found[name] for name in COLUMNS}


def side_by_side(of: dict[str, matrix.Root], turns: int) -> dict[str, Costs]:
    with ExitStack() as stack:
        for python, root in of.items():
            root.set_up()
            stack.enter_context(root.mounted())
            root.install(matrix.wheel_of(python, root.torches))
        found: dict[str, list[Costs]] = {python: [] for python in of}
        for _ in range(turns):
            for python, root in of.items():
                found[python].append(measure(root))
    return {
        python: {name: statistics.median(each[name] for each in costs) for name in COLUMNS}
        for python, costs in found.items()
    }


def table(costs: dict[str, Costs]) -> str:
    first = next(iter(costs.values()))
    lines = [["Python", *COLUMNS.values(), "of that on the first"], ["---"] + ["--:"] * 4]
    for python, each in costs.items():
        ratio = (each["entry_us"] + each["leaving_us"]) / (first["entry_us"] + first["leaving_us"])
        numbers = (f"{each[name]:.1f}" for name in COLUMNS)
        lines.append([python, *numbers, f"{ratio:.2f} ×"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", default=list(PYTHONS))
    parser.add_argument("--torch", default="2.15.0")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--roots", type=Path, default=matrix.CHECKOUT / "build" / "roots")
    options = parser.parse_args()
    of = roots(options.pythons, options.torch, options.roots.resolve())
    costs = side_by_side(of, options.turns)
    made = {"torch": options.torch, "commit": matrix.commit(), "costs": costs}
    RESULTS.write_text(json.dumps(made, indent=1) + "\n")
    matrix.write_between(matrix.PAGE, BEGIN, END, table(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
