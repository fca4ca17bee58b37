"""make evaluate: what is kept and measured again, and the pages that results make; cells with few steps."""

import importlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[3]
COMMAND = ROOT / "benchmarks" / "evaluate.py"


@pytest.fixture(scope="module")
def evaluation():
    """The modules that need no torch."""
    sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "examples")]
    names = ("record", "tables", "scaling", "curves", "evaluation")
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] in names}
    for name in kept:
        del sys.modules[name]
    yield {
        name: importlib.import_module(f"evaluation.{name}")
        for name in ("cells", "pages", "paper", "parts", "plots", "bars")
    }
    for name in [name for name in sys.modules if name.split(".")[0] in names]:
        del sys.modules[name]
    sys.modules.update(kept)
    del sys.path[:2]


ABOUT = {
    "machine": "a processor", "instructions": "AVX2", "cores": 2, "load": 0.1, "commit": "abcdef123",
    "date": "2026-11-24T10:00+00:00", "packages": {"torch": "2.13.0", "jax": None}, "data": [],
}  # fmt: skip


def made_result(part, column):
    if part == "janus-convergence":
        return {"points": [(seconds / 2, 0.5 + seconds / 40) for seconds in range(1, 11)]}
    if part == "janus-correctness":
        return {"verdicts": {"branch on a value": "as eager"}}
    if part == "janus-scaling":
        return {"one_ms": 2.0, "two_ms": 4.0, "factor": 0.5}
    if part == "jittor-fusion":
        return {"operators": 7, "computing": 2, "steps": ["one", "two"]}
    if column == "assertions":
        return {"before_us": 3.0, "share": 0.02}
    return {"eager_ms": 10.0, "ms": 4.0, "faster": 2.5, "deviation": 0.0}


def measured(evaluation, folder, without=()):
    cells = evaluation["cells"]
    for name, part in evaluation["parts"].PARTS.items():
        for cell in part.cells():
            result = made_result(name, cell.column)
            if (cell.row, cell.column) in without:
                result = {"problem": "not ready after 75 s"}
            cells.keep(folder, cell, {"about": ABOUT, "quick": False, "result": result})


def test_pages_have_every_part_beside_the_papers_figures(evaluation, tmp_path):
    failing = [("lenet", "torchjanus"), ("lstm", "torch.compile")]
    measured(evaluation, tmp_path / "results", failing)
    pages = evaluation["pages"]
    pages.write(tmp_path / "results", tmp_path / "pages")
    text = "\n".join(path.read_text() for path in sorted(tmp_path.glob("pages/*.md")))
    sections = [section for _, every in pages.PAGES.values() for section in every]
    assert {section.part for section in sections} == set(evaluation["parts"].PARTS)
    for section in sections:
        assert f"## {section.title}\n" in text
    assert text.count("torch 2.13.0; torchjanus at abcdef123; 2026-11-24.") == len(sections)
    for line in (
        "| ResNet-50 | batch 4, 112×112 | 10.00 | 4.00 (2.50 ×) | 1.06 × |",
        "| LeNet | batch 50, 28×28 | 10.00 | not ready after 75 s | 3.25 × |",
        "| dynamic control flow | branch on a value | as eager | as eager |",
        "| LM: perplexity of text that is held out | 0.525 | 0.5 s (0.75 after 5.0 s) | 0.5 s (0.75 after",
        "| PPO on CartPole: mean length of the last 8 episodes | 0.75 | 5.0 s (0.75 after 5.0 s) |",
        "| TreeLSTM | 2.50 × | 2.50 × | 2.50 × | 2.50 × | 2.50 × | 2.50 × | 2.0 % |",
        "| ResNet-50 | batch 8, 64×64 | 0.50 | 0.50 | 0.77 |",
        "| ResNet-152 | 10.0 | 4.00 (2.50 ×) |",
        "batch 16: 2.50 × of 10 networks",
        "| CycleGAN | 32×32, batch 2 | 10.00 | 4.00 (2.50 ×) | 1.40 × |",
        "Eager runs 7 operators, and torchjanus 2 steps that compute (Jittor's paper: 7 become 4)",
        "| yolo_v3 | 10.00 | 4.00 (2.50 ×) | – | 4.00 (2.50 ×) | – |",
    ):
        assert line in text, line
    for picture in re.findall(r"\]\(([\w-]+\.svg)\)", text):
        ElementTree.parse(tmp_path / "pages" / picture)
    assert not pages.outdated(tmp_path / "results", tmp_path / "pages")
    (tmp_path / "pages" / "janus.md").write_text("changed")
    (tmp_path / "pages" / "other.md").write_text("nobody's")
    assert pages.outdated(tmp_path / "results", tmp_path / "pages") == ["janus.md", "other.md"]


