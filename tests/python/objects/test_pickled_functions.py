"""Converted functions and regions in pickles and copies: as the plain functions would be, by reference or by value."""

import copy
import importlib
import io
import pickle
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

import torch
import torchjanus
from torchjanus import script

weight = torch.ones(3, 3, dtype=torch.float64)
x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)


def plain(x):
    return (x @ weight).tanh().sum()


converted = torchjanus.function(plain)


@torchjanus.function
def decorated(x, *, scale: float = 2.0):
    """Scales."""
    return (x @ weight).tanh().sum() * scale


decorated.mark = "kept"


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 3.0

    @torchjanus.function
    def forward(self, x):
        return x * self.scale

    @staticmethod
    @torchjanus.function
    def static(x):
        return x + 1


def made(text: str, name: str) -> types.ModuleType:
    """A module that only this process knows."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(textwrap.dedent(text), module.__dict__)
    return module


def test_by_reference_they_are_found_again():
    for each in (converted, decorated, Net.forward, Net.static):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(each, protocol)) is each
        assert copy.copy(each) is each and copy.deepcopy([each])[0] is each
    assert type(pickle.loads(pickle.dumps(Net().forward)).__self__) is Net


def test_what_cannot_be_found_fails_as_the_plain_function_does():
    def local(x):
        return x

    for f in (local, lambda x: x):
        told = []
        for each in (f, torchjanus.function(f)):
            with pytest.raises((pickle.PicklingError, AttributeError)) as raised:
                pickle.dumps(each)
            told.append((raised.type, str(raised.value)))
        assert told[0] == told[1]


def test_bound_methods_take_their_objects_with_them():
    net = Net()
    method = torchjanus.function(net.forward.__func__.__wrapped__.__get__(net))
    for other in (pickle.loads(pickle.dumps(method)), copy.deepcopy(method)):
        assert type(other) is torchjanus.Function
        assert other.__wrapped__.__self__ is not net
        assert torch.equal(other(x), x * 3)


class ByValue(pickle.Pickler):
    """Takes functions by value that can't be found, as cloudpickle does for other processes."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if not isinstance(value, types.FunctionType) or value.__module__ != "known_here":
            return NotImplemented
        code = value.__code__
        fields = [getattr(code, f"co_{name}") for name in CODE]
        used = {
            name: value.__globals__[name] for name in code.co_names if name in value.__globals__
        }
        state = {"__dict__": vars(value), "__defaults__": value.__defaults__}
        state |= {name: getattr(value, name) for name in ("__module__", "__qualname__", "__doc__")}
        state |= {"__kwdefaults__": value.__kwdefaults__}
        return _shell, (fields,), (used, state), None, None, _fill


CODE = (
    "argcount", "posonlyargcount", "kwonlyargcount", "nlocals", "stacksize", "flags", "code", "consts", "names",
    "varnames", "filename", "name", "qualname", "firstlineno", "linetable", "exceptiontable", "freevars", "cellvars",
)  # fmt: skip


def _shell(fields: list[Any]) -> types.FunctionType:
    return types.FunctionType(types.CodeType(*fields), {"__builtins__": __builtins__})


