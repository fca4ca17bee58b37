"""Pages that a command makes are what it makes now; and what a page may be."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import torchjanus

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "command",
    [
        "benchmarks/page.py",
        "benchmarks/evaluate.py",
        "tools/api_page.py",
        "tools/reasons_page.py",
    ],
)
def test_page_is_up_to_date(command):
    subprocess.run([sys.executable, ROOT / command, "--check"], check=True)


def test_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    table = text.split("make bench-page: begin -->")[1].split("<!-- made")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert 3 <= len(rows) <= 17
    assert {line.count("|") for line in rows} == {6}


@pytest.fixture
def benchmarks(monkeypatch):
    """The modules of the folder that need no torch."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    names = ("record", "tables", "page", "scaling", "line_chart")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)


SYSTEMS = {
    "eager": {"median_ms": 2.0, "against_eager": 1.0, "caught_up_s": 0.0, "note": ""},
    "torchjanus": {"median_ms": 0.5, "against_eager": 4.0, "caught_up_s": None, "note": ""},
    "torch.compile (step)": {"median_ms": 1.0, "against_eager": 2.0, "caught_up_s": 9.0, "note": "4 graph breaks"},
}  # fmt: skip
PROGRAM = {
    "title": "LeNet",
    "floor_ms": 0.25,
    "systems": SYSTEMS,
    "out": {},
    "last": {"steps": 1000, "hits": 1000, "misses": 0, "bypassed": 0, "generated": 0},
    "graphs": 2,
    "made_in_s": 0.75,
    "is_cut": False,
    "first_graph_s": {"cold": 1.0, "warm": 0.5},
    "peak_mib": {
        "step": {"eager": 3.0, "torchjanus": 2.0},
        "process": {"eager": 30.0, "torchjanus": 20.0},
    },
}
OVERHEADS = {
    "title": "LeNet", "entry_us": 20.0, "leaving_us": 30.0, "profiled_ratio": 1.02, "first_graph_ms": 80.0,
    "first_graph_again_ms": 50.0, "kernels_ms": [5.0, 7.0],
}  # fmt: skip
SIZE = {"size": 20, "generation_ms": 80.0, "entry_us": 40.0, "eager_ms": 6.0, "converted_ms": 2.0}
WAY = {
    "ms": 60.0, "delayed_ms": 70.0,
    "timeline": {"step_ms": 60.0, "transfers": [[10.0, 1000000, None], [50.0, 1000000, None]]},
}  # fmt: skip
ROWS = {
    "programs": {"lenet": PROGRAM},
    "ablation": [{"title": "LeNet", "ms": {"eager": 2.0, "base": 1.0, "+unroll": 0.5}}],
    "coexecution": [{
        "steps": 240,
        "title": "gpt2", "modes": ["eager", "torch.compile (step)", "torchjanus"],
        "ms": {"eager": 6.0, "torchjanus": 4.0}, "out": {"torch.compile (step)": "wrong"},
    }],
    "coexecution_later": [{
        "steps": 960, "title": "gpt2", "modes": ["eager", "torchjanus"], "ms": {"eager": 6.0, "torchjanus": 3.0},
    }],
    "lazy_ablation": [{"title": "LeNet", "ms": {"eager": 2.0, "lazy": 1.0, "no fusion": 1.5}}],
    "distributed": [{
        "title": "LeNet", "network": {"latency_us": 0.0, "gigabits": 0.4},
        "systems": {"eager": {"one": {"ms": 48.0}, "on": WAY, "off": {"problem": "fails"}}},
    }],
    "growth": {"depth": {"title": "layers", "sizes": [SIZE]}},
    "overheads": {"programs": [OVERHEADS], "alone": {"an assumption more": "2 ns"}},
    "threads": [
        {"title": "LeNet", "least_ms": {"1": 2.0, "2": 1.0}, "median_ms": {"1": 2.0, "2": 1.0}}
    ],
    "recurrent": [
        {"layer": "nn.GRU", "length": "10 to 20", "batch": 1, "units": 64, "eager_ms": 2.0, "torchjanus_ms": 1.0}
    ],
    "kernels": [{"title": "copy", "ms": 1.0, "gigabytes": 16.0, "share": 1.0}],
    "state": [{"title": "a global", "torchjanus": "as eager", "torch.compile": "wrong"}],
    "oracles": [
        {
            "title": "modules",
            "counts": {"graph": 9, "imperative": 1, "strides": 0, "differs": 0, "crash": 0},
        }
    ],
}  # fmt: skip
ABOUT = {
    "machine": "a processor", "instructions": "AVX2", "cores": 2, "threads": 2, "load": 0.1, "torch": "2.13",
    "python": "3.11", "torchjanus": "0.1.0", "commit": "abcdef123", "date": "2026-11-24", "rounds": 40,
}  # fmt: skip


