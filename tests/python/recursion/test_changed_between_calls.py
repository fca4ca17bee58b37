"""What a recursion reads besides its arguments, changed between two calls of it."""

import pytest
from differential import Program, differential
from tree_programs import Leaf, with_vectors

import torch
from torch import nn


@pytest.mark.parametrize("by_branch", [True, False])
@differential(hits=3)
def test_an_attribute_differs_between_calls(by_branch):
    kept = nn.Module()
    kept.factor = 1

    def go(node, x):
        if isinstance(node, Leaf):
            return x * node.word * kept.factor
        return go(node.left, x) + go(node.right, x)

    def step(root, x):
        if by_branch:
            if x.sum() > 0:
                kept.factor = 2
                y = go(root, x)
            else:
                kept.factor = 3
                y = go(root, x)
        else:
            kept.factor = 2
            y = go(root, x)
            kept.factor = 3
            y = y * go(root, x)
        kept.factor = 1
        return y

    return Program(step, with_vectors(), watch=[kept])


@differential(hits=3)
def test_a_closure_variable_differs_between_sides():
    def step(root, x):
        factor = 1

        def go(node):
            if isinstance(node, Leaf):
                return x * node.word * factor
            return go(node.left) + go(node.right)

        if x.sum() > 0:
            factor = 2
            y = go(root)
        else:
            factor = 3
            y = go(root)
        return y

    return Program(step, with_vectors())


CHANGED = {
    "variable": (lambda: 1, lambda kept: 3),
    "list": (lambda: [1.0, 2.0], lambda kept: kept.__setitem__(0, 3.0) or kept),
    "dict": (lambda: {0: 1.0}, lambda kept: kept.update({0: 3.0}) or kept),
    "tensor": (lambda: torch.ones(3), lambda kept: kept.add_(1)),
    "tensor by another name": (lambda: torch.ones(3), lambda kept: kept.view(3).mul_(4).view(3)),
    "nested list": (lambda: ([1.0],), lambda kept: kept[0].__setitem__(0, 3.0) or kept),
}


@pytest.mark.parametrize("kind", CHANGED)
@pytest.mark.parametrize("existed", [True, False])
@differential(hits=3)
def test_a_closure_variable_differs_between_calls(kind, existed):
    make, change = CHANGED[kind]
    outside = make()

    def step(root, x):
        factor = outside if existed else make()

        def go(node):
            if isinstance(node, Leaf):
                first = factor
                while isinstance(first, (list, dict, tuple)):
                    first = first[0]
                return x * node.word * first
            return go(node.left) + go(node.right)

        y = go(root)
        factor = change(factor)
        return y * go(root)

    return Program(step, with_vectors(), watch=[outside])


@differential(graphs=1, hits=10)
def test_what_nobody_else_sees_may_differ_between_calls():
    def go(node, x):
        if isinstance(node, Leaf):
            return x * node.word
        return go(node.left, x) + go(node.right, x)

    def step(root, x):
        found = []
        for i in range(12):
            found.append(go(root, x * i))
        return torch.stack(found)

    return Program(step, with_vectors())
