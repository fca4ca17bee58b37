"""Code that nobody asked to convert is paid from an account: graphs come when the program has run for long enough.

The processor's time is simulated; what is counted is in which call something happens.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import scripts
from simulated_account import LOOP, accounts, of_loop, ran

import torch
import torchjanus
from torchjanus import _core


@pytest.fixture
def opened() -> Iterator[Callable[[float], None]]:
    with accounts() as begin:
        yield begin


def test_a_short_program_is_not_converted(opened: Callable, tmp_path: Path) -> None:
    opened()
    told = ran(tmp_path, steps=60, milliseconds=1)
    assert told["calls"] == 60
    assert told["profiled"] == told["generated"] == 0
    assert _core.conversion_account()["spent"] == 0


def test_a_longer_one_is(opened: Callable, tmp_path: Path) -> None:
    opened()
    told = ran(tmp_path, steps=400, milliseconds=1000)
    assert told["profiled"] == 3
    assert told["generated"] == 1
    assert told["hits"] > 300
    assert _core.conversion_account()["spent"] > 0


def test_what_the_start_has_cost_comes_first(opened: Callable, tmp_path: Path) -> None:
    opened(1e9)
    told = ran(tmp_path, steps=400, milliseconds=1000)
    assert told["calls"] == 400
    assert told["profiled"] == told["generated"] == 0


def test_a_loop_of_short_calls_asks_seldom(opened: Callable, tmp_path: Path) -> None:
    """Calls that wait count as calls; none is profiled, however many there are."""
    opened(1e9)
    told = ran(tmp_path, steps=3000, milliseconds=0.001)
    assert told["calls"] == 3000
    assert told["profiled"] == 0


def test_what_somebody_asked_for_is_not_on_account(opened: Callable) -> None:
    opened(1e9)
    converted = torchjanus.function(lambda x: (x * 2 + 1).tanh().sum())
    x = torch.ones(3)
    for _ in range(6):
        torch.testing.assert_close(converted(x), (x * 2 + 1).tanh().sum())
    assert torchjanus.stats(converted)["generated"] == 1
    assert torchjanus.stats(converted)["hits"] == 3
    assert _core.conversion_account() == {"spent": 1e9, "saved": 0}


def test_nor_are_the_parts_of_a_function_that_is_cut(opened: Callable) -> None:
    opened(1e9)

    class Note:
        def __set__(self, owner: object, value: object) -> None:
            owner.__dict__["noted"] = value

    class Holder:
        note = Note()

    holder = Holder()

    @torchjanus.function
    def step(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2 + 1).tanh().exp().sin()
        holder.note = open("/dev/null").fileno() > 0
        return (y * 3 - 1).cos().exp().sin()

    x = torch.ones(3)
    for _ in range(20):
        step(x)
    parts = torchjanus.stats(step)["parts"]
    assert sum(each["hits"] for each in parts) > 10
    assert _core.conversion_account()["spent"] == 1e9


def test_a_refusal_is_paid_and_lowers_what_may_be_risked(opened: Callable, tmp_path: Path) -> None:
    opened()
    program = LOOP.replace("losses.append", "open('/dev/null').close(); losses.append")
    told = of_loop(scripts.run_both(program.format(steps=400, milliseconds=1000), tmp_path))
    assert told["profiled"] > 0
    assert told["reasons"]
    assert _core.conversion_account()["spent"] > 0


def test_what_is_refused_early_is_cut_before_a_graph_of_all_is_paid(
    opened: Callable, tmp_path: Path
) -> None:
    """The graph of a loop with so many tensors would cost more than the program has run for."""
    dear = "open('/dev/null').close()\n    with torch.no_grad(): [w * i for i in range(3000)]\n    loss ="
    opened()
    program = LOOP.replace("loss =", dear)
    told = of_loop(scripts.run_both(program.format(steps=200, milliseconds=3), tmp_path))
    assert told["state"] == "cut"
    assert told["profiled"] == 3
    assert told["reasons"][0]["code"] == "unknown_callable"


def test_what_is_not_refused_waits_for_its_graph(opened: Callable, tmp_path: Path) -> None:
    dear = "with torch.no_grad(): [w * i for i in range(3000)]\n    loss ="
    opened()
    program = LOOP.replace("loss =", dear)
    told = of_loop(scripts.run_both(program.format(steps=200, milliseconds=3), tmp_path))
    assert told["state"] == "profiling"
    assert (told["profiled"], told["generated"], told["reasons"]) == (3, 0, [])


def test_the_switch_turns_it_off(opened: Callable, tmp_path: Path) -> None:
    torchjanus.options.disabled |= {"budget"}
    _core.open_conversion_account(1e9)
    assert _core.conversion_account() is None
    told = ran(tmp_path, steps=10, milliseconds=0)
    assert told["hits"] == 7
