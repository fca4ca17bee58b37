"""The page of a report: it is whole, needs no network, and has what text reports have and more."""

import json
import re
from html.parser import HTMLParser

import pytest
from report_program import PROGRAM, line_of, write_page

import torch
import torchjanus
from torchjanus import page
from torchjanus.page import source


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page"))


class Page(HTMLParser):
    """The elements of a page: tags with their attributes, and the data."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.data = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "input"):
            self.open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        if self.open and self.open[-1][1].get("id") == "data":
            self.data += text

    def lines(self):
        """The class of each line, by its name."""
        return {
            attributes["id"]: attributes["class"].removeprefix("l").strip()
            for tag, attributes in self.elements
            if tag == "div" and attributes.get("class", "").split()[:1] == ["l"]
        }


@pytest.fixture(scope="module")
def parsed(written):
    return Page(written.read_text())


def test_page_is_whole_and_refers_to_nothing_outside(parsed, written):
    assert not parsed.open
    for tag, attributes in parsed.elements:
        for name in ("src", "href", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    names = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert "default-src 'none'" in written.read_text()


@pytest.mark.parametrize(
    ("comment", "mark"),
    [
        ("graph", "graph"),
        ("inlined", "graph"),
        ("called by a part", "graph"),
        ("assumed", "assumed"),
        ("co-executed", "co-executed"),
        ("imperative", "imperative"),
        ("cut", "cut"),
        ("not run", "not taken"),
    ],
)
def test_lines_have_their_marks(parsed, comment, mark):
    assert parsed.lines()[f"program.py:{line_of(comment)}"] == source.CLASSES[mark]


def test_every_line_of_the_program_is_there(parsed):
    lines = parsed.lines()
    for number in range(1, len(PROGRAM.splitlines()) + 1):
        assert f"program.py:{number}" in lines


def test_data_has_what_details_show(parsed):
    data = json.loads(parsed.data)
    trained = next(each for each in data["functions"] if each["line"] == line_of("graph"))
    (graph,) = trained["parts"][0]["graphs"]
    of_line = [
        graph["generated"][at] for at, _, line in graph["places"] if line == line_of("inlined")
    ]
    assert any("f32[5,12]" in text for text in of_line), of_line
    assert graph["kernels"] and all(
        "define" in data["kernels"][text] for _, text in graph["kernels"]
    )
    assert graph["memory"] and graph["arena_bytes"] > 0
    assert sum(cell["calls"] for cell in trained["history"]) == trained["counters"]["calls"] == 40
    assert sum(cell.get("hits", 0) for cell in trained["history"]) == trained["counters"]["hits"]
    saved = [(apart, together) for _, _, _, together, apart in graph["operators"] if apart]
    assert any(apart > together for apart, together in saved)


def bars(page):
    """By the name of a line its share of the time, in percent, and the length of its bar."""
    found = re.findall(
        r'id="([^"]+)"><a [^>]*>\d+</a><b>\w*[- ]?\w*</b><u style="--t:(\d+)">(\d+) %</u>', page
    )
    return {name: (int(percent), int(length)) for name, length, percent in found}


def test_lines_have_their_share_of_time(tmp_path):
    @torchjanus.function
    def f(x, y):
        z = (x @ x).mean()
        return y * z

    for _ in range(12):
        f(torch.ones(300, 300), torch.ones(3))
    torchjanus.report(f, tmp_path / "f.html")
    text = (tmp_path / "f.html").read_text()
    (seconds,) = json.loads(Page(text).data)["seconds"]
    product, scaled = sorted(map(int, seconds))[:2]
    assert scaled == product + 1
    assert seconds[str(product)] > seconds[str(scaled)] > 0
    (program_seconds,) = (entry["program_seconds"] for entry in f.snapshot()["cache"])
    assert sum(seconds.values()) == pytest.approx(program_seconds)
    shares = {name.rpartition(":")[2]: share for name, share in bars(text).items()}
    percent, length = shares[str(product)]
    assert percent == round(100 * seconds[str(product)] / sum(seconds.values())) and length == 100


def test_graph_whose_memory_is_not_planned_has_its_time():
    @torchjanus.function
    def f(x):
        return x[x > 0] * 2  # as many as the run finds

    for _ in range(12):
        f(torch.ones(5))
    (entry,) = f.snapshot()["cache"]
    assert entry["hits"] and entry["program_seconds"] > 0 and entry["program_started"] > 0


def test_kernels_that_run_together_have_shares_of_their_own(tmp_path):
    @torchjanus.function
    def f(x, y):
        one = x.exp() * 2
        other = y.sin() + 1
        return one, other

    for _ in range(12):
        f(torch.ones(64, 64), torch.ones(32, 32))
    torchjanus.report(f, tmp_path / "f.html")
    (seconds,) = json.loads(Page((tmp_path / "f.html").read_text()).data)["seconds"]
    assert len(seconds) == 2 and min(seconds.values()) > 0


def test_shares_of_a_program_have_its_graphs_and_cuts(parsed, written):
    seconds = json.loads(parsed.data)["seconds"]
    whole = sum(sum(each.values()) for each in seconds)
    for name, (percent, length) in bars(written.read_text()).items():
        assert 1 <= percent <= 100 and 0 <= length <= 100, name
    (of_program,) = (
        each
        for each, file in zip(seconds, json.loads(parsed.data)["files"])
        if file["name"] == "program.py"
    )
    for comment in ("graph", "inlined", "cut"):
        assert 0 < of_program[str(line_of(comment))] < whole, comment


def test_where_nothing_was_timed_no_line_has_a_share(tmp_path):
    @torchjanus.function
    def f(x):
        return x.relu() * 2

    f(torch.ones(3))
    torchjanus.report(f, tmp_path / "f.html")
    text = (tmp_path / "f.html").read_text()
    assert bars(text) == {} and "<u></u>" in text


def test_where_all_steps_took_no_time_no_line_has_a_share(tmp_path):
    @torchjanus.function
    def f(x):
        return x.relu() * 2

    for _ in range(6):
        f(torch.ones(3))
    told = f._details()
    (entry,) = told["cache"]
    line = f.__wrapped__.__code__.co_firstlineno + 2
    entry["picture"]["seconds"] = [(__file__, line, 0.0)]  # as a coarse clock gives
    page.write(tmp_path / "f.html", [told], "f", "f")
    assert bars((tmp_path / "f.html").read_text()) == {}


def test_memory_that_is_needed_at_once_does_not_overlap(parsed):
    functions = json.loads(parsed.data)["functions"]
    graphs = [graph for each in functions for part in each["parts"] for graph in part["graphs"]]
    for graph in graphs:
        for at, (_, _, offset, size, first, last) in enumerate(graph["memory"]):
            assert 0 <= offset and offset + size <= graph["arena_bytes"]
            for _, _, other, other_size, other_first, other_last in graph["memory"][at + 1 :]:
                is_apart = last < other_first or other_last < first
                may_share = last == other_first or other_last == first  # a result in its operand
                assert (
                    is_apart or may_share or offset + size <= other or other + other_size <= offset
                )


def test_lines_that_only_a_later_graph_has_are_marked(tmp_path):
    def f(x, wide):
        if wide:
            x = x.exp() * 2
        else:
            x = x.tanh() + 1
        return x.sum()

    converted = torchjanus.function(f)
    x = torch.ones(3, dtype=torch.float64)
    for wide in (*[True] * 6, *[False] * 6, *[True, False] * 3):
        assert torch.allclose(converted(x, wide), f(x, wide), rtol=1e-12)
    assert converted.stats()["graphs"] == 2 and converted.stats()["hits"] > 6
    torchjanus.report(converted, tmp_path / "f.html")
    first = f.__code__.co_firstlineno
    lines = Page((tmp_path / "f.html").read_text()).lines()
    of_f = [lines[f"test_report_page.py:{first + number}"] for number in range(1, 6)]
    assert of_f == ["g"] * 5


def test_each_reason_comes_with_its_remedy(parsed):
    data = json.loads(parsed.data)
    told = [
        reason for each in data["functions"] for part in each["parts"] for reason in part["reasons"]
    ]
    told += [cut for each in data["functions"] for cut in each["cuts"]]
    assert {"no_source", "unknown_callable", "statement"} <= {each["code"] for each in told}
    assert all(data["codes"][each["code"]]["remedy"] for each in told)


def test_report_of_a_function(tmp_path):
    @torchjanus.function
    def f(x):
        return x.relu() * 2

    for _ in range(5):
        f(torch.ones(3))
    torchjanus.report(f, tmp_path / "f.html")
    data = json.loads(Page((tmp_path / "f.html").read_text()).data)
    assert [each["name"] for each in data["functions"]] == [f.__qualname__]
    torchjanus.report(None, str(tmp_path / "all.html"))
    assert (tmp_path / "all.html").stat().st_size > 0
    with pytest.raises(TypeError, match="not converted"):
        torchjanus.report(len, tmp_path / "len.html")


@pytest.mark.parametrize(
    ("text", "coloured"),
    [
        ("if x: # a < b", ["<i class=k>if</i> x: <i class=c># a &lt; b</i>"]),
        ("x = f'{y}' \"#\"", ["x = <i class=s>f'{y}'</i> <i class=s>\"#\"</i>"]),
        ("'''a\nb''' or c", ["<i class=s>'''a</i>", "<i class=s>b'''</i> <i class=k>or</i> c"]),
        ("forget = 'it\\'s", ["forget = <i class=s>'it\\'s</i>"]),
    ],
)
def test_source_is_coloured(text, coloured):
    assert source.coloured(text) == coloured
