"""A small sample of what tests/oracles/run.py checks: operators, modules and optimizers of torch's own
databases, eagerly, converted and lazily. The whole of it takes hours, so it is a command of its own."""

import importlib.util
import pathlib
import sys

import pytest
from apart import in_a_thread

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "oracles"


@pytest.fixture(scope="module")
def oracle():
    specification = importlib.util.spec_from_file_location("oracle_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["oracle_run"] = module
    specification.loader.exec_module(module)
    return module


def assert_nothing_differs(outcome, at_least):
    wrong = {kind: outcome[kind] for kind in ("differs", "internal errors", "crash")}
    assert not any(wrong.values()), (wrong, outcome.differences)
    assert outcome["graph"] >= at_least, (dict(outcome), outcome.refusals().most_common(5))


def test_every_fortieth_operator(oracle):
    names = [oracle.databases.full_name(op) for op in oracle.databases.operators()]
    assert_nothing_differs(oracle.check_operators(names[::40], oracle.Sampling(2)), at_least=99)


def test_every_eightieth_operator_lazily(oracle):
    names = [oracle.databases.full_name(op) for op in oracle.databases.operators()]
    sampling = oracle.Sampling(2, "lazily")
    assert_nothing_differs(oracle.check_operators(names[20::80], sampling), at_least=20)


@pytest.mark.parametrize("dtype", ["int64", "complex128"])
def test_another_dtype_lazily(oracle, dtype):
    names = ["square", "pow", "mul", "sum"]
    sampling = oracle.Sampling(3, "lazily", dtype)
    assert_nothing_differs(oracle.check_operators(names, sampling), at_least=8)


@pytest.mark.parametrize(
    ("name", "graphs"),
    [("nn.Linear", 4), ("nn.BatchNorm2d", 2), ("nn.CrossEntropyLoss", 2), ("nn.GELU", 2)],
)
def test_module(oracle, name, graphs):
    assert_nothing_differs(oracle.check_modules(2, name), at_least=graphs)


@pytest.mark.parametrize(("name", "graphs"), [("SGD", 16), ("RMSprop", 8)])
def test_optimizer(oracle, name, graphs):
    assert_nothing_differs(oracle.check_optimizers(name), at_least=graphs)


def test_lazily(oracle):
    way = oracle.Lazily
    assert_nothing_differs(in_a_thread(lambda: oracle.check_modules(2, "nn.BatchNorm", way)), 2)
    assert_nothing_differs(in_a_thread(lambda: oracle.check_optimizers("SGD", way)), at_least=4)
