"""The command line of tools that make a page of the documentation: write it, or say whether it is up to date."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def main(page: Path, make: Callable[[], str], target: str, title: str) -> None:
    """`make` gives the page's text; `target` is the one of the Makefile that writes it."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    options = parser.parse_args()
    made = make()
    if options.check and (not page.exists() or page.read_text() != made):
        sys.exit(f"{page.name} is not what make {target} makes: run it")
    if not options.check:
        page.write_text(made)
