"""Loops whose number of iterations varies: `while` in the graph, or a reason."""

import pytest
from differential import Program, differential

import torch
from torch import nn


def halving(step, count=12, watch=()):
    """Calls whose loops run 1 to 6 iterations."""
    calls = [(torch.rand(4) + 2.0 ** (1 + i % 6),) for i in range(count)]
    return Program(step, calls, watch=watch)


@differential(hits=8, graphs=1)
def test_while_on_tensor():
    def step(x):
        x = x * 1
        while x.sum() > 4:
            x = x / 2
        return x * 3

    return halving(step)


@differential(hits=8, graphs=1)
def test_while_with_number_and_temporaries():
    def step(x):
        n = 0
        scale = 1.0
        y = x + 0
        while y.max().item() > 1:
            half = y / 2
            y = half - 0.1
            n += 1
            scale = scale * 0.5
        return y * scale, n, scale

    return halving(step)


@differential(hits=8, graphs=1)
def test_in_place_accumulator():
    def step(x):
        total = torch.zeros(4)
        y = x + 0
        while y.sum() > 4:
            y = y / 2
            total += y
            total[0] = 7
        return total, y

    return halving(step)


@differential(hits=8, graphs=1)
def test_adaptive_computation():
    cell = nn.Linear(4, 4).requires_grad_(False)
    halt = nn.Linear(4, 1).requires_grad_(False)

    def step(x):
        state = x + 0
        halting = torch.zeros(())
        iterations = 0
        while halting.max() < 1 and iterations < 8:
            state = torch.tanh(cell(state))
            halting = halting + torch.sigmoid(halt(state)).sum() * 0.3 * x[0]
            iterations += 1
        return state, halting, iterations

    return Program(step, [(torch.rand(4) * (1 + i % 4),) for i in range(14)])


@differential(hits=7, graphs=2)
def test_break_continue_and_else():
    def step(x):
        i = 0
        y = x * 1
        while y.sum() < 60:
            i += 1
            y = y + 1
            if y[0] > 9:
                y = y * 2
                continue
            y = y + 0.5
            if y[1] > 20:
                break
            y = y + 0.25
        else:
            y = -y
        return y, i

    return Program(step, [(torch.randn(4) * 8,) for _ in range(20)])


@differential(hits=8, graphs=1)
def test_while_true_with_break():
    def step(x):
        y = x * 1
        n = 0
        while True:
            y = y / 2
            n += 1
            if y.sum() < 4:
                break
        return y, n

    return halving(step)


@differential(hits=8, graphs=3)
def test_branch_inside_loop_and_loop_inside_branch():
    def step(x):
        y = x * 1
        if x[0] > 20:
            while y.sum() > 4:
                if y[0] > y[1]:
                    y = y / 2
                else:
                    y = y / 3
        else:
            y = y + 1
        return y

    return halving(step, 18)


@differential(hits=8, graphs=1)
def test_nested_loops():
    def step(x):
        y = x * 1
        outer = inner = 0
        while y.sum() > 4:
            z = y
            while z.sum() > 8:
                z = z / 2
                inner += 1
            y = y / 3
            outer += 1
        return y, outer, inner

    return halving(step)


@differential(hits=8, graphs=1)
def test_tuple_state():
    def step(x):
        state = (x * 1, torch.ones(4))
        while state[0].sum() > 4:
            h, c = state
            state = (h / 2, c + h)
        return state[0] + state[1]

    return halving(step)


@differential(hits=8, graphs=1)
def test_swapped_variables():
    def step(x):
        a, b = x * 1, x * 2
        while a.sum() + b.sum() > 4:
            a, b = b / 2, a / 3
        return a, b * 2

    return halving(step)


@differential(hits=8, graphs=1)
def test_random_draws_in_a_loop():
    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y * torch.rand(4)
        return y + torch.rand(4)

    return halving(step)


@differential(hits=6, graphs=1)
def test_stable_iterations_are_unrolled():
    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
        return y

    return Program(step, [(torch.full((4,), 9.5 + i * 0.01),) for i in range(10)])


