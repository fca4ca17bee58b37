"""Recursions that meet a node of a kind that the profile has not seen, or of another form."""

import random

from differential import Program, differential
from tree_programs import Branch, Leaf, tree, trees

import torch


def make_total():
    """A function of which no test before has seen anything."""

    def total(node, x):
        if isinstance(node, Leaf):
            return x * node.word
        return total(node.left, x + 1) - total(node.right, x * 0.5)

    total.__code__ = total.__code__.replace()
    return lambda root, x: total(root, x)


def calls_of_total(count=8):
    return [(each, torch.randn(3)) for (each,) in trees(count)]


class LeafOfAnotherClass(Leaf):
    pass


class Stranger:
    left = right = None


def grown_by(make, count=6):
    """Calls with trees, and then with some in which one leaf is what `make` gives."""
    calls = calls_of_total()
    for root, x in calls_of_total(count):
        root.right = Branch(make(), tree(2), 0)
        calls.append((root, x))
    return calls + calls_of_total(3)


@differential(graphs=2, hits=6, reasons=["kind_changed"])
def test_subclass_appears():
    return Program(make_total(), grown_by(lambda: LeafOfAnotherClass(3, 1)))


@differential(reasons=["kind_changed"])
def test_stranger_appears():
    return Program(make_total(), grown_by(Stranger))


@differential(reasons=["kind_changed"])
def test_none_appears():
    return Program(make_total(), grown_by(lambda: None))


@differential(reasons=["kind_changed"])
def test_number_of_another_class_appears():
    return Program(make_total(), grown_by(lambda: Leaf(0.5, 1)))


@differential(reasons=["kind_changed"])
def test_bool_is_no_int():
    return Program(make_total(), grown_by(lambda: Leaf(True, 1)))


@differential(reasons=["kind_changed"])
def test_huge_number():
    return Program(make_total(), grown_by(lambda: Leaf(2**70, 1), 2))


@differential(reasons=["kind_changed"])
def test_text_instead_of_a_number():
    return Program(make_total(), grown_by(lambda: Leaf("word", 1), 2))


@differential(reasons=["kind_changed"])
def test_attribute_is_missing():
    def make():
        leaf = Leaf(1, 1)
        del leaf.word
        return leaf

    return Program(make_total(), grown_by(make, 2))


@differential(hits=8)
def test_trees_that_share_and_change():
    shared = tree(3)
    calls = calls_of_total()
    one = Branch(shared, shared, 0)

    def change():
        shared.left, shared.right = shared.right, tree(2)

    for _ in range(3):
        calls += [(one, torch.randn(3)), change, (Branch(one, shared, 1), torch.randn(3))]
    return Program(make_total(), calls)


@differential(hits=8)
def test_class_attribute_changes():
    class Scaled:
        scale = 2.0

        def __init__(self, left, right):
            self.left, self.right = left, right

    def go(node, x):
        if node is None:
            return x
        return go(node.left, x) * node.scale + go(node.right, x)

    def make(depth):
        return None if depth == 0 else Scaled(make(depth - 1), make(random.randrange(depth)))

    def change():
        Scaled.scale = 3.0

    def hide():
        first = calls[0][0]
        first.scale = 5.0

    calls = [(make(random.randrange(1, 4)), torch.randn(3)) for _ in range(10)]
    return Program(
        lambda root, x: go(root, x), [*calls, change, *calls[:4], hide, *calls[:4], *calls]
    )


@differential(hits=8)
def test_method_is_replaced():
    class Node:
        def __init__(self, child):
            self.child = child

        def run(self, x):
            return x if self.child is None else self.child.run(x * 2)

    def make(depth):
        return Node(None if depth == 0 else make(depth - 1))

    def replace():
        Node.run = lambda self, x: x + 1

    def hide():
        calls[0][0].child = Node(None)
        calls[0][0].child.run = lambda x: x - 1

    calls = [(make(random.randrange(1, 5)), torch.randn(3)) for _ in range(12)]
    return Program(lambda root, x: root.run(x), [*calls, hide, calls[0], *calls, replace, *calls])
