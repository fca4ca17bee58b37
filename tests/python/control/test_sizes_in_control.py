"""Sizes that the data decide inside of branches and loops: a mask is counted, a list measured, where one
side of a branch, or an iteration of a loop, needs it."""

import pytest
from differential import Program, differential

import torch
from torch import nn


def signed(count=24, size=8):
    """Both outcomes of `x.sum() > 0`, in changing order; at least two elements of each sign."""
    signs = [1.0 if (index * 7) % 5 in (0, 3) else -1.0 for index in range(count)]
    tail = torch.tensor([1.0, 1.0, -1.0, -1.0]) * 0.01
    return [(torch.cat([torch.rand(size) * sign, tail]),) for sign in signs]


@differential(hits=18, graphs=1)
def test_elements_are_written_where_there_are_any():
    def step(x):
        y = x.clone()
        m = x > 0.2
        if m.any():
            y[m] = y[m] * 2 + 1
        return y

    return Program(step, signed())


@differential(hits=18, graphs=1)
def test_elements_are_added_to():
    def step(x):
        y = x * 1.0
        if x.sum() > 0:
            y[x > 0] += x[x > 0].sqrt()
        else:
            y[x < 0] -= 1
        return y.sum(), y

    return Program(step, signed())


@differential(hits=18, graphs=1)
def test_training_where_some_samples_count():
    model = nn.Linear(1, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def step(x):
        h = model(x.unsqueeze(1))
        loss = h.square().mean()
        if x.sum() > 0:
            hard = h[x > 0.005]
            loss = loss + hard.logsumexp(1).mean() / len(hard)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, signed(), watch=[model])


@differential(hits=18, graphs=1)
def test_each_side_chooses_others():
    model = nn.Linear(12, 12)

    def step(x):
        h = model(x)
        if x.sum() > 0:
            part = h[x > 0.005]
            total = part.sum() * part.numel()
        else:
            part = h[x < -0.005]
            total = part.amax() * len(part)
        model.zero_grad()
        total.backward()
        return total.item()

    return Program(step, signed(), watch=[model])


@differential(hits=18, graphs=1)
def test_the_same_mask_on_both_sides_and_behind():
    """What one side has counted, the other has not."""

    def step(x):
        m = x > 0
        if x.sum() > 0:
            total = x[m].sum()
        else:
            total = x[m].mean()
        return total + x[m].max()

    return Program(step, signed())


@differential(hits=18, graphs=1)
def test_nested_branches():
    model = nn.Linear(12, 12)

    def step(x):
        h = model(x)
        loss = h.sum()
        if x.sum() > 0:
            chosen = h[x > 0.005]
            if chosen.sum() > 0:
                loss = loss + chosen[chosen > chosen.mean()].sum() * 0 + chosen.square().sum()
            else:
                loss = loss - chosen.exp().mean()
        model.zero_grad()
        loss.backward()
        return loss.item()

    return Program(step, signed(), watch=[model])


@differential(hits=18, graphs=2)
def test_what_one_side_chose_is_read_behind():
    """Its size is not one of both sides: the branch is followed."""

    def step(x):
        chosen = x[x > 0] if x.sum() > 0 else x[x < 0] * 2
        return chosen.sum()

    return Program(step, signed())


@differential(reasons=["branch_changed"], hits=12)
def test_fewer_than_two_on_one_side():
    def step(x):
        y = x.clone()
        m = x > 0
        if m.any():
            y[m] = y[m] * 2
        return y

    values = torch.arange(1.0, 6.0)
    counts = [5, 4, 0, 3, 1, 0, 2, 5, 1, 0, 3, 4, 0, 1, 2, 0, 5, 1, 3, 0, 2]
    return Program(step, [(torch.where(torch.arange(5) < n, values, -values),) for n in counts])


ITERATIONS = (2, 3, 4, 2, 5, 3, 4, 6, 2, 5, 3, 4)


def rows(size=12):
    return [(torch.randn(6, size), iterations) for iterations in ITERATIONS]


@differential(hits=8, graphs=1)
def test_each_iteration_chooses():
    def step(x, iterations):
        total = x.sum() * 0
        for t in range(iterations):
            total = total + x[t][x[t] > -1].sum() * 0.5
        return total

    return Program(step, rows())


@differential(hits=8, graphs=1)
def test_gradients_of_what_each_iteration_chooses():
    model = nn.Linear(12, 12)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(x, iterations):
        h = torch.zeros(12)
        loss = 0.0
        for t in range(iterations):
            h = torch.tanh(model(h + x[t]))
            chosen = h[x[t] > -1]
            loss = loss + chosen.square().mean() + chosen[1:].sum() * len(chosen)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, rows(), watch=[model])


