"""`%%torchjanus`: the cell does what it does without it, and its report says what became of its lines; what `function`
and `explain` give shows itself; notebooks show that graphs are being made."""

import contextlib
import html
import io
import pickle
import re
import traceback
from html.parser import HTMLParser

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from notebook_cells import SETUP, Notebook, without_watch

import torch
import torchjanus
from torchjanus import _core, annotated_cell, graph_progress

TRAINING = """
    losses = []
    for step in range(30):
        loss = F.cross_entropy(model(x), y)
        if loss > 1e9:
            print("never")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(round(sum(losses), 10))
    len(losses)
"""
MAGIC = "%%torchjanus\n"


class Cells(Notebook):
    """A shell whose cells' outputs are kept."""

    def __init__(self, *, is_extended=True):
        super().__init__()
        self.cell(SETUP)
        if is_extended:
            self.cell("%load_ext torchjanus")

    def run(self, text, *, magic=""):
        """The result, what was printed, and the reports that were shown."""
        shown = self.shell.display_pub = CapturingDisplayPublisher()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            done = self.shell.run_cell(magic + re.sub("(?m)^    ", "", text.strip("\n")))
        return done, printed.getvalue(), [each["data"] for each in shown.outputs]


@pytest.fixture(autouse=True)
def no_watch():
    with without_watch():
        yield


@pytest.fixture
def cells():
    cells = Cells()
    yield cells
    torchjanus.unload_ipython_extension(cells.shell)


class Balanced(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1] != "style":
            self.texts.append(text)


def test_cell_prints_and_returns_the_same(cells):
    eager = Cells(is_extended=False)
    expected, printed, _ = eager.run(TRAINING)
    done, also_printed, reports = cells.run(TRAINING, magic=MAGIC)
    assert done.success and done.result == expected.result == 30
    assert also_printed == printed
    assert cells.value("_") == 30
    assert cells.value("losses") == pytest.approx(eager.value("losses"), rel=1e-12)
    (report,) = reports
    assert re.search(r"this cell: .*; 2\d of 30 calls ran as graphs", report["text/plain"])


def test_report_marks_the_lines_of_the_cell(cells):
    _, _, (report,) = cells.run(TRAINING, magic=MAGIC)
    lines = report["text/plain"].splitlines()
    marks = {
        found[2]: found[1]
        for line in lines
        if (found := re.match(r" *([a-z][a-z ]*)? +(\d+) \|", line))
    }
    assert "1" not in marks, "the magic is no line of the report"
    assert [marks[each].strip() for each in "456"] == ["graph", "assumed", "not taken"]
    assert marks["2"] is None
    shown = Balanced(report["text/html"])
    assert not {"script", "link", "img"} & {*shown.tags} and "http" not in report["text/html"]
    assert len(report["text/html"]) < 20_000
    text = "".join(shown.texts)
    assert "loss.backward()" in text and "assumes false" in text


def test_cut_and_its_reason_are_shown(cells):
    text = """
        import gc
        for step in range(20):
            z = (x * step).tanh()
            gc.collect(0)
            w = (z * z).sum(0).exp()
    """
    done, _, (report,) = cells.run(text.replace("\n    ", "\n"), magic=MAGIC)
    assert done.success
    assert "cut: [unknown_callable]" in report["text/plain"]
    shown = html.unescape(report["text/html"])
    assert 'class="l x"' in shown and "try:" in shown


def test_functions_of_other_cells_are_behind_their_names(cells):
    cells.run("@torchjanus.function\n    def doubled(v): return (v * 2).tanh()")
    _, _, (report,) = cells.run("[doubled(x) for _ in range(6)][0][0, 0].item()", magic=MAGIC)
    assert "doubled: runs as a graph; 3 of 6 calls as a graph" in report["text/plain"]
    assert "<summary>doubled" in report["text/html"]
    _, _, (report,) = cells.run("1 + 1", magic=MAGIC)
    assert "nothing in it may run as a graph" in report["text/plain"]
    assert "doubled" not in report["text/plain"]


def test_cell_that_is_run_again(cells):
    for _ in range(2):
        _, _, (report,) = cells.run(TRAINING, magic=MAGIC)
        assert (
            "graph" in report["text/plain"].partition("|")[0]
            or "graph     " in report["text/plain"]
        )
    assert cells.run("2", magic="")[2] == []


# --- errors ---------------------------------------------------------------------------------------


