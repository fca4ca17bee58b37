"""Makes the pictures of docs/pictures, in a headless Chromium (Debian's package `chromium`).

python tools/pictures.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT / "tests" / "python" / "harness"))

from browser import Browser, chromium  # noqa: E402
from IPython.core.displaypub import CapturingDisplayPublisher  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402

# A cut, so that there are marks of several kinds, a reason and what to do about it.
PROGRAM = PICTURES / "train.py"


def main() -> None:
    if chromium() is None:
        sys.exit("tools/pictures.py: install Debian's package chromium")
    PICTURES.mkdir(exist_ok=True)
    lines = PROGRAM.read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.html")
        command = [sys.executable, "-m", "torchjanus", "run", "--report", report, PROGRAM]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with Browser(Path(folder, "browser")) as browser:
            browser.size(1280, 720)
            number = next(at for at, line in enumerate(lines, 1) if line.endswith("# the picture"))
            browser.open(report, f"#{PROGRAM.name}:{number}")
            browser.picture(PICTURES / "report.png")
            cell = Path(folder, "cell.html")
            cell.write_text(f"<!DOCTYPE html><meta charset=utf-8>{annotated_cell()}")
            browser.size(1000, 480)
            browser.open(cell)
            browser.run("document.querySelector('summary.l.x').parentElement.open = true")
            browser.picture(PICTURES / "notebook.png")


def annotated_cell() -> str:
    """What a notebook shows of the program's loop as a cell."""
    before, _, loop = PROGRAM.read_text().partition("\nfor ")
    shell = InteractiveShell()
    shell.run_cell(f"%load_ext torchjanus\n{before}").raise_error()
    shown = shell.display_pub = CapturingDisplayPublisher()
    shell.run_cell(f"%%torchjanus\nfor {loop}").raise_error()
    return str(shown.outputs[-1]["data"]["text/html"])


if __name__ == "__main__":
    main()
