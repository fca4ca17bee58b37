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


if __name__ == "__main__":
    main()
