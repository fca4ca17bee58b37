"""Reads at indices that tensors hold, and turned tensors, in fused kernels, against eager: operands
permuted, sliced and broadcast; indices of both widths, computed and read themselves; all element types;
with what is computed and reduced behind them, and gradients; indices that are outside."""

import pytest
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import torch
import torchjanus
from kernels.test_indices import DTYPES, PROPERTY, expect_same, fused_operators, laid_out, sizes_of

INDEX_DTYPES = st.sampled_from([torch.int64, torch.int32])


def indices(data, sizes, size, dtype=torch.int64, low=0):
    """Indices below `size` that lie in memory in any way."""
    x = laid_out(data, sizes, torch.int64)
    return ((x + 9) * 7 % (size - low) + low).to(dtype) if size > 0 else x[:0]


def numbers(data, sizes):
    return laid_out(data, sizes, torch.float32)


@PROPERTY
@given(data=st.data())
def test_gathered_elements(data):
    rank = data.draw(st.integers(1, 3))
    sizes = [max(size, 1) for size in sizes_of(data, rank)]
    dim = data.draw(st.integers(0, rank - 1))
    x = laid_out(data, sizes, data.draw(st.sampled_from(DTYPES)))
    wanted = [data.draw(st.integers(min(1, s), s)) for s in sizes]
    wanted[dim] = data.draw(st.sampled_from([0, 1, 3, 17, 40]))
    index, c = indices(data, wanted, sizes[dim]), numbers(data, wanted)
    expect_same(lambda x, i, c: x.gather(dim, i) * c, x, index, c)
    expect_same(lambda x, i: x.gather(dim, i), x, index)
    expect_same(lambda x, i: x.gather(dim - rank, i).double().sum(dim), x, index, exact=False)
    expect_same(lambda x, i: x.gather(dim, i * 1).double().mean(), x, index, exact=False)


@PROPERTY
@given(data=st.data())
def test_rows_of_tables(data):
    rows, width = (data.draw(st.sampled_from([1, 2, 7, 64])) for _ in range(2))
    width = data.draw(st.sampled_from([1, 3, 16, 33, 130]))
    table = laid_out(data, [rows, width], data.draw(st.sampled_from(DTYPES)))
    wanted = sizes_of(data, data.draw(st.integers(0, 2)))[:2]
    wanted = [min(size, 17) for size in wanted]
    index = indices(data, wanted, rows, data.draw(INDEX_DTYPES)) if wanted else torch.tensor(0)
    c = numbers(data, [*wanted, width])
    expect_same(lambda t, i, c: F.embedding(i, t) * 2 + c, table, index, c)
    expect_same(lambda t, i: F.embedding(i, t), table, index)
    for dim in range(len(wanted) + 1):
        sums = lambda t, i, dim=dim: F.embedding(i, t).double().sum(dim)  # noqa: E731
        expect_same(sums, table, index, exact=False)


@PROPERTY
@given(data=st.data())
def test_selected_parts(data):
    rank = data.draw(st.integers(1, 3))
    sizes = [max(size, 1) for size in sizes_of(data, rank)]
    dim = data.draw(st.integers(0, rank - 1))
    x = laid_out(data, sizes, data.draw(st.sampled_from(DTYPES)))
    count = data.draw(st.sampled_from([0, 1, 2, 19]))
    index = indices(data, [count], sizes[dim], data.draw(INDEX_DTYPES))
    expect_same(lambda x, i: x.index_select(dim, i) * 2, x, index)
    expect_same(lambda x, i: x.index_select(dim, i).double().sum(dim), x, index, exact=False)
    along = indices(data, sizes, sizes[dim])
    expect_same(lambda x, i: x.take_along_dim(i, dim).float() + 1, x, along)


@PROPERTY
@given(data=st.data())
def test_subscripts(data):
    """Indices from the end count; a part's dimensions keep the order that they have in memory."""
    rank = data.draw(st.integers(1, 4))
    sizes = [max(size, 1) for size in sizes_of(data, rank)]
    x = laid_out(data, sizes, data.draw(st.sampled_from(DTYPES)))
    chosen = data.draw(st.sets(st.integers(0, rank - 1), min_size=1, max_size=2))
    shape = data.draw(st.sampled_from([[], [1], [5], [17], [3, 1], [2, 7], [0]]))
    key, operands = [], []
    for d in range(rank):
        key.append(slice(None))
        if d in chosen:
            wanted = [data.draw(st.sampled_from([s, 1])) if s > 1 else s for s in shape]
            key[-1] = len(operands)
            operands.append(indices(data, wanted, sizes[d], data.draw(INDEX_DTYPES), low=-sizes[d]))

    def part(x, *operands):
        return x[tuple(operands[k] if isinstance(k, int) else k for k in key)]

    expect_same(lambda x, *i: part(x, *i) * 2, x, *operands)
    expect_same(part, x, *operands)
    if part(x, *operands).dim() > 0:
        expect_same(lambda x, *i: part(x, *i).double().sum(-1), x, *operands, exact=False)


