"""Reductions in fused kernels, with what is computed before and after them, against eager on random
shapes, layouts and dimensions: of size zero and one, odd, larger than a vector; permuted, sliced and
broadcast operands; special values."""

import math
import os
import subprocess
import sys

import pytest
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_results import eager_and_converted, strides

import torch
import torchjanus

SIZES = st.sampled_from([0, 1, 2, 3, 5, 8, 16, 17, 33, 65, 130, 300])
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 3.0]


@st.composite
def tensors(draw, dtype=None, smallest=0, special=False):
    """A tensor of rank 1 to 4 that lies in memory in any way."""
    rank = draw(st.integers(1, 4))
    sizes = [max(draw(SIZES), smallest) for _ in range(rank)]
    while math.prod(sizes) > 20000:
        sizes[sizes.index(max(sizes))] = 3
    dtype = dtype or draw(st.sampled_from([torch.float32, torch.float64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    layout = draw(st.sampled_from(["contiguous", "permuted", "sliced", "broadcast"]))
    if layout == "broadcast" and sizes[0] > 1:
        x = torch.randn([1, *sizes[1:]], generator=generator, dtype=torch.float64).expand(sizes)
    elif layout == "sliced":
        x = torch.randn([2 * s + 1 for s in sizes], generator=generator, dtype=torch.float64)
        x = x[tuple(slice(0, 2 * s, 2) for s in sizes)]
    else:
        x = torch.randn(sizes, generator=generator, dtype=torch.float64)
    x = x.to(dtype) if layout != "sliced" else x.to(dtype, memory_format=torch.preserve_format)
    if layout == "permuted":
        order = draw(st.permutations(range(rank)))
        x = x.permute(order).contiguous().permute([order.index(d) for d in range(rank)])
    if special and x.numel() > 0 and layout != "broadcast":
        for value in draw(st.lists(st.sampled_from(SPECIAL), max_size=3)):
            place = [draw(st.integers(0, s - 1)) for s in x.shape]
            x[tuple(place)] = value
    return x


def tolerance(dtype, ill_conditioned=False):
    if dtype != torch.float32:
        return {"rtol": 1e-10, "atol": 1e-10}
    return {"rtol": 5e-4, "atol": 5e-4} if ill_conditioned else {"rtol": 2e-5, "atol": 1e-5}


def expect_same(function, *operands, ill_conditioned=False):
    """The converted function gives what eager gives, in a kernel that reduces. Where gradients lie
    in memory is not compared if they are `ill_conditioned`, those of rows that hardly deviate."""
    pairs, text = eager_and_converted(function, *operands)
    for e, a in pairs:
        assert ill_conditioned or strides(a) == strides(e)
        close = tolerance(operands[0].dtype, ill_conditioned)
        torch.testing.assert_close(a, e, equal_nan=True, **close)
    return text


REDUCTIONS = {
    "sum": lambda y, dims, keep: y.sum(dims, keepdim=keep),
    "mean": lambda y, dims, keep: y.mean(dims, keepdim=keep),
    "amax": lambda y, dims, keep: y.amax(dims, keepdim=keep),
    "amin": lambda y, dims, keep: y.amin(dims, keepdim=keep),
    "any": lambda y, dims, keep: (y > 1).any(dims, keepdim=keep),
    "all": lambda y, dims, keep: (y < 1).all(dims, keepdim=keep),
    "count": lambda y, dims, keep: (y > 0).sum(dims, keepdim=keep),
    "product": lambda y, dims, keep: y.prod(dims[0], keepdim=keep),
}


def dims_of(data, rank):
    return tuple(sorted(data.draw(st.sets(st.integers(0, rank - 1), min_size=1))))


@pytest.mark.parametrize("name", REDUCTIONS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_reduction_of_what_was_computed(name, data):
    x = data.draw(tensors(smallest=1 if name in ("amax", "amin") else 0, special=name != "product"))
    dims, keep = dims_of(data, x.dim()), data.draw(st.booleans())
    reduce = REDUCTIONS[name]
    expect_same(lambda x: reduce(x * 0.5, dims, keep), x)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reductions_with_what_follows(data):
    """Two passes over a row, a result for each row and one for each point."""
    x = data.draw(tensors(smallest=1))
    dims = dims_of(data, x.dim())

    def normalise(x):
        centred = x - x.mean(dims, keepdim=True)
        scale = (centred * centred).mean(dims, keepdim=True)
        return centred / (scale + 0.1).sqrt(), scale

    expect_same(normalise, x)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_softmax_and_its_gradient(data):
    x = data.draw(tensors(smallest=1, special=True))
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1))
    expect_same(lambda x: F.softmax(x * 0.5, dim) + 1, x)
    expect_same(lambda x: F.log_softmax(x * 0.5, dim) * 2, x)

    def gradients(x):
        x = (x * 0.5).requires_grad_()
        (y,) = torch.autograd.grad((F.softmax(x, dim) * torch.cos(x)).sum(), x)
        (z,) = torch.autograd.grad((F.log_softmax(x, dim) * torch.cos(x)).sum(), x)
        return y.clone() * 2, z.clone() * 2

    if x.isfinite().all() and x.abs().max() < 100:
        expect_same(gradients, x)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_logarithms_of_sums_of_exponentials(data):
    x = data.draw(tensors(smallest=1, special=True))
    dims, keep = dims_of(data, x.dim()), data.draw(st.booleans())
    assert "fused" in expect_same(lambda x: torch.logsumexp(x, dims, keep), x)
    assert "fused" in expect_same(lambda x: torch.logsumexp(x * 0.5, dims, keep).abs(), x)

    def gradient(x):
        x = x.clone().requires_grad_()
        (dx,) = torch.autograd.grad(torch.logsumexp(x * 2, dims, keep).sin().sum(), x)
        return dx

    if x.isfinite().all():
        expect_same(gradient, x)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_layer_norm(data):
    x = data.draw(tensors(smallest=1))
    inner = data.draw(st.integers(1, x.dim()))
    shape = tuple(x.shape[-inner:])
    affine = data.draw(st.booleans())
    weight, bias = (torch.randn(shape, dtype=x.dtype) for _ in range(2)) if affine else (None, None)
    text = expect_same(lambda x: F.layer_norm(x * 2 + 1, shape, weight, bias).relu(), x)
    assert text.count("fused") == 1


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_gradients_of_layer_norm(data):
    x = data.draw(tensors(smallest=1))
    inner = data.draw(st.integers(1, x.dim()))
    shape = tuple(x.shape[-inner:])
    affine, second = data.draw(st.booleans()), data.draw(st.booleans())
    weight, bias = torch.randn(shape, dtype=x.dtype), torch.randn(shape, dtype=x.dtype)

    def gradients(x, weight, bias):
        x, weight, bias = (t.clone().requires_grad_() for t in (x, weight, bias))
        y = F.layer_norm(x, shape, weight, bias) if affine else F.layer_norm(x, shape)
        targets = (x, weight, bias) if affine else (x,)
        first = torch.autograd.grad(torch.sin(y).sum(), targets, create_graph=second)
        if second:
            first += torch.autograd.grad((first[0] * torch.cos(x)).sum(), targets[:2])
        return tuple(g.detach() for g in first)

    # Rows of one element, or of almost equal ones, have a deviation of the rounding errors alone.
    count = math.prod(shape)
    if count > 2 and x.reshape(-1, count).std(1).min() > 0.05:
        expect_same(gradients, x, weight, bias, ill_conditioned=True)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_integers_and_booleans(data):
    x = data.draw(tensors(dtype=torch.float64, smallest=1))
    dims, keep = dims_of(data, x.dim()), data.draw(st.booleans())
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool):
        y = (x * 10).abs().to(dtype)
        expect_same(lambda y: (y != 3).sum(dims, keepdim=keep), y)
        if dtype not in (torch.bool,):
            expect_same(lambda y: (y + 1).sum(dims, keepdim=keep), y)
            expect_same(lambda y: (y + 1).amax(dims, keepdim=keep), y)
            expect_same(lambda y: (y + 1).amin(dims, keepdim=keep), y)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_positions_of_extrema(data):
    """The first of equal elements; NaN is an extremum wherever there is one."""
    x = data.draw(tensors(smallest=1, special=True))
    if data.draw(st.booleans()):
        x = x.round()
    dim, keep = data.draw(st.integers(-x.dim(), x.dim() - 1)), data.draw(st.booleans())
    text = expect_same(lambda x: (x * 0.5).argmax(dim, keep), x)
    assert text.count("= fused") == 1
    expect_same(lambda x: (x * 0.5).argmin(dim, keep), x)
    expect_same(lambda x: tuple((x * 0.5).max(dim, keep)), x)
    expect_same(lambda x: tuple((x * 0.5).min(dim, keep)), x)
    expect_same(lambda x: (x * 0.5).argmax(), x)
    expect_same(lambda x: (x * 0.5).argmin(keepdim=keep), x)
    expect_same(lambda x: x.argmax(dim) + 1, x)

    def gradients(x):
        x = x.clone().requires_grad_()
        values, places = (x * 2).max(dim, keep)
        (first,) = torch.autograd.grad((values * values.sin()).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * torch.cos(x)).sum(), x)
        return first.detach(), second, places

    if x.isfinite().all():
        expect_same(gradients, x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8])
