"""Gradients that some calls clear and others keep: `.grad` is the very tensor that it was, or None."""

import pytest

import torch
import torchjanus
from torch import nn

EVERY, LENGTH = 4, 10


def accumulates(model, optimizer, i, x):
    loss = model(x).pow(2).mean()
    (loss / EVERY).backward()
    if (i + 1) % EVERY == 0 or i + 1 == LENGTH:
        optimizer.step()
        optimizer.zero_grad()
    return loss


def clears_on_the_other_side(model, optimizer, i, x):
    model(x).pow(2).mean().backward()
    if (i + 1) % EVERY != 0:
        optimizer.step()
    else:
        for each in model.parameters():
            each.grad = None


def clips_and_clears(model, optimizer, i, x):
    model(x).pow(2).mean().backward()
    if (i + 1) % EVERY == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()


def clears_what_is_added_to(model, optimizer, i, x):
    model(x).pow(2).mean().backward()
    if (i + 1) % EVERY == 0:
        optimizer.step()
        optimizer.zero_grad()
    model(x + 1).pow(2).mean().backward()


def reads_afterwards(model, optimizer, i, x):
    model(x).pow(2).mean().backward()
    if (i + 1) % EVERY == 0:
        model.weight.grad = None
    return None if model.weight.grad is None else model.weight.grad.sum()


def sets_another(model, optimizer, i, x):
    model(x).pow(2).mean().backward()
    if (i + 1) % EVERY == 0:
        model.weight.grad = torch.ones(2, 3)


def watched(step, model, optimizer):
    """What each call leaves in .grad: whether it is the tensor from before, values, versions of that."""
    generator = torch.Generator().manual_seed(1)
    seen = []
    for _ in range(3):
        for i in range(LENGTH):
            before = [each.grad for each in model.parameters()]
            result = step(model, optimizer, i, torch.randn(5, 3, generator=generator))
            after = [each.grad for each in model.parameters()]
            same = [one is other for one, other in zip(before, after, strict=True)]
            tensors = [each for each in (result, *before, *after) if each is not None]
            versions = [each._version for each in before if each is not None]
            seen.append((same, versions, [each.detach().clone() for each in tensors]))
    return seen


@pytest.mark.parametrize(
    ("step", "most_graphs"),
    [
        (accumulates, 3),
        (clears_on_the_other_side, 4),
        (clips_and_clears, 3),
        (clears_what_is_added_to, 6),
        (reads_afterwards, 3),
        (sets_another, 4),
    ],
)
def test_gradients_are_cleared_in_some_calls(step, most_graphs):
    runs = []
    converted = torchjanus.function(step)
    for run in (step, converted):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        seen = watched(run, model, optimizer)
        runs.append([*seen, ([], [], [each.detach() for each in model.parameters()])])
    stats = converted.stats()
    assert stats["hits"] > 0 and stats["generated"] <= most_graphs, stats
    for mine, its in zip(runs[1], runs[0], strict=True):
        assert mine[:2] == its[:2]
        torch.testing.assert_close(mine[2], its[2])
