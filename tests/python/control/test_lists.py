"""Lists that grow in loops whose iterations vary, and on one side of a branch: lists of the graph."""

import pytest
from differential import Program, differential

import torch
from torch import nn


def lengths(step, count=14, watch=()):
    """Calls with 2 to 6 rows."""
    return Program(step, [(torch.rand(2 + i % 5, 4),) for i in range(count)], watch=watch)


def trained(parameters, loss_of):
    """Calls of a training step whose loss is computed of 2 to 6 rows."""
    optimizer = torch.optim.SGD(parameters.parameters(), lr=0.1)

    def step(x):
        loss = loss_of(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return lengths(step, watch=[parameters])


@differential(hits=10, graphs=1)
def test_stack():
    def step(x):
        states = []
        h = torch.zeros(4)
        for row in x:
            h = torch.tanh(h + row)
            states.append(h)
        return torch.stack(states), torch.stack(states, dim=1), torch.stack(states, -1)

    return lengths(step)


@differential(hits=10, graphs=1)
def test_cat():
    def step(x):
        parts = []
        for row in x:
            parts.append(row.view(2, 2) * 3)
        return torch.cat(parts), torch.cat(parts, dim=1), torch.concat(parts, dim=-2)

    return lengths(step)


@differential(hits=10, graphs=1)
def test_list_that_has_elements_before():
    def step(x):
        states = [x[0] * 2, x[1] - 1]
        for row in x:
            states += [row + states[-1]]
        return torch.stack(states), len(states)

    return lengths(step)


@differential(hits=10, graphs=1)
def test_stack_is_trained():
    cell = nn.Linear(4, 4)

    def loss(x):
        states = []
        h = torch.zeros(4)
        for row in x:
            h = torch.tanh(cell(h) + row)
            states.append(h)
        return torch.stack(states).pow(2).mean() + states[-1].sum() + states[0].sum()

    return trained(cell, loss)


@differential(hits=10, graphs=1)
def test_mean_of_losses_is_trained():
    cell = nn.Linear(4, 4)

    def loss(x):
        losses = []
        h = torch.zeros(4)
        for t in range(x.shape[0]):
            h = torch.tanh(cell(h) + x[t])
            losses.append(h.sum())
        return sum(losses) / len(losses)

    return trained(cell, loss)


@differential(hits=10, graphs=1)
def test_list_of_tuples_is_iterated_in_both_directions():
    gate = nn.Linear(4, 4)

    def loss(x):
        states = []
        h = torch.zeros(4)
        for row in x:
            h = gate(row) + 0.9 * h
            states.append((h, h.sum()))
        total, back = torch.zeros(()), torch.zeros(())
        for _, s in reversed(states):
            back = back * 0.5 + s
        for i, (a, s) in enumerate(states):
            total = total + (a * s).sum() * i
        for (a, _), row in zip(states, x):
            total = total + (a * row).sum()
        return total + back

    return trained(gate, loss)


@differential(hits=10, graphs=1)
def test_cat_is_trained():
    gate = nn.Linear(4, 4)

    def loss(x):
        parts = []
        for row in x:
            parts.append(gate(row).view(2, 2))
        whole = torch.cat(parts, 1)
        return (whole * torch.arange(whole.shape[1])).sum()

    return trained(gate, loss)


@differential(hits=10, graphs=1)
def test_returns_are_inserted_in_front():
    def step(x):
        returns = []
        following = torch.zeros(4)
        for row in reversed(x) if isinstance(x, list) else x.flip(0):
            following = row + 0.9 * following
            returns.insert(0, following)
        return torch.stack(returns), torch.cat(returns), returns[0] * 2, returns[-1]

    return lengths(step)


@differential(hits=10, graphs=1)
def test_lists_that_outlive_the_call():
    def step(x):
        states, numbers, both = [], [], []
        h = torch.zeros(4)
        for i, row in enumerate(x):
            h = row + 0.9 * h
            states.append(h * 2)
            numbers.append(i * 2)
            both.insert(0, (h + 1, i))
        return states, numbers, both, len(numbers), sum(numbers), numbers[1], numbers[-1]

    return lengths(step)


def of_parameter(weight, x, n):
    return [weight.detach().clone()] + [x.clone() for _ in range(n)]


def of_arguments(weight, x, n):
    return [x.clone() for _ in range(n)]


def of_what_was_cut_off(weight, x, n):
    return [x.detach().clone() for _ in range(n)]


def of_conversions(weight, x, n):
    return [x.to(torch.float64, copy=True) for _ in range(n)]


def of_products_with_one(weight, x, n):
    return [x * 1 for _ in range(n)]


def of_filled(weight, x, n):
    return [torch.zeros(3) for _ in range(n)]


def of_steps(weight, x, n):
    steps = [x.clone()]
    for _ in range(n):
        x = x * 0.5
        steps.append(x)
    return steps


def of_each_other(weight, x, n):
    copies = [x.clone()]
    for _ in range(n):
        copies.append(copies[-1].clone())
    return copies


def of_transposed(weight, x, n):
    return [x.reshape(3, 1).expand(3, 2).t().clone() for _ in range(n)]


def of_reversed(weight, x, n):
    copies = [x + weight.detach()]
    for _ in range(n):
        copies.append(x.clone())
    copies.reverse()
    return copies


def of_part(weight, x, n):
    return [x.clone() for _ in range(n)][1:]


def of_joined(weight, x, n):
    return [x.clone() for _ in range(n)] + [weight.detach().clone() for _ in range(n)]


@differential(hits=10, graphs=1)
@pytest.mark.parametrize(
    "copies",
    [
        of_arguments,
        of_what_was_cut_off,
        of_conversions,
        of_products_with_one,
        of_filled,
        of_steps,
        of_each_other,
        of_transposed,
        of_reversed,
        of_part,
    ],
)
def test_copies_in_a_list_are_copies(copies):
    """None shares memory with what was copied, nor with another."""
    return copying(copies)


@differential(hits=10, graphs=4)
@pytest.mark.parametrize("copies", [of_parameter, of_joined])
def test_copies_in_joined_lists_are_copies(copies):
    """Of lists of a varying number there is a graph for each: an element may be in both."""
    return copying(copies)


def copying(copies):
    weight = nn.Parameter(torch.randn(3))

    def step(x, n):
        return copies(weight, x, n)

    return Program(step, [(torch.randn(3), 2 + i % 4) for i in range(16)], watch=[weight])


@differential(hits=10, graphs=1)
def test_copies_of_what_is_written_in_the_call():
    weight = torch.randn(3)

    def step(x, n):
        saved = [weight.clone() for _ in range(n)]
        weight.sub_(x * 0.1)
        return saved

    calls = [(torch.randn(()), 1 + i % 4) for i in range(16)]
    return Program(step, calls, watch=[weight])


@differential(hits=8, graphs=1)
def test_length_that_the_data_decides():
    def step(x):
        sums = []
        while x.sum() > 4:
            x = x / 2
            sums.append(x.sum())
        return len(sums), sum(sums), sums

    return Program(step, [(torch.rand(4) + 2.0 ** (1 + i % 6),) for i in range(14)])


@differential(hits=8)
def test_sum_of_a_list_that_may_be_empty():
    def step(x):
        sums = []
        while x.sum() > 4:
            x = x / 2
            sums.append(x.sum())
        return sum(sums)

    calls = [(torch.rand(4) + 2.0 ** (1 + i % 6),) for i in range(14)]
    return Program(step, [*calls[:10], (torch.zeros(4),), *calls[10:]])


@differential(hits=10, graphs=1)
def test_list_that_grows_on_one_side_of_a_branch():
    def step(x):
        chosen = []
        for row in x:
            if row.sum() > 2:
                chosen.append(row * 2)
        total = torch.zeros(4)
        for row in chosen:
            total = total + row
        return total, len(chosen)

    return lengths(step)


@differential(hits=8)
def test_branch_outside_of_loops_appends():
    def step(x):
        parts = [x * 2]
        if x.sum() > 2:
            parts.append(x + 1)
        return sum(parts), len(parts), parts[-1]

    return Program(step, [(torch.rand(4),) for _ in range(14)])


@differential(hits=8, graphs=1)
def test_stack_of_work():
    def step(x):
        work = [x.sum()]
        total = torch.zeros(())
        count = 0
        while work:
            y = work.pop()
            total = total + y
            count += 1
            if y > 1.5:
                work.append(y / 2 - 0.3)
                work.append(y / 2 - 0.4)
        return total, count

    return Program(step, [(torch.rand(4) + 2.0 ** (1 + i % 4),) for i in range(14)])


@differential(hits=8, graphs=1)
def test_queue_of_work():
    def step(x):
        work = [(x.sum(), 0)]
        total = torch.zeros(())
        while len(work) > 0:
            y, depth = work.pop()
            total = total + y * depth
            if y > 1.5:
                work.append((y / 2 - 0.3, depth + 1))
        return total

    return Program(step, [(torch.rand(4) + 2.0 ** (1 + i % 4),) for i in range(14)])


@differential(hits=10, graphs=1)
def test_list_in_nested_loops():
    def step(x):
        sums = []
        for row in x:
            parts = []
            for number in x.sum(1):
                parts.append(number * row.sum())
            sums.append(sum(parts))
        return torch.stack(sums)

    return lengths(step)


@differential(hits=10, graphs=1)
def test_list_that_an_inner_loop_makes_longer():
    def step(x):
        all_parts = []
        for row in x:
            for number in x.sum(1):
                all_parts.append(number * row.sum())
        return len(all_parts), sum(all_parts), all_parts[-1]

    return lengths(step)


@differential(hits=10, graphs=1)
def test_reversed_copies():
    def step(x):
        states = []
        for row in x:
            states.append(row.exp())
        backwards = states[::-1]
        copy = list(states)
        states.reverse()
        copy.append(x[0])
        return torch.stack(states), torch.stack(backwards), len(copy), torch.stack(copy)

    return lengths(step)


@differential(hits=10, graphs=1)
def test_numbers_become_a_tensor():
    def step(x):
        numbers, flags, sizes = [], [], []
        for i, row in enumerate(x):
            numbers.append(row.sum().item())
            flags.append(row.sum().item() > 2)
            sizes.append(i)
        return (
            torch.tensor(numbers),
            torch.tensor(sizes),
            torch.tensor(flags),
            sum(numbers),
        )

    return lengths(step)


@differential(hits=3)
def test_elements_that_may_be_one_object():
    def step(x):
        parts = []
        h = torch.zeros(4)
        for row in x:
            h = h + row
            parts.append(h)
        return parts[1], parts[-1], parts[0]

    return lengths(step)


@differential(hits=2)
def test_elements_of_two_kinds():
    def step(x):
        parts = []
        for i, row in enumerate(x):
            parts.append(row if i % 2 else row[:2])
        return torch.cat(parts)

    return lengths(step)


@differential(hits=3)
def test_list_that_changes_while_it_is_iterated():
    def step(x):
        parts = []
        for row in x:
            parts.append(row.sum())
        total = torch.zeros(())
        for part in parts:
            total = total + part
            if len(parts) < 8:
                parts.append(part / 2)
        return total, len(parts)

    return lengths(step)


@differential(hits=3)
def test_element_that_is_written_later():
    def step(x):
        parts = []
        total = torch.zeros(4)
        for row in x:
            total = total + row
            parts.append(total)
        total += 1
        return torch.stack(parts)

    return lengths(step)


@differential(hits=3)
def test_list_of_views_of_an_argument():
    def step(x):
        parts = []
        for row in x:
            parts.append(row)
        return parts, x * 2

    return lengths(step)


@differential(hits=3)
def test_list_and_its_last_element():
    def step(x):
        parts = []
        h = torch.zeros(4)
        for row in x:
            h = h + row
            parts.append(h)
        return parts, h

    return lengths(step)


@differential(hits=3)
def test_list_with_gradients_due_outside():
    weight = nn.Parameter(torch.rand(4))

    def step(x):
        parts = []
        for row in x:
            parts.append(row * weight)
        return parts

    return lengths(step)


# --- lengths that only the run knows


def decided(loss_of, parameters, count=16):
    """Calls of a training step that keeps 2 to 6 of 8 rows."""
    optimizer = torch.optim.SGD(parameters.parameters(), lr=0.1)
    calls = []
    for i in range(count):
        x = torch.rand(8, 4) - 2
        x[: 2 + i % 5] += 3
        calls.append((x[torch.randperm(8)],))

    def step(x):
        loss = loss_of(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls, watch=[parameters])


@differential(hits=10)
def test_mean_of_a_stack_of_losses():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(x):
        losses = []
        h = x * 1
        while h.sum() > 3:
            h = h * 0.6
            losses.append(model(h).pow(2).sum())
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, len(losses)

    calls = [(torch.rand(4) + 2.0 + i % 5,) for i in range(16)]
    return Program(step, calls, watch=[model])


@differential(hits=10, graphs=1)
def test_batch_of_chosen_rows():
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))

    def loss(x):
        rows = []
        for row in x:
            if row.sum() > 0:
                rows.append(row * 2)
        batch = torch.stack(rows)
        scores = model(batch).log_softmax(1)
        weights = torch.ones(len(rows)) / batch.shape[0]
        return -(scores[:, 0] * weights).sum() + (batch.view(-1) ** 2).mean()

    return decided(loss, model)