def _fill(function: types.FunctionType, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    used, attributes = state
    function.__globals__.update(used)
    vars(function).update(attributes.pop("__dict__"))
    for name, value in attributes.items():
        setattr(function, name, value)


def by_value(value: Any) -> Any:
    written = io.BytesIO()
    ByValue(written).dump(value)
    return pickle.loads(written.getvalue())


def test_by_value_they_arrive_as_converted_functions():
    source = made(
        """
        import torch, torchjanus
        weight = torch.ones(3, 3, dtype=torch.float64)
        @torchjanus.function(profile_runs=1)
        def decorated(x, n=2, *, scale: float = 2.0):
            "Scales."
            return (x @ weight).tanh().sum() * scale if n == 0 else decorated(x, n - 1) * n
        decorated.mark = "kept"
        shorter = torchjanus.function(lambda x: (x @ weight).tanh().sum())
        """,
        "known_here",
    )
    for each in (source.decorated, source.shorter):
        other = by_value(each)
        assert type(other) is torchjanus.Function and other is not each
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            assert getattr(other, name) == getattr(each, name)
        assert {*vars(other)} == {*vars(each)} and {*vars(other.__wrapped__)} == {
            *vars(each.__wrapped__),
            *(["mark"] if each is source.decorated else []),
        }
        assert other.stats()["profile_runs"] == each.stats()["profile_runs"]
        for _ in range(5):
            assert torch.equal(other(x), each(x))
    inner = other.__wrapped__.__globals__
    assert torch.equal(inner["weight"], weight)


def test_a_recursive_function_calls_itself_where_it_arrives():
    source = made(
        """
        import torchjanus
        @torchjanus.function
        def power(x, n):
            return x if n == 0 else power(x, n - 1) * 2
        """,
        "known_here",
    )
    other = by_value(source.power)
    assert other.__wrapped__.__globals__["power"] is other
    assert torch.equal(other(x, 3), x * 8)


def test_rewritten_code_arrives_without_its_regions(tmp_path: Path):
    file = tmp_path / "program.py"
    file.write_text(
        textwrap.dedent("""
        import torch
        def train(steps):
            w = torch.ones(3, requires_grad=True)
            total = 0.0
            for i in range(steps):
                loss = (w * i).sum()
                loss.backward()
                with torch.no_grad():
                    w -= 0.1 * w.grad
                if i == 8:
                    break
                total += loss.item()
            return total, i
        """)
    )
    module = types.ModuleType("known_here")
    exec(script.compile_script(file.read_text(), str(file)), module.__dict__)
    expected = module.train(20)
    other = by_value(module.train)
    assert other(20) == expected
    seen: list[str] = []
    sys.settrace(lambda frame, *_: seen.append(frame.f_code.co_name))
    try:
        other(2)
    finally:
        sys.settrace(None)
    assert "enter" not in seen and seen[0] == "train"


TASKS = """
    import sys
    import torch, torchjanus
    from {package} import {names}

    torch.set_num_threads(1)
    weight = torch.ones(3, 3, dtype=torch.float64)

    @torchjanus.function
    def loss_of(x):
        return (x @ weight).tanh().square().sum()

    def train(seed):
        w = torch.full((3,), float(seed), dtype=torch.float64, requires_grad=True)
        for i in range(12):
            loss = loss_of(w.repeat(2, 1))
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
        return round(loss.item(), 12)

    model = torchjanus.function(torch.nn.Linear(3, 3))
    if __name__ == "__main__":
{body}
"""
BODIES = {
    "joblib": ("joblib", "Parallel, delayed",
        "print(Parallel(n_jobs=2)(delayed(train)(s) for s in range(3)))\n"
        "print([y.item() for y in Parallel(n_jobs=2)(delayed(loss_of)(weight * s) for s in range(3))])\n"
        "print(Parallel(n_jobs=2)(delayed(lambda m: m(torch.ones(3)).shape)(model) for s in range(2)))"),
    "cloudpickle": ("cloudpickle", "dumps, loads",
        "for f in (train, lambda s: loss_of(weight * s).item(), lambda s: model(weight.float()).shape):\n"
        "    print([loads(dumps(f))(s) for s in range(6)])"),
    "spawn": ("torch.multiprocessing", "get_context",
        "with get_context('spawn').Pool(2) as pool:\n"
        "    print(pool.map(train, range(3)))\n"
        "    print([y.item() for y in pool.map(loss_of, [weight * s for s in range(3)])])"),
}  # fmt: skip


@pytest.mark.parametrize("way", BODIES)
def test_other_processes_get_the_same(way: str, tmp_path: Path):
    package, names, body = BODIES[way]
    pytest.importorskip(package)
    text = TASKS.format(package=package, names=names, body=textwrap.indent(body, "    " * 2))
    (tmp_path / "program.py").write_text(textwrap.dedent(text))
    eager = textwrap.dedent(text).replace("import torch, torchjanus", "import torch")
    eager = eager.replace("@torchjanus.function\n", "").replace("torchjanus.function", "")
    (tmp_path / "eager.py").write_text(eager)
    printed = []
    for how in (["eager.py"], ["program.py"], ["-m", "torchjanus", "run", "program.py"]):
        done = subprocess.run(
            [sys.executable, *how], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1] == printed[2]


def test_a_deep_copy_of_a_method_keeps_its_attributes():
    converted = torchjanus.function(Net().eval)
    converted.note = ["kept"]
    copied = copy.deepcopy(converted)
    assert copied.note == ["kept"] and copied.note is not converted.note
