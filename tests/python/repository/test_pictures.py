"""docs/pictures: small, shown by a page each, and made by the tool; how it draws a timeline."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs" / "pictures"


@pytest.fixture
def drawing(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import timeline_picture

    yield timeline_picture
    del sys.modules["timeline_picture"]


def width_of(picture: Path) -> float:
    if picture.suffix == ".png":
        return int.from_bytes(picture.read_bytes()[16:20], "big")
    attributes = ElementTree.parse(picture).getroot().attrib
    return float(
        attributes["viewBox"].split()[2] if "viewBox" in attributes else attributes["width"]
    )


def test_pictures_are_small_and_shown_by_a_page() -> None:
    pictures = [each for each in PICTURES.iterdir() if each.suffix in (".png", ".svg")]
    pages = "".join(each.read_text() for each in (ROOT / "docs").glob("*.md"))
    assert len(pictures) >= 8
    for each in pictures:
        assert each.stat().st_size < 150_000 and width_of(each) <= 1280, each
        assert f"](pictures/{each.name})" in pages, each
        if each.suffix == ".svg":  # it asks no network for anything
            assert not re.search(r"url\(\s*['\"]?http|href=", each.read_text()), each
    assert sum(each.stat().st_size for each in pictures) < 800_000


def test_the_tool_makes_them() -> None:
    made = re.findall(
        r'^    "([\w.]+)": \w+,$', (ROOT / "tools" / "pictures.py").read_text(), re.MULTILINE
    )
    # That one is of a benchmark: benchmarks/page.py.
    assert {*made, "distributed.svg"} == {
        each.name for each in PICTURES.iterdir() if each.suffix in (".png", ".svg")
    }


def event(category, name, start, end, thread=1, **details):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": start,
        "dur": end - start,
        "tid": thread,
        **details,
    }


TRACE = {
    "traceEvents": [
        {"ph": "M", "name": "thread_name", "tid": 1, "args": {"name": "MainThread"}},
        {"ph": "M", "name": "thread_name", "tid": 2, "args": {"name": "torchjanus"}},
        event("call", "f <1>", 0, 100_000),
        *[event("call", "f <1>", 200_000 + 10 * i, 200_005 + 10 * i) for i in range(500)],
        event("background", "compile a kernel", 1000, 900_000, thread=2),
        event("call", "f <1>", 1_000_000, 1_000_400),
        event("guards", "guards", 1_000_000, 1_000_040),
        event("graph", "graph of f <1>", 1_000_040, 1_000_400),
        event("kernel", "mul tanh", 1_000_100, 1_000_300, args={"line": "/a/b/train.py:7"}),
        {"ph": "i", "cat": "reason", "name": "why", "ts": 5, "tid": 1, "s": "t"},
    ]
}  # fmt: skip


def test_slices_lie_within_those_that_they_are_called_by(drawing) -> None:
    slices = [each for each in TRACE["traceEvents"] if each["ph"] == "X" and each["tid"] == 1]
    rows = drawing.rows_of(slices)
    assert [len(row.slices) for row in rows] == [502, 2, 1]
    for row in rows:
        assert all(before[1] <= after[0] for before, after in zip(row.slices, row.slices[1:]))


def test_a_timeline_is_drawn_with_threads_names_and_lines(drawing) -> None:
    picture = drawing.drawn(TRACE)
    texts = [
        each.text for each in ElementTree.fromstring(picture).iter() if each.tag.endswith("text")
    ]
    assert {"The run, 1 s", "The last call as a graph, 400 µs", "MainThread", "torchjanus"} <= {
        *texts
    }
    assert {"compile a kernel", "guards", "graph of f <1>", "mul tanh (train.py:7)"} <= {*texts}
    assert picture.count("MainThread") == 2 and len(picture) < 10_000  # the 500 calls are few paths
    for x, width in re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="16"', picture):
        assert (
            float(x) >= drawing.LEFT
            and float(x) + float(width) <= drawing.WIDTH - drawing.RIGHT + 0.2
        )


def test_a_run_without_graphs_is_drawn(drawing) -> None:
    none = {"traceEvents": [event("call", "f", 0, 10)]}
    assert "The run, 10 µs" in drawing.drawn(none) and "last call" not in drawing.drawn(none)