@differential(hits=10, graphs=1)
def test_cat_of_chosen_rows_leaves_the_run():
    def step(x):
        rows, numbers = [], []
        for row in x:
            if row.sum() > 0:
                rows.append(row * 2)
                numbers.append(row[0].item())
        whole = torch.cat(rows)
        return whole, whole.shape[0], torch.tensor(numbers), torch.stack(rows).t() + 1

    program = decided(lambda x: x.sum(), nn.Linear(1, 1))
    return Program(step, program.calls)


@differential(hits=8)
def test_length_that_was_never_one_is():
    def step(x):
        rows = []
        for row in x:
            if row.sum() > 0:
                rows.append(row * 2)
        return torch.stack(rows).mean(0)

    calls = decided(lambda x: x.sum(), nn.Linear(1, 1)).calls
    single = torch.rand(8, 4) - 2
    single[3] += 3
    return Program(step, [*calls[:9], (single,), *calls[9:]])


# --- elements are objects -----------------------------------------------------------------------


def iterations(step):
    return Program(step, [(torch.randn(3), 2 + i % 4) for i in range(14)])


@differential(graphs=1, hits=8)
def test_equal_elements_are_tensors_of_their_own():
    def step(x, n):
        parts = []
        for _ in range(n):
            parts.append(x * 2)
        return parts, x * 2

    return iterations(step)


