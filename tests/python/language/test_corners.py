"""Corners of eager semantics: what shares memory with what, numbers that do not fit, and indices."""

import math
import subprocess
import sys

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn


@differential()
def test_index_by_a_scalar_tensor_is_a_view():
    def f(x, t):
        return x[t], x

    x = torch.randn(4, 3)
    return Program(f, [(x, torch.tensor(i % 4 - 2)) for i in range(7)])


@differential()
def test_index_by_a_scalar_tensor_of_each_dtype():
    def f(x, t, s):
        return x[t] * 2, x[s].sum()

    calls = [
        (torch.randn(4, 3), torch.tensor(i % 4, dtype=torch.int32), torch.tensor(i % 3).short())
        for i in range(7)
    ]
    return Program(f, calls)


@differential(hits=3)
def test_index_by_a_scalar_tensor_out_of_range():
    def f(x, t):
        return x[t] + 1

    numbers = [0, 1, 2, 3, -4, 1, 4, -5, 0]
    return Program(f, [(torch.randn(4, 3), torch.tensor(i)) for i in numbers])


@differential()
def test_index_by_a_scalar_tensor_has_a_gradient():
    w = nn.Parameter(torch.randn(5, 3))

    def f(t):
        loss = (w[t] ** 2).sum() + w[t, 1]
        loss.backward()
        return loss

    return Program(f, [(torch.tensor(i % 5),) for i in range(7)], watch=[w])


@differential()
def test_index_by_a_scalar_tensor_gradient_due_outside():
    w = nn.Parameter(torch.randn(5, 3))

    def f(t):
        return w[t].sin()

    def outside():
        step(torch.tensor(2)).sum().backward()

    step = f
    return Program(f, [*[(torch.tensor(i % 5),) for i in range(7)], outside], watch=[w])


@differential()
def test_index_by_a_scalar_tensor_without_gradients():
    w = nn.Parameter(torch.randn(5, 3))

    @torch.no_grad()
    def f(t):
        return w[t] * 2

    return Program(f, [(torch.tensor(i % 5),) for i in range(7)], watch=[w])


@differential()
def test_index_by_a_scalar_tensor_that_is_changed_afterwards():
    def f(x, t):
        row = x[t]
        t = t + 1
        x = x * 2
        return row, x[t]

    x = torch.randn(4, 3)
    return Program(f, [(x, torch.tensor(i % 3)) for i in range(7)])


@differential()
def test_scalar_tensor_that_is_written_after_it_was_an_index():
    def f(x, t):
        row = x[t]
        t.add_(1)
        return row

    x = torch.randn(14, 3)
    return Program(f, [(x, torch.tensor(i)) for i in range(7)])


@differential()
def test_base_that_is_written_after_it_was_indexed():
    def f(x, t):
        row = x[t]
        x.mul_(2)
        return row

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4)) for i in range(7)])


@differential(hits=4)
def test_row_that_is_written():
    def f(x, t):
        row = x[t]
        row.mul_(2)
        return x

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4)) for i in range(7)])


@differential()
def test_assignment_at_a_scalar_tensor():
    def f(x, t, y):
        x[t] = y
        return x.sum()

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4), torch.randn(3)) for i in range(7)])


@differential(hits=3)
def test_index_of_tensors_and_numbers():
    def f(x, rows, t):
        return x[rows, 1], x[rows, 1:], x[1, rows], x[rows, t]

    rows = torch.tensor([0, 2, 1, 1])
    return Program(f, [(torch.randn(4, 3, 5), rows, torch.tensor(i % 4)) for i in range(7)])


@differential()
def test_index_by_a_number_of_a_tensor():
    def f(x, t):
        return x[int(t)] * 2, x[t.item()].sum()

    return Program(f, [(torch.randn(4, 3), torch.tensor(i % 4)) for i in range(7)])


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@differential()
def test_transposed_is_a_new_tensor(rank):
    def f(x):
        t = x.T
        return t, t is x, x * 2

    x = torch.randn(tuple(range(2, 2 + rank)))
    return Program(f, [(x,)] * 6, watch=[x])


