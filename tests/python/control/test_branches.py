"""Branches whose test only the run decides: both sides in one graph, or followed with a reason."""

import random

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def both(step, count=10, shape=(4,), watch=()):
    """A program whose calls meet both outcomes of a test on the sum, in the profile already."""
    calls = [(torch.randn(*shape) * 0.1 + (1 if i % 2 else -1),) for i in range(count)]
    return Program(step, calls, watch=watch)


@differential(hits=7, graphs=1)
def test_branch_on_tensor():
    def step(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y

    return both(step)


@differential(hits=7, graphs=1)
def test_branch_on_item():
    def step(x):
        if x.sum().item() > 0:
            return x * 2
        return x - 1

    return both(step)


@differential(hits=7, graphs=1)
def test_numbers_merge():
    def step(x):
        scale, shift = 1, 0.5
        if x.mean() > 0:
            scale = 3
            shift = 1.5
        return x * scale + shift, scale, shift

    return both(step)


@differential(hits=7, graphs=1)
def test_branch_without_else():
    def step(x):
        y = x * 3
        if y.sum() > 0:
            y = y + 1
        y += 2
        return y

    return both(step)


@differential(hits=7, graphs=2)
def test_elif_chain():
    def step(x):
        s = x.sum()
        if s > 3:
            y = x.sin()
        elif s > 0:
            y = x.cos()
        elif s > -3:
            y = x.tanh()
        else:
            y = -x
        return y.sum()

    calls = [(torch.full((4,), v),) for v in (1.0, 0.1, -0.1, -1.0) * 4]
    return Program(step, calls)


@differential(hits=7, graphs=1)
def test_early_return():
    def step(x):
        if x.sum() > 0:
            return x * 2
        y = x - 1
        if y[0] > -1:
            return y * 5
        return y.exp()

    return both(step)


@differential(hits=7, graphs=1)
def test_early_return_in_else():
    def step(x):
        y = x
        if x.sum() > 0:
            y = x + 1
        else:
            return x - 7
        return y * y

    return both(step)


@differential(hits=7, graphs=1)
def test_conditional_expression():
    def step(x):
        y = x * 2 if x.sum() > 0 else x + 10
        n = 4 if x[0] > 0.5 else 5
        return y * n

    return both(step)


@differential(hits=7, graphs=1)
def test_short_circuit_in_test():
    def step(x):
        if x.sum() > 0 and x[0] > 1:
            y = x * 2
        elif x.sum() < 0 or not (x[1] > 1):
            y = x + 5
        else:
            y = x - 5
        return y

    return both(step, 16)


@differential(hits=7, graphs=1)
def test_short_circuit_as_value():
    def step(x):
        flag = x.sum() > 0 or x[0] > -1
        return x * flag

    return both(step)


@differential(hits=7, graphs=1)
def test_nested_branches():
    def step(x):
        if x.sum() > 0:
            y = x * 2
            if y[0] > 2:
                z = y + 1
            else:
                z = y - 1
        else:
            z = x.abs()
            if z[1] > 1:
                z = z * 3
        return z * 2

    return both(step, 16)


@differential(hits=7, graphs=1)
def test_branch_in_method_and_function():
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        def pick(self, x):
            if x.sum() > 0:
                return x * self.factor
            return x / self.factor

        def forward(self, x):
            return self.pick(self.pick(x) - 0.5)

    gate = Gate()
    return both(lambda x: gate(x), 16)


@differential(hits=7, graphs=2)
def test_branch_in_unrolled_loop_with_continue_and_break():
    def step(x):
        total = x * 0
        for i in range(4):
            if x[i] < 0:
                continue
            total = total + x * i
            if total.sum() > 6:
                break
        else:
            total = total - 1
        return total

    return Program(step, [(torch.randn(4),) for _ in range(24)])


@differential(hits=7, graphs=1)
def test_in_place_write_inside():
    def step(x):
        y = x.clone()
        if x.sum() > 0:
            y.add_(1)
            y[0] = 5
        else:
            y.mul_(2)
        return y, y.sum()

    return both(step)


@differential(hits=7, graphs=1)
def test_in_place_write_to_an_argument():
    state = torch.zeros(4)

    def step(x):
        if x.sum() > 0:
            state.add_(x)
        else:
            state.mul_(0.5)
        return state.sum()

    return both(step, watch=[state])


@differential(graphs=3, hits=4)
def test_write_on_one_side_only():
    state = torch.zeros(4)

    def step(x):
        if x.sum() > 0:
            state.add_(x)
        return state.sum() + x

    return both(step, 14, watch=[state])


@differential(hits=7, graphs=1)
def test_random_draws_inside():
    def step(x):
        if x.sum() > 0:
            y = x + torch.rand(4)
        else:
            y = x * torch.randn(4) + torch.rand(4)
        return y + torch.rand(4)

    return both(step)


@differential(hits=7, graphs=2)
def test_stochastic_depth_by_a_draw():
    def step(x):
        for _ in range(3):
            if torch.rand(()) < 0.5:
                x = x + torch.tanh(x)
        return x * 1

    return Program(step, [(torch.randn(4),) for _ in range(14)])


@differential(hits=7, graphs=1)
def test_containers_merge():
    def step(x):
        if x.sum() > 0:
            pair = (x, 1)
            table = {"a": x * 2, "b": [x + 1]}
        else:
            pair = (x, 2)
            table = {"a": x - 2, "b": [x * 3]}
        return pair[0] * pair[1] + table["a"] + table["b"][0]

    return both(step)


@differential(hits=7, graphs=1)
def test_list_of_before_is_changed():
    def step(x):
        parts = [x, x * 2]
        if x.sum() > 0:
            parts[0] = x * 7
        else:
            parts[1] = x * 9
        parts.append(x)
        return parts[0] - parts[1] + parts[2]

    return both(step)


@differential(hits=7, graphs=1)
def test_nonlocal_variable():
    def step(x):
        count = 0

        def visit(y):
            nonlocal count
            if y.sum() > 0:
                count += 1
                return y * 2
            count += 2
            return y

        z = visit(visit(x) - 1)
        return z + count, count

    return both(step)


@differential(hits=7, graphs=1)
def test_varying_number_of_the_entry():
    def step(x, n):
        if n % 3 > 0:
            return x * n
        return x - n

    return Program(step, [(torch.randn(4), n) for n in range(14)])


# --- what is followed instead


@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_none_and_tensor_are_not_merged():
    def step(x):
        extra = None
        if x.sum() > 0:
            extra = x * 2
        return x if extra is None else x + extra

    return both(step, 14)


@differential(graphs=1, hits=10)
def test_kinds_of_numbers():
    def step(x):
        n = 1 if x.sum() > 0 else 1.5
        return x * n, n

    return both(step, 14)


@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_ranks_are_not_merged():
    def step(x):
        y = x[:2] * 2 if x.sum() > 0 else x.unsqueeze(0) * 3
        return y + 1

    return both(step, 14)


@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_the_argument_itself_is_not_merged():
    def step(x):
        y = x
        if x.sum() > 0:
            y = x * 2
        return y

    return both(step, 14)


VIEWS = {
    "detach": lambda y: y.detach(),
    "view": lambda y: y.view(2, 2),
    "slice": lambda y: y[1:3],
    "transpose": lambda y: y.view(2, 2).t(),
    "opaque": lambda y: y.unfold(0, 2, 1),
    "view of a view": lambda y: y.detach().view(2, 2)[0],
}


@pytest.mark.parametrize("view", VIEWS)
@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_view_of_what_may_be_the_argument_is_not_merged(view):
    def step(x):
        y = x
        if x.sum() > 0:
            y = x * 2
        return VIEWS[view](y)

    return both(step, 14)


@pytest.mark.parametrize("view", VIEWS)
@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_view_of_what_may_be_another_result_is_not_merged(view):
    kept = nn.Module()

    def step(x):
        y = z = x * 3
        if x.sum() > 0:
            y = x * 2
        kept.last = VIEWS[view](y)
        return VIEWS[view](z)

    return both(step, 14, watch=[kept])


@pytest.mark.parametrize("view", VIEWS)
@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_two_views_that_may_share_memory_are_not_merged(view):
    def step(x):
        y, z = x * 2, x * 3
        a, b = y, z
        if x.sum() > 0:
            b = y
        return VIEWS[view](a), VIEWS[view](b)

    return both(step, 14)


@differential(graphs=1, hits=7)
def test_views_of_what_a_branch_made_share_its_memory():
    def step(x):
        y = x * 3
        if x.sum() > 0:
            y = x * 2
        return y.view(2, 2), y.detach()

    return both(step, 14)


@differential(graphs=1, hits=7)
def test_printing_side():
    def step(x):
        if x.sum() > 0:
            print("positive", x[0].item())
        return x * 2

    return both(step, 14)


@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_write_through_a_possible_alias():
    def step(x):
        a = x * 2
        b = a
        if x.sum() > 0:
            b = x * 3
        b.add_(1)
        return a, b

    return both(step, 14)


@differential(graphs=4, hits=4, reasons=["branch_changed"])
def test_possible_alias_is_read_after_a_write():
    def step(x):
        a = x * 2
        b = a
        if x.sum() > 0:
            b = x * 3
        a.add_(1)
        return (a * b).sum()

    return both(step, 14)


@differential(hits=7, graphs=1)
def test_unmerged_variable_that_nobody_reads():
    def step(x):
        if x.sum() > 0:
            temporary = x * 2
            y = temporary.sum()
        else:
            temporary = None
            y = x.mean()
        return y

    return both(step)


@differential(graphs=4, hits=3)
def test_side_that_nobody_saw_stays_asserted():
    def step(x):
        y = x * 2
        if x.sum() > 100:
            y = y / 3
        return y

    calls = [(torch.ones(4),) for _ in range(6)]
    calls[5:5] = [(torch.full((4,), 50.0),) for _ in range(2)]
    return Program(step, calls + [(torch.full((4,), 50.0),), (torch.ones(4),)] * 3)


@differential(hits=5, graphs=3)
def test_raising_side_raises_eagerly():
    def step(x):
        if x.sum() > 100:
            raise ValueError(f"too much: {x[0].item()}")
        return x * 2

    calls = [(torch.ones(4),) for _ in range(8)]
    return Program(step, [*calls, (torch.full((4,), 50.0),), *calls])


@differential(graphs=4, hits=4)
def test_iterator_taken_on_one_side():
    def step(x):
        it = iter([1, 2, 3])
        if x.sum() > 0:
            next(it)
        return x * next(it)

    return both(step, 14)


# --- gradients


class Pair(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first = first
        self.second = second


def training(model, forward, count=12, optimizer=None):
    """A training step whose loss goes through `forward(model, x)`."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = forward(model, x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return both(step, count, watch=[model, optimizer])


@differential(hits=8, graphs=1)
def test_gradient_through_a_branch():
    def forward(model, x):
        y = model(x)
        if x.sum() > 0:
            y = y * 2
        else:
            y = torch.tanh(y) - 1
        return (y * y).sum()

    return training(nn.Linear(4, 3), forward)


@differential(hits=8, graphs=1)
def test_gradient_through_early_return_and_conditional_expression():
    def activate(y):
        if y.sum() > 0:
            return torch.relu(y) * 3
        z = y.sigmoid()
        return z + y if z[0] > 0.5 else z * y

    def forward(model, x):
        return activate(model(x)).mean()

    return training(nn.Linear(4, 3), forward, 16)


@differential(hits=8, graphs=1)
def test_parameters_used_on_both_sides():
    def forward(model, x):
        if x.sum() > 0:
            y = model.second(torch.relu(model.first(x)))
        else:
            y = model.second(torch.tanh(model.first(x)))
        return y.pow(2).sum()

    return training(Pair(nn.Linear(4, 5), nn.Linear(5, 2)), forward)


@differential(hits=4, graphs=4)
def test_parameters_used_on_one_side_have_no_gradient_on_the_other():
    def forward(model, x):
        y = model.first(x)
        if x.sum() > 0:
            y = model.second(y)
        return y.pow(2).sum()

    return training(Pair(nn.Linear(4, 4), nn.Linear(4, 4)), forward, 16)


@differential(hits=7, graphs=1)
def test_backward_outside_through_a_branch():
    model = nn.Linear(4, 3)

    def step(x):
        y = model(x)
        if x.sum() > 0:
            return y.exp()
        return y * y

    converted = []

    def convert(f):
        import torchjanus

        function = torchjanus.function(f)
        converted.append(function)

        def whole(x):
            model.zero_grad()
            y = function(x)
            y.sum().backward()
            return y.detach(), model.weight.grad.clone()

        return whole, function

    def eager(x):
        model.zero_grad()
        y = step(x)
        y.sum().backward()
        return y.detach(), model.weight.grad.clone()

    program = both(eager, watch=[model])
    program.convert = lambda _: convert(step)
    return program


@differential(hits=7, graphs=1)
def test_gradient_is_taken_inside_a_branch():
    def step(x):
        w = x.clone().requires_grad_()
        y = (w * w * w).sum()
        if x.sum() > 0:
            (g,) = torch.autograd.grad(y, w)
        else:
            (g,) = torch.autograd.grad(y * 2, w)
        return g

    return both(step)


@differential(hits=8, graphs=1)
def test_no_grad_branch_adds_no_gradient():
    def forward(model, x):
        y = model.first(x)
        with torch.no_grad():
            scale = model.second(x)
            if x.sum() > 0:
                scale = scale * 2
            else:
                scale = scale - 1
        return (y * scale).sum()

    return training(Pair(nn.Linear(4, 4), nn.Linear(4, 4)), forward)


@differential(hits=4, graphs=4)
def test_parameter_chosen_by_a_branch():
    def forward(model, x):
        weight = model.first.weight if x.sum() > 0 else model.second.weight
        return (weight @ x).sum()

    return training(Pair(nn.Linear(4, 4), nn.Linear(4, 4)), forward, 16)


@differential(hits=4, graphs=4)
def test_loss_that_requires_a_gradient_on_one_side():
    model = nn.Linear(4, 4)

    def step(x):
        y = model(x)
        if x.sum() > 0:
            y = y.detach()
        return y.sum()

    return both(step, 14, watch=[model])


@differential(hits=1)
def test_a_comprehension_with_many_tests_on_elements():
    """Each of the lists that a test leaves may be the one before: named once."""
    w = torch.randn(3, requires_grad=True)

    def step(y):
        n = len(y)
        pairs = [(i, j) for i in range(n) for j in range(n) if i != j and y[i] == y[j]]
        w.grad = None
        loss = (w * len(pairs)).sum()
        loss.backward()
        return loss, pairs

    return Program(step, [(torch.randint(0, 3, (8,)),) for _ in range(8)], watch=[w])


@pytest.mark.parametrize("iterations", [5, 70])
@differential(hits=7, graphs=2)
def test_words_that_are_given_or_made(iterations):
    """The given ones are columns of an argument, in another layout than what is computed."""
    table = nn.Embedding(7, 4)
    cell, head = nn.GRUCell(4, 4), nn.Linear(4, 7)

    def step(words):
        for layer in (table, cell, head):
            layer.zero_grad()
        state, word, loss = torch.zeros(words.size(0), 4), words[:, 0], 0.0
        for t in range(1, words.size(1)):
            state = cell(table(word), state)
            scores = head(state)
            loss = loss + nn.functional.cross_entropy(scores, words[:, t])
            word = words[:, t] if random.random() < 0.5 else scores.argmax(1)
        loss.backward()
        return loss.detach(), scores.detach()

    calls = [(torch.randint(0, 7, (3, iterations)),) for _ in range(12)]
    return Program(step, calls, watch=[table, cell, head])


ROWS = {
    "computed of": lambda row: (row * 2, row.exp() + torch.rand_like(row), row.clone()),
    "shown": lambda row: row * 1 if row.stride() == (1,) else row * 2,
    "given": lambda row: row,
    "viewed": lambda row: (row[::2], row[:, None] + torch.ones(4, 3), row.expand(2, 4) * 2),
    "joined and split": lambda row: (row.view(2, 2) + 1, row.reshape(2, 2), row.contiguous()),
    "written": lambda row: row.add_(1).mul(2),
}


@pytest.mark.parametrize("use", ROWS)
@pytest.mark.parametrize("is_argument", [True, False])
@differential(hits=15)
def test_rows_that_lie_otherwise_on_the_two_sides(is_argument, use):
    def step(x):
        y = x if is_argument else x * 2
        return y, ROWS[use](y[:, 0] if y.sum() > 0 else y.sum(1))

    return both(step, 20, (4, 5))


@pytest.mark.parametrize("backward", [True, False])
@differential(hits=7)
def test_columns_and_sums_that_have_gradients(backward):
    layer = nn.Linear(5, 5)

    def step(x):
        layer.zero_grad()
        y = layer(x)
        row = y[:, 1] if x.sum() > 0 else y.sum(1)
        loss = (row.tanh() * row).sum()
        if backward:
            loss.backward()
            return loss.detach()
        return loss, row * 2

    return both(step, 14, (4, 5), watch=[layer])


def test_tests_of_numbers_of_the_entry_come_before_tensor_work():
    w = nn.Parameter(torch.randn(16, 16))

    def step(x, i):
        loss = (x @ w).pow(2).sum()
        loss.backward()
        if i == 19:
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


def written_and_gone(x):
    y = x * 2
    chosen = y if x.sum() > 0 else x * 3
    y.add_(1)
    del y
    return chosen


def written_in_a_call(x):
    def inner():
        y = x * 2
        chosen = y if x.sum() > 0 else x * 3
        y.add_(1)
        return chosen

    return inner()


def one_or_two(x):
    y = x * 2
    first = y if x.sum() > 0 else x * 3
    second = y if x[0] > 0 else x * 4
    del y
    return first, second


def one_is_written(x):
    y = x * 2
    first = y if x.sum() > 0 else x * 3
    second = y if x[0] > 0 else x * 4
    del y
    first.add_(1)
    return second * 2


@differential(hits=8)
@pytest.mark.parametrize("step", [written_and_gone, written_in_a_call, one_or_two, one_is_written])
def test_what_a_tensor_may_be_is_gone(step):
    """Nobody holds it any more, but for what a branch chose."""
    torch.manual_seed(1)
    return Program(step, [(torch.randn(3),) for _ in range(20)])
