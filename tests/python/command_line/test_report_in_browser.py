"""The page of a report in a headless Chromium: pictures that are not blank, no complaints, nothing too wide, contrast,
keyboard, search, speed."""

import os
import subprocess
import sys

import pytest
from browser import Browser, chromium
from report_program import PROGRAM, line_of, write_page

import torch
import torchjanus
from torchjanus import page

pytestmark = pytest.mark.skipif(chromium() is None, reason="no chromium")
VIEWS = ["", "#program.py:{graph}", "#program.py:{cut}", "#program.py:{imperative}", "#function:0"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def fragment(view):
    return view.format(**{name: line_of(name) for name in ("graph", "cut", "imperative")})


# What scrolls to the side, besides texts and the list of functions.
TOO_WIDE = """
[...document.querySelectorAll("aside, header, aside table, aside svg")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth)
  .map((each) => `${each.tagName} ${each.id}`)
"""


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [1280, 400])
def test_page_is_shown_without_complaints_and_fits(browser, written, view, width):
    browser.size(width)
    browser.open(written, fragment(view))
    browser.run("document.querySelectorAll('aside details').forEach((each) => each.open = true)")
    browser.settle()
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(TOO_WIDE) == []
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_picture_of_the_page_shows_something(browser, written, tmp_path, width, scheme):
    browser.size(width)
    browser.scheme(scheme)
    browser.open(written)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    browser.picture(tmp_path / "page.png")
    shown_width, height, colours, commonest = browser.colours(tmp_path / "page.png")
    assert (shown_width, height) == (width, 900)
    assert colours > 100 and commonest < 0.9
    browser.scheme("light")


def test_picture_of_an_empty_page_shows_nothing(browser, tmp_path):
    browser.size(400)
    (tmp_path / "empty.html").write_text("<!DOCTYPE html><title>empty</title>")
    browser.open(tmp_path / "empty.html")
    browser.picture(tmp_path / "empty.png")
    assert browser.colours(tmp_path / "empty.png") == [400, 900, 1, 1]


@pytest.fixture(scope="module")
def in_a_notebook(tmp_path_factory):
    """What a notebook shows of a program with lines of each kind, in a file whose body may say its theme."""
    folder = tmp_path_factory.mktemp("fragment")
    (folder / "program.py").write_text(PROGRAM + "print(torchjanus.explain()._repr_html_())\n")
    shown = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "program.py"],
        cwd=folder, capture_output=True, text=True, timeout=300, check=True,
        env={**os.environ, "TORCHJANUS_DISABLE": "budget", "TORCHJANUS_CACHE": str(folder / "cache")},
    ).stdout  # fmt: skip

    def written(body=""):
        (folder / "cell.html").write_text(
            f"<!DOCTYPE html><meta charset=utf-8><body {body}>{shown}"
        )
        return folder / "cell.html"

    return written


OPEN_ALL = "document.querySelectorAll('details').forEach((each) => each.open = true)"


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_a_notebook_shows_fits_and_has_contrast(browser, in_a_notebook, width, scheme):
    browser.size(width)
    browser.scheme(scheme)
    browser.open(in_a_notebook())
    browser.run(OPEN_ALL)
    browser.settle()
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.low_contrasts() == []
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('.l.x').length") > 0


BACKGROUND = "getComputedStyle(document.querySelector('.torchjanus')).backgroundColor"
DARK, LIGHT = "rgb(20, 23, 27)", "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", {"light": LIGHT, "dark": DARK}),
        ('data-jp-theme-light="true"', {"light": LIGHT, "dark": LIGHT}),
        ('data-jp-theme-light="false"', {"light": DARK, "dark": DARK}),
        ('class="vscode-light"', {"light": LIGHT, "dark": LIGHT}),
        ('class="vscode-dark"', {"light": DARK, "dark": DARK}),
    ],
)
def test_notebook_decides_whether_it_is_dark(browser, in_a_notebook, body, expected):
    for scheme, colour in expected.items():
        browser.scheme(scheme)
        browser.open(in_a_notebook(body))
        assert browser.run(BACKGROUND) == colour


def test_lines_in_a_notebook_open_by_keyboard(browser, in_a_notebook):
    browser.open(in_a_notebook())
    browser.run("document.querySelector('details.more:has(summary.l) > summary').focus()")
    browser.press("Enter", "\r")
    browser.run("document.querySelector('details.more[open] summary.l').focus()")
    browser.press("Enter", "\r")
    assert browser.run("document.activeElement.parentElement.open")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(browser, written, view, scheme):
    browser.size(1280)
    browser.scheme(scheme)
    browser.open(written, fragment(view))
    assert browser.low_contrasts() == []


