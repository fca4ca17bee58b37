"""Concatenation, padding and `reindex` in fused kernels, which read the operands in their places,
against eager: dimensions of size zero and one, odd, larger than a vector; operands permuted, sliced
and broadcast; all element types; with what is computed and reduced behind them, and gradients."""

import math
import re

import pytest
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_results import eager_and_converted, strides

import torch
import torchjanus
from torchjanus import meta

PROPERTY = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
DTYPES = [
    *[torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32],
    *[torch.int16, torch.int8, torch.uint8, torch.bool],
]
SIZES = st.sampled_from([0, 1, 2, 3, 7, 16, 17, 33, 64, 65, 130])


def laid_out(data, sizes, dtype):
    """A tensor of these sizes that lies in memory in any way."""
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    draw = lambda sizes: torch.randint(-9, 9, sizes, generator=generator).to(dtype)  # noqa: E731
    layout = data.draw(st.sampled_from(["contiguous", "permuted", "sliced", "broadcast"]))
    if layout == "permuted":
        order = data.draw(st.permutations(range(len(sizes))))
        return draw([sizes[d] for d in order]).permute([order.index(d) for d in range(len(sizes))])
    if layout == "sliced":
        return draw([2 * s + 1 for s in sizes])[tuple(slice(1, 2 * s + 1, 2) for s in sizes)]
    if layout == "broadcast" and sizes and sizes[-1] > 1:
        return draw([*sizes[:-1], 1]).expand(sizes)
    return draw(sizes)


def sizes_of(data, rank):
    sizes = [data.draw(SIZES) for _ in range(rank)]
    while math.prod(sizes) > 20000:
        sizes[sizes.index(max(sizes))] = 3
    return sizes


def expect_same(function, *operands, exact=True):
    pairs, text = eager_and_converted(function, *operands)
    for e, a in pairs:
        assert a.numel() == 0 or strides(a) == strides(e)
        bounds = {"rtol": 0, "atol": 0} if exact else {}
        torch.testing.assert_close(a, e, equal_nan=True, **bounds)
    return text


def joined_operands(data, dtypes):
    rank = data.draw(st.integers(1, 4))
    dim = data.draw(st.integers(0, rank - 1))
    sizes = sizes_of(data, rank)
    operands = []
    for _ in range(data.draw(st.integers(1, 4))):
        sizes[dim] = data.draw(SIZES)
        operands.append(laid_out(data, sizes, data.draw(st.sampled_from(dtypes))))
    return operands, data.draw(st.sampled_from([dim, dim - rank]))


@PROPERTY
@given(data=st.data())
def test_what_follows_a_concatenation(data):
    operands, dim = joined_operands(data, DTYPES)
    c = laid_out(data, list(torch.cat(operands, dim).shape), torch.float32)

    def follow(*operands):
        joined = torch.cat(operands, dim)
        return torch.where(joined > 2, joined, 3) * c

    expect_same(follow, *operands)


@PROPERTY
@given(data=st.data())
def test_sums_and_extrema_of_a_concatenation(data):
    operands, dim = joined_operands(data, [torch.float32, torch.float64])
    reduced = data.draw(st.sets(st.integers(0, operands[0].dim() - 1), min_size=1))
    keep = data.draw(st.booleans())

    def reduce(*operands):
        y = torch.cat(operands, dim) * 0.5
        return y.sum(tuple(reduced), keepdim=keep), y + 1

    expect_same(reduce, *operands, exact=False)


@PROPERTY
@given(data=st.data())
def test_what_follows_a_border(data):
    rank = data.draw(st.integers(1, 4))
    x = laid_out(data, sizes_of(data, rank), data.draw(st.sampled_from(DTYPES)))
    pad = []
    for d in range(data.draw(st.integers(1, rank))):
        low = data.draw(st.sampled_from([0, 1, 2, 17, -1]))
        high = data.draw(st.sampled_from([0, 1, 5, 40, -1]))
        size = x.shape[-1 - d]
        pad += [low, high] if size + low + high >= 0 and -low <= size and -high <= size else [1, 2]
    value = data.draw(st.sampled_from([0.0, -0.0, 1.0, 3.0]))
    if x.is_floating_point():
        value = data.draw(st.sampled_from([value, math.inf, -math.inf, math.nan, 0.1]))
    c = laid_out(data, list(F.pad(x, pad).shape), torch.float32)
    expect_same(lambda x, c: F.pad(x, pad, value=value) + c, x, c)
    expect_same(lambda x: (F.pad(x, pad, value=value) * 2).sum(-1), x, exact=False)


@PROPERTY
@given(data=st.data())
def test_gradients_through_places(data):
    rank = data.draw(st.integers(2, 3))
    sizes = [data.draw(st.sampled_from([1, 2, 5, 17, 33])) for _ in range(rank)]
    a, b = (torch.randn(sizes, dtype=torch.float64) for _ in range(2))

    def gradients(a, b):
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        y = torch.cat([a, torch.sin(b)], -1).tanh()
        z = F.pad(y, (1, 2), value=0.5) ** 2
        (z.sum() + (torch.cat([b, a], 0) * 3).softmax(-1)[:, 0].sum()).backward()
        return a.grad, b.grad

    expect_same(gradients, a, b, exact=False)


