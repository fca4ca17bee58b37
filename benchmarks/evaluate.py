"""Measures the evaluations of JANUS's, Jittor's and Terra's papers again, and writes docs/evaluation of what was found.

    python benchmarks/evaluate.py [PART …] [--minutes M] [--rows ROW …] [--columns COLUMN …] [--quick] [--again]
                                  [--sst FOLDER] [--text FILE] [--output FOLDER] [--pages FOLDER] [--check]

What matters most is measured first. Each figure is kept as soon as it is there (evaluation/cells.py), so the command
can be ended at any time, and goes on where it ended. On the same machine it measures what has no figure yet, then
anew what is of an earlier commit; a page says of which commits its figures are. `--minutes` ends it.
`--quick` takes few steps: figures that show whether everything works, kept in build/. `--check` measures nothing and
fails if docs/evaluation is not what the results make.
"""

import argparse
import importlib
import json
import signal
import sys
import time
from pathlib import Path

import record

sys.path.insert(0, str(record.ROOT / "examples"))

from evaluation import cells, pages
from evaluation.parts import PARTS

RESULTS = record.KEPT / "evaluation"
PAGES = record.ROOT / "docs" / "evaluation"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, help="after which nothing more is measured")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="only these")
    parser.add_argument("--columns", nargs="+", metavar="COLUMN", help="only these")
    parser.add_argument("--quick", action="store_true", help="few steps; kept in build/")
    parser.add_argument("--again", action="store_true", help="also what is kept already")
    parser.add_argument("--sst", type=Path, help="folder of the Stanford Sentiment Treebank")
    parser.add_argument("--text", type=Path, help="for the language model to learn")
    parser.add_argument("--output", type=Path, help="folder of the results")
    parser.add_argument("--pages", type=Path, help="folder of the pages")
    parser.add_argument(
        "--check", action="store_true", help="only say whether pages are up to date"
    )
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: choose from {', '.join(PARTS)}")
    scratch = record.SCRATCH / "evaluation"
    options.output = options.output or (scratch if options.quick else RESULTS)
    options.pages = options.pages or (scratch if options.quick else PAGES)
    return options


def measure_cell(options: argparse.Namespace) -> None:
    part, row, column = options.cell
    measures = importlib.import_module("evaluation.measures")
    result = getattr(measures, PARTS[part].measure)(row, column, options)
    options.result.write_text(json.dumps(result))


def asked_for(options: argparse.Namespace) -> list[cells.Cell]:
    every = (cell for name in options.parts or PARTS for cell in PARTS[name].cells())
    return [
        cell
        for cell in every
        if cell.row in (options.rows or (cell.row,))
        and cell.column in (options.columns or (cell.column,))
    ]


def passed_on(options: argparse.Namespace) -> list[str]:
    """What a cell's process has to know."""
    given = ["--quick"] if options.quick else []
    for name in ("sst", "text"):
        if path := getattr(options, name):
            given += [f"--{name}", str(path.resolve())]
    return given


def main() -> None:
    options = parsed()
    if options.cell:
        return measure_cell(options)
    if options.check:
        if wrong := pages.outdated(options.output, options.pages):
            sys.exit(f"{', '.join(wrong)}: not what make evaluate makes of the results")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the process of a cell with it
    until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    data = tuple(path.name for path in (options.sst, options.text) if path)
    run = cells.Run(options.output, passed_on(options), options.quick, options.again, until, data)
    for cell, result in run.measure(asked_for(options)):
        print(f"{cell}: {pages.said(result)}", flush=True)
        pages.write(options.output, options.pages)
    pages.write(options.output, options.pages)
    print(f"{options.pages}: {', '.join(pages.made(options.output))}")


if __name__ == "__main__":
    main()