def test_positions_of_extrema_of_integers(dtype):
    x = torch.randint(0, 5, (40, 33), dtype=dtype)
    limits = torch.iinfo(dtype)
    for number in (limits.min, limits.max):
        x[3] = number
        for dim in (0, 1):
            expect_same(lambda x: (x.argmax(dim), x.argmin(dim), *x.max(dim), *x.min(dim)), x)  # noqa: B023
        expect_same(lambda x: (x.argmax(), x.argmin()), x)


def test_positions_of_extrema_of_booleans_are_eagers():
    converted = torchjanus.function(lambda x: (x > 0).max(1).indices)
    for _ in range(5):
        x = torch.randn(4, 6)
        assert torch.equal(converted(x), (x > 0).max(1).indices)
    converted = torchjanus.function(lambda x: (x > 0).argmax(1))
    for _ in range(5):
        with pytest.raises(RuntimeError, match="does not support bool"):
            converted(torch.randn(4, 6))


def test_positions_in_one_graph_for_sizes_that_vary():
    def function(x):
        y = x * 2
        return y.argmax(-1), y.argmin(0), y.max(-1).values, y.argmax()

    converted = torchjanus.function(function)
    for i in range(12):
        x = torch.randn(i + 2, 3 * i + 2)
        for ours, theirs in zip(converted(x), function(x), strict=True):
            assert torch.equal(ours, theirs)
    assert converted.stats()["graphs"] <= 2
    with pytest.raises(IndexError, match="to have non-zero size"):
        converted(torch.randn(3, 0))