@PROPERTY
@given(data=st.data())
def test_turned_tensors(data):
    rank = data.draw(st.integers(1, 4))
    sizes = sizes_of(data, rank)
    x = laid_out(data, sizes, data.draw(st.sampled_from(DTYPES)))
    dims = sorted(data.draw(st.sets(st.integers(0, rank - 1), min_size=1)))
    c = numbers(data, sizes)
    expect_same(lambda x, c: x.flip(dims) * c, x, c)
    expect_same(lambda x: x.flip(dims), x)
    expect_same(lambda x: (x.flip(dims) * 2).double().sum(-1), x, exact=False)
    if all(sizes):
        expect_same(lambda x: x.flip(dims).double().amax(dims), x)


@PROPERTY
@given(data=st.data())
def test_gradients_through_look_ups(data):
    n, m = (data.draw(st.sampled_from([1, 2, 5, 17, 33])) for _ in range(2))
    a, b = (torch.randn([n, m], dtype=torch.float64) for _ in range(2))
    rows = indices(data, [data.draw(st.sampled_from([1, 4, 20]))], n)
    own, many = indices(data, [n, 1], m), indices(data, [n, 3], m)

    def gradients(a, b, rows, own, many):
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        y = (
            F.embedding(rows, a).tanh().mean(0)
            + b[-rows - 1].sum(0)
            + a.index_select(0, rows).sin().sum(0)
        )
        z = a.log_softmax(1).gather(1, own).mean() + b.gather(1, many).exp().sum()
        (y.sum() + z + (a.flip(0) * b.flip(0, 1)).sum()).backward()
        return a.grad, b.grad

    expect_same(gradients, a, b, rows, own, many, exact=False)


@PROPERTY
@given(data=st.data())
def test_gradients_of_rows(data):
    """What is added up in the places of indices, of which several may be the same."""
    rank = data.draw(st.integers(1, 3))
    sizes = [
        data.draw(st.sampled_from([1, 2, 9, 40])),
        *[data.draw(st.sampled_from([1, 3, 33]))] * 2,
    ]
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
    x = laid_out(data, sizes[:rank], dtype)
    shape = data.draw(st.sampled_from([[], [1], [30], [3, 4]]))
    width = data.draw(INDEX_DTYPES)
    rows = indices(data, shape, sizes[0], width) if shape else torch.tensor(0, dtype=width)
    weights = laid_out(data, [*shape, *sizes[1:rank]], dtype)
    padding = data.draw(st.sampled_from([None, 0, -1]))

    def gradients(x, rows, weights):
        x, table = (
            x.clone().requires_grad_(),
            x.reshape(sizes[0], -1).clone().requires_grad_(),
        )
        y = x[rows - sizes[0]] * weights + x[rows]
        z = F.embedding(rows, table, padding_idx=padding) * 2
        y.sum().backward()
        z.sum().backward()
        flat = x.detach().requires_grad_()
        flat.index_select(0, rows.flatten()).sin().sum().backward()
        return x.grad, table.grad, flat.grad

    expect_same(gradients, x, rows, weights, exact=False)


@pytest.mark.parametrize("sizes", [(4, 9), (1, 9), (4, 1), (3, 2, 5)])
def test_gradients_that_are_repeated(sizes):
    """The gradient of a mean has each row many times."""
    table, index = torch.randn(20, 7).double(), torch.randint(0, 20, sizes)

    def gradients(table, index):
        grads = []
        for dim in range(index.dim() + 1):
            leaf = table.clone().requires_grad_()
            F.embedding(index, leaf).mean(dim).sin().sum().backward()
            grads.append(leaf.grad)
        leaf = table.clone().requires_grad_()
        leaf[index].sum().backward()
        added = (
            torch.zeros(20, 7)
            .double()
            .index_add(0, index.flatten(), table[:1].expand(index.numel(), 7))
        )
        return *grads, leaf.grad, added

    expect_same(gradients, table, index, exact=False)


