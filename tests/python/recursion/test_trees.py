"""Programs over objects that are met at run time: recursion over trees becomes one graph for all."""

import random

from differential import Program, differential
from tree_programs import Leaf, TreeRNN, chain, tagged, tree, trees

import torch


@differential(graphs=1, hits=15)
def test_forward():
    model = TreeRNN()

    def step(root):
        with torch.no_grad():
            state, loss = model(root)
        return loss, state.sum()

    return Program(step, trees(20), watch=[model])


@differential(graphs=1, hits=15)
def test_training():
    model = TreeRNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(root):
        state, loss = model(root)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, trees(20), watch=[model, optimizer])


@differential(graphs=1, hits=15)
def test_training_with_adagrad():
    model = TreeRNN()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)

    def step(root):
        state, loss = model(root)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, model.classify(state).argmax() == root.label

    return Program(step, trees(20), watch=[model, optimizer])


# --- how functions call themselves --------------------------------------------------------------


@differential(graphs=1, hits=10)
def test_function_with_a_tensor():
    def total(node, x):
        if isinstance(node, Leaf):
            return x * node.word
        return total(node.left, x + 1) - total(node.right, x * 0.5)

    def step(root, x):
        return total(root, x)

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(14)])


@differential(graphs=1, hits=10)
def test_closure():
    def step(root, x):
        def go(node):
            if isinstance(node, Leaf):
                return x * node.word
            return torch.sin(go(node.left) + go(node.right))

        return go(root)

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(14)])


@differential(graphs=1, hits=10)
def test_mutual_recursion():
    def even(node, x):
        if isinstance(node, Leaf):
            return x
        return odd(node.left, x) + odd(node.right, x)

    def odd(node, x):
        if isinstance(node, Leaf):
            return -x
        return even(node.left, x * 2) * even(node.right, x)

    def step(root, x):
        return even(root, x)

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(14)])


@differential(graphs=1, hits=10)
def test_depth_as_a_number():
    def go(node, x, depth=0):
        if isinstance(node, Leaf):
            return x * depth + node.word
        return go(node.left, x, depth + 1) + go(node.right, x, depth + 2)

    def step(root, x):
        return go(root, x)

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(14)])


@differential(hits=5)
def test_fibonacci():
    def fibonacci(n, x):
        if n < 2:
            return x
        return fibonacci(n - 1, x) + fibonacci(n - 2, x * 2)

    def step(n, x):
        return fibonacci(n, x)

    return Program(step, [(n, torch.randn(3)) for n in (3, 5, 2, 3, 5, 2, 3, 6, 5, 2, 6, 3, 6)])


# --- what nodes are -----------------------------------------------------------------------------


class Pair:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right


def pairs(depth):
    if depth == 0 or random.random() < 0.2:
        return None
    return Pair(random.random(), pairs(depth - 1), pairs(depth - 1))


def some_pairs(count, depth=4):
    return [Pair(1.5, pairs(depth), pairs(depth)) for _ in range(count)]


@differential(graphs=2, hits=10)
def test_none_as_a_child():
    def total(node, x):
        if node is None:
            return x
        return total(node.left, x) * node.value + total(node.right, x)

    def step(root, x):
        return total(root, x)

    return Program(step, [(each, torch.randn(3)) for each in some_pairs(16)])


@differential(graphs=2, hits=10)
def test_children_that_may_be_missing():
    def total(node, x):
        result = x * node.value
        if node.left is not None:
            result = result + total(node.left, x)
        if node.right:
            result = result * 0.5 + total(node.right, x)
        return result

    def step(root, x):
        return total(root, x)

    return Program(step, [(each, torch.randn(3)) for each in some_pairs(16)])


class Number:
    def __init__(self, value):
        self.value = value

    def evaluate(self, x):
        return x * self.value


class Sum:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def evaluate(self, x):
        return self.left.evaluate(x) + self.right.evaluate(x)


class Product:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def evaluate(self, x):
        return self.left.evaluate(x) * self.right.evaluate(x)


def expression(size):
    if size == 1:
        return Number(random.random())
    left = random.randrange(1, size)
    kind = random.choice([Sum, Product])
    return kind(expression(left), expression(size - left))


@differential(hits=10)
def test_methods_by_class():
    def step(root, x):
        return root.evaluate(x)

    calls = [(expression(random.randrange(3, 8)), torch.randn(3)) for _ in range(30)]
    return Program(step, calls)


class Slotted:
    __slots__ = ("left", "right", "value")

    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right

    @property
    def is_leaf(self):
        return self.left is None

    @property
    def doubled(self):
        return self.value * 2


def slotted(size):
    if size == 1:
        return Slotted(random.random())
    left = random.randrange(1, size)
    return Slotted(random.random(), slotted(left), slotted(size - left))


@differential(graphs=2, hits=10)
def test_slots_and_properties():
    def total(node, x):
        if node.is_leaf:
            return x * node.doubled
        return total(node.left, x) + total(node.right, x) * node.value

    def step(root, x):
        return total(root, x)

    return Program(step, [(slotted(random.randrange(2, 8)), torch.randn(3)) for _ in range(16)])


class Many:
    def __init__(self, children, value):
        self.children, self.value = children, value


