"""Programs that torchrun starts, as users do."""

import os
import subprocess
import sys
from pathlib import Path

SECONDS = 200


def launched(
    folder: Path, *command: str, ranks: int = 2, **variables: str
) -> tuple[list[str], str]:
    """What the ranks have printed, each line once sorted, and what they wrote to stderr."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    ended = run(folder, *launcher, *command, **variables)
    assert ended.returncode == 0, ended.stderr
    return sorted(ended.stdout.splitlines()), ended.stderr


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments and variables, on one thread."""
    variables |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=folder,
        env=os.environ | variables,
    )