@differential(hits=4, graphs=2, aborts=1)
def test_iterations_that_were_stable():
    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
        return y

    calls = [(torch.full((4,), 9.5),)] * 5 + [(torch.full((4,), 2.0**i),) for i in range(9)]
    return Program(step, calls)


@differential(hits=8, graphs=1)
def test_loop_in_called_function():
    def shrink(y, limit):
        iterations = 0
        while y.sum() > limit:
            y = y / 2
            iterations += 1
        return y, iterations

    def step(x):
        y, n = shrink(x * 1, 4)
        z, m = shrink(x * 3, 2)
        return y + z, n + m

    return halving(step)


# --- for


def lengths(step, count=14, watch=()):
    """Calls with sequences of 2 to 8 rows and a number."""
    calls = [(torch.randn(2 + i * 5 % 7, 4), i % 5) for i in range(count)]
    return Program(step, calls, watch=watch)


@differential(hits=10, graphs=1)
def test_for_over_a_varying_length():
    def step(x, n):
        h = torch.zeros(4)
        for t in range(x.shape[0]):
            h = torch.tanh(h + x[t])
        return h

    return lengths(step)


@differential(hits=9, graphs=2)
def test_for_over_a_varying_number():
    def step(x, n):
        h = x[0] * 1
        total = 0
        for i in range(n):
            h = h * 0.5 + i
            total += i
        for i in range(n, 1, -2):
            h = h - i
        return h, total

    return lengths(step)


@differential(hits=10, graphs=1)
def test_rows_enumerate_and_zip():
    def step(x, n):
        h = torch.zeros(4)
        for row in x:
            h = h + row * row
        for i, row in enumerate(x, 1):
            h = h - row * i
        for (i, row), again in zip(enumerate(x), x * 2):
            h = h + again * row - i
        return h

    return lengths(step)


@differential(hits=10, graphs=1)
def test_for_with_break_continue_and_else():
    def step(x, n):
        h = torch.zeros(4)
        for t in range(x.shape[0]):
            if x[t].sum() < -1:
                continue
            h = h + x[t]
            if h.sum() > 3:
                break
        else:
            h = h * 2
        return h

    return lengths(step, 24)


@differential(hits=10, graphs=1)
def test_recurrent_cell_over_a_varying_length():
    cell = nn.LSTMCell(4, 6).requires_grad_(False)

    def step(x, n):
        h, c = torch.zeros(1, 6), torch.zeros(1, 6)
        for t in range(x.shape[0]):
            h, c = cell(x[t].unsqueeze(0), (h, c))
        return h, c

    return lengths(step)


# --- gradients


def training(model, forward, calls):
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = forward(model, x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, calls, watch=[model, optimizer])


def sequences(count=14, size=4):
    return [(torch.randn(2 + i * 5 % 7, size),) for i in range(count)]


@differential(hits=10, graphs=1)
def test_recurrent_training_on_varying_lengths():
    def forward(model, x):
        h = torch.zeros(1, 6)
        for t in range(x.shape[0]):
            h = model.cell(x[t].unsqueeze(0), h)
        return model.head(h).pow(2).sum()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(4, 6)
            self.head = nn.Linear(6, 1)

    return training(Model(), forward, sequences())


@differential(hits=10, graphs=1)
def test_loss_is_summed_over_rows():
    def forward(model, x):
        total = torch.zeros(())
        for row in x:
            total = total + model(row).pow(2).sum()
        return total / x.shape[0]

    return training(nn.Linear(4, 3), forward, sequences())


@differential(hits=10, graphs=1)
def test_loss_is_summed_in_place():
    def forward(model, x):
        total = torch.zeros(())
        for row in x:
            total += model(row).pow(2).sum()
        return total

    return training(nn.Linear(4, 3), forward, sequences())


@differential(hits=8, graphs=2)
def test_adaptive_computation_is_trained():
    def forward(model, x):
        h = torch.tanh(model(x))
        iterations = 0
        while h.abs().sum() > 1 and iterations < 8:
            h = torch.tanh(model(h)) * 0.7
            iterations += 1
        return h.pow(2).sum() + 0.1 * iterations

    calls = [(torch.randn(4) * (1 + i % 5),) for i in range(16)]
    return training(nn.Linear(4, 4), forward, calls)


