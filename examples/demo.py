"""Trains LeNet on Fashion-MNIST twice with the same unmodified script: eagerly, then with
`torchjanus run`; then compares accuracy and speed, and shows what was converted.

    python examples/demo.py [--images N] [any option of lenet.py]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

SCRIPT = Path(__file__).with_name("lenet.py")


def train(interpreter: list[str], arguments: list[str], summary: Path) -> dict:
    """Runs the script with its live display; returns its summary."""
    command = [*interpreter, str(SCRIPT), *arguments, "--summary", str(summary)]
    subprocess.run(command, check=True)
    return json.loads(summary.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    _, arguments = parser.parse_known_args()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        stats_file = Path(folder) / "stats.json"
        console.rule("eager: python examples/lenet.py")
        eager = train([sys.executable], arguments, Path(folder) / "eager.json")
        console.rule("converted: torchjanus run examples/lenet.py")
        run = [sys.executable, "-m", "torchjanus", "run", "--explain", "--stats", str(stats_file)]
        converted = train(run, arguments, Path(folder) / "converted.json")
        stats = json.loads(stats_file.read_text())
    table = Table("", "eager", "torchjanus", title="LeNet on Fashion-MNIST")
    for label, key, form in (
        ("test accuracy", "accuracy", "{:.4f}"),
        ("images/s", "images_per_second", "{:.0f}"),
        ("seconds", "seconds", "{:.1f}"),
    ):
        table.add_row(label, form.format(eager[key]), form.format(converted[key]))
    console.rule()
    console.print(table)
    ratio = converted["images_per_second"] / eager["images_per_second"]
    console.print(f"speed: {ratio:.2f} x eager")
    seconds = stats["seconds_until_first_graph"]
    if seconds is None:
        console.print("no graph ran")
    else:
        console.print(f"first graph ran {seconds:.2f} s after the start of the first profiled step")


if __name__ == "__main__":
    main()