@PROPERTY
@given(data=st.data())
def test_gradients_of_subscripts_in_several_dimensions(data):
    """Sums in the order of the indices, so they are eager's bit for bit; also of second order."""
    sizes = [data.draw(st.integers(1, 5)) for _ in range(data.draw(st.integers(1, 4)))]
    x = laid_out(data, sizes, data.draw(st.sampled_from([torch.float32, torch.float64])))
    shape = [data.draw(st.integers(0, 6)) for _ in range(data.draw(st.integers(0, 2)))]
    is_indexed = [data.draw(st.booleans()) for _ in sizes]
    given_indices = []
    for size, chosen in zip(sizes, is_indexed, strict=True):
        own = [data.draw(st.sampled_from([1, s])) for s in shape]
        dtype = data.draw(INDEX_DTYPES)
        given_indices.append(indices(data, own, size, dtype, -size) if chosen else slice(None))

    def gradients(x, *given):
        x = x.clone().requires_grad_()
        y = x[tuple(given)] * 2
        (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), x)
        return y.detach(), first.detach(), second

    if any(is_indexed):
        expect_same(gradients, x, *given_indices)


@PROPERTY
@given(data=st.data())
def test_parts_added_at_indices(data):
    sizes = [data.draw(st.integers(1, 5)) for _ in range(data.draw(st.integers(1, 4)))]
    dim, count = data.draw(st.integers(0, len(sizes) - 1)), data.draw(st.integers(0, 9))
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bfloat16]))
    x = laid_out(data, sizes, dtype)
    parts = [*sizes[:dim], count, *sizes[dim + 1 :]]
    y = laid_out(data, parts, dtype)
    inside, wrapped = (indices(data, [count], sizes[dim], low=low) for low in (0, -sizes[dim]))

    def added(x, y, inside, wrapped):
        at_once = x.clone()
        at_once.index_add_(dim, inside, y)
        twice = x.index_add(dim, inside, y, alpha=2)
        from_end = x.transpose(0, dim).index_put((wrapped,), y.transpose(0, dim), accumulate=True)
        return at_once, twice, from_end

    expect_same(added, x, y, inside, wrapped)


def test_second_gradients():
    x, rows, own = (
        torch.randn(9, 4).double(),
        torch.randint(0, 9, (20,)),
        torch.randint(0, 4, (9, 1)),
    )

    def seconds(x, rows, own):
        x = x.clone().requires_grad_()
        y = x[rows].exp().sum() + F.embedding(rows, x).sin().sum() + x.gather(1, own).exp().sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        (first**2).sum().backward()
        return first.detach(), x.grad

    expect_same(seconds, x, rows, own, exact=False)


def test_one_kernel_for_each():
    table, index, c = torch.randn(50, 33), torch.randint(0, 50, (4, 9)), torch.randn(4, 9, 33)
    text = expect_same(lambda t, i, c: F.embedding(i, t) * 3 + c, table, index, c)
    assert fused_operators(text) == [["embedding", "mul", "add"]]
    text = expect_same(lambda t, i: F.embedding(i, t).mean(1), table, index, exact=False)
    assert fused_operators(text) == [["embedding", "mean"]]
    scores, actions = torch.randn(64, 10), torch.randint(0, 10, (64, 1))
    text = expect_same(lambda x, i: x.gather(1, i).mean(), scores, actions, exact=False)
    assert fused_operators(text) == [["gather", "mean"]]
    text = expect_same(lambda x, i: x.gather(1, 9 - i) * 2, scores, actions)
    assert fused_operators(text) == [["rsub", "gather", "mul"]]
    text = expect_same(lambda x, i: x[i] * 2 + 1, table, index[0])
    assert fused_operators(text) == [["index", "mul", "add"]]
    text = expect_same(lambda x, i: x[-i, i % 33].exp(), table, index[0], exact=False)
    assert fused_operators(text)[-1][-2:] == ["index", "exp"]
    text = expect_same(lambda x: x.flip(1) * 2, scores)
    assert fused_operators(text) == [["flip", "mul"]]


def test_indices_that_are_looked_up_themselves():
    x, order, other = torch.randn(100), torch.randperm(100), torch.randperm(100)
    text = expect_same(lambda x, i, j: x[i[j]] * 2, x, order, other)
    assert fused_operators(text) == [["index", "index", "mul"]]
    expect_same(lambda x, i: x[i[i]] * 2, x, order)


