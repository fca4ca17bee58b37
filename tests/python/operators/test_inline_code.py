"""torchjanus.code: operators written inline in C++."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from differential import Program, differential

import torch
import torchjanus
from torchjanus import compiler

needs_compiler = pytest.mark.skipif(
    not any(map(compiler.shutil.which, compiler.COMPILERS)), reason="there is no C++ compiler"
)
pytestmark = needs_compiler


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv("TORCHJANUS_CACHE", str(cache))
        yield cache / "code"


cube = torchjanus.code(
    "cube(Tensor x, float scale=1.0) -> Tensor y",
    "for (int64_t i = 0; i < x.count; ++i) y[i] = scale * x[i] * x[i] * x[i];",
    gradient="for (int64_t i = 0; i < x.count; ++i) d_x[i] = d_y[i] * scale * 3 * x[i] * x[i];",
)

rows = torchjanus.code(
    "rows(Tensor x, Tensor index, int begin) -> (Tensor picked, Tensor sums)",
    """
    for (int64_t i = 0; i < index.count; ++i)
      for (int64_t j = 0; j < x.size(1); ++j) {
        picked(i, j) = x(index[i] + begin, j);
        sums[i] += x(index[i] + begin, j);
      }
    """,
    sizes=lambda x, index, begin: [(len(index), x.shape[1]), (len(index),)],
    gradient="""
    for (int64_t i = 0; i < index.count; ++i)
      for (int64_t j = 0; j < x.size(-1); ++j)
        d_x(index[i] + begin, j) += d_picked(i, j) + d_sums[i];
    """,
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5)])
def test_elements(dtype, shape):
    x = (torch.rand(shape) * 5).to(dtype)
    y = cube(x)
    assert y.dtype == dtype and y.shape == x.shape
    torch.testing.assert_close(y, x * x * x)


def test_not_contiguous():
    x = torch.randn(4, 6, dtype=torch.float64).t()[::2]
    torch.testing.assert_close(cube(x, 2.0), 2 * x**3)
    torch.testing.assert_close(cube(x, scale=0.5), 0.5 * x**3)


def test_gradient():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: cube(x, 0.7), x)
    index = torch.tensor([1, 0, 1])
    assert torch.autograd.gradcheck(lambda x: rows(x, index, 1), x)


def test_several_results():
    x, index = torch.randn(5, 3), torch.tensor([2, 0])
    picked, sums = rows(x, index, 1)
    torch.testing.assert_close(picked, x[[3, 1]])
    torch.testing.assert_close(sums, x[[3, 1]].sum(1))


def test_dtypes_of_results():
    sign = torchjanus.code(
        "positive(Tensor x) -> Tensor y",
        "for (int64_t i = 0; i < x.count; ++i) y[i] = half(x[i]) > 0;",
        dtypes=[torch.bool],
        header="template <class T> T half(T x) { return x / 2; }",
    )
    assert sign(torch.tensor([-1.0, 2.0])).tolist() == [False, True]


@differential(hits=4)
def test_in_a_graph():
    weight = torch.randn(4, 3, requires_grad=True)
    index = torch.tensor([2, 0, 0])
    optimizer = torch.optim.Adam([weight], 0.1)

    def step(x):
        picked, sums = rows(cube(weight, 0.3), index, 1)
        loss = (picked * x).sum() + sums.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[weight])


# --- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("f(Tensor x", "is no signature"),
        ("f(str x) -> Tensor y", "has a str"),
        ("f(float x) -> Tensor y", "takes no Tensor"),
        ("f(Tensor x) -> Tensor", "does not name its results"),
        ("f(Tensor x) -> ()", "does not name its results"),
        ("f(Tensor x) -> int y", "has a int"),
        ("ns::f(Tensor x) -> Tensor y", "is named 'ns::f'; the name is one word"),
        ("f.out(Tensor x) -> Tensor y", "is named 'f.out'"),
        ("f(Tensor x, *, float z) -> Tensor y", "each parameter is one by position"),
        ("f(Tensor x, ...) -> Tensor y", "each parameter is one by position"),
        ("f(Tensor(a!) x) -> Tensor y", "results are new tensors"),
        ("f(Tensor(a) x) -> Tensor(a) y", "results are new tensors"),
        ("f(Tensor x, Tensor x) -> Tensor y", "two tensors or numbers named x"),
        ("f(Tensor x, float y) -> Tensor y", "two tensors or numbers named y"),
        ("f(Tensor x) -> (Tensor y, Tensor y)", "two tensors or numbers named y"),
        ("f(Tensor x, int double) -> Tensor y", "no variable named double"),
        ("f(Tensor data_) -> Tensor y", "no variable named data_"),
        ("f(Tensor Tensor) -> Tensor y", "no variable named Tensor"),
    ],
)
def test_signature(signature, message):
    with pytest.raises(ValueError, match=message):
        torchjanus.code(signature, "")


def test_names_of_gradients():
    with pytest.raises(ValueError, match="two tensors or numbers named d_x"):
        torchjanus.code("f(Tensor x, float d_x) -> Tensor y", "", gradient="")


def test_number_of_dtypes():
    with pytest.raises(ValueError, match="2 dtypes for 1 results"):
        torchjanus.code("f(Tensor x) -> Tensor y", "", dtypes=[torch.bool, torch.bool])


def test_wrong_text_is_told_by_its_line():
    wrong = torchjanus.code("wrong(Tensor x) -> Tensor y", "\ny[0] = unknown;")
    with pytest.raises(RuntimeError, match="wrong:2:.*unknown"):
        wrong(torch.ones(2))


def test_dtype():
    with pytest.raises(TypeError, match=r"no tensors of torch\.complex64"):
        cube(torch.ones(2, dtype=torch.complex64))


def test_without_gradient():
    plain = torchjanus.code("plain(Tensor x) -> Tensor y", "y[0] = x[0];")
    y = plain(torch.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match="plain has no gradient"):
        y.backward()


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    fresh = torchjanus.code("fresh(Tensor x) -> Tensor y", "y[0] = 1;  // compiled by nobody")
    with pytest.raises(RuntimeError, match="needs a C\\+\\+ compiler, and there is no no-such"):
        fresh(torch.ones(1))


def test_compiler_of_several_words(monkeypatch):
    gxx = compiler.compiler("test")[0]
    monkeypatch.setenv("CXX", f"env LC_ALL=C {gxx}")
    seven = torchjanus.code("seven(Tensor x) -> Tensor y", "y[0] = 7;  // by env")
    assert seven(torch.ones(1)).item() == 7


def test_compiler_that_says_nothing(monkeypatch):
    monkeypatch.setenv("CXX", "false")
    silent = torchjanus.code("silent(Tensor x) -> Tensor y", "y[0] = 7;  // by nobody")
    with pytest.raises(RuntimeError, match="ended with status 1"):
        silent(torch.ones(1))


# --- the folder ---------------------------------------------------------------------------------

SCRIPT = """
import torch, torchjanus
f = torchjanus.code("f(Tensor x) -> Tensor y", "y[0] = x[0] + {};")
print(f(torch.ones(1)).item())
"""


def run_apart(number, **environment):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(number)],
        env={k: v for k, v in {**os.environ, **environment}.items() if v is not None},
        capture_output=True,
        text=True,
    )


def kept_by(folder, number):
    """The one file that a process keeps."""
    before = set(folder.iterdir())
    assert run_apart(number).stdout == f"{number + 1.0}\n"
    (file,) = set(folder.iterdir()) - before
    return file


def test_kept_for_the_next_process(folder):
    file = kept_by(folder, 1)
    written = file.stat().st_mtime_ns
    assert run_apart(1).stdout == "2.0\n"
    assert file.stat().st_mtime_ns == written
    assert file.stat().st_mode & 0o077 == folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", [lambda b: b[:100], lambda b: b[:-1] + b"?", lambda b: b""])
def test_what_is_damaged_is_compiled_anew(folder, damage):
    number = 10 + len(damage(b"x" * 200))
    file = kept_by(folder, number)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert run_apart(number).stdout == f"{number + 1.0}\n"
    assert file.read_bytes() == whole


def test_two_at_once():
    with ThreadPoolExecutor(2) as pool:
        assert [run.stdout for run in pool.map(run_apart, [3, 3])] == ["4.0\n"] * 2


@pytest.mark.parametrize("place", ["/proc/nowhere", "0", ""])
def test_nowhere_to_keep_it(place):
    run = run_apart(4, TORCHJANUS_CACHE=place)
    assert run.stdout == "5.0\n"
    assert run.stderr.count("nothing is kept in") == (1 if place.startswith("/") else 0)


def test_no_home(tmp_path):
    run = run_apart(5, TORCHJANUS_CACHE=None, XDG_CACHE_HOME=None, HOME=None)
    assert (run.stdout, run.stderr) == ("6.0\n", "")


def test_a_folder_that_others_can_write_is_not_used(tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    code.chmod(0o777)
    run = run_apart(6, TORCHJANUS_CACHE=str(tmp_path))
    assert run.stdout == "7.0\n"
    assert f"nothing is kept in {code}: others can write or read it" in run.stderr
    assert not list(code.iterdir())
