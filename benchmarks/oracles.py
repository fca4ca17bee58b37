"""How many samples of torch's own databases agree with eager, by tests/oracles/run.py.

    python benchmarks/oracles.py [--samples N] [--output FOLDER]

Operators, whole steps around them, modules and optimizers. Writes oracles.json.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import record
import tables

TITLES = {
    "operators": "operators (OpInfo)",
    "steps": "whole steps around operators",
    "modules": "modules (module_db)",
    "optimizers": "optimizers (optim_db)",
}


def measure(samples: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        command = [sys.executable, str(record.ROOT / "tests" / "oracles" / "run.py")]
        subprocess.run([*command, "--samples", str(samples), "--json", str(found)], check=False)
        outcomes = json.loads(found.read_text())
    return [
        {"title": TITLES[name], "counts": {kind: outcome.get(kind, 0) for kind in tables.OUTCOMES}}
        for name, outcome in outcomes.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2, help="of each operator and form")
    record.add_output(parser)
    options = parser.parse_args()
    about = record.about(options.samples)
    rows = measure(options.samples)
    record.write(options.output, "oracles", about, rows)
    print(tables.oracles(rows))


if __name__ == "__main__":
    main()