@differential(hits=8)
def test_one_tensor_several_times():
    def step(x, n):
        parts, y = [], x * 2
        for _ in range(n):
            parts.append(y)
        return parts

    return iterations(step)


@differential(hits=8)
def test_one_tensor_in_two_iterations():
    def step(x, n):
        parts, y = [], x * 2
        for _ in range(n):
            parts.append(y)
            y = y + 1
            parts.append(y)
        return parts

    return iterations(step)


@differential(hits=5)
def test_one_tensor_twice_in_an_iteration():
    def step(x, n):
        parts = []
        for _ in range(n):
            y = x.sin()
            parts.append(y)
            if y.sum() > 0:
                parts.append(y)
        return parts

    return iterations(step)


@differential(hits=8)
def test_written_tensor_several_times():
    def step(x, n):
        parts, y = [], x * 2
        for _ in range(n):
            y.add_(1)
            parts.append(y)
        return parts

    return iterations(step)


# --- comprehensions of a varying number of elements ---------------------------------------------


@differential(graphs=1, hits=8)
def test_comprehension_over_a_range():
    def step(x, n):
        return torch.stack([x * i for i in range(n)]).sum(0)

    return iterations(step)


@differential(graphs=1, hits=8)
def test_comprehension_that_outlives_the_run():
    kept = nn.Module()

    def step(x, n):
        kept.parts = [x + i for i in range(n)]
        return [part * 2 for part in kept.parts], len(kept.parts)

    return Program(step, [(torch.randn(3), 2 + i % 4) for i in range(14)], watch=[kept])