def many(depth):
    count = 0 if depth == 0 else random.randrange(4)
    return Many([many(depth - 1) for _ in range(count)], random.random())


@differential(graphs=1, hits=10)
def test_loop_over_children():
    def total(node, x):
        result = x * node.value
        for child in node.children:
            result = result + total(child, x * 0.5)
        return result

    def step(root, x):
        return total(root, x)

    return Program(step, [(many(3), torch.randn(3)) for _ in range(16)])


@differential(hits=5)
def test_linked_list_by_recursion():
    def total(link, x):
        if link is None:
            return x
        return torch.cos(total(link.following, x) * link.value)

    def step(link, x):
        return total(link, x)

    return Program(step, [(chain(random.randrange(1, 9)), torch.randn(3)) for _ in range(14)])


@differential(hits=10)
def test_kinds_as_text():
    def evaluate(node, x):
        if node.kind == "number":
            return x * node.value
        left, right = evaluate(node.parts[0], x), evaluate(node.parts[1], x)
        if node.kind != "product":
            return left + right
        return left * right

    calls = [(tagged(random.randrange(2, 8)), torch.randn(3)) for _ in range(20)]
    return Program(lambda root, x: evaluate(root, x), calls)


@differential(graphs=1, hits=10)
def test_losses_that_stay_after_backward():
    class Model(TreeRNN):
        def forward(self, node):
            if isinstance(node, Leaf):
                state = torch.tanh(self.embedding.weight[node.word])
            else:
                both = torch.cat([self(node.left), self(node.right)])
                state = torch.tanh(self.combine(both))
            self.losses.append(self.loss(state, node.label))
            return state

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(root):
        model.losses = []
        model(root)
        loss = torch.stack(model.losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, model.losses

    return Program(step, trees(20), watch=[model, optimizer])


class Node:
    """A leaf if it has a word."""

    def __init__(self, word, left, right, label):
        self.word, self.left, self.right, self.label = word, left, right, label


def as_nodes(tree):
    if isinstance(tree, Leaf):
        return Node(tree.word, None, None, tree.label)
    return Node(None, as_nodes(tree.left), as_nodes(tree.right), tree.label)


class Forest(TreeRNN):
    """Leaves and branches are of one class; several trees a step, all of whose losses count."""

    def forward(self, node):
        if node.word is not None:
            state = torch.tanh(self.embedding.weight[node.word])
        else:
            state = torch.tanh(self.combine(torch.cat([self(node.left), self(node.right)])))
        self.losses.append(self.loss(state, node.label))
        return state


def train_forest(calls):
    model = Forest()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)

    def step(roots):
        model.losses = []
        for root in roots:
            model(root)
        loss = torch.stack(model.losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls, watch=[model, optimizer])


def forests(count, smallest=2):
    return [
        ([as_nodes(tree(random.randrange(smallest, 9))) for _ in range(3)],) for _ in range(count)
    ]


@differential(graphs=1, hits=15)
def test_leaves_told_by_what_they_hold():
    return train_forest(forests(24))


@differential(hits=10)
def test_roots_that_are_leaves_now_and_then():
    """Then some parameters may have no gradient at all: None, as in eager."""
    leaves = [([as_nodes(tree(1)) for _ in range(3)],) for _ in range(3)]
    return train_forest(forests(12) + leaves + forests(8, smallest=1) + leaves)


class Place:
    def __init__(self, row, rest):
        self.row, self.rest = row, rest


def places(*rows):
    linked = None
    for row in rows:
        linked = Place(row, linked)
    return linked


@differential(graphs=1, hits=10)
def test_rows_by_numbers_of_the_objects():
    """Of either sign, several times the same, and one that is not there: eager's IndexError."""
    weight = torch.randn(6, 4, requires_grad=True)

    def walk(node, x):
        if node is None:
            return (x * weight).sum()
        return (weight[node.row] * 2).sum() + walk(node.rest, torch.tanh(x))

    def step(root):
        weight.grad = None
        loss = walk(root, torch.ones(4))
        loss.backward()
        return loss

    rows = [(0, 1), (5,), (2, 2, 2), (-1, -6), (3,), (4, 1, 0), (6,), (1,), (-2, 3), (0, -7, 1)]
    return Program(step, [(places(*each),) for each in 2 * rows], watch=[weight])


@differential(reasons=["dynamic_control"])
def test_an_element_of_another_type_after_the_recursion():
    def step(root, x):
        seen = []

        def walk(node, x):
            if isinstance(node, Leaf):
                seen.append(1)
                return x * node.word
            y = walk(node.left, x) + walk(node.right, x)
            seen.append(2)
            return torch.tanh(y)

        y = walk(root, x)
        seen.append(0.5)
        return y, seen

    return Program(step, [(each, torch.rand(3)) for (each,) in trees(12)])


@differential(reasons=["unsupported_tensor"])
def test_view_of_what_a_recursion_gives_or_is_the_argument():
    def grow(x):
        if x.sum() > 4:
            return x
        return grow(x * 2 + 1)

    def step(x):
        return grow(x).detach()

    return Program(step, [(torch.randn(4) * 0.1 + (i % 5) * 0.5,) for i in range(16)])