def fused_operators(text):
    """The operators of each kernel of a graph that was printed."""
    kernels, inside = [], None
    for line in text.splitlines():
        if "= fused " in line:
            inside = []
            kernels.append(inside)
        elif inside is not None and line.strip().startswith("yield"):
            inside = None
        elif inside is not None:
            inside.append(line.split(" = ")[1].split()[0])
    return [[name for name in kernel if name != "constant"] for kernel in kernels]


def test_one_kernel_for_each():
    a, b, c = torch.randn(64, 33), torch.randn(64, 40), torch.randn(64, 73)
    text = expect_same(lambda a, b, c: torch.cat([a, b], 1).relu() * c, a, b, c)
    assert fused_operators(text) == [["cat", "relu", "mul"]]
    text = expect_same(lambda a, c: F.pad(a, (20, 20)) + c, a, c)
    assert fused_operators(text) == [["constant_pad_nd", "add"]]

    def turned(x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + torch.cat([x[..., half:], x[..., :half]], -1) * sin

    text = expect_same(turned, *(torch.randn(2, 4, 9, 32) for _ in range(3)))
    assert [sorted(kernel) for kernel in fused_operators(text)] == [["add", "cat", "mul", "mul"]]


def test_what_is_joined_is_also_looked_at():
    """An operand that is read at the points too stays apart; the same operand twice as well."""
    a, b = torch.randn(5, 1), torch.randn(5, 30)
    expect_same(lambda a, b: torch.cat([a, b], 1) * a, a, b)
    expect_same(lambda a: torch.cat([a, a], 1) * 2, a)
    expect_same(lambda a: torch.cat([a * 2, a], 1).exp() + 1, a, exact=False)


def test_a_result_is_not_written_over_what_is_read_elsewhere():
    def moved(x):
        y = torch.sin(x)
        return F.pad(y, (1, -1)) * 2 + y.sum()

    expect_same(moved, torch.randn(40, 40, dtype=torch.float64), exact=False)
    state = [torch.arange(40.0)]

    def shift():
        state[0].copy_(F.pad(state[0], (1, -1)) * 2)

    expected = torch.arange(40.0)
    converted = torchjanus.function(shift)
    for _ in range(8):
        converted()
        expected = F.pad(expected, (1, -1)) * 2
        assert torch.equal(state[0], expected)


def test_classes_of_scores_with_a_border():
    """A picked score may be one of the border."""
    target = torch.tensor([0, 1, 6, 7, 3])
    expect_same(
        lambda x: F.cross_entropy(F.pad(x, (1, 2)), target, reduction="none"),
        torch.randn(5, 5),
        exact=False,
    )


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1e300, torch.float32), (1e6, torch.float16), (300, torch.int8), (2, torch.bool)],
)
def test_a_border_that_does_not_fit(value, dtype):
    function = lambda x: F.pad(x, (1, 1), value=value) * 2  # noqa: E731
    converted, x = torchjanus.function(function), torch.ones(3).to(dtype)
    for _ in range(5):
        try:
            expected = function(x)
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=re.escape(str(error).splitlines()[0])):
                converted(x)
        else:
            torch.testing.assert_close(converted(x), expected, rtol=0, atol=0)


def test_images_with_their_channels_last():
    a, b = torch.randn(2, 8, 7, 9), torch.randn(2, 3, 7, 9)
    for layout in (torch.contiguous_format, torch.channels_last):
        a, b = (x.contiguous(memory_format=layout) for x in (a, b))
        expect_same(lambda a, b: torch.cat([a, b], 1).relu() + 1, a, b)
        expect_same(lambda a: F.pad(a, (1, 2, 0, 3)).relu() + 1, a)
    b = b.contiguous()
    expect_same(lambda a, b: torch.cat([a, b], 1).relu() + 1, a, b)


def test_batches_of_any_size():
    function = lambda a, b: torch.cat([a, b], -1).relu().sum(-1)  # noqa: E731
    converted = torchjanus.function(function)
    for i in range(10):
        a, b = torch.randn(i + 1, 5), torch.randn(i + 1, 9)
        torch.testing.assert_close(converted(a, b), function(a, b))


@pytest.mark.parametrize("step", [1, 2, -1])
def test_windows_of_a_reindex(step):
    x = torch.randn(9, 50)

    def windows(x):
        return meta.reindex(x, (9, 40, 5), lambda i, j, k: (i, step * j + k - 2)).amax(2)

    expect_same(lambda x: windows(x) * 2, x)


def test_threads_share_rows():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        a, b = torch.randn(3001, 203).double(), torch.randn(3001, 150).double()
        expect_same(lambda a, b: torch.cat([a, b], 1).relu() * 2, a, b)
        expect_same(lambda a: F.pad(a, (3, 4, 5, 6)).relu() * 2, a)
        expect_same(lambda a, b: (torch.cat([a, b], 1) * 2).sum(0), a, b, exact=False)
        expect_same(lambda a, b: (torch.cat([a.t(), b.t()]) * 2).sum(0), a, b, exact=False)
    finally:
        torch.set_num_threads(threads)