def test_pages_where_nothing_could_be_measured(evaluation, tmp_path):
    cells = evaluation["cells"]
    for part in evaluation["parts"].PARTS.values():
        for cell in part.cells():
            failed = {"about": ABOUT, "quick": False, "result": {"problem": "fails: Killed"}}
            cells.keep(tmp_path, cell, failed)
    made = evaluation["pages"].files(tmp_path)
    assert {"janus.md", "jittor.md", "terra.md"} < {*made}
    assert "fails: Killed" in made["janus.md"] and "janus-convergence-lenet.svg" not in made


def test_words_of_the_treebank_may_have_other_spaces(evaluation, tmp_path):
    import trees

    text = "(3 (2 one\u00a0half) (4 (2 a\u0085b) (3 (1 c) (2 d))))\n\n(1 (2 e) (2 f))\n"
    (tmp_path / "sst.txt").write_text(text, encoding="utf-8")
    found = [
        [leaf.word for leaf in trees.leaves(tree)] for tree in trees.read_sst(tmp_path / "sst.txt")
    ]
    assert found == [["one\u00a0half", "a\u0085b", "c", "d"], ["e", "f"]]


def test_results_of_another_form_are_not_there(evaluation, tmp_path, monkeypatch):
    cells = evaluation["cells"]
    measured(evaluation, tmp_path)
    monkeypatch.setattr(cells, "FORM", cells.FORM + 1)
    assert evaluation["pages"].files(tmp_path) == {}


def test_what_was_not_measured_has_no_page(evaluation, tmp_path):
    assert evaluation["pages"].files(tmp_path) == {}


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ({"machine": "another processor"}, ["lsgan"]),
        ({"data": ["trees"]}, ["lsgan"]),
        ({"commit": "123456789"}, ["dcgan", "lsgan"]),
    ],
)
def test_a_page_is_of_the_machine_that_measured_last(evaluation, tmp_path, change, rows):
    cells = evaluation["cells"]
    old = cells.Cell("jittor-gans", "dcgan", "torchjanus")
    new = cells.Cell("jittor-gans", "lsgan", "torchjanus")
    other = {**ABOUT, **change, "date": "2026-11-25T10:00+00:00"}
    for cell, about in ((old, ABOUT), (new, other)):
        result = made_result("jittor-gans", "torchjanus")
        cells.keep(tmp_path, cell, {"about": about, "quick": False, "result": result})
    assert [*cells.newest(cells.read(tmp_path, "jittor-gans"))] == rows
    commits = ["abcdef123", "123456789"] if "commit" in change else ["abcdef123"]
    (page,) = (text for name, text in evaluation["pages"].files(tmp_path).items() if ".md" in name)
    assert f"torchjanus at {', '.join(commits)}; " in page


@pytest.mark.parametrize(
    ("changes", "asked_quickly", "expected"),
    [
        ({}, False, True),
        ({"commit": "another"}, False, False),
        ({"machine": "another"}, False, False),
        ({"packages": {"torch": "2.13.0", "jax": "0.8"}}, False, False),
        ({"data": ["trees"]}, False, False),
        ({"load": 9.0, "date": "2026-12-01T10:00+00:00"}, False, True),
        ({}, True, True),
    ],
)
def test_what_is_kept_is_not_measured_again(evaluation, changes, asked_quickly, expected):
    cells = evaluation["cells"]
    cell = cells.Cell("jittor-gans", "dcgan", "torchjanus")
    kept = {"dcgan": {"torchjanus": {"about": ABOUT, "quick": False, "result": {}}}}
    assert cells.is_kept(kept, cell, {**ABOUT, **changes}, asked_quickly) is expected


def test_a_quick_figure_does_not_stand_for_a_whole_one(evaluation):
    cells = evaluation["cells"]
    cell = cells.Cell("jittor-gans", "dcgan", "torchjanus")
    kept = {"dcgan": {"torchjanus": {"about": ABOUT, "quick": True, "result": {}}}}
    assert not cells.is_kept(kept, cell, ABOUT, quick=False)
    assert cells.is_kept(kept, cell, ABOUT, quick=True)