def test_page_is_used_by_keyboard(browser, written):
    browser.size(1280)
    browser.open(written, f"#program.py:{line_of('cut')}")
    heading = "document.querySelector('aside h2').textContent"
    assert browser.run(heading) == f"program.py:{line_of('cut')}"
    assert "unknown_callable" in browser.run("document.querySelector('aside').textContent")
    browser.run("document.getElementById('source').focus()")
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    browser.press("Enter", "\r")
    assert browser.run(heading) == f"program.py:{line_of('cut') + 2}"
    browser.press("Escape")
    assert browser.run("document.activeElement.textContent") == str(line_of("cut") + 2)
    browser.press("p", "p")
    assert browser.run(heading) == f"program.py:{line_of('cut')}"


def test_overview_is_shown_where_there_is_one_column(browser, written):
    browser.size(400)
    browser.open(written)
    shown = "getComputedStyle(document.querySelector('aside')).display"
    assert browser.run(shown) == "none"
    browser.run("document.querySelector('h1 a').click()")
    assert browser.run(shown) == "block"
    assert browser.run("document.querySelector('aside h2').textContent") == "The run"
    assert browser.complaints() == []


def test_places_of_the_summary_are_links(browser, written):
    browser.open(written)
    links = "[...document.querySelectorAll('.summary a')].map((each) => each.getAttribute('href'))"
    assert all(each.startswith("#program.py:") for each in browser.run(links))


def test_search_finds_reasons_shapes_and_lines(browser, written):
    browser.size(1280)
    browser.open(written)
    results = "[...document.querySelectorAll('#found a')].map((each) => each.textContent)"
    for words, expected in (
        ("unknown_callable", f"program.py:{line_of('cut')}"),
        ("f32[5,12] tanh", f"program.py:{line_of('inlined')}"),
        ("gc.collect", f"program.py:{line_of('cut')}"),
    ):
        browser.press("/")
        browser.run(f"search.value = {words!r}; search.dispatchEvent(new Event('input'))")
        assert any(each.startswith(expected) for each in browser.run(results)), browser.run(results)
        browser.press("Escape")
    browser.press("/")
    browser.run("search.value = 'gc.collect'; search.dispatchEvent(new Event('input'))")
    browser.press("ArrowDown")
    browser.press("Enter", "\r")
    assert browser.run("location.hash") == f"#program.py:{line_of('cut')}"
    assert browser.run("document.querySelector('.l.on').id") == f"program.py:{line_of('cut')}"


def words_after(browser, heading):
    """The text of a section of the details."""
    return browser.run(f"""
      [...document.querySelectorAll("aside h3")].filter((each) => each.textContent === {heading!r})
        .map((each) => each.nextElementSibling.textContent).join("")""")


def test_assumptions_are_those_of_the_lines_own_function(browser, tmp_path):
    @torchjanus.function
    def narrow(x):
        return (x * 2).tanh()

    @torchjanus.function
    def wide(x):
        return (x + 1).exp()

    for _ in range(6):
        narrow(torch.ones(3, 5))
        wide(torch.ones(7, dtype=torch.float64))
    page.write(tmp_path / "two.html", [narrow._details(), wide._details()], "two", "two")
    name = os.path.basename(__file__)
    first = narrow.__wrapped__.__code__.co_firstlineno
    browser.open(tmp_path / "two.html", f"#{name}:{first + 2}")
    assert words_after(browser, "Assumed of names here") == "x: f32[3,5]"
    second = wide.__wrapped__.__code__.co_firstlineno
    browser.open(tmp_path / "two.html", f"#{name}:{second + 2}")
    assert words_after(browser, "Assumed of names here") == "x: f64[7]"
    assert browser.complaints() == []


@pytest.mark.parametrize("name", ["100% 20 & 'so' #1.py", "b\udcff.py", "ä.py"])
def test_lines_of_files_with_any_name_are_found(browser, tmp_path, name):
    (tmp_path / name).write_text("import torch\nfor _ in range(9):\n    torch.ones(3).tanh()\n")
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--report", "r.html", name],
        cwd=tmp_path, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0
    browser.open(tmp_path / "r.html")
    browser.run(
        "[...document.querySelectorAll('.l > a')].find((each) => each.textContent === '3').click()"
    )
    browser.settle()
    shown = name.encode("utf-8", "backslashreplace").decode()
    assert browser.run("document.querySelector('aside h2').textContent") == f"{shown}:3"
    browser.open(tmp_path / "r.html", "#100%zz.py:5")  # not an encoded address
    assert browser.run("document.querySelector('aside h2').textContent") == "The run"
    assert browser.complaints() == []


