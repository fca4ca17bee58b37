"""Makes the pictures of docs/pictures, each of what the commands write: pages in a headless Chromium (Debian's package
`chromium`), the terminal and the timeline as SVG.

python tools/pictures.py [NAME …]
"""

import argparse
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT / "tests" / "python" / "harness"))

import timeline_picture  # noqa: E402
from browser import Browser, chromium  # noqa: E402
from IPython.core.displaypub import CapturingDisplayPublisher  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from rich._export_format import CONSOLE_SVG_FORMAT  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.terminal_theme import DEFAULT_TERMINAL_THEME  # noqa: E402
from rich.text import Text  # noqa: E402
from tensorboard import program as tensorboard  # noqa: E402

# A cut, so that there are marks of several kinds, a reason and what to do about it.
PROGRAM = PICTURES / "train.py"
MOST_BYTES, MOST_OF_ALL = 150_000, 800_000
COLUMNS, ROWS = 100, 13  # of the terminal


class Studio:
    """A browser, and a folder for what is looked at."""

    def __init__(self, folder: Path, browser: Browser) -> None:
        self.folder, self.browser = folder, browser
        self.environment = {**os.environ, "TORCHJANUS_CACHE": str(folder / "cache")}

    def run(self, *command: str | Path) -> None:
        done = subprocess.run(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stdout)


def report(studio: Studio, file: Path) -> None:
    page = studio.folder / "report.html"
    studio.run("-m", "torchjanus", "run", "--report", page, PROGRAM)
    lines = PROGRAM.read_text().splitlines()
    number = next(at for at, line in enumerate(lines, 1) if line.endswith("# the picture"))
    studio.browser.size(1280, 720)
    studio.browser.open(page, f"#{PROGRAM.name}:{number}")
    studio.browser.picture(file)


def timeline(studio: Studio, file: Path) -> None:
    """The run is the program's first one: it compiles its kernels."""
    trace = studio.folder / "trace.json"
    studio.environment["TORCHJANUS_CACHE"] = str(studio.folder / "empty cache")
    studio.run("-m", "torchjanus", "run", "--trace", trace, PROGRAM)
    studio.environment["TORCHJANUS_CACHE"] = str(studio.folder / "cache")
    file.write_text(timeline_picture.drawn(json.loads(trace.read_text())), encoding="utf-8")


def notebook(studio: Studio, file: Path) -> None:
    cell = studio.folder / "cell.html"
    cell.write_text(f"<!DOCTYPE html><meta charset=utf-8>{annotated_cell()}")
    studio.browser.size(1000, 480)
    studio.browser.open(cell)
    studio.browser.run("document.querySelector('summary.l.x').parentElement.open = true")
    studio.browser.picture(file)


def annotated_cell() -> str:
    """What a notebook shows of the program's loop as a cell."""
    before, _, loop = PROGRAM.read_text().partition("\nfor ")
    shell = InteractiveShell()
    shell.run_cell(f"%load_ext torchjanus\n{before}").raise_error()
    shown = shell.display_pub = CapturingDisplayPublisher()
    shell.run_cell(f"%%torchjanus\nfor {loop}").raise_error()
    return str(shown.outputs[-1]["data"]["text/html"])


# --- the terminal ---------------------------------------------------------------------------------


def live(studio: Studio, file: Path) -> None:
    """The terminal as it is when the view is drawn for the last time."""
    shown = seen_by_terminal(
        ["-m", "torchjanus", "run", "--live", str(PROGRAM)], studio.environment
    )
    before, rows = last_view(shown)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for line in ["$ torchjanus run --live train.py", *before, *rows]:
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")
    # A picture asks no network for a font.
    form = re.sub(r"@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    file.write_text(
        console.export_svg(title="", theme=DEFAULT_TERMINAL_THEME, code_format=form),
        encoding="utf-8",
    )