def test_page_has_a_table_of_every_benchmark(benchmarks, tmp_path):
    page = benchmarks["page"]
    assert {section.name for section in page.SECTIONS} == ROWS.keys()
    for name, rows in ROWS.items():
        benchmarks["record"].write(tmp_path, name, ABOUT, rows)
    text = page.page(tmp_path)
    assert all(f"## {section.title}\n" in text for section in page.SECTIONS)
    assert text.count("at abcdef123; 2026-11-24") == len(page.SECTIONS)
    for line in (
        "| LeNet | 2.00 | 1.00 (4 graph breaks) | 0.50 | 4.00 × | 2.00 × | 0.25 |",
        "| LeNet | 1.00 s | 0.50 s | 2 | 0.75 s | never | 9.0 s | 0 in 1,000 | 100 % |",
        "| LeNet | 3.0 | 2.0 | 30 | 20 |",
        "| LeNet | 2.00 | 1.00 (2.00 ×) | 0.50 (4.00 ×) |",
        "| gpt2 | 240 | 6.0 | wrong | 4.0 (1.50 ×) |",
        "| gpt2 | 960 | 6.0 | 3.0 (2.00 ×) |",
        "| LeNet | eager | on | 48.0 | 60.0 | 70.0 | 80.0 | 10.0 of 40.0 | 0.80 | 0.69 |",
        "| LeNet | eager | off | 48.0 | fails | – | – | – | – | – |",
        "| 20 | 80 | 40 | 6.00 | 2.00 | 3.00 × |",
        "| LeNet | 20 | 30 | 1.02 | 80 | 50 | 2 | 6.0 |",
        "| LeNet | 2.000 | 1.000 | 2.00 × | 2.00 × |",
        "| nn.GRU | 10 to 20 | 1 | 64 | 2.00 | 1.00 | 2.00 × |",
        "| modules | 10 | 9 | 1 | 0 | 0 | 0 |",
    ):
        assert line in text


def test_steps_on_more_ranks(benchmarks):
    """A transfer waits for the one before it, and the program for those that it asks for."""
    scaling = benchmarks["scaling"]
    network = scaling.Network(latency_us=1000, gigabits=0.008)  # a byte is a microsecond
    assert scaling.delayed(network)(1000) == 2.0
    assert scaling.ring(2, network)(1000) == 2 + 1.0
    assert scaling.tree(8, network)(1000) == 6 + 2.0
    transfers = [(0.0, 5000, 1.0), (10.0, 1000, None), (11.0, 2000, None)]
    # The first is waited for until 6: 5 later than measured. The others end at 17 and 20, with 16 to be waited from.
    assert (
        scaling.step_ms({"step_ms": 20, "transfers": transfers}, lambda size: size / 1000 + 1)
        == 20 + 9
    )
    factors = dict(scaling.scale_factors(20, {"step_ms": 20, "transfers": []}))
    assert set(factors) == {2**power for power in range(3, 13)} and set(factors.values()) == {1.0}


def test_picture_of_many_ranks(benchmarks):
    picture = ElementTree.fromstring(benchmarks["page"].scale_factors(ROWS["distributed"]))
    texts = [each.text for each in picture.iter() if each.tag.endswith("text")]
    assert {"LeNet", "ranks", "scale factor", "eager, overlap on", "8", "2,048"} <= {*texts}
    assert "eager, overlap off" not in texts


def test_table_of_a_benchmark_that_was_not_run_is_left_out(benchmarks, tmp_path):
    assert "##" not in benchmarks["page"].page(tmp_path)
    assert benchmarks["page"].readme_table(tmp_path) == ""


def test_sections_name_targets_that_exist(benchmarks):
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^BENCHMARKS := (.*)$", makefile, re.MULTILINE)[1].split()
    for section in benchmarks["page"].SECTIONS:
        assert section.name in targets
        assert section.command in ("make bench", f"make bench-{section.name}")


def public_functions():
    for module in (torchjanus, torchjanus.meta):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield pytest.param(value, id=name)


@pytest.mark.parametrize("function", public_functions())
def test_docstring_names_every_argument_and_the_result(function):
    text = inspect.getdoc(function)
    arguments = text.partition("Args:")[2].partition("Returns:")[0]
    for name in inspect.signature(function).parameters:
        assert re.search(rf"^    {name}: ", arguments, re.MULTILINE), name
    assert "Returns:" in text


def test_glossary_names_what_exists():
    sources = [*ROOT.glob("src/**/*.h"), *ROOT.glob("src/**/*.cpp"), *ROOT.glob("torchjanus/*.py")]
    words = {word for path in sources for word in re.findall(r"\w+", path.read_text())}
    rows = re.findall(r"^\| ([^|]*) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    named = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert len(named) > 50
    assert named <= words, named - words