def frames(done):
    error = done.error_before_exec or done.error_in_exec
    return [
        (frame.name, frame.lineno, frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
        if "ipython-input" in frame.filename
    ], repr(error)


FAILS = """
    def divide(number):
        return x.sum() / (1 / number)
    for i in range(5):
        divide(3 - i)
"""


def test_error_in_a_cell_is_the_users_with_its_traceback(cells):
    eager = Cells(is_extended=False)
    expected, *_ = eager.run(FAILS, magic="# the line of the magic\n")
    done, _, reports = cells.run(FAILS, magic=MAGIC)
    assert not done.success and isinstance(done.error_in_exec, ZeroDivisionError)
    assert frames(done) == frames(expected)
    assert cells.value("i") == 3
    assert len(reports) == 1
    assert cells.run("1")[2] == [], "the report is of one cell only"


def test_syntax_error_is_the_users(cells):
    done, _, _ = cells.run("for i in range(3) print(i)", magic=MAGIC)
    assert isinstance(done.error_before_exec, SyntaxError) and done.error_before_exec.lineno == 2
    assert cells.run("1")[2] == []


def test_magics_and_awaits_within(cells):
    done, _, reports = cells.run("import asyncio\n    await asyncio.sleep(0)\n    7", magic=MAGIC)
    assert done.result == 7 and len(reports) == 1
    done, printed, reports = cells.run("for _ in range(5): model(x)", magic=MAGIC + "%%time\n")
    assert done.success and "Wall time" in printed and len(reports) == 1
    done, printed, reports = cells.run("%%torchjanus\n    print(3)", magic="%%time\n")
    assert done.success and "3" in printed and len(reports) == 1
    _, printed, reports = cells.run("get_ipython().run_cell_magic('torchjanus', '', 'print(4)')")
    assert printed.startswith("4\n") and len(reports) == 1


def test_shell_is_left_as_it_was():
    cells = Cells(is_extended=False)
    shell = cells.shell
    before = [
        list(shell.input_transformers_cleanup),
        {name: list(each) for name, each in shell.events.callbacks.items()},
        {kind: set(each) for kind, each in shell.magics_manager.magics.items()},
        dict(shell.display_formatter.formatters["text/html"].type_printers),
    ]

    def now():
        return [
            list(shell.input_transformers_cleanup),
            {name: list(each) for name, each in shell.events.callbacks.items()},
            {kind: set(each) for kind, each in shell.magics_manager.magics.items()},
            dict(shell.display_formatter.formatters["text/html"].type_printers),
        ]

    cells.cell("%load_ext torchjanus")
    assert now() != before
    cells.cell("%unload_ext torchjanus")
    assert now() == before
    done, _, _ = cells.run("1", magic=MAGIC)
    assert not done.success


def marks_of(report):
    """Marks and texts of a report's lines."""
    return re.findall(r"(?m)^ *([a-z][a-z ]*?)? +(\d+) \| ?(.*)$", report["text/plain"])


def test_empty_lines_before_the_magic_are_not_counted(cells):
    _, _, (plain,) = cells.run(TRAINING, magic=MAGIC)
    done, _, (report,) = cells.run(TRAINING, magic=f"\n  \n{MAGIC}")
    assert done.success and marks_of(report) == marks_of(plain)
    assert ("graph", "4", "    loss = F.cross_entropy(model(x), y)") in marks_of(report)


def test_cell_that_runs_another_one_has_its_report(cells):
    cells.run("def doubled(v): return (v * 2).tanh()\n    doubled = torchjanus.function(doubled)")
    text = "[doubled(x) for _ in range(6)]\n    print('captured')"
    done, printed, (report,) = cells.run(text, magic=MAGIC + "%%capture out\n")
    assert done.success and "captured" not in printed
    assert cells.value("out.stdout") == "captured\n" and not cells.value("out.outputs")
    assert "doubled: runs as a graph; 3 of 6 calls as a graph" in report["text/plain"]
    _, _, (report,) = cells.run("get_ipython().run_cell('doubled(x)')", magic=MAGIC)
    assert "1 of 1 calls ran as graphs" in report["text/plain"]
    assert cells.run(" ")[2] == cells.run("1")[2] == []


@pytest.mark.parametrize("rest", ["", "\n", "\n\n", "  \n", "# no code\n"])
def test_cell_without_code(cells, rest):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        done, printed, (report,) = cells.run("", magic=MAGIC + rest)
    assert done.success and not printed and not errors.getvalue()
    assert report["text/plain"].startswith("this cell")
    shown = "".join(Balanced(report["text/html"]).texts)
    assert shown.startswith("this cell") and "nothing in it may run as a graph" in shown
    assert ("# no code" in shown) == ("# no code" in rest)


def test_first_line_only_is_taken_as_the_magic():
    as_line = annotated_cell.as_line_magic
    assert as_line(["%%torchjanus\n", "1\n"]) == ["%torchjanus\n", "1\n"]
    for lines in ([], ["x = 1\n", "%%torchjanus\n"], ["%%torchjanus2\n"], ["\n"]):
        assert as_line(list(lines)) == lines


# --- what shows itself ----------------------------------------------------------------------------


def test_what_function_and_explain_give_shows_itself(cells):
    cells.run("@torchjanus.function\n    def doubled(v):\n        return (v * 2).tanh()")
    cells.run("[doubled(x) for _ in range(6)][0][0, 0].item()")
    for text in ("doubled", "torchjanus.explain(doubled)", "torchjanus.explain()"):
        data, _ = cells.shell.display_formatter.format(cells.value(text))
        of_all = text == "torchjanus.explain()"  # of other tests too, and not of each
        assert of_all or "doubled" in data["text/html"]
        Balanced(data["text/html"])
        assert "\\n" not in data["text/plain"]
    line = cells.shell.display_formatter.format(cells.value("doubled"))[0]["text/plain"]
    assert "runs as a graph; 3 of 6 calls as a graph" in line and "\n" not in line
    assert repr(cells.value("doubled")).startswith("<torchjanus.Function of <function doubled at")


def test_module_shows_itself_once_converted(cells):
    formats = cells.shell.display_formatter.format
    assert "text/html" not in formats(cells.value("model"))[0]
    cells.run("torchjanus.function(model)\n    for _ in range(6): model(x)")
    data, _ = formats(cells.value("model"))
    assert "Sequential (module)" in data["text/html"]
    assert data["text/plain"].startswith("Sequential(\n")
    assert "_repr_html_" not in vars(cells.value("model"))


def test_what_the_program_shows_of_its_modules_stays(cells):
    cells.run("""
    class Shown(nn.Module):
        def _repr_html_(self): return "<b>mine</b>"
        def forward(self, v): return (v * 2).tanh()
    shown = torchjanus.function(Shown())
    [shown(x) for _ in range(6)]
    """)
    html_of = cells.shell.display_formatter.formatters["text/html"]
    assert html_of(cells.value("shown")) == "<b>mine</b>"
    assert cells.value("torchjanus.stats(shown)['hits']") == 3
    torchjanus.unload_ipython_extension(cells.shell)
    html_of.for_type(torch.nn.Module, lambda module: "<i>ours</i>")
    cells.cell("%load_ext torchjanus")
    assert html_of(cells.value("shown")) == html_of(cells.value("model")) == "<i>ours</i>"
    html_of.for_type(torch.nn.Module, lambda module: "<i>later</i>")
    torchjanus.unload_ipython_extension(cells.shell)
    assert html_of(cells.value("model")) == "<i>later</i>"


def test_explained_text_is_a_text_still():
    @torchjanus.function
    def f(x):
        return x + "<b>&".count("&")

    for _ in range(5):
        f(torch.ones(2))
    told = torchjanus.explain(f)
    again = pickle.loads(pickle.dumps(told))
    assert again == told and again._repr_html_() == told._repr_html_()
    assert torchjanus.graph(f)._repr_html_() is None
    assert "&lt;b&gt;&amp;" in told._repr_html_()


# --- progress -------------------------------------------------------------------------------------


def test_stages_are_told_while_a_graph_is_made():
    stages = []
    _core.listen_to_stages(lambda *told: stages.append(told))
    try:

        @torchjanus.function
        def f(x):
            return (x * 2).relu()

        @torchjanus.function
        def refused(x):
            class Scale:
                by = 2

            return x * Scale.by

        for _ in range(6):
            f(torch.ones(3))
            refused(torch.ones(3))
    finally:
        _core.listen_to_stages(None)
    name, file = f.__qualname__, __file__
    line = f.__wrapped__.__code__.co_firstlineno
    assert [each for each in stages if each[1] == name] == [
        ("generating", name, file, line),
        ("ready", name, file, line),
    ]
    assert {each[0] for each in stages if each[1] == refused.__qualname__} == {
        "generating",
        "refused",
    }


def test_errors_of_the_listener_are_not_the_programs(monkeypatch):
    unraisable = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    _core.listen_to_stages(lambda *told: 1 / 0)
    try:

        @torchjanus.function
        def f(x):
            return (x * 3).relu()

        results = [f(torch.ones(3)).tolist() for _ in range(6)]
    finally:
        _core.listen_to_stages(None)
    assert results == [[3.0] * 3] * 6 and f.stats()["hits"] == 3
    assert {each.exc_type for each in unraisable} == {ZeroDivisionError}


def test_interrupt_in_the_listener_reaches_the_program():
    def interrupt(*told):
        raise KeyboardInterrupt

    @torchjanus.function
    def f(x):
        return (x * 4).relu()

    _core.listen_to_stages(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(6):
                f(torch.ones(3))
    finally:
        _core.listen_to_stages(None)
    assert f(torch.ones(3)).tolist() == [4.0] * 3


def test_progress_is_told_in_words():
    told = graph_progress.Told({})
    key = ("step", "cell.py", 3)
    told.add("generating", key, 1.0)
    assert (
        repr(told) == "torchjanus: generating a graph of step" and "<progress" in told._repr_html_()
    )
    told.add("compiling", key, 1.5)
    assert repr(told) == "torchjanus: compiling a graph of step in the background"
    told.add("ready", key, 2.0)
    assert repr(told) == "torchjanus: 1 graph ready after 1 s: step"
    for name in "abcd":
        told.add("ready", (name, "cell.py", 1), 2.0)
    told.has_ended = True
    assert repr(told) == "torchjanus: 5 graphs ready after 1 s: step, a, b and 2 more"
    assert "<progress" not in told._repr_html_()
    refused = graph_progress.Told({})
    refused.add("generating", key, 1.0)
    refused.add("refused", key, 1.1)
    assert "no graph was made" in repr(refused)
