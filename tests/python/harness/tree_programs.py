"""Trees for tests of recursions, and models that go over them."""

import random

import torch.nn.functional as F
from differential import Program
from random_trees import random_children

import torch
from torch import nn


class Leaf:
    def __init__(self, word, label):
        self.word, self.label = word, label


class Branch:
    def __init__(self, left, right, label):
        self.left, self.right, self.label = left, right, label


def tree(size, words=20, classes=3):
    """A random tree with so many leaves."""
    label = random.randrange(classes)
    if size == 1:
        return Leaf(random.randrange(words), label)
    left = random.randrange(1, size)
    return Branch(tree(left), tree(size - left), label)


def trees(count, largest=9):
    return [(tree(random.randrange(2, largest)),) for _ in range(count)]


class TreeRNN(nn.Module):
    def __init__(self, words=20, hidden=4, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.combine = nn.Linear(2 * hidden, hidden)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, node):
        if isinstance(node, Leaf):
            state = self.embedding.weight[node.word]
            return state, self.loss(state, node.label)
        left, left_loss = self(node.left)
        right, right_loss = self(node.right)
        state = torch.tanh(self.combine(torch.cat([left, right])))
        return state, left_loss + right_loss + self.loss(state, node.label)

    def loss(self, state, label):
        return -F.log_softmax(self.classify(state), dim=0)[label]


class Family:
    def __init__(self, value, children):
        self.value, self.children = value, children


def family(size):
    children = random_children(size, family)
    return Family(random.randrange(20) / 10, children)


def with_nodes(count=20):
    return [(family(random.randrange(2, 9)), torch.randn(3)) for _ in range(count)]


class Link:
    def __init__(self, value, following):
        self.value, self.following = value, following


def chain(length):
    link = None
    for index in range(length):
        link = Link(index * 0.1, link)
    return link


class Tagged:
    def __init__(self, kind, parts, value=None):
        self.kind, self.parts, self.value = kind, parts, value


def tagged(size):
    if size == 1:
        return Tagged("number", (), random.random())
    left = random.randrange(1, size)
    return Tagged(random.choice(["sum", "product"]), (tagged(left), tagged(size - left)))


def trained(go, modules, calls=None):
    """A training step of the sum of what go(root, x) gives."""
    layers = nn.ModuleList(modules)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)

    def step(root, x):
        loss = go(root, x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls or with_nodes(), watch=[layers, optimizer])


def with_vectors(count=20):
    return [(root, torch.randn(3)) for (root,) in trees(count)]