@differential(hits=8, graphs=2)
def test_branch_in_a_trained_loop():
    def forward(model, x):
        h = torch.zeros(4)
        for t in range(x.shape[0]):
            if x[t].sum() > 0:
                h = torch.tanh(model(h + x[t]))
            else:
                h = torch.sigmoid(model(h * x[t]))
        return h.sum()

    return training(nn.Linear(4, 4), forward, sequences(18))


@differential(hits=4)
def test_gradient_only_after_several_iterations():
    def forward(model, x):
        h, late = torch.zeros(4), torch.zeros(4)
        for t in range(x.shape[0]):
            late = h * 2
            h = model(h + x[t])
        return late.sum() + h.sum()

    return training(nn.Linear(4, 4), forward, sequences(18))


@differential(hits=4)
def test_state_is_detached_in_each_iteration():
    def forward(model, x):
        h = torch.zeros(4)
        total = torch.zeros(())
        for t in range(x.shape[0]):
            h = torch.tanh(model(h + x[t]))
            total = total + h.sum()
            h = h.detach()
        return total

    return training(nn.Linear(4, 4), forward, sequences(18))


# --- what is no loop in the graph


@differential(reasons=["dynamic_control"])
def test_growing_tensor():
    def step(x):
        y = x * 1
        while y.sum() < 500:
            y = torch.cat([y, y])
        return y

    return halving(step)


@differential(graphs=1, hits=8)
def test_printing_loop():
    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            print("round")
        return y

    return halving(step)


@differential(graphs=1, hits=8)
def test_kind_of_a_number_changes():
    def step(x):
        n = 0
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            n = n + 0.5 if n < 1 else 2
        return y, n

    return halving(step)


@differential(hits=8, graphs=1)
def test_variable_that_only_iterations_set():
    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            last = y
        return last

    return halving(step)


@differential(hits=8)
def test_iterations_that_always_came_and_then_did_not():
    def step(x):
        last = None
        y = x * 1
        count = 0
        while y.sum() > 4:
            y = y / 2
            kept = (y.sum(), y * 2, count)
            count += 1
        return (kept, count) if count else last

    calls = [(torch.rand(4) + 2.0 ** (1 + i % 3),) for i in range(14)]
    return Program(step, [*calls[:8], (torch.zeros(4),), *calls[8:]])


@differential(hits=3)
def test_view_of_what_goes_through_a_loop_or_is_the_argument():
    def step(x):
        y = x
        while y.sum() < 4:
            y = y * 2 + 1
        return y.detach().view(2, 2)

    return Program(step, [(torch.randn(4) * 0.1 + (i % 5) * 0.5,) for i in range(16)])


@differential(reasons=["dynamic_control"])
def test_view_of_what_goes_through_a_loop_or_is_another_result():
    def step(x):
        y = z = x * 2
        while y.sum() < 4:
            y = y * 2 + 1
        return y.unfold(0, 2, 1), z

    return Program(step, [(torch.randn(4) * 0.1 + (i % 5) * 0.5,) for i in range(16)])


class Countdown:
    """An iterator of the user's own: its own state says where it is."""

    def __init__(self, iterations):
        self.iterations = iterations
        self.position = 0
        self.seen = []

    def __iter__(self):
        self.position = 0
        return self

    def __next__(self):
        if self.position >= self.iterations:
            raise StopIteration
        self.position += 1
        self.seen.append(self.position)
        return self.iterations - self.position


class Words:
    """What `__iter__` gives is another object, made in the run."""

    def __init__(self, words):
        self.words = words

    def __iter__(self):
        return Letters(self)


class Letters:
    def __init__(self, owner):
        self.owner = owner
        self.at = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at < len(self.owner.words):
            return self.owner.words[self.at]
        raise StopIteration()


@differential(hits=8)
def test_an_iterator_of_the_users_own():
    iterations = Countdown(3)

    def step(x):
        for i in iterations:
            x = x * 0.5 + i
            if i == 7:
                break
        return x, iterations.position, len(iterations.seen)

    calls = [(torch.randn(3),) for _ in range(8)]
    longer = lambda: setattr(iterations, "iterations", 4)  # noqa: E731
    return Program(step, [*calls, longer, *calls], watch=[iterations])