@differential()
def test_transposed_vector_with_gradient():
    w = nn.Parameter(torch.randn(3))

    def f(x):
        loss = (w.T * x).sum()
        loss.backward()
        return w.T

    return Program(f, [(torch.randn(3),)] * 6, watch=[w])


FILLS = {
    "masked_fill": lambda x, n: x.masked_fill(x > 2, n),
    "masked_fill in place": lambda x, n: x.masked_fill_(x > 2, n),
    "where": lambda x, n: torch.where(x > 2, x, n),
    "where first": lambda x, n: torch.where(x > 2, n, x),
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32], ids=str)
@differential(hits=5)
def test_number_that_does_not_fit(fill, dtype):
    limits = torch.iinfo(dtype)
    numbers = [1, 2, 3, 4, 5, 6, limits.max, limits.max + 1, limits.min, limits.min - 1, 7]
    return Program(FILLS[fill], [(torch.tensor([1, 2, 3, 100], dtype=dtype), n) for n in numbers])


@pytest.mark.parametrize("fill", FILLS)
@differential(reasons=["would_raise"])
def test_constant_that_does_not_fit(fill):
    def f(x):
        return FILLS[fill](x, 300)

    return Program(f, [(torch.tensor([1, 2, 3, 100], dtype=torch.uint8),) for _ in range(6)])


# --- messages of failed assumptions ---------------------------------------------------------------


def strided():
    return torch.randn(3, 2).t()