@differential(graphs=1, hits=8)
def test_comprehension_that_counts():
    kept = nn.Module()
    kept.calls = 0

    def scaled(x):
        kept.calls += 1
        return x * kept.calls

    def step(x, n):
        return torch.stack([scaled(x) for _ in range(n)])

    return Program(step, [(torch.randn(3), 2 + i % 4) for i in range(14)], watch=[kept])


@differential(hits=6)
def test_comprehension_without_elements():
    def step(x, n):
        return sum(x.sum() * i for i in range(n)), [x * i for i in range(n)], list(range(n))

    return Program(step, [(torch.randn(3), i % 4) for i in range(16)])


@differential(hits=6)
def test_comprehension_of_closures_and_of_pairs():
    def step(x, n):
        scales = [lambda y, by=i: y * by for i in range(n)]
        pairs = [(i, x * i) for i in range(n)]
        return scales[0](x) + scales[-1](x), pairs

    return iterations(step)


@differential(hits=6)
def test_comprehension_with_a_condition():
    def step(x, n):
        return [x * i for i in range(n) if i % 2]

    return iterations(step)


@differential(graphs=2)
def test_extremes_and_flags_of_a_list_that_grew():
    def step(x):
        scores = [row.sum().item() for row in x]
        counts = [int((row > 0).sum()) for row in x]
        flags = [bool(row[0] > 0) for row in x]
        extremes = max(scores), min(scores), max(counts), min(int(row.argmax()) for row in x)
        return extremes, any(flags), all(flags), any(counts), all(counts)

    return Program(step, [(torch.randn(n, 3),) for n in (4, 4, 5, 6, 3, 7, 8, 2, 4, 9)])


