"""Tensors made of the results for a node's children: stacked, summed, averaged."""

from differential import Program, differential
from tree_programs import trained, with_nodes

import torch
from torch import nn


class ChildSum(nn.Module):
    """A child-sum TreeLSTM."""

    def __init__(self, hidden=3):
        super().__init__()
        self.gates = nn.Linear(2 * hidden, 3 * hidden)
        self.forget = nn.Linear(2 * hidden, hidden)

    def forward(self, node, x):
        x = x * node.value
        if not node.children:
            h, c = torch.zeros(3), torch.zeros(3)
        else:
            states = [self(child, x) for child in node.children]
            h = torch.stack([each[0] for each in states]).sum(0)
            c = torch.stack([torch.sigmoid(self.forget(torch.cat([x, h]))) * c for h, c in states])
            c = torch.sum(c, dim=0)
        enter, leave, candidate = self.gates(torch.cat([x, h])).chunk(3)
        c = torch.sigmoid(enter) * torch.tanh(candidate) + c
        return torch.sigmoid(leave) * torch.tanh(c), c


@differential(graphs=1, hits=12)
def test_child_sum_lstm():
    model = ChildSum()
    return trained(lambda root, x: model(root, x)[0], [model])


@differential(graphs=1, hits=12)
def test_stack_and_sum_of_children():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return torch.sin(layer(x * node.value))
        return torch.tanh(layer(torch.stack([go(child, x) for child in node.children]).sum(0)))

    return trained(go, [layer])


@differential(graphs=1, hits=12)
def test_stack_and_mean_of_children():
    def go(node, x):
        if not node.children:
            return torch.sin(x * node.value)
        below = torch.stack([go(child, x) for child in node.children])
        return torch.tanh(below.mean(dim=0, keepdim=True).squeeze(0) + torch.sum(below, 0))

    return Program(lambda root, x: go(root, x), with_nodes())


@differential(hits=5)
def test_stack_of_children_is_looked_at():
    """Not summed: each tree has a graph, or none."""

    def go(node, x):
        if not node.children:
            return torch.sin(x * node.value)
        below = torch.stack([go(child, x) for child in node.children])
        return below.sum(0) * below.shape[0] + below.amax(0)

    return Program(lambda root, x: go(root, x), with_nodes())


@differential(hits=5)
def test_stack_of_no_children():
    """Eager raises."""

    def go(node, x):
        if node.value < 0.3:
            return x * node.value
        return torch.stack([go(child, x) for child in node.children]).sum(0)

    return Program(lambda root, x: go(root, x), with_nodes())


@differential(graphs=1, hits=12)
def test_child_sum_lstm_in_loops():
    gates, forget = nn.Linear(6, 9), nn.Linear(6, 3)

    def go(node, x):
        x = x * node.value
        states = [go(child, x) for child in node.children]
        h, c = torch.zeros(3), torch.zeros(3)
        for below, _ in states:
            h = h + below
        for below, cell in states:
            c = c + torch.sigmoid(forget(torch.cat([x, below]))) * cell
        enter, leave, candidate = gates(torch.cat([x, h])).chunk(3)
        c = torch.sigmoid(enter) * torch.tanh(candidate) + c
        return torch.sigmoid(leave) * torch.tanh(c), c

    return trained(lambda root, x: go(root, x)[0], [gates, forget])