@differential(hits=8, graphs=1)
def test_a_mask_that_all_iterations_share():
    model = nn.Linear(12, 12)

    def step(x, iterations):
        mask = x[0] > -1
        h = x[0]
        for _ in range(iterations):
            y = model(h)
            h = h.clone()
            h[mask] = torch.tanh(y[mask]) * torch.ones_like(y[mask])
        model.zero_grad()
        h.sum().backward()
        return h.detach()

    return Program(step, rows(), watch=[model])


@differential(hits=8, graphs=1)
def test_a_branch_in_a_loop():
    model = nn.Linear(12, 12)

    def step(x, iterations):
        h = torch.zeros(12)
        penalty = model(h).sum()
        for t in range(iterations):
            h = torch.tanh(model(h + x[t]))
            if x[t].sum() > 0:
                h = h.index_put((x[t] > -1,), h[x[t] > -1] * 0.5)
                penalty = penalty + h[x[t] > -1].exp().sum()
        loss = h.sum() + penalty
        model.zero_grad()
        loss.backward()
        return loss.item()

    return Program(step, rows(), watch=[model])


@differential(hits=8, graphs=1)
def test_loops_in_each_other():
    model = nn.Linear(12, 12)

    def step(x, iterations):
        loss = x.sum() * 0
        h = x[0]
        for t in range(iterations):
            chosen = model(h)[x[t] > -1]
            for k in range(iterations - 1):
                loss = loss + (chosen * x[k, 0]).sum() + chosen[chosen > -9].mean()
            h = torch.tanh(model(h))
        model.zero_grad()
        loss.backward()
        return loss.item()

    return Program(step, rows(), watch=[model])


@differential(hits=6)
def test_second_gradients_of_what_iterations_choose():
    model = nn.Linear(12, 12)

    def step(x, iterations):
        y = x[0]
        for t in range(iterations):
            y = torch.tanh(model(y))
            y = y + y[x[t] > -1].square().sum() * 0.1
        inner = y.square().sum() + model(x[0]).square().sum()
        (gradient,) = torch.autograd.grad(inner, model.weight, create_graph=True)
        loss = gradient.square().sum() + inner
        model.zero_grad()
        loss.backward()
        return loss.item()

    return Program(step, rows(), watch=[model])


@differential(hits=8, graphs=1)
def test_sizes_drawn_in_iterations():
    def step(x, iterations):
        total = x.sum()
        for t in range(iterations):
            noise = torch.ones(int((x[t] > -1).sum()), 3)
            total = total + noise.sum() * noise.shape[0]
        return total

    return Program(step, rows())


@differential(hits=8, graphs=1)
def test_lists_as_tensors_in_iterations():
    def step(x, iterations):
        total = x.sum()
        for t in range(iterations):
            parts = [x[t, k] * k for k in range(t + 2)]
            total = total + torch.stack(parts).max()
        return total

    return Program(step, rows())


@differential(hits=4)
def test_what_the_last_iteration_chose():
    def step(x, iterations):
        for t in range(iterations):
            chosen = x[t][x[t] > -1]
        return chosen.sum(), chosen

    return Program(step, rows() * 2)


@differential(hits=4)
def test_pruned_from_iteration_to_iteration():
    def step(x, iterations):
        alive = x[0]
        for _ in range(iterations):
            alive = alive[alive > alive.min()]
        return alive.sum()

    return Program(step, rows() * 2)


@differential(hits=4)
def test_elements_of_a_size_of_their_own_in_a_list():
    def step(x, iterations):
        parts = []
        for t in range(iterations):
            parts.append(x[t][x[t] > -1])
        return torch.cat(parts)

    return Program(step, rows() * 2)


@pytest.mark.parametrize("where", ["branch", "loop"])
@differential(reasons=["autograd"])
def test_gradients_due_outside(where):
    def step(x, iterations):
        if where == "branch":
            return x[0][x[0] > -1].sum() if x[1].sum() > 0 else x.sum()
        total = x.sum()
        for t in range(iterations):
            total = total + x[t][x[t] > -1].sum()
        return total

    return Program(step, [(x.requires_grad_(), n) for x, n in rows()])


# --- sides that differ in a size -----------------------------------------------------------------


def both_ways(count=24, rows=6, size=8):
    signs = [1.0 if (index * 7) % 5 in (0, 3) else -1.0 for index in range(count)]
    return [(torch.rand(rows, size) * sign,) for sign in signs]


SHORTENED = {
    "fewer rows": lambda model, x: model(x[:3] if x.sum() > 0 else x).pow(2).mean(),
    "two numbers of rows": lambda model, x: model(x[:4] if x.sum() > 0 else x[2:]).pow(2).mean(),
    "as many rows as the data say": lambda model, x: (
        model(x[x[:, 0] > 0] if x.sum() > 0 else x[1:]).pow(2).mean()
    ),
    "rows of two masks": lambda model, x: (
        model(x[x[:, 0] > 0.2] if x.sum() > 0 else x[x[:, 1] < -0.2]).pow(2).sum()
    ),
    "doubled": lambda model, x: model(torch.cat([x, x]) if x.sum() > 0 else x).exp().sum(),
    "sizes of it": lambda model, x: (lambda y: model(y).sum() / len(y) + y.numel())(
        x[:3] if x.sum() > 0 else x
    ),
}


