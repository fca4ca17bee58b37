"""Lists that grow in a recursion over a tree."""

from differential import Program, differential
from tree_programs import Leaf, trees

import torch
from torch import nn


@differential(graphs=1, hits=10)
def test_list_of_outside_grows():
    def step(root, x):
        parts = []

        def go(node, x):
            if isinstance(node, Leaf):
                parts.append(x * node.word)
                return x
            go(node.left, x * 0.5)
            go(node.right, x + 1)
            parts.append(x * node.label)
            return x

        go(root, x)
        return sum(parts), parts

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(14)])


@differential(graphs=1, hits=10)
def test_attribute_grows():
    class Model(nn.Module):
        def forward(self, node, x):
            if isinstance(node, Leaf):
                self.parts.append(x * node.word)
            else:
                self(node.left, x * 0.5)
                self(node.right, x + 1)
            self.parts.append(x * 2)

    model = Model()

    def step(root, x):
        model.parts = []
        model(root, x)
        return sum(model.parts)

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(14)], watch=[model])


@differential(graphs=1, hits=10)
def test_list_of_losses_trains():
    combine = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(combine.parameters(), lr=0.1)
    words = nn.Embedding(20, 2)

    def step(root):
        losses = []

        def go(node):
            if isinstance(node, Leaf):
                state = torch.sin(words.weight[node.word])
            else:
                state = torch.tanh(combine(torch.cat([go(node.left), go(node.right)])))
            losses.append((state * node.label).sum())
            return state

        go(root)
        loss = sum(losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, trees(16), watch=[combine, optimizer])
