"""Parameters that only some trees, or some nodes of a tree, come to."""

import random

from differential import Program, differential
from tree_programs import tagged, trained

import torch
from torch import nn


class Kinds(nn.Module):
    """Each kind of node has weights of its own."""

    def __init__(self, hidden=3):
        super().__init__()
        self.enter = nn.Linear(hidden, hidden)
        self.sum = nn.Linear(hidden, hidden)
        self.product = nn.Linear(hidden, hidden)

    def forward(self, node, x):
        if node.kind == "number":
            return torch.tanh(self.enter(x * node.value))
        left, right = self(node.parts[0], x), self(node.parts[1], x)
        if node.kind == "sum":
            return torch.tanh(self.sum(left + right))
        return torch.tanh(self.product(left * right))


def tagged_trees(count, largest=4):
    return [(tagged(random.randrange(2, largest)), torch.randn(3)) for _ in range(count)]


@differential(graphs=1, hits=20)
def test_weights_of_kinds():
    model = Kinds()
    return trained(model, [model], tagged_trees(24))


@differential(graphs=1, hits=20)
def test_weights_of_kinds_with_momentum():
    model = Kinds()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(root, x):
        loss = model(root, x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, model.sum.weight.grad is None

    return Program(step, tagged_trees(30), watch=[model, optimizer])


@differential(graphs=1, hits=20)
def test_two_trees_and_two_gradients():
    model = Kinds()

    def step(first, second, x):
        model.zero_grad()
        loss = model(first, x).sum()
        loss.backward()
        before = [each.grad is None for each in model.parameters()]
        other = model(second, x).sum()
        other.backward()
        return loss + other.detach(), before, [each.grad is None for each in model.parameters()]

    calls = [
        (first, second, x)
        for (first, x), (second, _) in zip(tagged_trees(24), tagged_trees(24), strict=True)
    ]
    return Program(step, calls, watch=[model])


@differential(graphs=1, hits=16)
def test_weights_of_kinds_in_a_loop():
    """One weight is used in a loop and beside it, the other only beside it."""
    enter, both, one = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

    def go(node, x):
        if node.kind == "number":
            return torch.tanh(enter(x * node.value))
        if node.kind == "sum":
            total = x
            for part in node.parts:
                total = total + both(go(part, x))
            return torch.tanh(total)
        left, right = go(node.parts[0], x), go(node.parts[1], x)
        return torch.tanh(both(left) + one(right))

    return trained(go, [enter, both, one], tagged_trees(30))