def test_one_table_with_several_indices():
    table, heads, tails = torch.randn(50, 33), *torch.randint(0, 50, (2, 9))
    text = expect_same(lambda t, i, j: F.embedding(i, t) - F.embedding(j, t), table, heads, tails)
    assert fused_operators(text) == [["embedding", "embedding", "sub"]]


def test_tensors_that_are_read_at_the_points_as_well():
    x, order, other = torch.randn(64, 10), torch.randperm(64), torch.randperm(64)
    text = expect_same(lambda x, i: x * 0.3 + x[i] * 0.7, x, order)
    assert fused_operators(text) == [["mul", "index", "mul", "add"]]
    text = expect_same(lambda x: x.flip(0) * x.flip(1) * x, x)
    assert fused_operators(text) == [["flip", "flip", "mul", "mul"]]
    text = expect_same(lambda x, i, j: x[i] * 2 - x[j] * x, x, order, other)
    assert fused_operators(text) == [["index", "mul", "index", "mul", "sub"]]
    text = expect_same(lambda x, i: (x[i] - x).abs().sum(1), x, order, exact=False)
    assert fused_operators(text) == [["index", "sub", "abs", "sum"]]
    text = expect_same(lambda x, i: (x * 2).exp()[i] - (x * 2).exp(), x, order, exact=False)
    assert fused_operators(text) == [["mul", "exp"], ["index", "sub"]]
    # A tensor of indices that is looked up in itself stays apart, as does what is joined.
    expect_same(lambda i: i[i] + 1, order)
    expect_same(lambda x, i: torch.cat([x, x[i]], 1).relu() + 1, x, order)


def outcomes(function, *operands):
    try:
        return function(*operands)
    except Exception as error:
        return type(error), str(error)


LOOK_UPS = {
    "gather": lambda x, i: x.gather(0, i[:, None].expand(-1, 7)) * 2,
    "gather_sum": lambda x, i: (x.gather(0, i[:, None].expand(-1, 7)) * 2).sum(1),
    "computed": lambda x, i: x[:, 0].gather(0, i + 0) * 2,
    "embedding": lambda x, i: F.embedding(i, x) * 2,
    "narrow": lambda x, i: F.embedding(i.int(), x) * 2,
    "mean": lambda x, i: F.embedding(i, x).mean(0),
    "index_select": lambda x, i: x.index_select(0, i) * 2,
    "take_along_dim": lambda x, i: x.take_along_dim(i[:, None].expand(-1, 7), 0) * 2,
    "index": lambda x, i: x[i] * 2,
    "index_sum": lambda x, i: (x[i] * 2).sum(1),
    "two": lambda x, i: x[i, i * 0] * 2,
    "lone": lambda x, i: x[:, 0].gather(0, i),
}