DIFFERENCES = {
    "layout": (lambda: torch.randn(2, 3), strided, "strides"),
    "requires_grad": (
        lambda: torch.randn(2, 3),
        lambda: torch.randn(2, 3, requires_grad=True),
        "requires grad",
    ),
    "class": (lambda: torch.randn(2, 3), lambda: nn.Parameter(torch.randn(2, 3)), "Parameter"),
    "dtype": (lambda: torch.randn(2, 3), lambda: torch.randn(2, 3).half(), "f16"),
    "rank": (lambda: torch.randn(2, 3), lambda: torch.randn(6), "f32[6]"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_message_says_what_differs(name):
    before, after, expected = DIFFERENCES[name]
    f = torchjanus.function(lambda x: x + 1)
    for _ in range(5):
        f(before())
    f(after())
    check_message(f, expected)


def check_message(f, expected):
    (sentence,) = (r["sentence"] for r in f.stats()["reasons"] if r["code"] == "guard_failed")
    assumed, found = sentence.split(", found ")
    assert expected in found, sentence
    assert assumed.rpartition(": ")[2] != found and not assumed.endswith(found), sentence


def test_message_of_another_object():
    def one(x):
        return x + 1

    def two(x):
        return x + 2

    def call(x):
        return chosen[0](x)

    chosen = [one]
    f = torchjanus.function(call)
    for _ in range(5):
        f(torch.ones(2))
    one.__code__ = two.__code__
    assert f(torch.ones(2)).tolist() == [3, 3]
    check_message(f, "")


# --- which function it is -------------------------------------------------------------------------


def test_lambdas_on_one_line():
    made = [torchjanus.function(f) for f in [lambda x, k=k: x * k for k in (1.0, 2.0)]]
    made += [torchjanus.function(lambda x: x + 1), torchjanus.function(lambda x: x - 1)]
    for _ in range(6):
        results = [f(torch.ones(2)).tolist() for f in made]
    assert results == [[1, 1], [2, 2], [2, 2], [0, 0]]
    assert [f.stats()["hits"] for f in made] == [3] * 4


def test_function_that_is_replaced_by_a_lambda():
    class Holder:
        pass

    set_it = lambda: setattr(Holder, "forward", lambda self, x: x * 3)  # noqa: E731
    set_it()
    holder = Holder()
    f = torchjanus.function(lambda x: holder.forward(x))
    for _ in range(6):
        assert f(torch.ones(2)).tolist() == [3, 3]
    Holder.forward = lambda self, x: x * 5
    for _ in range(6):
        assert f(torch.ones(2)).tolist() == [5, 5]
    stats = f.stats()
    assert stats["hits"] >= 7
    assert [reason["code"] for reason in stats["reasons"]] == ["guard_failed"], stats


# --- what the graph does first, and how often it is left ------------------------------------------


def test_tests_of_numbers_of_the_entry_come_before_tensor_work():
    w = nn.Parameter(torch.randn(16, 16))

    def step(x, i):
        loss = (x @ w).pow(2).sum()
        loss.backward()
        if i % 20 == 19:
            return loss.item()
        return 0.0

    f = torchjanus.function(step)
    for i in range(30):
        w.grad = None
        f(torch.randn(4, 16), i)
    operators = [line.split("=")[-1].split()[0] for line in f.graph().splitlines() if "=" in line]
    text = f.graph()
    assert f.stats()["hits"] >= 25
    assert text.index("guard %") < text.index("mm %"), text
    assert "mm" in operators


@differential(graphs=3, aborts=1, hits=45)
def test_last_slice_that_is_shorter():
    def evaluate(start):
        part = images[start : start + 10]
        return (part * 2).sum().item(), len(part), part.argmax(1)

    images = torch.randn(53, 4)
    return Program(evaluate, [(start,) for _ in range(9) for start in range(0, 53, 10)])


def test_last_slice_that_is_shorter_does_not_abort_for_ever():
    def evaluate(images, start):
        return (images[start : start + 10] * 2).sum().item()

    f = torchjanus.function(evaluate)
    sets = [torch.randn(53, 4), torch.randn(47, 4)]
    for _ in range(4):
        for images in sets:
            for start in range(0, len(images), 10):
                f(images, start)
    seen = f.stats()
    for _ in range(4):
        for images in sets:
            for start in range(0, len(images), 10):
                assert f(images, start) == pytest.approx(evaluate(images, start), rel=1e-4)
    assert f.stats()["generated"] == seen["generated"]
    assert f.stats()["hits"] - seen["hits"] == f.stats()["calls"] - seen["calls"], f.stats()


@differential(graphs=3, hits=26)
def test_last_batch_that_is_smaller():
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    sizes = [8, 8, 8, 8, 8, 3] * 5
    return Program(step, [(torch.randn(size, 4),) for size in sizes], watch=[model, optimizer])


def test_threads_stay_as_they_are():
    code = """
import torch
before = torch.get_num_threads(), torch.get_num_interop_threads(), torch.__config__.parallel_info()
import torchjanus
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 9))
torchjanus.function(model)
for _ in range(6):
    model(torch.randn(16, 3, 8, 8)).sum().backward()
assert torchjanus.stats(model)["hits"] == 3, torchjanus.stats(model)
after = torch.get_num_threads(), torch.get_num_interop_threads(), torch.__config__.parallel_info()
assert before == after, (before, after)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loop_without_tensors_settles_for_that_reason():
    def count(names, n):
        k = 0
        for i in range(n):
            names.append(str(i))
            k = max(k, len(names[-1]))
        return k

    f = torchjanus.function(count)
    for _ in range(130):
        assert f([], 12) == 2
    stats = f.stats()
    assert stats["state"] == "imperative"
    assert {reason["code"] for reason in stats["reasons"]} == {"no_tensor_work"}, stats


@differential(hits=3)
def test_loop_that_warms_up_without_tensors():
    model = nn.Linear(4, 3)

    def step(i, seen):
        if i > 30:
            return model(torch.ones(2, 4) * i)
        return {str(i): i}[str(i)] + len(sorted(seen, key=str))

    return Program(step, [(i, [1, 2]) for i in range(150)], watch=[model])


@differential(reasons=["guard_failed"])
def test_list_that_holds_itself_where_a_number_was_assumed():
    endless: list = []
    endless.append(endless)
    x = torch.ones(2)
    arguments = [(x, 1), (x, 2), (x, 3), (x, 4), (x, 5), (x, endless)]
    return Program(lambda x, k: x * (2 if isinstance(k, int) else 3), arguments)


@differential(graphs=1)
def test_attributes_that_real_tensors_share():
    def step(x):
        return x.mH, x.H @ x, x.real is x, x.nbytes

    return Program(step, [(torch.randn(5, 4),) for _ in range(5)])


@differential(graphs=1)
def test_dropout_that_drops_nothing():
    model = nn.Sequential(nn.Linear(4, 4), nn.AlphaDropout(0.5), nn.FeatureAlphaDropout(0.5)).eval()
    return Program(lambda x: model(x), [(torch.randn(5, 4),) for _ in range(5)])


DROPOUTS = {
    "not in training": lambda x: F.dropout(x, 0.5, training=False),
    "with probability 0": lambda x: F.dropout(x, 0.0),
    "of channels": lambda x: F.dropout1d(x, 0.0),
    "in place": lambda x: F.dropout(x, 0.5, training=False, inplace=True),
    "of nothing": lambda x: F.dropout(x[:0], 0.5),
}


@pytest.mark.parametrize("dropout", DROPOUTS)
@differential(graphs=1)
def test_dropout_that_gives_its_operand(dropout):
    """What is then written in place is the operand."""

    def step(x):
        y = x * 1
        z = DROPOUTS[dropout](y)
        z += 1
        return z is y, y, z.sum()

    return Program(step, [(torch.randn(3, 4, requires_grad=True),) for _ in range(6)])


@differential(hits=4)
def test_dropout_whose_probability_varies_and_is_sometimes_nothing():
    def step(x, p):
        z = F.dropout(x, p)
        z += 1
        return x, z

    chances = (0.1, 0.2, 0.3, 0.4, 0.0, 0.5, 0.6, 0.0, 0.7)
    return Program(step, [(torch.randn(3, 4), p) for p in chances])


@differential(hits=5, graphs=1)
def test_counts_at_positions_of_the_data():
    counts = torch.zeros(4, 4)

    def step(truth, guess):
        for t, p in zip(truth, guess, strict=True):
            counts[t, p] += 1
        return counts.sum(), counts[truth[0]].clone()

    calls = [(torch.randint(4, (3,)), torch.randint(4, (3,))) for _ in range(9)]
    return Program(step, calls, watch=[counts])


@differential(hits=5, graphs=1)
def test_writes_at_numbers_of_the_data():
    table = torch.zeros(5, 3)

    def step(x):
        state = x.argmax().item()
        table[state] += 1
        table[state, -1] = x.sum()
        row = table[state]
        row.mul_(0.5)
        row[0] = 7
        return table[:, 1] * 2, row.sum(), state

    return Program(step, [(torch.randn(5),) for _ in range(9)], watch=[table])


@differential(hits=5)
def test_gradient_through_a_write_at_a_number_of_the_data():
    w = torch.randn(4, 4, requires_grad=True)

    def step(x):
        w.grad = None
        y = w * 2
        best = x.argmax()
        y[best] *= x
        y[:, best.item()] = x * w[0]
        y.square().sum().backward()
        return y.detach(), w.grad.clone()

    return Program(step, [(torch.randn(4),) for _ in range(9)], watch=[w])


@differential(hits=5, aborts=2)
def test_an_index_outside_beside_another_write():
    """Nothing is written before the indices are known to be inside."""
    first, second, table = torch.ones(7, 6), torch.zeros(4, 6), torch.randn(5, 6)

    def step(x, i):
        first.mul_(1.5).add_(x)
        second.mul_(0.5).add_(table[i])
        return x.sum()

    calls = [(torch.randn(7, 6), torch.randint(5, (4,))) for _ in range(12)]
    for wrong in (6, 9):
        calls[wrong] = (torch.randn(7, 6), torch.tensor([0, 1, 7, 2]))
    return Program(step, calls, watch=[first, second])


@differential(hits=4)
def test_position_out_of_range():
    def step(x, i):
        y = x.clone()
        y[i.item()] += 1
        y[i] -= 1
        return y

    calls = [(torch.randn(4), torch.tensor(i)) for i in (0, 1, 2, 3, -1, -4, 1, 4, 2, -5, 0)]
    return Program(step, calls)


@differential(hits=4)
def test_view_at_a_position_sees_writes():
    def step(x, i):
        y = x.clone()
        part = y[i]
        y.add_(1)
        first = part.clone()
        i.add_(1)
        part.mul_(2)
        return first, y, part + 0

    calls = [(torch.randn(4, 2), torch.tensor(i % 3)) for i in range(9)]
    return Program(step, calls)


@pytest.mark.parametrize("dtype", [torch.bool, torch.float64])
@differential(hits=3)
def test_methods_whose_operator_takes_the_tensor_second(dtype):
    def step(a, condition, b):
        return a.where(condition, b), a.where(other=b, condition=condition), a.where(condition, 1)

    def batch():
        a, condition, b = torch.randn(3, 8) > 0
        return a.to(dtype), condition, b.to(dtype)

    return Program(step, [batch() for _ in range(6)])


@differential(hits=3)
def test_polygamma():
    def step(x):
        return x.polygamma(1), x.polygamma(n=2)

    return Program(step, [(torch.rand(4) + 0.5,) for _ in range(6)])


@differential(hits=3)
def test_types_of_tensors():
    def step(x):
        kinds = x.type(torch.float32), x.type(torch.LongTensor), (x > 0).type(dtype=torch.int32)
        return kinds, x.element_size(), x.new_tensor([[1, 2.5], [3, 4]]), x.long().new_tensor(2)

    return Program(step, [(torch.randn(4),) for _ in range(6)])


@differential(reasons=["unknown_callable"])
def test_operator_that_gives_a_dtype():
    def step(x, i):
        return torch.result_type(x, i), x + i

    return Program(step, [(torch.randn(4), torch.arange(4)) for _ in range(6)])


@differential(hits=3)
def test_equal_and_close():
    def step(x, y):
        flags = torch.equal(x, y), x.equal(x), torch.allclose(x, y), x.allclose(y, equal_nan=True)
        return flags, x + y

    x = torch.randn(4)
    nan = torch.full((4,), math.nan)
    pairs = [(x, y) for y in (-x, x + 1, x.clone(), x + 1e-9, -x)]
    return Program(step, [*pairs, (nan, nan), (x, torch.randn(3)), (x, torch.arange(4))])


OTHERS = {
    "remainder of a number": lambda x, i: 5 % x,
    "weights of classes": lambda x, i: F.cross_entropy(x, i, weight=x[0].abs()),
    "weights of positive classes": lambda x, i: F.binary_cross_entropy_with_logits(
        x, (x > 0).double(), pos_weight=x[0].abs()
    ),
    "weights of elements": lambda x, i: F.binary_cross_entropy(
        x.sigmoid(), (x > 0).double(), weight=x[0].abs()
    ),
}


@pytest.mark.parametrize("name", OTHERS)
@differential(reasons=["autograd"])
def test_what_has_no_derivative(name):
    """Eager raises."""
    weight = nn.Parameter(torch.randn(4, 4))

    def step(x, i):
        weight.grad = None
        OTHERS[name](x * weight, i).sum().backward()

    return Program(step, [(torch.randn(4, 4), torch.randperm(4)) for _ in range(6)], watch=[weight])


@differential(reasons=["would_raise"])
def test_rows_that_are_written_while_they_are_iterated_over():
    """Autograd lets nobody write one of several views."""
    linear = nn.Linear(3, 3)

    def step(x):
        y = linear(x)
        for row in y:
            row.add_(1)
        return y.sum()

    return Program(step, [(torch.randn(4, 3),) for _ in range(6)], watch=[linear])


@differential(hits=3)
def test_rows_without_gradients_that_are_written_while_they_are_iterated_over():
    def step(x):
        for row in x:
            row.add_(1)
        return [row for row in x * 2], x

    return Program(step, [(torch.randn(4, 3),) for _ in range(6)])


@differential(hits=3)
def test_flattening_of_one_dimension_gives_the_tensor_itself():
    def step(x):
        y = x * 2
        z = nn.Flatten()(y)
        z.add_(1)
        return y, z is y, y.flatten(-1) is y, y.flatten()

    return Program(step, [(torch.randn(4, 3),) for _ in range(6)])


@differential()
def test_views_of_numbers_name_dimensions():
    """A tensor without dimensions takes 0 and -1 as one of its own."""

    def f(x):
        y = x.squeeze(0), x.squeeze(-1), torch.squeeze(x, (0,)), x.transpose(0, -1), x.flatten(0)
        return [each * 2 for each in y], x.unsqueeze(-1).squeeze(0)

    return Program(f, [(torch.tensor(float(i)),) for i in range(7)])