@differential(hits=4)
def test_an_iterator_that_the_run_makes():
    words = Words(["a", "bc", "def"])

    def step(x):
        for i, (word, factor) in enumerate(zip(words, (1, 2, 3, 4), strict=False)):
            x = x + len(word) * factor + i
        return x, list(words), [len(word) for word in words], max(words)

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[words])


class Guarded(Countdown):
    """The end of the iteration is handled where it is raised."""

    def __next__(self):
        try:
            if self.position >= self.iterations:
                raise StopIteration
        except StopIteration:
            self.seen.append("end")
            raise
        self.position += 1
        return self.position


@differential(hits=2)
def test_an_end_of_iteration_that_is_handled():
    iterations = Guarded(3)

    def step(x):
        for i in iterations:
            x = x * 0.5 + i
        return x

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[iterations])


@differential(reasons=["would_raise"])
def test_next_of_an_iterator_that_is_at_its_end():
    iterations = Countdown(2)

    def step(x, more):
        iterator = iterations.__iter__()
        x = x * iterator.__next__() + iterator.__next__()
        if more:
            x = x + iterator.__next__()
        return x

    return Program(step, [(torch.randn(3), i > 3) for i in range(6)], watch=[iterations])


def flag(x):
    done, iterations = False, 0
    while not done:
        x = x / 2
        iterations += 1
        done = bool(x.sum() < 4)
    return x, iterations


def infinite_first(x):
    loss = float("inf")
    while loss > 3.0:
        x = x / 2
        loss = x.sum().item()
    return x, loss


def before_and_now(x):
    before = None
    while before is None or (before - x).abs().sum() > 0.5:
        before = x
        x = x / 2
    return x, before


def at_least_two(x):
    iterations = 0
    while iterations < 2 or x.sum() > 4:
        x = x / 2
        iterations += 1
    return x, iterations


def left_and_else(x):
    done = False
    while not done:
        x = x / 2
        if x.min() < 0.3:
            break
        done = bool(x.sum() < 4)
    else:
        x = x * 100
    return x


def returns_from_it(x):
    done = False
    while not done:
        x = x / 2
        if x.min() < 0.3:
            return x * 7
        done = bool(x.sum() < 4)
    return x


@pytest.mark.parametrize("step", [flag, infinite_first, before_and_now, at_least_two])
def test_test_that_is_known_in_the_first_iterations(step):
    differential(hits=10, graphs=1)(lambda: halving(step, count=14))()


@pytest.mark.parametrize("step", [left_and_else, returns_from_it])
def test_flag_and_another_way_out(step):
    differential(hits=6)(lambda: halving(step, count=30))()


@differential(hits=10, graphs=1)
def test_flag_with_gradients():
    w = torch.rand(4, requires_grad=True)

    def step(x):
        done, y = False, x
        while not done:
            y = torch.tanh(y * w) * 0.5
            done = bool(y.sum() < 0.3)
        w.grad = None
        y.sum().backward()
        return y.detach()

    return halving(step, count=14, watch=[w])


@differential(hits=6)
def test_known_test_over_lists_of_several_lengths():
    def step(x):
        count = 1 + int(x.sum().item()) % 3
        items = [x] * count
        position = 0
        while position < len(items):
            x = x + items[position]
            position += 1
        return x

    return halving(step, count=24)


def thinned(x):
    steps = 0
    while x.numel() > 1:
        x = x[x > x.min()]
        steps += 1
    return steps


def suppressed(order):
    kept = []
    while order.numel() > 0:
        kept.append(order[0])
        order = order[1:][order[1:] % 3 != order[0] % 3]
    return torch.stack(kept)


@pytest.mark.parametrize("step", [thinned, suppressed])
@differential(reasons=["dynamic_control"])
def test_sizes_of_the_run_end_the_loop(step):
    """They count as more than one: the test seems to be true for ever."""
    return Program(step, [(torch.randperm(4 + i % 3),) for i in range(8)])