@pytest.mark.parametrize("name", LOOK_UPS)
@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("outside", [-1, -20, -21, 20, 2**31 - 1, -(2**31)])
def test_indices_outside(name, count, outside):
    """The run is given up and raises what eager raises; with other indices it goes on."""
    function = LOOK_UPS[name]
    converted = torchjanus.function(function)
    x, good = torch.randn(20, 7), torch.arange(count) % 20
    for _ in range(4):
        converted(x, good)
    for place in {0, count // 2, count - 1}:
        bad = good.clone()
        bad[place] = outside
        expected, actual = outcomes(function, x, bad), outcomes(converted, x, bad)
        if isinstance(expected, tuple):
            assert actual == expected
        else:
            torch.testing.assert_close(actual, expected)
        torch.testing.assert_close(converted(x, good), function(x, good))


def test_nothing_is_written_where_an_index_is_outside():
    table, count = torch.randn(20, 7, requires_grad=True), torch.zeros(1)
    optimizer = torch.optim.SGD([table], lr=0.5)

    def step(index):
        count.add_(1)
        optimizer.zero_grad()
        loss = (F.embedding(index, table) * 2).tanh().sum()
        loss.backward()
        optimizer.step()
        return loss

    converted = torchjanus.function(step)
    for _ in range(5):
        converted(torch.tensor([1, 2, 3]))
    before = table.detach().clone()
    with pytest.raises(IndexError):
        converted(torch.tensor([1, 20, 3]))
    assert torch.equal(table, before)
    assert count.item() == 6
    converted(torch.tensor([1, 2, 3]))
    assert not torch.equal(table, before)


def test_what_nobody_uses_is_looked_at():
    def unused(x, i):
        x.gather(0, i)
        return (x.gather(0, i) * 0 + 1).sum(), x + 1

    converted, x = torchjanus.function(unused), torch.randn(9)
    for _ in range(5):
        converted(x, torch.arange(9))
    with pytest.raises(RuntimeError):
        converted(x, torch.arange(9) + 1)


def test_graphs_of_any_size():
    """Nodes and edges of both numbers vary."""

    def messages(x, sources, targets):
        y = torch.zeros_like(x).index_add(0, targets, (x[sources] - x[targets]).relu() * 2)
        return y.flip(0) + x, x.flip(1) * y

    converted = torchjanus.function(messages)
    for n in range(2, 12):
        x, edges = torch.randn(n, 10).double(), torch.randint(-n, n, (2, 3 * n + 1))
        edges[1] %= n
        for e, a in zip(messages(x, *edges), converted(x, *edges), strict=True):
            torch.testing.assert_close(a, e)
    assert [name for kernel in fused_operators(str(converted.graph())) for name in kernel].count(
        "index"
    ) == 2
    edges[0, 3] = 11
    with pytest.raises(IndexError):
        converted(x, *edges)


TABLE = torch.randn(30, 12)


@pytest.mark.parametrize(
    "function",
    [
        lambda i, c: F.embedding(i, TABLE) * 2,
        lambda i, c: F.embedding(i, TABLE).mean(1),
        lambda i, c: c.gather(1, i) * 2,
        lambda i, c: c[i[:, 0]] + 1,
        lambda i, c: c.flip(1) + 1,
        lambda i, c: c.flip(0) + 1,
    ],
)
def test_batches_of_any_size(function):
    converted = torchjanus.function(function)
    for n in range(1, 10):
        i, c = torch.randint(0, n, (n, 5)), torch.randn(n, 10)
        torch.testing.assert_close(converted(i, c), function(i, c))
    i, c = torch.full((4, 5), 30), torch.randn(4, 10)
    expected, actual = outcomes(function, i, c), outcomes(converted, i, c)
    if torch.is_tensor(expected):
        torch.testing.assert_close(actual, expected)
    else:
        assert actual == expected


def test_a_result_is_not_written_over_what_is_looked_up():
    order = torch.randperm(40)
    state, expected = torch.arange(40.0), torch.arange(40.0)

    def shuffle():
        state.copy_(state[order] * 2)
        state.copy_(state.flip(0) - state)

    converted = torchjanus.function(shuffle)
    for _ in range(8):
        converted()
        expected = expected[order] * 2
        expected = expected.flip(0) - expected
        assert torch.equal(state, expected)
    alone, wanted = torch.arange(40.0), torch.arange(40.0)

    def mix():
        alone.copy_(alone * 0.5 + alone[order] * 0.5)

    converted = torchjanus.function(mix)
    for _ in range(8):
        converted()
        wanted = wanted * 0.5 + wanted[order] * 0.5
        assert torch.equal(alone, wanted)
    x = torch.randn(40, 40, dtype=torch.float64)
    expect_same(lambda x: torch.sin(x).flip(0) * 2 + torch.sin(x).sum(), x, exact=False)


def test_long_columns_go_over_phases():
    """Sums over so many points that they run as several nests."""
    table, index = torch.randn(1000, 96).double(), torch.randint(0, 1000, (4000,))
    f = lambda t, i: F.embedding(i, t).tanh().sum(0)  # noqa: E731
    expect_same(f, table, index, exact=False)
    g = lambda t, i: (F.embedding(i, t) - F.embedding(i, t).mean(0)).exp().sum(0)  # noqa: E731
    expect_same(g, table, index, exact=False)
    converted = torchjanus.function(f)
    for _ in range(5):
        converted(table, index)
    index[3999] = 1000
    with pytest.raises(IndexError):
        converted(table, index)


def test_threads_share_rows():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        table, index = torch.randn(3001, 203), torch.randint(0, 3001, (4, 501))
        expect_same(lambda t, i: F.embedding(i, t) * 2, table, index)
        expect_same(lambda t, i: F.embedding(i, t).sum(0), table, index, exact=False)
        own = torch.randint(0, 203, (3001, 100))
        expect_same(lambda t, i: t.gather(1, i) * 2, table, own)
        converted = torchjanus.function(lambda t, i: t.gather(1, i) * 2)
        for _ in range(5):
            converted(table, own)
        own[3000, 99] = 203
        with pytest.raises(RuntimeError):
            converted(table, own)
    finally:
        torch.set_num_threads(threads)
