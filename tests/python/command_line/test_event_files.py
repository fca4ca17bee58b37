"""Event files: TensorBoard reads them, and its plugins show graphs that fold and scalars of each function."""

import json
import os
import subprocess
import sys
import time
import urllib.request

import pytest
from google.protobuf import text_format
from report_program import PROGRAM, START, line_of
from tensorboard import program
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.compat.proto.graph_pb2 import GraphDef

import torch
import torchjanus
from torchjanus import event_files, graph_def
from torchjanus.source_text import Sources


def run(folder, *arguments, **variables):
    return subprocess.run(
        [sys.executable, "start.py", "run", *arguments, "program.py"],
        cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "TORCHJANUS_CACHE": str(folder / "cache"), **variables},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    (folder / "program.py").write_text(PROGRAM + "print(step, net.first.weight.shape)\n")
    (folder / "start.py").write_text(START)
    return folder


@pytest.fixture(scope="module")
def done(folder):
    """The program, run with and without event files."""
    return run(folder), run(folder, "--tensorboard", "events")


@pytest.fixture(scope="module")
def events(folder, done):
    accumulated = EventAccumulator(str(folder / "events"), size_guidance={"scalars": 0})
    return accumulated.Reload()


@pytest.fixture(scope="module")
def graph(events):
    return events.Graph()


def test_program_prints_and_returns_the_same(done):
    plain, written = done
    assert (written.stdout, written.stderr, written.returncode) == (plain.stdout, "", 0)


def test_exit_code_stays_that_of_the_program(folder):
    (folder / "fails.py").write_text("import sys\nsys.exit(5)\n")
    command = [sys.executable, "-m", "torchjanus", "run", "--tensorboard", "none", "fails.py"]
    assert subprocess.run(command, cwd=folder, timeout=300).returncode == 5


def test_tensorboard_reads_a_graph_and_scalars(folder, events):
    assert events.Tags()["graph"] and events.Tags()["scalars"]
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(folder / "events")).Reload()
    assert list(multiplexer.Runs()) == ["."]


def test_nodes_fold_by_function_file_and_line(graph):
    names = [node.name for node in graph.node]
    assert len(set(names)) == len(names) > 30
    loops = {name.split("/")[0] for name in names}
    assert len(loops) >= 2
    line = f"/program.py/Net.forward/line_{line_of('inlined')}/"
    assert any(line in name and name.split("/")[1] == "graph_1" for name in names), names
    assert any("tanh" in name.split("/")[-1] for name in names)


def test_edges_lead_to_nodes_and_make_no_cycle(graph):
    nodes = {node.name: node for node in graph.node}
    assert all(each in nodes for node in graph.node for each in node.input)
    ended, open_nodes = set(), set()

    def visit(name):
        assert name not in open_nodes, name
        if name not in ended:
            open_nodes.add(name)
            for each in nodes[name].input:
                visit(each)
            open_nodes.remove(name)
            ended.add(name)

    for name in nodes:
        visit(name)


@pytest.fixture(scope="module")
def server(folder, done):
    """The address of a TensorBoard that shows the files, once it has read them."""
    board = program.TensorBoard()
    board.configure(
        argv=[None, "--logdir", str(folder / "events"), "--port", "0", "--load_fast", "false"]
    )
    address = board.launch()
    deadline = time.monotonic() + 60
    while not json.loads(ask(address, "graphs/info")) and time.monotonic() < deadline:
        time.sleep(0.1)
    return address


def ask(address, what):
    with urllib.request.urlopen(f"{address}data/plugin/{what}", timeout=60) as answer:
        return answer.read().decode()


def test_tensorboard_shows_the_graph(server, graph):
    assert json.loads(ask(server, "graphs/info"))["."]["run_graph"]
    sizes = "limit_attr_size=1024&large_attrs_key=_too_large_attrs"
    text = ask(server, f"graphs/graph?run=.&conceptual=false&{sizes}")
    shown = text_format.Parse(text, GraphDef())
    assert [node.name for node in shown.node] == [node.name for node in graph.node]
    shapes = [shape for node in shown.node for shape in node.attr["_output_shapes"].list.shape]
    assert any([dim.size for dim in shape.dim] == [5, 12] for shape in shapes)


def test_tensorboard_shows_the_scalars(server, events):
    assert set(json.loads(ask(server, "scalars/tags"))["."]) == set(events.Tags()["scalars"])


