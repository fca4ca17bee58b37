"""Tensors whose sizes the data decide: elements that a mask chooses, positions of what is not zero."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
from torch import nn

CALLS = 8


def trained(loss_of, shape=(16, 4)):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = loss_of(model(x), x)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(shape),) for _ in range(CALLS)], watch=[model])


LOSSES = {
    "elements": lambda y, x: y[y > 0].pow(2).mean(),
    "rows": lambda y, x: y[x[:, 0] > 0].pow(2).mean(),
    "the same mask written twice": lambda y, x: (
        (y[x[:, 0] > 0] - x[x[:, 0] > 0][:, :3]).pow(2).mean()
    ),
    "targets of the same rows": lambda y, x: F.cross_entropy(
        y[x[:, 1] > 0], (x[x[:, 1] > 0].sum(1) > 0).long()
    ),
    "masked_select": lambda y, x: y.masked_select(x[:, :3] > 0).sum(),
    "masked_select that is broadcast": lambda y, x: torch.masked_select(y, x[:, :1] > 0).sum(),
    "iterations of a loop that is unrolled": lambda y, x: sum(
        y[x[:, k] > 0].sum() for k in range(3)
    ),
    "a test that always holds": lambda y, x: y[y > 0].mean() if (y > 0).any() else y.sum(),
}


@pytest.mark.parametrize("loss", LOSSES)
@differential(graphs=1, hits=4)
def test_gradients_through_masks(loss):
    return trained(LOSSES[loss])


def doubled_where(x, mask):
    x[mask] = x[mask] * 2
    return x


FUNCTIONS = {
    "nonzero": lambda x: torch.nonzero(x > 0),
    "nonzero of numbers": lambda x: x.round().nonzero(),
    "nonzero as a tuple": lambda x: torch.nonzero(x > 0, as_tuple=True),
    "where of a condition": lambda x: torch.where(x > 0),
    "argwhere": lambda x: torch.argwhere(x > 0),
    "lengths": lambda x: (len(x[x > 0]), x[x > 0].numel(), x[x > 0].shape),
    "a transposed tensor": lambda x: x.t()[x.t() > 0] * 2,
    "rows of a transposed tensor": lambda x: x.t()[x.t()[:, 0] > -9] * 2,
    "a mask behind a slice": lambda x: x[:, x[0] > -9] * 2,
    "a mask beside a number": lambda x: x[x[:, 0] > 0, 1],
    "unique": lambda x: torch.unique((x * 2).long()),
    "unique with inverse and counts": lambda x: torch.unique(
        x.round(), return_inverse=True, return_counts=True
    ),
    "a write of what was read": lambda x: doubled_where(x, x > 0),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@differential(graphs=1)
def test_sizes_that_the_data_decide(function):
    return Program(FUNCTIONS[function], [(torch.randn(16, 4),) for _ in range(CALLS)])


def first(*counts):
    """Vectors of which so many first elements are positive."""
    values = torch.arange(1.0, 6.0)
    return [(torch.where(torch.arange(5) < n, values, -values),) for n in counts]


@differential(aborts=2, reasons=["branch_changed"], graphs=3, hits=10)
def test_fewer_than_two_elements():
    """A dimension with a name is at least 2: one element and none have a graph each."""

    def step(x):
        chosen = x[x > 0]
        return chosen.sum(), chosen.shape, chosen * 2, chosen.mean()

    return Program(step, first(5, 4, 3, 5, 4, 1, 1, 0, 0, 3, 0, 1, 5, 0, 1, 2, 1, 0))


@differential(reasons=["branch_changed"], hits=12)
def test_training_on_few_hard_examples():
    """Triplets that are hard: none, one or several of a batch."""
    model = nn.Linear(4, 3, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step(anchor, same, other):
        a, s, o = model(anchor), model(same), model(other)
        near, far = (a - s).pow(2).sum(1), (a - o).pow(2).sum(1)
        loss = F.relu(near - far + 0.5).mean()
        hard = (near > far) & (near < far + 1)
        if hard.any():
            loss = loss + F.relu(near[hard] - far[hard] + 0.1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), int(hard.sum())

    return Program(step, [tuple(torch.randn(3, 4, 4)) for _ in range(40)], watch=[model])


@differential(reasons=["branch_changed"], hits=6)
def test_two_masks_each_of_which_may_choose_few():
    def step(x):
        above, below = x[x > 0], x[x <= 0]
        if len(above) == 0 or len(below) == 0:
            return x.sum()
        return above.max() - below.min()

    return Program(step, first(*[5, 4, 3, 1, 0, 2, 4, 1] * 4))


@differential(reasons=["branch_changed"], hits=6)
def test_one_element_is_a_dimension_of_its_own():
    def step(x):
        chosen = x[x > 0]
        return chosen.squeeze().dim(), chosen.expand(3, -1) * 2 if len(chosen) == 1 else chosen * 3

    return Program(step, first(3, 3, 3, 3, 3, 1, 1, 1, 1, 3, 1, 1, 0))


@differential(hits=5, graphs=1)
def test_means_of_the_nodes_of_each_graph():
    model = nn.Linear(4, 3)

    def step(x, graph, count):
        sums = torch.zeros(count, 3).index_add_(0, graph, model(x))
        loss = (sums / torch.bincount(graph, minlength=count).unsqueeze(1)).pow(2).sum()
        model.zero_grad()
        loss.backward()
        return loss.item()

    def call(sizes):
        graph = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        return torch.randn(len(graph), 4), graph, len(sizes)

    sizes = [(3, 2, 4), (2, 2, 2), (5, 1, 3), (2, 6, 1), (4, 4, 4), (3, 3, 1), (2, 2, 5), (1, 2, 3)]
    return Program(step, [call(each) for each in sizes], watch=[model])


@differential(reasons=["branch_changed"])
def test_bins_of_other_numbers():
    """More than there are bins make the result longer; less than 0 raises."""
    calls = [torch.tensor(each) for each in ([0, 2, 2], [1, 1, 0], [2, 0, 1], [0, 0, 0], [1, 2, 2])]
    calls += [torch.tensor([0, 5, 1]), torch.tensor([0, -1, 1]), torch.tensor([2, 1, 1])]
    return Program(lambda x: torch.bincount(x, minlength=3), [(each,) for each in calls])


@differential(reasons=["would_raise"])
def test_mask_of_another_shape():
    def step(x):
        return x[torch.ones(3, dtype=torch.bool)]

    return Program(step, [(torch.randn(4),) for _ in range(5)])


@differential(hits=2, graphs=1)
def test_mask_beside_as_many_positions():
    """A guard says that there are as many."""

    def step(x):
        return x[x[:, 0] > -9, torch.arange(16) % 4]

    return Program(step, [(torch.randn(16, 4),) for _ in range(5)])


@differential(hits=4, graphs=1)
def test_in_a_branch():
    def step(x):
        if x.sum() > 0:
            x = x[x > 0]
        return x.sum()

    signs = [1, -1, 1, -1, 1, -1, 1, -1]
    return Program(step, [(torch.rand(6) * 2 + (0.2 if s > 0 else -3.0),) for s in signs])


@differential(hits=4, graphs=1)
def test_in_a_loop():
    def step(x, iterations):
        total = x.sum() * 0
        for _ in range(iterations):
            total = total + x[x > -total].sum() * 0.1
        return total

    return Program(step, [(torch.rand(6), n) for n in (2, 3, 4, 2, 5, 3, 4, 6)])


@differential(reasons=["autograd"])
def test_gradient_due_outside():
    def step(x):
        return (x * 1.0)[x > 0]

    return Program(step, [(torch.randn(9, requires_grad=True),) for _ in range(5)])