def test_a_run_measures_by_urgency_until_its_time_is_over(evaluation, tmp_path, monkeypatch):
    cells = evaluation["cells"]
    asked = []

    def measured_apart(cell, seconds, arguments):
        asked.append(cell.row)
        if cell.row == "slow":
            return None
        if cell.row == "last":
            run.deadline = time.monotonic()
        return {"faster": 1.0}

    monkeypatch.setattr(cells, "measured_apart", measured_apart)
    monkeypatch.setattr(cells, "about", lambda data=(): dict(ABOUT))
    rows = [("never", 9), ("last", 7), ("first", 1), ("slow", 3)]
    wanted = [cells.Cell("terra", row, "lazy", urgency) for row, urgency in rows]
    run = cells.Run(tmp_path, [])
    found = {cell.row: result for cell, result in run.measure(wanted)}
    assert asked == ["first", "slow", "last"]
    assert found["slow"] == {"problem": "not ready after 180 s"}
    asked.clear()
    again = cells.Run(tmp_path, [])
    assert [cell.row for cell, _ in again.measure(wanted)] == ["never"]


def test_figures_of_an_earlier_commit_are_measured_anew_after_all_others(
    evaluation, tmp_path, monkeypatch
):
    cells = evaluation["cells"]
    measured = []

    def measured_apart(cell, seconds, arguments):
        measured.append(cell.row)
        return {"faster": 1.0}

    monkeypatch.setattr(cells, "measured_apart", measured_apart)
    wanted = [cells.Cell("terra", row, "lazy", urgency) for row, urgency in (("a", 1), ("b", 2))]
    for commit, rows in (("older", wanted[:1]), ("newer", wanted)):
        now = {**ABOUT, "commit": commit}
        monkeypatch.setattr(cells, "about", lambda data=(), now=now: dict(now))
        assert len([*cells.Run(tmp_path, []).measure(rows)]) == len(rows)
    assert measured == ["a", "b", "a"]


def test_rows_are_of_programs_that_exist(evaluation):
    parts = evaluation["parts"]
    terra = {path.stem for path in (ROOT / "examples" / "terra").glob("*.py")} - {"common"}
    assert set(parts.TERRA) == terra
    assert set(parts.FALLING) < set(parts.TRAININGS)


def evaluate(folder, *arguments):
    command = [
        sys.executable,
        COMMAND,
        *arguments,
        "--quick",
        "--output",
        folder,
        "--pages",
        folder,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_throughput_is_measured_where_results_are_eagers(tmp_path):
    found = evaluate(tmp_path, "janus-throughput", "--rows", "a3c", "--columns", "torchjanus")
    result = found["janus-throughput"]["a3c"]["torchjanus"]["result"]
    assert result["faster"] > 0 and result["deviation"] < 2e-2 and result["graphs"] >= 1
    assert "| A3C | the update, 5 to 20 steps |" in (tmp_path / "janus.md").read_text()


def test_correctness_of_torchjanus(tmp_path):
    systems = ("torchjanus", "torch.jit.trace")
    found = evaluate(tmp_path, "janus-correctness", "--columns", *systems)["janus-correctness"]
    assert [*found] == sorted(found) and len(found) == 3
    ours, traced = (
        {name: said for cells in found.values() for name, said in cells[system]["result"]["verdicts"].items()}
        for system in systems
    )  # fmt: skip
    assert all(re.fullmatch(r"as eager, [1-9]\d* calls as graphs", each) for each in ours.values())
    assert len(ours) == 13
    assert traced["branch on a value"] == "wrong from call 5 on"


def test_convergence_and_fusion(tmp_path):
    found = evaluate(
        tmp_path, "janus-convergence", "jittor-fusion", "--rows", "a3c", "residual block", "--columns", "torchjanus"
    )  # fmt: skip
    points = found["janus-convergence"]["a3c"]["torchjanus"]["result"]["points"]
    assert len(points) == 2 and points[0][0] < points[1][0]
    fused = found["jittor-fusion"]["residual block"]["torchjanus"]["result"]
    assert fused["operators"] == 7 and 2 < fused["computing"] <= len(fused["steps"])
