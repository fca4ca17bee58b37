"""Results as JSON, with what it takes to compare them: machine, versions, commit, date and rounds.

A file holds one run of one benchmark: `{"about": {...}, "rows": ...}`. Runs that are kept lie in
benchmarks/results; benchmarks/page.py makes docs/benchmarks.md and the README's table of them.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benchmarks" / "results"
SCRATCH = ROOT / "build" / "benchmarks"


def add_output(parser: argparse.ArgumentParser) -> None:
    """`--output FOLDER`: by default where nothing is kept."""
    parser.add_argument(
        "--output", type=Path, default=SCRATCH, help="folder of the results, build/benchmarks if not given"
    )  # fmt: skip


def about(rounds: int) -> dict[str, Any]:
    """Machine, versions, commit and date of what is measured by this process now."""
    import torch
    import torchjanus

    return {
        "machine": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "torchjanus": torchjanus.__version__,
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
        "rounds": rounds,
    }


def write(folder: Path, name: str, about: dict[str, Any], rows: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"about": about, "rows": rounded(rows)}, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n")


def rounded(value: Any) -> Any:
    """Five significant digits of every float: more than is measured."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def read(folder: Path, name: str) -> dict[str, Any] | None:
    """`about` and `rows` of a benchmark; None if it was not run."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str:
    """The checkout's commit; with a plus if what is measured was changed since."""
    named = git("rev-parse", "--short=9", "HEAD")
    changed = git("status", "--porcelain", "--", "src", "torchjanus", "benchmarks/*.py", "examples")
    return (named or "unknown") + ("+" if changed else "")


def git(*arguments: str) -> str:
    run = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return run.stdout.strip()
