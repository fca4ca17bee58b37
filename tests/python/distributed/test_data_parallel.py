"""`torchjanus run --data-parallel`: programs that know nothing of processes train as one process does, which takes the
whole batch; parameters are equal on all ranks to the last bit after each step."""

import json
import pickle
import textwrap
from pathlib import Path

import numpy
import pytest
import torch.distributed
from knows_of_no_ranks import PROGRAMS
from launched import launched

from torchjanus import command

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

SCRIPT = Path(__file__).parents[1] / "harness" / "knows_of_no_ranks.py"
NAMES = [each.__name__ for each in PROGRAMS]
RUN = ("-m", "torchjanus", "run", "--data-parallel")
LBFGS = 1e-7  # what tells its line search's losses apart grows from step to step


@pytest.fixture(scope="module")
def trained(tmp_path_factory, ranks):
    """All programs by one process, and by two ranks that share its batches."""
    folder = tmp_path_factory.mktemp("trained")
    ranks.run("rank_data_parallel:alone", 1, folder=str(folder))
    asked = [*RUN[2:], "--split-batches", "--explain", "--stats", "counters.json", str(SCRIPT), "."]
    found = ranks.run("rank_data_parallel:as_command", folder=str(folder), arguments=asked)
    return folder, [printed for printed, _ in found], [said for _, said in found]


