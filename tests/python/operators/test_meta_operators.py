"""The public meta-operators: what they compute outside of graphs against loops, graphs against eager with
gradients of second order, and what graphs make of them: views, convolutions."""

import itertools
import math

import pytest
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torch
import torchjanus
from torchjanus import meta

PROPERTY = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def reference_reindex(x, shape, indices, fill):
    y = torch.full(shape, fill, dtype=x.dtype)
    for place in itertools.product(*map(range, shape)):
        source = indices(*place)
        if all(0 <= i < s for i, s in zip(source, x.shape, strict=True)):
            y[place] = x[tuple(source)]
    return y


def reference_reindex_sum(x, shape, indices):
    y = torch.zeros(shape, dtype=x.dtype)
    for place in itertools.product(*map(range, x.shape)):
        goal = indices(*place)
        if all(0 <= i < s for i, s in zip(goal, shape, strict=True)):
            y[tuple(goal)] += x[place]
    return y


def dims_followed_alone(rank, indices):
    """By differences of a linear map."""
    start, alone = indices(*[0] * rank), set()
    for k, first in enumerate(start):
        moved = [indices(*(int(i == d) for i in range(rank)))[k] != first for d in range(rank)]
        alone.update([moved.index(True)] if sum(moved) == 1 else [])
    return alone


def reference_reindex_test(x, shape, indices, reduce, alone=()):
    """any, all, argmax and argmin, place by place."""
    y = torch.full(shape, reduce == "all" if reduce in ("any", "all") else -1)
    best = {}
    for place in itertools.product(*map(range, x.shape)):
        goal = tuple(indices(*place))
        if not all(0 <= i < s for i, s in zip(goal, shape, strict=True)):
            continue
        element = x[place].item()
        if reduce in ("any", "all"):
            y[goal] = (
                (y[goal].item() or element != 0) if reduce == "any" else y[goal] and element != 0
            )
            continue
        key = math.inf if element != element else element if reduce == "argmax" else -element
        key = (element != element, key)
        if goal not in best or key > best[goal]:
            best[goal] = key
            y[goal] = 0
            for d in range(x.dim()):
                y[goal] = y[goal] if d in alone else y[goal] * x.shape[d] + place[d]
    return y


def strides(x):
    """Those that say where an element is."""
    sizes = x.shape if x.numel() > 0 else ()
    return [stride for stride, size in zip(x.stride(), sizes, strict=False) if size > 1]


def graph_of(function, *operands):
    """The graph of a function that gives tensors, after its results were compared with eager's."""
    expected = function(*operands)
    converted = torchjanus.function(function)
    for _ in range(5):
        actual = converted(*operands)
    for a, e in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape, strides(a)) == (e.dtype, e.shape, strides(e))
        torch.testing.assert_close(a, e, equal_nan=True, rtol=1e-4, atol=1e-4)
    return str(converted.graph())


@st.composite
def maps(draw):
    """Sizes of two tensors and a linear map from the indices of the first to those of the second."""
    space = [draw(st.integers(0, 5)) for _ in range(draw(st.integers(0, 3)))]
    mapped = [draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 3)))]
    rows = [([draw(st.integers(-2, 2)) for _ in space], draw(st.integers(-2, 4))) for _ in mapped]

    def indices(*place):
        return [
            sum((a * i for a, i in zip(factors, place, strict=True) if a), offset)
            for factors, offset in rows
        ]

    return space, mapped, indices