def test_sums_are_at_least_as_exact_as_eager():
    x = torch.rand(8, 300_003) + 0.5
    exact = (x.double() * 2).sum(1)
    converted = torchjanus.function(lambda x: (x * 2).sum(1))
    for _ in range(5):
        ours = converted(x)
    eager = (x * 2).sum(1)
    assert ((ours - exact).abs() <= (eager - exact).abs() + exact * 1e-7).all()
    columns = x.t().contiguous()
    converted = torchjanus.function(lambda x: (x * 2).sum(0))
    for _ in range(5):
        ours = converted(columns)
    assert ((ours - exact).abs() <= exact * 1e-7).all()


@pytest.mark.parametrize("length", [17, 256, 1000, 4099, 100_003])
def test_ill_conditioned_sums_are_more_exact_than_eager(length):
    """Elements of all sizes that nearly cancel each other."""
    generator = torch.Generator().manual_seed(length)
    x = torch.randn(40, length, generator=generator)
    x = x * 10 ** (torch.rand(x.shape, generator=generator) * 6 - 3)
    x[:, 1::2] = -x[:, : length // 2 * 2 : 2] * (
        1 + 1e-3 * torch.rand(length // 2, generator=generator)
    )
    exact = (x.double() * 2).sum(1)
    pairs, _ = eager_and_converted(lambda x: (x * 2).sum(1), x)
    eager, ours = ((each - exact).abs().square().mean().sqrt() for each in pairs[0])
    assert ours <= eager + 1e-7 * exact.abs().max()


@pytest.mark.parametrize("length", [5, 300, 1027])
def test_sums_of_infinities_and_nan(length):
    for values in [
        (math.inf,),
        (-math.inf,),
        (math.inf, -math.inf),
        (math.nan,),
        (math.nan, math.inf),
    ]:
        x = torch.randn(64, length, generator=torch.Generator().manual_seed(length))
        for row in range(64):
            for i, value in enumerate(values):
                x[row, (row * 37 + 11 * i) % length] = value
        expect_same(lambda x: ((x * 2).sum(1), F.softmax(x * 2, 1), (x * 2).amax(1)), x)
        expect_same(lambda x: (x * 2).amin(1) + F.layer_norm(x, x.shape[1:]).amax(1), x)


def test_threads_share_rows_and_columns():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        x = torch.randn(301, 2003)
        expect_same(lambda x: F.softmax(x * 0.5, 1) * 2, x)
        expect_same(lambda x: (x * 0.5).sum(0), x)
        expect_same(lambda x: (x * 0.5).sum(1), x)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", [(65, 20_003), (300, 4096), (7, 41, 5000)])
def test_sums_of_long_columns_beyond_the_cache(shape, threads):
    """What is stored at each point in the same pass, in an operand's place or not, and read later."""

    def scores_and_bias(x, row, column):
        d = torch.exp(x * row) * column
        return d, d.sum(0), (d * x).sum(0)

    def in_place(x, row, column):
        d = torch.tanh(x * row)
        d = d * column + (d > 0.5)
        return d.sum(0) * 2 + row, d

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        x, row, column = torch.randn(shape), torch.randn(shape[-1]), torch.randn(shape[0], 1)
        column = column.view(-1, *[1] * (len(shape) - 1))
        expect_same(scores_and_bias, x, row, column, ill_conditioned=True)
        expect_same(in_place, x, row, column, ill_conditioned=True)
        expect_same(lambda x, row: (torch.sigmoid(x) * row).sum(0), x, row, ill_conditioned=True)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("layout", ["contiguous", "sliced", "columns"])
@pytest.mark.parametrize("shape", [(2100, 1001), (33_001, 70), (3, 700_001), (8200, 1040)])
def test_tensors_beyond_the_cache(shape, layout):
    """They are fetched ahead, up to their end, and large results stored past it."""
    x = torch.randn(shape)
    if layout == "sliced":
        x = torch.randn(shape[0], shape[1] + 3)[:, 1:-2]
    elif layout == "columns":
        x = torch.randn(shape[::-1]).t()
    expect_same(lambda x: F.softmax(x * 0.5, 1) + 1, x)
    expect_same(lambda x: F.layer_norm(x * 2, x.shape[1:]), x)
    expect_same(lambda x: ((x * 2).sum(1), (x * 2).amax(0)), x, ill_conditioned=True)
    expect_same(lambda x: torch.tanh(x) * x[0] + x, x)


def test_one_graph_for_sizes_that_vary():
    function = lambda x: F.softmax(x * 2, -1) + (x * 2).sum(-1, keepdim=True)  # noqa: E731
    converted = torchjanus.function(function)
    for i in range(12):
        x = torch.randn(i + 2, 3 * i + 2)
        torch.testing.assert_close(converted(x), function(x))


@pytest.mark.parametrize("shape", [(6, 7, 9), (20, 33), (3, 40, 5)])
def test_operands_that_are_broadcast_along_some_reduced_dimensions(shape):
    x = torch.randn(shape, dtype=torch.float64)
    rank = len(shape)
    for number in range(1, 1 << rank):
        dims = tuple(d for d in range(rank) if number >> d & 1)
        for mask in range(1 << rank):
            w = torch.randn([s if mask >> d & 1 else 1 for d, s in enumerate(shape)]).double()
            expect_same(
                lambda x, w, dims=dims: ((x * w).sum(dims, keepdim=True) * w + x).amax(dims), x, w
            )


def test_a_result_is_not_written_over_what_later_rows_read():
    """Both are vectors of one size, but lie along different dimensions."""
    expect_same(
        lambda x, a: (torch.tanh(x) * a.flip(0)).sum(1), torch.randn(40, 40), torch.randn(40)
    )


def test_bytes_saved_are_printed(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import torch, torchjanus\n"
        "f = torchjanus.function(lambda x: torch.softmax(x * 2, 1))\n"
        "for _ in range(5): f(torch.ones(8, 16))\n"
    )
    result = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "TORCHJANUS_LOG": "pass:2"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "[pass] fused mul _softmax: 1024 bytes instead of 2048\n" in result.stderr