@differential(hits=13)
def test_extremes_of_lists_with_nan_and_of_none():
    def step(x):
        chosen = [value.item() for value in x if value != 7]
        return max(chosen), min(chosen), all(chosen), any(chosen)

    nan = float("nan")
    calls = [[1.0, nan, 0.5], [nan, 3.0, 1.0, 2.0], [4.0, 7.0, nan], [7.0, 7.0], [0.0, -0.0, 7.0]]
    return Program(step, [(torch.tensor(values),) for values in calls * 4])


@differential(hits=6)
def test_keys_that_have_effects_are_asked_for_once():
    asked = []

    def length(word):
        asked.append(word)
        return len(word)

    def step(x):
        words = sorted(["graph", "if", "loop", "a"], key=length)
        return x * len(words), words, max(words, key=length)

    return Program(step, [(torch.randn(3),) for _ in range(10)], watch=[asked])


@differential(graphs=2)
def test_tensor_as_a_list_of_numbers():
    def step(x):
        labels, values = x.argmax(1).tolist(), x[:, 0].tolist()
        hits = sum(a == b for a, b in zip(labels, (x * 2).argmax(1).tolist()))
        total = 0
        for label, value in zip(labels, values):
            total += label * value
        return labels, values, hits, total, (x[0] > 0).tolist()

    return Program(step, [(torch.randn(n, 3),) for n in (4, 4, 5, 6, 3, 7, 8, 2, 4, 9)])
