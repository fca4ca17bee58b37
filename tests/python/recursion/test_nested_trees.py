"""Recursion over trees that are nested tuples, lists or dicts, and loops that pop nodes off a stack."""

import random

import torch.nn.functional as F
from differential import Program, differential
from random_trees import random_children

import torch
from torch import nn


def pairs(size):
    """A binary tree of tuples, with numbers as leaves."""
    if size == 1:
        return random.randrange(10)
    left = random.randrange(1, size)
    return (pairs(left), pairs(size - left))


def trained(go, layers, calls):
    modules = nn.ModuleList(layers)
    optimizer = torch.optim.SGD(modules.parameters(), lr=0.05)

    def step(*given):
        optimizer.zero_grad()
        loss = go(*given).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls, watch=[modules, optimizer])


def of(make, count=24, largest=9):
    return [(make(random.randrange(2, largest)),) for _ in range(count)]


# --- tuples, lists and dicts ----------------------------------------------------------------------


@differential(graphs=2, hits=15)
def test_pairs_unpacked():
    words, layer = nn.Embedding(10, 3), nn.Linear(6, 3)

    def go(tree):
        if isinstance(tree, int):
            return torch.tanh(words.weight[tree])
        left, right = tree
        return torch.tanh(layer(torch.cat([go(left), go(right)])))

    return trained(go, [words, layer], of(pairs))


@differential(graphs=1, hits=15)
def test_pairs_by_index():
    def go(tree, x):
        if not isinstance(tree, tuple):
            return x * tree
        return go(tree[0], x + 1) - go(tree[1], x * 0.5)

    return Program(go, [(tree, torch.randn(3)) for (tree,) in of(pairs)])


def labelled(size):
    """[label, child, …]"""
    return [random.randrange(10), *random_children(size, labelled)]


@differential(graphs=2, hits=12)
def test_lists_with_a_label_in_front():
    def go(tree, x):
        y = x * tree[0]
        for i in range(1, len(tree)):
            y = y + torch.sin(go(tree[i], x))
        return y

    return Program(go, [(tree, torch.randn(3)) for (tree,) in of(labelled)])


def entries(size):
    """A tree of dicts; leaves have words."""
    if size == 1:
        return {"word": random.randrange(10), "label": 1}
    left = random.randrange(1, size)
    return {"left": entries(left), "right": entries(size - left), "label": 2}


@differential(graphs=1, hits=15)
def test_dicts_told_by_a_key():
    words, layer = nn.Embedding(10, 3), nn.Linear(6, 3)

    def go(tree):
        if "word" in tree:
            return torch.tanh(words.weight[tree["word"]]) * tree["label"]
        both = torch.cat([go(tree["left"]), go(tree["right"])])
        return torch.tanh(layer(both)) * tree["label"]

    return trained(go, [words, layer], of(entries))


def family(size):
    return {"value": random.random(), "children": random_children(size, family)}


@differential(graphs=1, hits=15)
def test_dicts_with_lists_of_children():
    def go(tree, x):
        y = x * tree["value"]
        for child in tree["children"]:
            y = y + torch.sin(go(child, x))
        return y

    return Program(go, [(tree, torch.randn(3)) for (tree,) in of(family)])


@differential(graphs=2, hits=12)
def test_dict_get():
    def go(tree, x):
        word = tree.get("word")
        if word is None:
            return go(tree["left"], x) + torch.cos(go(tree["right"], x))
        return x * tree["label"]

    return Program(go, [(tree, torch.randn(3)) for (tree,) in of(entries)])


# --- what fails -----------------------------------------------------------------------------------


@differential(hits=8, reasons=["kind_changed"])
def test_leaf_of_another_kind_appears():
    def go(tree, x):
        if not isinstance(tree, tuple):
            return x * tree
        return go(tree[0], x + 1) - go(tree[1], x * 0.5)

    calls = [(tree, torch.randn(3)) for (tree,) in of(pairs, 24)]
    for i in (10, 11, 17):
        calls[i] = ((calls[i][0], 0.5), calls[i][1])
    return Program(go, calls)


@differential(hits=8)
def test_tuple_of_another_length_appears():
    def go(tree, x):
        if isinstance(tree, int):
            return x * tree
        left, right = tree
        return go(left, x + 1) - go(right, x * 0.5)

    calls = [(tree, torch.randn(3)) for (tree,) in of(pairs, 20)]
    calls[12] = ((calls[12][0], (1, 2, 3)), calls[12][1])
    return Program(go, calls)


@differential(hits=8)
def test_key_is_missing():
    def go(tree, x):
        if "word" in tree:
            return x * tree["word"]
        return go(tree["left"], x) + torch.cos(go(tree["right"], x))

    calls = [(tree, torch.randn(3)) for (tree,) in of(entries, 20)]
    calls[12] = ({"left": calls[12][0], "label": 1}, calls[12][1])
    return Program(go, calls)


# --- stacks of nodes --------------------------------------------------------------------------------


class Node:
    def __init__(self, word, children):
        self.word, self.children = word, children


def node(size):
    return Node(random.randrange(10), random_children(size, node))


@differential(graphs=2, hits=12)
def test_stack_of_nodes():
    words = nn.Embedding(10, 3)

    def go(root):
        stack = [root]
        total = torch.zeros(3)
        while stack:
            node = stack.pop()
            total = torch.tanh(total + words.weight[node.word])
            for child in node.children:
                stack.append(child)
        return total

    return trained(go, [words], of(node))


@differential(graphs=2, hits=12)
def test_stack_that_is_extended():
    def go(root, x):
        stack = [root]
        while stack:
            node = stack.pop()
            x = torch.sin(x * node.word)
            stack.extend(node.children)
        return x

    return Program(go, [(root, torch.randn(3)) for (root,) in of(node)])


@differential(graphs=2, hits=12)
def test_states_in_nodes_bottom_up():
    """All nodes in an order in which children come first, then their states."""
    words, layer = nn.Embedding(10, 3), nn.Linear(3, 3)

    def go(root):
        order, stack = [], [root]
        while stack:
            node = stack.pop()
            order.append(node)
            stack.extend(node.children)
        for node in reversed(order):
            state = torch.tanh(layer(words.weight[node.word]))
            for child in node.children:
                state = state + torch.tanh(child.state)
            node.state = state
        return root.state

    return trained(go, [words, layer], of(node))


@differential(hits=6)
def test_stack_meets_another_class():
    class Other(Node):
        pass

    def go(root, x):
        stack = [root]
        while stack:
            node = stack.pop()
            x = torch.sin(x * node.word)
            for child in node.children:
                stack.append(child)
        return x

    calls = [(root, torch.randn(3)) for (root,) in of(node)]
    for root, _ in calls[12:15]:
        root.children.append(Other(3, []))
    return Program(go, calls)


# --- states of all nodes --------------------------------------------------------------------------


@differential(graphs=2, hits=15)
def test_states_of_all_nodes():
    words, layer, classify = nn.Embedding(10, 3), nn.Linear(6, 3), nn.Linear(3, 4)

    def go(tree, states):
        if isinstance(tree, int):
            state = torch.tanh(words(torch.tensor(tree)))
        else:
            left, right = tree
            state = torch.tanh(layer(torch.cat([go(left, states), go(right, states)])))
        states.append(state)
        return state

    def forward(tree):
        states = []
        go(tree, states)
        scores = classify(torch.stack(states))
        return F.log_softmax(scores, 1)[:, 0].mean()

    return trained(forward, [words, layer, classify], of(pairs))