def test_scalars_follow_the_calls(events):
    tags = events.Tags()["scalars"]
    name = next(each.split("/")[1] for each in tags if each.endswith("/as a graph"))
    made = events.Scalars(f"conversion/{name}/graphs made")
    assert made[-1].value >= 1 and [each.step for each in made] == sorted(
        each.step for each in made
    )
    assert [each.wall_time for each in made] == sorted(each.wall_time for each in made)
    assert all(each.value > 0 for each in events.Scalars(f"milliseconds a call/{name}/as a graph"))
    share = events.Scalars(f"conversion/{name}/share of calls as graphs")
    assert share[0].value == 0 and share[-1].value == 1
    assert f"milliseconds a call/{name}/profiled" in tags


def test_missing_package_is_told_before_the_program_runs(folder):
    blocked = folder / "blocked"
    blocked.mkdir()
    (blocked / "start.py").write_text(
        "import importlib.util\nfind = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'tensorboard' else find(name, *rest)\n"
        + START
    )
    (blocked / "program.py").write_text("print('ran')\n")
    told = run(blocked, "--tensorboard", "events")
    assert told.returncode == 2 and told.stdout == ""
    assert told.stderr == f"torchjanus: {MISSING}\n"


MISSING = "--tensorboard needs the package tensorboard: pip install tensorboard"


def test_why_not_is_none_where_it_can_be_written():
    assert event_files.why_not() is None


TEXT = """\
graph @step(%x: f32[B,4], %n: i64, %ok: bool) {
  %w = state {cell="fc.weight"} : f32[4,4]
  %y = mm %x, %w : f32[B,4]
  %h = if %ok : f32[B,4] {
    %r = relu %y : f32[B,4]
    yield %r
  } else {
    yield %y
  }
  %z, %s = fused %h, %w : f32[B,4], f32[] { (%h.1: f32[B,4], %w.1: f32[4,4])
    %t = tanh %h.1 : f32[B,4]
    %u = sum %w.1 : f32[]
    yield %t, %u
  }
  %last = for %n : f32[B,4] { (%i: i64[], %c: f32[B,4])
    %d = add %c, %y : f32[B,4]
    yield %d
  }
  return %z, %s, %last
}
"""


def test_values_flow_through_blocks():
    picture = {"operators": [(2, "/a/model.py", 7, 0, 0)]}
    entry = {"optimised": TEXT, "picture": picture}
    nodes = {each.name: each for each in graph_def.nodes(entry, "step", Sources())}
    assert nodes["step/model.py/code/line_7/mm"].inputs == ["step/input/x", "step/state"]
    assert nodes["step/model.py/code/line_7/mm"].shapes == [[-1, 4]]
    assert nodes["step/relu"].inputs == ["step/model.py/code/line_7/mm"]
    assert nodes["step/if"].inputs == ["step/input/ok", "step/relu", "step/model.py/code/line_7/mm"]
    assert nodes["step/tanh"].inputs == ["step/if"] and nodes["step/sum"].inputs == ["step/state"]
    assert nodes["step/fused"].inputs == ["step/if", "step/state", "step/tanh", "step/sum"]
    assert nodes["step/for/c"].op == "parameter" and nodes["step/for/c"].inputs == ["step/input/n"]
    assert nodes["step/add"].inputs == ["step/for/c", "step/model.py/code/line_7/mm"]
    assert nodes["step/return"].inputs == ["step/fused", "step/for"]
    assert graph_def.legal("train, loop at line 3") == "train_loop_at_line_3"


def test_names_of_any_script_are_kept_apart(tmp_path):
    @torchjanus.function
    def прямой(x):
        return (x * 2).tanh()

    @torchjanus.function
    def обратный(x):
        return (x * 3).tanh()

    for _ in range(6):
        прямой(torch.ones(3))
        обратный(torch.ones(3))
    told = [прямой._details(), обратный._details()]
    alike = [{**each, "name": name} for each, name in zip(told, ("f g", "f(g"))]
    event_files.write(tmp_path, [*told, *alike])
    names = [each.name for each in EventAccumulator(str(tmp_path)).Reload().Graph().node]
    assert len(set(names)) == len(names) > 4
    scopes = list(dict.fromkeys(name.split("/")[0] for name in names))
    assert [scope.rpartition(".")[2] for scope in scopes[:2]] == ["прямой", "обратный"]
    assert scopes[2:] == ["f_g", "f_g_1"]