def seen_by_terminal(arguments: Sequence[str], environment: dict[str, str]) -> str:
    """All that the command writes to its terminal."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS + 5, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=end,
        env={**environment, "TERM": "xterm", "PYTHONUNBUFFERED": "1"},
    )
    os.close(end)
    shown = b""
    try:
        while data := os.read(terminal, 65536):
            shown += data
    except OSError:  # how a terminal says that nobody has it open
        pass
    os.close(terminal)
    if process.wait() != 0:
        raise RuntimeError(shown.decode())
    return shown.decode()


def last_view(shown: str) -> tuple[list[str], list[str]]:
    """What the program has written before the view was drawn last, and the rows of that (torchjanus/live.py)."""
    drawn = [
        each
        for each in re.finditer(r"\x1b7(.*?)\x1b8", shown, flags=re.DOTALL)
        if "steps/s" in each[1]
    ]
    before = re.sub(
        r"\x1b7.*?\x1b8|\x1bD|\x1b\[\d+A", "", shown[: drawn[-1].start()], flags=re.DOTALL
    )
    return before.splitlines(), re.split(r"\x1b\[\d+;1H\x1b\[2K", drawn[-1][1])[1:]


# --- TensorBoard ----------------------------------------------------------------------------------


def tensorboard_graph(studio: Studio, file: Path) -> None:
    """The graph of the loop's first lines, unfolded down to functions of the program."""
    events = studio.folder / "events"
    studio.run("-m", "torchjanus", "run", "--tensorboard", events, PROGRAM)
    board = tensorboard.TensorBoard()
    board.configure(argv=[None, "--logdir", str(events), "--port", "0", "--load_fast", "false"])
    address = board.launch()
    wait_for(lambda: json.loads(read(f"{address}data/plugin/graphs/info")))
    browser = studio.browser
    browser.size(1280, 720)
    browser.ask("Page.navigate", url=f"{address}#graphs")
    wait_for(lambda: graph_nodes(browser))
    node = graph_nodes(browser)[0]
    for inner in ("graph_1", PROGRAM.name, "Block.forward", ""):
        browser.run(
            "found('tf-graph')[0].dispatchEvent("
            f"new CustomEvent('node-toggle-expand', {{detail: {{name: {json.dumps(node)}}}}}))"
        )
        wait_for(lambda: any(each.startswith(f"{node}/") for each in graph_nodes(browser)))  # noqa: B023
        node = f"{node}/{inner}"
    browser.run("found('tf-graph')[0].selectedNode = null, found('tf-graph')[0].fit()")
    browser.run("new Promise((done) => setTimeout(done, 3000))")  # it moves there
    browser.picture(file)


def graph_nodes(browser: Browser) -> list[str]:
    """Names of the nodes that the page shows. It is made of elements within shadows."""
    return browser.run(
        "globalThis.found = (what, below = document) => [...below.querySelectorAll(what),"
        " ...[...below.querySelectorAll('*')].flatMap((each) => each.shadowRoot ? found(what, each.shadowRoot) : [])];"
        "found('g.node').map((each) => each.getAttribute('data-name'))"
    )


def read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read().decode()


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not what():
        if time.monotonic() > end:
            raise TimeoutError("TensorBoard shows no graph")
        time.sleep(0.2)


# --- the pages of `make demo` and `make showcase` ---------------------------------------------------


def demo(studio: Studio, file: Path) -> None:
    studio.run(ROOT / "examples" / "demo.py", "--images", "12000", "--output", studio.folder)
    page_of_training(studio, file)


def showcase(studio: Studio, file: Path) -> None:
    script = ROOT / "benchmarks" / "showcase.py"
    studio.run(script, "--looks", "20", "--output", studio.folder)
    page_of_training(studio, file)


def page_of_training(studio: Studio, file: Path) -> None:
    """The page as a whole."""
    studio.browser.size(900, 720)
    studio.browser.ask("Emulation.setScrollbarsHidden", hidden=True)
    studio.browser.open(studio.folder / "index.html")
    studio.browser.size(900, studio.browser.run("document.documentElement.scrollHeight"))
    studio.browser.picture(file)
    in_few_colours(file)


def in_few_colours(file: Path) -> None:
    """Curves and text need no more, and the file has a third of the bytes."""
    from PIL import Image  # TensorBoard brings it

    with Image.open(file) as picture:
        few = picture.convert("RGB").quantize(48)
    few.save(file, optimize=True)


ALL: dict[str, Callable[[Studio, Path], None]] = {
    "report.png": report,
    "timeline.svg": timeline,
    "notebook.png": notebook,
    "live.svg": live,
    "tensorboard.png": tensorboard_graph,
    "demo.png": demo,
    "showcase.png": showcase,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
    names = parser.parse_args().names or list(ALL)
    if unknown := set(names) - set(ALL):
        parser.error(f"no picture {', '.join(sorted(unknown))}: choose from {', '.join(ALL)}")
    if chromium() is None:
        sys.exit("tools/pictures.py: install Debian's package chromium")
    for name in names:
        with (
            tempfile.TemporaryDirectory() as folder,
            Browser(Path(folder, "browser")) as browser,
        ):
            browser.scheme("light")
            ALL[name](Studio(Path(folder), browser), PICTURES / name)
        print(f"{name}: {(PICTURES / name).stat().st_size} bytes", flush=True)
    sizes = {each.name: each.stat().st_size for each in PICTURES.iterdir()}
    if max(sizes.values()) > MOST_BYTES or sum(sizes.values()) > MOST_OF_ALL:
        sys.exit(f"tools/pictures.py: too large: {sizes}")


if __name__ == "__main__":
    main()
