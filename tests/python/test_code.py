"""torchjanus.code: operators written inline in C++."""

import os
import subprocess
import sys
import warnings
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
        patch.setenv("TORCHJANUS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield compiler.cache_folder()


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
    ],
)
def test_signature(signature, message):
    with pytest.raises(ValueError, match=message):
        torchjanus.code(signature, "")


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


# --- the folder ---------------------------------------------------------------------------------

SCRIPT = """
import torch, torchjanus
f = torchjanus.code("f(Tensor x) -> Tensor y", "y[0] = x[0] + {};")
print(f(torch.ones(1)).item())
"""


def run_apart(number, **environment):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(number)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


def test_kept_for_the_next_process(folder):
    before = set(folder.iterdir())
    assert run_apart(1).stdout == "2.0\n"
    (library,) = (each for each in set(folder.iterdir()) - before if each.suffix == ".so")
    written = library.stat().st_mtime_ns
    assert run_apart(1).stdout == "2.0\n"
    assert library.stat().st_mtime_ns == written
    assert library.stat().st_mode & 0o077 == 0


def test_what_is_damaged_is_compiled_anew(folder):
    before = set(folder.iterdir())
    run_apart(2)
    (library,) = (each for each in set(folder.iterdir()) - before if each.suffix == ".so")
    library.write_bytes(library.read_bytes()[:100])
    assert run_apart(2).stdout == "3.0\n"


def test_two_at_once():
    with ThreadPoolExecutor(2) as pool:
        assert [run.stdout for run in pool.map(run_apart, [3, 3])] == ["4.0\n"] * 2


@pytest.mark.parametrize("place", ["/proc/nowhere", "0", ""])
def test_nowhere_to_keep_it(place):
    run = run_apart(4, TORCHJANUS_CACHE=place)
    assert run.stdout == "5.0\n"
    assert run.stderr.count("RuntimeWarning") == (1 if place.startswith("/") else 0)


def test_full_disk(folder, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiler, "put", full)
    unkept = torchjanus.code("unkept(Tensor x) -> Tensor y", "y[0] = 7;")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert unkept(torch.ones(1)).item() == 7
    assert [each.category for each in told] == [RuntimeWarning]