def written(folder, who):
    return dict(zip(NAMES, pickle.loads((folder / f"{who}.pickle").read_bytes()), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_training(trained, name):
    alone, first, second = (written(trained[0], who)[name] for who in ("alone", "0", "1"))
    assert len(alone) == len(first) == len(second) >= 8
    tolerance = LBFGS if name == "second_order" else 1e-10
    for number, steps in enumerate(zip(alone, first, second)):
        for expected, one, other in zip(*steps, strict=True):
            assert one.tobytes() == other.tobytes(), f"step {number}"
            numpy.testing.assert_allclose(one, expected, tolerance, 1e-12, err_msg=f"{number}")


def test_rank_0_prints_and_saves(trained):
    folder, printed, said = trained
    assert [line.split()[0] for line in printed[0].splitlines()] == NAMES and not printed[1]
    assert (folder / "saved.by0").exists() and not (folder / "saved.by1").exists()
    for rank in range(2):
        assert f"torchjanus: rank {rank} of 2\ntorchjanus: data parallel: 2 ranks; " in said[rank]
        assert "each rank takes 24 of 48 examples, 3 a batch" in said[rank]
        assert "differ" not in said[rank].split("torchjanus: rank")[0], said[rank]


def test_steps_run_as_graphs(trained):
    """Each is cut where gradients are averaged, and at the step that checks them; what is before is a graph."""
    folder = trained[0]
    for rank in range(2):
        functions = json.loads((folder / f"counters.rank{rank}.json").read_text())["functions"]
        for name in ("lenet", "gan", "clipped", "accumulated"):
            (found,) = [each for each in functions if each["name"].startswith(name)]
            parts = found["parts"]
            assert found["state"] == "cut" and sum(each["hits"] for each in parts) > 10, found


def script(folder, text):
    (folder / "train.py").write_text(textwrap.dedent(text))
    return "train.py"


MANY_THINGS = """
    import random, sys
    import numpy, torch
    from torch import nn
    from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

    def tell(*values):
        sys.stdout.write(" ".join(map(str, values)) + "\\n")  # at once

    torch.set_default_dtype(torch.float64)
    tell("set", [*{"one", "two", "three", "four"}])
    tell("unseeded", (torch.randn(()).item(), random.random(), numpy.random.rand()))
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.1), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    numbers = list(range(10))
    tell("sequential", [*map(int, DataLoader(numbers))])
    tell("stream", [*map(int, DataLoader(Stream()))])

    class Own(BatchSampler):
        pass

    own = Own(SequentialSampler(numbers), 5, False)
    tell("own batches", [each.tolist() for each in DataLoader(numbers, batch_sampler=own)])
    shuffled = DataLoader(numbers, batch_size=2, shuffle=True)
    tell("half", *(sorted(torch.cat([*shuffled]).tolist()) for _ in range(2)))

    for step in range(9):
        optimizer.zero_grad()
        net(torch.randn(5, 3)).pow(2).mean().backward()
        for each in net.parameters():
            each.grad += 0.1 * torch.randn_like(each)  # of the rank's own
        optimizer.step()
    tell("apart", torch.randn(()).item(), random.random(), numpy.random.rand())
    net.eval()
    with torch.no_grad():
        tell("evaluated", net(torch.ones(2, 3)).tolist())
"""


def test_what_ranks_share(tmp_path):
    name = script(tmp_path, MANY_THINGS)
    printed, said = launched(tmp_path, *RUN, "--print-from", "all", "--explain", name)
    told = {line.split()[0]: [] for line in printed}
    for line in printed:
        told[line.split()[0]].append(line)
    for name, lines in told.items():
        one, other = lines if name != "own" else (lines[0], lines[1])
        assert (one == other) == (name not in ("half", "apart")), lines
    halves = [json.loads(f"[{line[5:].replace('] [', '], [')}]") for line in told["half"]]
    for one, other in zip(*halves):  # in each epoch
        assert sorted(one + other) == list(range(10)) and len(one) == 5
    for reason in (
        "train.py:22: an iterable data set",
        "train.py:28: its own batch sampler",
    ):
        assert said.count(f"torchjanus: data parallel: DataLoader at {reason}") == 1, said
    assert "9 steps, before 9 of them again" in said
    assert "DataLoader at train.py:21: does not shuffle: each rank reads all of it" in said


def test_ranks_that_do_different_things(ranks):
    """Instead of waiting for ever, or mixing up their data, all of them fail."""
    for sizes in ({"parameters": 1, "buffers": 0}, {"parameters": 300, "buffers": 300}):
        one, other = ranks.run("rank_data_parallel:more_calls_of_backward", **sizes)
        assert "this rank is at an optimizer's step(), another one is elsewhere" in one[0]
        assert "this rank is at the end of backward(), another one is elsewhere" in other[0]
    for each in ranks.run("rank_data_parallel:other_parameters"):
        assert "where an optimizer is given parameters, other parameters than on another" in each[0]
    for each in ranks.run("rank_data_parallel:another_optimizer"):
        assert "at an optimizer's step(), other parameters than on another rank" in each[0]


def test_gradients_that_the_program_writes(ranks):
    """What differs between the ranks is averaged, however it was written. New parameters are rank 0's."""
    for found, warned, report in ranks.run("rank_data_parallel:written_gradients"):
        expected = [[-1.0] * 4, [-1.5] * 2 + [-1.0] * 2, [-3.5] * 2 + [-2.0] * 2, [-0.5] * 4]
        assert (found, warned) == (expected, "")
        assert "4 steps, before 3 of them again" in report


def test_warnings(ranks):
    """At the end, by rank 0."""
    (_, warned, _), (_, nothing, _) = ranks.run("rank_data_parallel:writes_parameters")
    assert "parameters differ between the ranks: the program has written" in warned
    assert nothing == ""
    found = ranks.run("rank_data_parallel:buffers_of_other_shapes")
    assert [result for result, _, _ in found] == [(2, [1.0] * 2), (7, [1.0] * 2)]
    assert "as shapes or dtypes differ between the ranks: buffers Linear.own\n" in found[0][1]
    (result, warned, _), _ = ranks.run("rank_data_parallel:no_optimizer")
    assert result == 6
    assert "no gradient was averaged: no optimizer of torch.optim was used" in warned


HOOK = "torchjanus.shared_gradients.SharedGradients."


def test_what_of_a_step_is_a_graph(ranks):
    """It is cut at backward() and at step(); what is before and between, with the clipping, are graphs."""
    for stats, warned, _ in ranks.run("rank_data_parallel:converted_step"):
        assert warned == "" and stats["state"] == "cut"
        (found,) = stats["parts"]
        told = [(each["code"], each["sentence"].split()[0]) for each in found["cuts"]]
        assert told == [
            ("communication", HOOK + name) for name in ("after_accumulation", "before_step")
        ]
        assert [each["hits"] > 5 for each in found["parts"]] == [True, True, False], found


def test_graphs_from_before_are_not_used(ranks):
    one, other = ranks.run("rank_data_parallel:registered_late")
    for (before, stats, _), _, report in (one, other):
        assert before > 0
        assert "communication" in [each["code"] for each in stats["reasons"]], stats
        assert "6 steps, before " in report
    assert one[0][2] == other[0][2]


def test_without_a_launcher(monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    assert command.main([*RUN[2:], "train.py"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "RANK and WORLD_SIZE are not set; start it by a launcher: torchrun" in printed.err


def test_one_process_is_left_alone(tmp_path, ranks):
    script(
        tmp_path,
        """
        from torch.utils.data import DataLoader
        print(hasattr(DataLoader.__init__, "__wrapped__"))
        """,
    )
    ((printed, _),) = ranks.run(
        "rank_data_parallel:as_command", 1, folder=str(tmp_path), arguments=[*RUN[2:], "train.py"]
    )
    assert printed == "False\n"


def test_forked_process(ranks):
    """It is no rank: it compares nothing at its end."""
    assert ranks.run("rank_data_parallel:forked") == [(7, [])] * 2


def test_rank_that_raises(ranks):
    """The others end as well."""
    one, other = ranks.outcomes("rank_data_parallel:raises_on_one", patience=20)
    assert (other.error, other.message) == ("ValueError", "no more")
    assert one.error == "RuntimeError" and one.exit == 1