@PROPERTY
@given(maps(), st.sampled_from([0.0, 7.5]))
def test_reindex_reads_where_the_indices_say(case, fill):
    space, mapped, indices = case
    x = torch.randn(mapped, dtype=torch.float64)
    expected = reference_reindex(x, space, indices, fill)
    assert torch.equal(meta.reindex(x, space, indices, fill), expected)

    def step(x):
        x = x.clone().requires_grad_()
        y = meta.reindex(x * 2, space, indices, fill)
        (gradient,) = torch.autograd.grad((y * y * y).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((gradient * gradient).sum(), x)
        return y.detach(), gradient.detach(), second

    graph_of(step, x)


@PROPERTY
@given(maps())
def test_reindex_reduce_adds_where_the_indices_say(case):
    space, mapped, indices = case
    x = torch.randn(space, dtype=torch.float64)
    expected = reference_reindex_sum(x, mapped, indices)
    torch.testing.assert_close(meta.reindex_reduce(x, mapped, indices), expected)

    def step(x):
        x = x.clone().requires_grad_()
        y = meta.reindex_reduce(x * 2, mapped, indices)
        (gradient,) = torch.autograd.grad((y * y * y).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((gradient * gradient).sum(), x)
        return y.detach(), gradient.detach(), second

    graph_of(step, x)


DTYPES = [
    "float32",
    "float64",
    "bfloat16",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
]


def few_numbers(shape, dtype, special):
    """Many elements are equal, some are NaN or infinite."""
    x = torch.randint(0 if dtype in ("uint8", "bool") else -2, 3, shape).to(getattr(torch, dtype))
    if special and x.is_floating_point() and x.numel() > 1:
        x.view(-1)[:: x.numel() // 2] = math.nan
        x.view(-1)[1] = -math.inf
    return x


@PROPERTY
@given(
    maps(),
    st.sampled_from(["any", "all", "argmax", "argmin"]),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_tests_and_positions_of_what_comes_to_a_place(case, reduce, dtype, special):
    space, mapped, indices = case
    x = few_numbers(space, dtype, special)
    y = meta.reindex_reduce(x, mapped, indices, reduce)
    alone = dims_followed_alone(len(space), indices)
    assert torch.equal(y, reference_reindex_test(x, mapped, indices, reduce, alone))
    graph_of(lambda x: (meta.reindex_reduce(x, mapped, indices, reduce),), x)


@PROPERTY
@given(maps(), st.sampled_from(["sum", "amax", "amin"]), st.sampled_from(DTYPES))
def test_reductions_of_any_dtype(case, reduce, dtype):
    space, mapped, indices = case
    x = few_numbers(space, dtype, special=False)
    text = graph_of(lambda x: (meta.reindex_reduce(x, mapped, indices, reduce),), x)
    assert "opaque" not in text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduce", ["sum", "amax", "amin", "any", "all", "argmax", "argmin"])
def test_whole_dimensions_are_torchs_reductions(reduce, dtype):
    """In one kernel with what is computed before; the result lies in order whatever the operand does."""

    def step(x, y):
        x = x + y
        rows = meta.reindex_reduce(x, (4,), lambda i, j, k: (i,), reduce)
        columns = meta.reindex_reduce(x, (6, 4), lambda i, j, k: (k, i), reduce)
        return rows, columns, columns * 2, meta.reindex_reduce(x, (), lambda i, j, k: (), reduce)

    def one(x, y):
        return (meta.reindex_reduce(x + y, (4, 6), lambda i, j, k: (i, k), reduce),)

    x, y = few_numbers((4, 5, 6), dtype, True), few_numbers((4, 5, 6), dtype, False)
    graph_of(step, x, y)
    graph_of(step, x.transpose(0, 2).contiguous().transpose(0, 2), y)
    text = graph_of(one, x, y)
    if dtype != "bool":
        assert text.count("= fused") == 1 and "reindex_reduce" not in text


def test_sums_of_half_precision_do_not_round_on_their_way():
    x = torch.full((3, 5000), 0.75, dtype=torch.float16)
    for indices in (lambda i, j: (i,), lambda i, j: (i // 1,)):
        assert meta.reindex_reduce(x, (3,), indices).tolist() == [3750.0] * 3
        graph_of(lambda x: (meta.reindex_reduce(x, (3,), indices),), x)  # noqa: B023


@pytest.mark.parametrize("reduce", ["any", "all", "argmax", "argmin"])
def test_tests_and_positions_at_indices_of_tensors(reduce):
    x, classes = few_numbers((6, 4), "float32", True), torch.tensor([3, 0, 1, 1, 5, 3])

    def step(x, classes):
        return (
            meta.reindex_reduce(x, (4,), lambda i, j: (meta.at(classes, i),), reduce),
            meta.reindex_reduce(x, (4, 4), lambda i, j: (meta.at(classes, i), j), reduce),
        )

    graph_of(step, x, classes)
    flat, columns = step(x, classes)
    table = classes.tolist()
    assert torch.equal(flat, reference_reindex_test(x, (4,), lambda i, j: (table[i],), reduce))
    if reduce.startswith("arg"):  # i alone is counted
        assert columns[1].tolist() == [2 + int(getattr(x[2:4, j], reduce)(0)) for j in range(4)]
        assert columns[2].tolist() == [-1] * 4


@pytest.mark.parametrize("reduce", ["any", "all", "argmax", "argmin"])
def test_tests_and_positions_have_no_gradient(reduce):
    def step(x):
        x = x.clone().requires_grad_()
        y = x * 2
        found = meta.reindex_reduce(y, (4,), lambda i, j: (i,), reduce)
        sums = meta.reindex_reduce(y, (9,), lambda i, j: (i + j,), reduce)
        assert not found.requires_grad and not sums.requires_grad
        (gradient,) = torch.autograd.grad((y * y).sum() * found.sum(), x)
        return gradient, found, sums

    graph_of(step, torch.randn(4, 5))


def test_one_graph_for_reductions_of_sizes_that_vary():
    def step(x):
        m, n = x.shape
        return (
            meta.reindex_reduce(x * 2, (m,), lambda i, j: (i,), "argmax"),
            meta.reindex_reduce(x * 2, (n,), lambda i, j: (j,), "any"),
            meta.reindex_reduce(x * 2, (m + n,), lambda i, j: (i + j,), "argmin"),
            meta.reindex_reduce(x * 2, (2 * m, n), lambda i, j: (2 * i + 1, j), "all"),
        )

    converted = torchjanus.function(step)
    for i in range(12):
        x = torch.randn(2 * i + 2, i + 3)
        for ours, theirs in zip(converted(x), step(x), strict=True):
            assert torch.equal(ours, theirs)
    assert converted.stats()["hits"] > 6


@pytest.mark.parametrize(
    ("x", "reduce", "error", "message"),
    [
        (torch.ones(3), "argmix", ValueError, "no reduction 'argmix', but sum, mean"),
        (torch.ones(3, dtype=torch.complex64), "amax", TypeError, "torch.complex64 has no order"),
        (torch.ones(3, dtype=torch.complex64), "argmin", TypeError, "torch.complex64 has no order"),
    ],
)
def test_what_is_no_reduction_raises(x, reduce, error, message):
    function = torchjanus.function(lambda x: meta.reindex_reduce(x, (1,), lambda i: (0,), reduce))
    for run in [lambda x: meta.reindex_reduce(x, (1,), lambda i: (0,), reduce)] + [function] * 4:
        with pytest.raises(error, match=message):
            run(x)


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
def test_reductions_of_rows(reduce):
    x = torch.randn(4, 5)

    def step(x):
        x = x.clone().requires_grad_()
        y = meta.reindex_reduce(x, (4,), lambda i, j: (i,), reduce)
        (gradient,) = torch.autograd.grad((y * torch.cos(y)).sum(), x)
        return y.detach(), gradient

    graph_of(step, x)
    expected = x.mean(1) if reduce == "mean" else getattr(x, reduce)(1)
    torch.testing.assert_close(meta.reindex_reduce(x, (4,), lambda i, j: (i,), reduce), expected)


@pytest.mark.parametrize("map_name", ["rows", "windows"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
def test_gradients_of_any_order(reduce, map_name):
    """Where each element is put to a place of its row, or to one that several rows share."""
    indices = {"rows": lambda i, j: (i,), "windows": lambda i, j: (i + j,)}[map_name]
    size = (3,) if map_name == "rows" else (6,)

    def reduced(x):
        return meta.reindex_reduce(x, size, indices, reduce)

    def step(x):
        x = x.clone().requires_grad_()
        value, gradients = (reduced(x * 2) ** 3).sum(), []
        for _ in range(3):
            (gradient,) = torch.autograd.grad(value, x, create_graph=True)
            gradients.append(gradient.detach())
            value = (gradient * gradient * x).sum()
        return tuple(gradients)

    x = torch.randn(3, 4, dtype=torch.float64)
    graph_of(step, x)
    x.requires_grad_()
    assert torch.autograd.gradcheck(reduced, x)
    assert torch.autograd.gradgradcheck(reduced, x)


def test_where_nothing_is_put_is_what_changes_nothing():
    x = torch.ones(2)
    for reduce, number in {"sum": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}.items():
        y = meta.reindex_reduce(x, (3,), lambda i: (i * 2,), reduce)
        assert y.tolist() == [1, number, 1]


def test_indices_that_are_no_sums():
    x, classes = torch.randn(6, 4), torch.tensor([3, 0, 1, 1, 2, 3])

    def step(x, classes):
        x = x.clone().requires_grad_()
        own = meta.reindex(x, (6,), lambda i: (i, meta.at(classes, i)))
        folded = meta.reindex(x, (24,), lambda i: (i // 4, i % 4))
        counts = meta.reindex_reduce(x, (4,), lambda i, j: (meta.at(classes, i),))
        (gradient,) = torch.autograd.grad(own.sum() + (folded * counts.sum()).sum(), x)
        return own.detach(), folded.detach(), counts.detach(), gradient

    graph_of(step, x, classes)
    own = meta.reindex(x, (6,), lambda i: (i, meta.at(classes, i)))
    assert torch.equal(own, x.gather(1, classes[:, None])[:, 0])
    assert torch.equal(meta.reindex(x, (24,), lambda i: (i // 4, i % 4)), x.reshape(-1))


def test_wrong_numbers_of_indices_raise():
    with pytest.raises(ValueError, match="1 indices of a tensor that has 2"):
        meta.reindex(torch.ones(2, 2), (2,), lambda i: (i,))


def test_remainders_and_distances():
    x = torch.randn(4, 8)

    def step(x):
        near = meta.reindex(x, (7,), lambda i: (abs(i - 3), 7 // (i + 1)))
        folded = meta.reindex(x, (4, 8), lambda i, j: (i, 7 % (j + 1)))
        return near, folded

    graph_of(step, x)
    near, folded = step(x)
    assert torch.equal(near, x[[3, 2, 1, 0, 1, 2, 3], [7, 3, 2, 1, 1, 1, 1]])
    assert torch.equal(folded, x[:, [0, 1, 1, 3, 2, 1, 0, 7]])


TABLE = torch.tensor([0.0, 0.9, 1.0])
DECIDES_NOTHING = "an index stands for all places at once and can decide nothing"


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        (lambda i: (i, 1 if i == 2 else 0), DECIDES_NOTHING),
        (lambda i: (i, 1 if i != 2 else 0), DECIDES_NOTHING),
        (lambda i: (i, i if i else 0), DECIDES_NOTHING),
        (lambda i: (i, 1 if i < 2 else 0), DECIDES_NOTHING),
        (lambda i: (i, max(i, 1)), DECIDES_NOTHING),
        (lambda i: (i, 0.5), "not of a float"),
        (lambda i: (i, i * 1.0), "not of a float"),
        (lambda i: (i, i + 1.0), "not of a float"),
        (lambda i: (i, 1.0 - i), "not of a float"),
        (lambda i: (i, 2.0 // i), "not of a float"),
        (lambda i: (i, i % 2.0), "not of a float"),
        (lambda i: (i, i / 2), "unsupported operand"),
        (lambda i: (i, i + TABLE), "not of a Tensor"),
        (lambda i: (i, None), "not of a NoneType"),
        (lambda i: i, r"gives a tuple of indices: \(i,\)"),
        (lambda i: (i, meta.at(TABLE, i)), r"a tensor of torch.float32 has no indices"),
        (lambda i: (i, meta.at(TABLE.long(), i * 0.5)), "not of a float"),
    ],
)
def test_what_is_no_index_raises(indices, message):
    x = torch.ones(3, 2)
    function = torchjanus.function(lambda x: meta.reindex(x, (3,), indices))
    for run in [lambda x: meta.reindex(x, (3,), indices)] + [function] * 4:
        with pytest.raises(TypeError, match=message):
            run(x)


def test_wrong_numbers_of_indices_of_a_table_raise():
    with pytest.raises(ValueError, match="at: 1 indices of a tensor that has 2"):
        meta.reindex(torch.ones(2), (2,), lambda i: (meta.at(torch.ones(2, 2).long(), i),))


def test_indices_that_follow_one_another_are_views():
    def step(x):
        turned = meta.reindex(x, (7, 5), lambda i, j: (j, 6 - i))
        spread = meta.reindex(x, (3, 5, 7), lambda b, i, j: (i, j))
        bordered = meta.reindex(x, (7, 9), lambda i, j: (i - 1, j - 1), 2.0)
        every_other = meta.reindex(x, (3, 7), lambda i, j: (2 * i, j))
        return turned * 2, spread * 2, bordered * 2, every_other * 2

    assert "reindex" not in graph_of(step, torch.randn(5, 7))


def test_results_are_tensors_of_their_own():
    def step(x):
        turned = meta.reindex(x, (7, 5), lambda i, j: (j, i))
        spread = meta.reindex(x, (3, 5, 7), lambda b, i, j: (i, j))
        same = meta.reindex(x, (5, 7), lambda i, j: (i, j))
        again = meta.reindex(x, (5, 7), lambda i, j: (i, j)) * 1
        rows = meta.reindex(x, (7, 5), lambda i, j: (j, i)) * 2
        wide = meta.reindex(x, (3, 5, 7), lambda b, i, j: (i, j)) + 1
        return turned, spread, same, again, rows, wide

    converted = torchjanus.function(step)
    for _ in range(5):
        x = torch.randn(5, 7)
        before = x.clone()
        for ours, theirs in zip(converted(x), step(x), strict=True):
            assert torch.equal(ours, theirs) and ours.stride() == theirs.stride()
            ours.add_(1)
            assert torch.equal(x, before)


def convolution(x, w, border=1, stride=1, dilation=1):
    (n, c, h, v), (o, _, p, q) = x.shape, w.shape
    rows = (h + 2 * border - dilation * (p - 1) - 1) // stride + 1
    columns = (v + 2 * border - dilation * (q - 1) - 1) // stride + 1
    image = meta.reindex(
        x,
        (n, o, rows, columns, c, p, q),
        lambda n, o, i, j, c, p, q: (
            n,
            c,
            stride * i + dilation * p - border,
            stride * j + dilation * q - border,
        ),
    )
    weight = meta.reindex(w, image.shape, lambda n, o, i, j, c, p, q: (o, c, p, q))
    return (image * weight).sum((4, 5, 6))


@pytest.mark.parametrize("border, stride, dilation", [(1, 1, 1), (0, 1, 1), (1, 2, 1), (2, 3, 2)])
def test_a_convolution_is_run_by_the_library(border, stride, dilation):
    x, w = torch.randn(2, 3, 10, 8), torch.randn(4, 3, 3, 3)
    torch.testing.assert_close(
        convolution(x, w, border, stride, dilation),
        F.conv2d(x, w, padding=border, stride=stride, dilation=dilation),
        rtol=1e-4,
        atol=1e-4,
    )

    def step(x, w):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = convolution(x, w, border, stride, dilation).relu()
        dx, dw = torch.autograd.grad((y * y).sum(), (x, w))
        return y.detach(), dx, dw

    text = graph_of(step, x, w)
    assert "= convolution " in text and "reindex" not in text


def test_convolutions_of_other_forms():
    def turned(x, w):
        """The weight turned around, the result's channels last, indices in another order."""
        image = meta.reindex(
            x, (3, 3, 2, 8, 2, 4), lambda c, k, n, i, s, o: (n, c, i - k + s * 2 - 1)
        )
        weight = meta.reindex(w, image.shape, lambda c, k, n, i, s, o: (k, o, c))
        return ((weight * image).sum((0, 1)),)

    def one_dimension(x, w):
        image = meta.reindex(x, (3, 3, 2, 8, 4), lambda c, k, n, i, o: (n, c, i - k + 1))
        weight = meta.reindex(w, image.shape, lambda c, k, n, i, o: (k, o, c))
        return ((weight * image).sum((0, 1)),)

    def uneven(x, w):
        image = meta.reindex(x, (2, 4, 9, 3, 3), lambda n, o, i, c, k: (n, c, i + k - 3))
        weight = meta.reindex(w, image.shape, lambda n, o, i, c, k: (k, o, c))
        return ((image * weight).sum((3, 4)),)

    def wrong_fill(x, w):
        image = meta.reindex(x, (2, 4, 8, 3, 3), lambda n, o, i, c, k: (n, c, i + k - 1), 1.0)
        weight = meta.reindex(w, image.shape, lambda n, o, i, c, k: (k, o, c))
        return ((image * weight).sum((3, 4)),)

    def a_part_of_the_channels(x, w):
        image = meta.reindex(x, (2, 4, 8, 2, 3), lambda n, o, i, c, k: (n, c, i + k - 1))
        weight = meta.reindex(w, image.shape, lambda n, o, i, c, k: (k, o, c))
        return ((image * weight).sum((3, 4)),)

    def batches_multiplied(x, w):
        image = meta.reindex(x, (2, 4, 8, 3, 3), lambda n, o, i, c, k: (n, c, i + k - 1))
        weight = meta.reindex(w, image.shape, lambda n, o, i, c, k: (k, n, c))
        return ((image * weight).sum((3, 4)),)

    x, w = torch.randn(2, 3, 8), torch.randn(3, 4, 3)
    assert "= convolution " in graph_of(one_dimension, x, w)
    assert "= convolution " in graph_of(uneven, x, w)
    for other in (turned, wrong_fill, a_part_of_the_channels, batches_multiplied):
        assert "= convolution " not in graph_of(other, x, w)


def test_stop_fuse_keeps_kernels_apart():
    def step(x):
        y = torchjanus.stop_fuse(torch.sin(x) * 2)
        return torch.cos(y) + 1, y

    text = graph_of(step, torch.randn(40))
    assert text.count("= fused") == 2

    def gradients(x):
        x = x.clone().requires_grad_()
        kept = torchjanus.stop_fuse(x * x)
        (dx,) = torch.autograd.grad((kept * torchjanus.stop_grad(kept)).sum(), x)
        return (dx,)

    graph_of(gradients, torch.randn(40))


def test_border_of_infinite_weights():
    """Zeros of the border times infinity are no zeros; nor are those in the weight's gradient."""

    def step(x, w):
        w = w.clone().requires_grad_()
        space = (2, 4, 6, 6, 3, 3, 3)
        image = meta.reindex(x, space, lambda n, o, i, j, c, p, q: (n, c, i + p - 1, j + q - 1))
        weight = meta.reindex(w, space, lambda n, o, i, j, c, p, q: (o, c, p, q))
        y = (image * weight).sum((4, 5, 6))
        (gradient,) = torch.autograd.grad(y.sum(), w)
        return y.detach(), gradient

    converted = torchjanus.function(step)
    x, w = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3)
    for _ in range(4):
        converted(x, w)
    w[0, 1, 0, 2] = math.inf
    torch.testing.assert_close(converted(x, w), step(x, w), equal_nan=True, rtol=1e-4, atol=1e-4)
    assert converted.stats()["hits"] > 1


def test_a_number_is_called_as_in_eager():
    def step(x):
        return meta.reindex(x, (), lambda: (0, 1))

    converted = torchjanus.function(step)
    for _ in range(4):
        x = torch.randn(3, 4, requires_grad=True)
        assert converted(x).grad_fn.name() == step(x).grad_fn.name()
    assert converted.stats()["hits"] > 0
