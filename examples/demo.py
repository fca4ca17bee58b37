"""Trains LeNet on Fashion-MNIST twice with the same unmodified script: eagerly, then with
`torchjanus run`; then compares accuracy and speed, and shows what was converted.

    python examples/demo.py [--output FOLDER] [--images N] [any option of lenet.py]

Writes a page with both curves against time, and the report of the converted run beside it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import training_page
from curves import curves
from rich.console import Console
from rich.table import Table

SCRIPT = Path(__file__).with_name("lenet.py")
FOLDER = Path(__file__).resolve().parents[1] / "build" / "demo"
TITLE = "LeNet on Fashion-MNIST"


def train(interpreter: list[str], arguments: list[str], summary: Path) -> dict:
    """Runs the script with its live display; returns its summary."""
    command = [*interpreter, str(SCRIPT), *arguments, "--summary", str(summary)]
    subprocess.run(command, check=True)
    return json.loads(summary.read_text())


def rows_of(eager: dict, converted: dict) -> list[list[str]]:
    """The table: what the two runs have come to."""
    compared = (
        ("test accuracy", "accuracy", "{:.4f}"),
        ("images/s", "images_per_second", "{:.0f}"),
        ("seconds", "seconds", "{:.1f}"),
    )
    rows = [[label, *(form.format(run[key]) for run in (eager, converted))]
            for label, key, form in compared]  # fmt: skip
    return [["", "eager", "torchjanus"], *rows]


def write_page(file: Path, report: Path, eager: dict, converted: dict, said: list[str]) -> None:
    lines = {"eager": eager["curve"], "torchjanus": converted["curve"]}
    picture = curves(lines, "loss while training", "seconds", "mean of the epoch so far")
    section = training_page.Section(
        TITLE, [picture], rows_of(eager, converted),
        {"The report of the converted run: what became graphs, and why": report}, "; ".join(said),
    )  # fmt: skip
    training_page.write(file, "The same script, eagerly and converted", [section])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=FOLDER, help="where the pages go")
    options, arguments = parser.parse_known_args()
    console = Console()
    options.output.mkdir(parents=True, exist_ok=True)
    report = options.output / "report.html"
    with tempfile.TemporaryDirectory() as folder:
        stats_file = Path(folder) / "stats.json"
        console.rule("eager: python examples/lenet.py")
        eager = train([sys.executable], arguments, Path(folder) / "eager.json")
        console.rule("converted: torchjanus run examples/lenet.py")
        run = [sys.executable, "-m", "torchjanus", "run", "--explain", "--stats", str(stats_file)]
        run += ["--report", str(report)]
        converted = train(run, arguments, Path(folder) / "converted.json")
        stats = json.loads(stats_file.read_text())
    head, *rows = rows_of(eager, converted)
    table = Table(*head, title=TITLE)
    for row in rows:
        table.add_row(*row)
    console.rule()
    console.print(table)
    ratio = converted["images_per_second"] / eager["images_per_second"]
    seconds = stats["seconds_until_first_graph"]
    said = [f"speed: {ratio:.2f} x eager", "no graph ran"]
    if seconds is not None:
        said[1] = f"first graph ran {seconds:.2f} s after the start of the first profiled step"
    write_page(options.output / "index.html", report, eager, converted, said)
    for line in (*said, f"page: {options.output / 'index.html'}"):
        console.print(line, soft_wrap=True)


if __name__ == "__main__":
    main()
