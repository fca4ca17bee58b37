"""The pages of `make demo` and `make showcase`: curves against time, tables, and reports beside them."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import curves
import pytest
import training_page
from browser import Browser, chromium

ROOT = Path(__file__).parents[3]
DATA = Path("/usr/share/datasets/fashion-mnist")


def texts(picture):
    return [
        each.text for each in ElementTree.fromstring(picture).iter() if each.tag.endswith("text")
    ]


def test_curves_have_axes_that_all_points_lie_in():
    lines = {"eager": [(1.0, 0.5), (90.0, 0.91)], "a < b": [(2.0, 0.4), (40.0, 0.87)]}
    picture = curves.curves(lines, "LeNet", "seconds", "accuracy")
    assert {"LeNet", "seconds", "accuracy", "eager", "a < b", "0", "100", "0.4", "1"} <= {
        *texts(picture)
    }
    for points in re.findall(r'<polyline points="([^"]+)"', picture):
        for place in points.split():
            x, y = map(float, place.split(","))
            assert curves.LEFT <= x <= curves.WIDTH - curves.RIGHT
            assert curves.TOP <= y <= curves.HEIGHT - curves.BOTTOM


@pytest.mark.parametrize(
    "line", [[], [(0.0, 1.0)], [(0.0, 2.5), (3.0, 2.5)], [(1e-4, -1e6), (2e-4, 1e6)]]
)
def test_curves_of_few_or_equal_points(line):
    assert "LeNet" in texts(
        curves.curves({"eager": line}, "LeNet", "seconds", "loss", ground="#fff")
    )


def test_page_escapes_what_it_is_given(tmp_path):
    section = training_page.Section(
        "<b>",
        ["<svg></svg>"],
        [["", "a & b"], ["x", "1"]],
        {"the report": tmp_path / "r.html"},
        "<i>",
    )
    training_page.write(tmp_path / "new" / ".." / "index.html", "a page", [section])
    text = (tmp_path / "index.html").read_text()
    assert (
        "<h2>&lt;b&gt;</h2>" in text and "<th>a &amp; b</th>" in text and "<p>&lt;i&gt;</p>" in text
    )


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, ROOT / script, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What it prints, and its folder."""
    if not DATA.exists():
        pytest.skip("no dataset-fashion-mnist")
    folder = tmp_path_factory.mktemp("demo")
    return run("examples/demo.py", "--images", "2000", "--output", folder / "demo"), folder / "demo"


@pytest.fixture(scope="module")
def showcase(tmp_path_factory):
    folder = tmp_path_factory.mktemp("showcase")
    arguments = ("a3c", "--quick", "--systems", "eager", "torchjanus", "--output", folder)
    return run("benchmarks/showcase.py", *arguments), folder


def test_demo_writes_both_curves_and_the_report(demo):
    printed, folder = demo
    assert "x eager" in printed and "demo/index.html" in printed.replace("\n", "")
    page = (folder / "index.html").read_text()
    assert page.count("<polyline") == 2 and 'href="report.html"' in page
    assert "<td>test accuracy</td>" in page
    assert "lenet.py" in (folder / "report.html").read_text()


def test_showcase_trains_by_turns_and_writes_a_page(showcase):
    printed, folder = showcase
    assert "A3C on CartPole" in printed and printed.count("done") >= 2
    page = (folder / "index.html").read_text()
    assert page.count("<polyline") == 2 and 'href="a3c.html"' in page
    assert "update" in (folder / "a3c.html").read_text()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if chromium() is None:
        pytest.skip("no chromium")
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


SMALLEST_TEXT = """
Math.min(...[...document.querySelectorAll("svg text")].map((each) => each.getBoundingClientRect().height))
"""


@pytest.mark.parametrize("name", ["demo", "showcase"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_shown_without_complaints_fits_and_has_contrast(
    browser, request, name, width, scheme
):
    _, folder = request.getfixturevalue(name)
    browser.size(width)
    browser.scheme(scheme)
    browser.open(folder / "index.html")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(SMALLEST_TEXT) >= 10
    assert browser.low_contrasts() == []
    browser.press("Tab")
    for _ in range(
        12
    ):  # what scrolls to the side comes first, and a page that was just opened may miss a key
        if browser.run("document.activeElement.tagName") != "A":
            browser.press("Tab")
    report = browser.run("document.activeElement.getAttribute('href')")
    assert (folder / report).exists()
    browser.press("Enter", "\r")
    browser.run("new Promise((done) => setTimeout(done, 300))")
    assert browser.run("document.querySelector('aside h2').textContent") == "The run"
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


def test_terminal_curves_reach_the_corners(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import terminal_curves

    text = terminal_curves.drawn({"eager": [(0.0, 0.0), (10.0, 5.0)], "none": []}, 20, 5)
    rows = text.plain.splitlines()
    assert len(rows) == 5 and all(len(row) == 20 for row in rows)
    assert rows[0][-1] != "\u2800" and rows[-1][0] != "\u2800" and rows[0][0] == "\u2800"
    assert {str(span.style) for span in text.spans} == {terminal_curves.STYLES[0]}