OVERLAPS = """
(() => {
  const texts = [...document.querySelectorAll("aside svg text")];
  const boxes = texts.map((each) => each.getBoundingClientRect());
  const meet = (one, other) => one.left < other.right && other.left < one.right
    && one.top < other.bottom && other.top < one.bottom;
  return texts.flatMap((each, i) => texts.slice(i + 1).filter((other, j) => each.closest("svg") === other.closest("svg")
    && meet(boxes[i], boxes[i + 1 + j])).map((other) => `${each.textContent}, ${other.textContent}`));
})()
"""


@pytest.mark.parametrize("calls", [1, 2, 3, 14, 40])
def test_texts_of_the_strip_of_calls_do_not_overlap(browser, tmp_path, calls):
    @torchjanus.function
    def f(x):
        return (x * 2).relu()

    for _ in range(calls):
        f(torch.ones(3))
    page.write(tmp_path / "f.html", [f._details()], "f", "f")
    browser.open(tmp_path / "f.html", "#function:0")
    assert browser.run("document.querySelectorAll('aside svg').length") > 0
    assert browser.run(OVERLAPS) == []


def test_calls_with_relaxations_have_a_sign_and_a_key(browser, tmp_path):
    @torchjanus.function
    def f(x):
        return (x * 2).relu()

    for size in (3, 3, 3, 3, 3, 4, 5, 5, 5):
        f(torch.ones(size))
    told = f._details()
    assert told["relaxations"] > 0
    page.write(tmp_path / "f.html", [told], "f", "f")
    browser.open(tmp_path / "f.html", "#function:0")
    assert browser.run(OVERLAPS) == []
    assert browser.run("document.querySelectorAll('svg .relaxed').length") == told["relaxations"]
    key = browser.run("document.querySelector('aside .key').textContent")
    assert "▾ graph made; ◇ assumption relaxed; height" in key
    assert browser.complaints() == []


def test_processes_that_were_started_are_told_of(browser, tmp_path):
    functions = [{
        "name": "train", "file": "/a/train.py", "line": 3, "state": "graph", "hits": 70, "calls": 80, "passed": 0,
        "reasons": [], "generated": 1, "holds_graphs": False, "speed": None,
    }]  # fmt: skip
    page.write(
        tmp_path / "p.html", [], "p.py", "nothing", program=__file__, children={17: functions}
    )
    for width in (1280, 400):
        browser.size(width)
        browser.open(tmp_path / "p.html")
        browser.run("document.querySelector('h1 a').click()")
        told = browser.run("document.querySelector('.processes').textContent")
        assert told.startswith("process 17: 87 % of the calls (70 of 80) ran as graphs")
        assert told.endswith("train (/a/train.py:3): runs as a graph; 70 of 80 calls as a graph")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(TOO_WIDE) == []
    browser.size(1280)
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        assert browser.low_contrasts() == []
    assert browser.complaints() == []


LINES = (
    "[...document.querySelectorAll('.l')].filter((each) => each.id.startsWith('many.py:')).length"
)
LAID_OUT = """
[...document.querySelectorAll(".block")]
  .filter((each) => each.firstChild.checkVisibility({ contentVisibilityAuto: true })).length
"""


def test_many_functions_and_lines_are_laid_out_when_looked_at(browser, tmp_path):
    """100 functions and 20,000 lines."""
    file = tmp_path / "many.py"
    body = "\n".join(f"    x = x * {number}" for number in range(198))
    file.write_text("\n".join(f"def f{number}(x):\n{body}\n    return x" for number in range(100)))

    @torchjanus.function
    def f(x):
        return x.relu() * 2

    for _ in range(5):
        f(torch.ones(3))
    one = f._details()
    many = [
        {**one, "name": f"f{number}", "file": str(file), "line": 1 + 200 * number}
        for number in range(100)
    ]
    page.write(tmp_path / "many.html", many, "many.py", "many")
    assert (tmp_path / "many.html").stat().st_size < 8 << 20
    browser.size(1280)
    browser.open(tmp_path / "many.html", "#many.py:15000")
    assert browser.run(LINES) == 20000
    assert 0 < browser.run(LAID_OUT) <= 20
    # Of each line its number, mark, share, code and what is coloured; of all else little until it is asked for.
    assert browser.run("document.querySelectorAll('*').length") < 20000 * 6 + 2000
    assert browser.run("document.querySelectorAll('aside *').length") < 200
    assert browser.run("document.querySelector('aside h2').textContent") == "many.py:15000"
    assert browser.complaints() == []