@pytest.mark.parametrize("loss", SHORTENED)
@differential(hits=18, graphs=1)
def test_one_graph_for_two_sizes(loss):
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(x):
        optimizer.zero_grad()
        loss_of_step = SHORTENED[loss](model, x)
        loss_of_step.backward()
        optimizer.step()
        return loss_of_step.item()

    return Program(step, both_ways(), watch=[model])


@differential(hits=18, graphs=1)
def test_two_tensors_of_the_same_two_sizes():
    model = nn.Linear(8, 3)

    def step(x):
        y = x.sum(1)
        if x.sum() > 0:
            x, y = x[1:5], y[1:5]
        model.zero_grad()
        loss = (model(x).sum(1) * y).sum() + x.shape[0]
        loss.backward()
        return loss.item(), y, len(x)

    return Program(step, both_ways(), watch=[model])


@differential(hits=15, graphs=1)
def test_sizes_that_differ_in_an_iteration():
    model = nn.Linear(8, 8)

    def step(x, iterations):
        total = x.sum() * 0
        h = x[0]
        for t in range(iterations):
            h = torch.tanh(model(h))
            part = x[:3] if x[t].sum() > 0 else x
            total = total + (part * h).sum() / len(part)
        model.zero_grad()
        total.backward()
        return total.item()

    return Program(step, [(torch.randn(6, 8), 2 + i % 4) for i in range(24)], watch=[model])


@differential(hits=15, graphs=2)
def test_sizes_nobody_asks_for():
    """What only one side uses stays as it is."""

    def step(x):
        if x.sum() > 0:
            part = x[:3]
            total = part.sum()
        else:
            part = x[1:]
            total = part.mean()
        return total * 2

    return Program(step, both_ways())


@differential(hits=15, graphs=2)
def test_two_sizes_of_which_one_is_1():
    def step(x):
        part = x[:1] if x.sum() > 0 else x
        return (part + torch.ones(6, 8)).sum(), part * 2

    return Program(step, both_ways())


@differential(hits=15, graphs=2)
def test_sides_that_differ_in_two_sizes():
    def step(x):
        part = x[:4, :4].contiguous() if x.sum() > 0 else x
        return part.sum(), part * 2

    return Program(step, both_ways())


@differential(hits=15, graphs=2)
def test_sides_that_lie_differently_and_differ_in_a_size():
    def step(x):
        part = x[:, :4] if x.sum() > 0 else x
        return part * 2, part.sum()

    return Program(step, both_ways())


@differential(hits=15, graphs=2)
def test_a_layer_that_takes_one_of_the_sizes_only():
    wide, narrow = nn.Linear(48, 2), nn.Linear(24, 2)

    def step(x):
        flat = x[:3].flatten() if x.sum() > 0 else x.flatten()
        loss = (narrow(flat) if len(flat) == 24 else wide(flat)).sum()
        wide.zero_grad()
        narrow.zero_grad()
        loss.backward()
        return loss.item()

    return Program(step, both_ways(), watch=[wide, narrow])


@differential(hits=15, graphs=2)
def test_an_operator_without_a_gradient_along_a_size_that_varies():
    """The branch is followed after all."""
    model = nn.Linear(8, 3)

    def step(x):
        part = x[:3] if x.sum() > 0 else x
        model.zero_grad()
        loss = model(part).prod(0).sum()
        loss.backward()
        return loss.item()

    return Program(step, both_ways(), watch=[model])


@differential(hits=12)
def test_a_size_of_one_side_that_is_a_result():
    """Views of an argument that one side hands on."""

    def step(x):
        part = x[2:] if x.sum() > 0 else x
        part = part.clone() if x[0, 0].abs() > 0.5 else part
        return part

    return Program(step, both_ways(30))


@differential(hits=15, graphs=2)
def test_gradients_due_outside_of_two_sizes():
    model = nn.Linear(8, 3)

    def step(x):
        return model(x[:3] if x.sum() > 0 else x)

    return Program(step, both_ways(), watch=[model])


# --- sizes below 2 in some iterations ------------------------------------------------------------


@pytest.mark.parametrize("shortens", ["pop", "del"])
@differential(hits=12, reasons=["branch_changed"])
def test_a_list_of_one_element_in_the_first_iteration(shortens):
    """Tensors made of it are of no size from 2 on in all iterations: the loop is unrolled."""

    def step(x, iterations):
        window, total = [], torch.zeros(8)
        for t in range(iterations):
            window.append(x[t])
            if shortens == "del":
                del window[:-3]
            elif len(window) > 3:
                window.pop(0)
            total = total + torch.stack(window).sum(0) * len(window)
        return total

    return Program(step, [(torch.randn(6, 8), 2 + (i * 7) % 5) for i in range(30)])
