"""Programs over objects that are met at run time: recursion over trees becomes one graph for all."""

import random
import sys

import pytest
import torch.nn.functional as F
from differential import Program, differential
from random_trees import random_children

import torch
import torchjanus
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


class Link:
    def __init__(self, value, following):
        self.value, self.following = value, following


def chain(length):
    link = None
    for index in range(length):
        link = Link(index * 0.1, link)
    return link


@differential(hits=5)
def test_linked_list_by_recursion():
    def total(link, x):
        if link is None:
            return x
        return torch.cos(total(link.following, x) * link.value)

    def step(link, x):
        return total(link, x)

    return Program(step, [(chain(random.randrange(1, 9)), torch.randn(3)) for _ in range(14)])


# --- lists that grow in the recursion -----------------------------------------------------------


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


# --- what the profile has not seen --------------------------------------------------------------


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


# --- depth --------------------------------------------------------------------------------------


def follow(link, x):
    if link is None:
        return x
    return follow(link.following, x * 0.5) + link.value


def converted_follow():
    def step(link, x):
        return follow(link, x)

    f = torchjanus.function(step)
    for length in range(1, 11):
        x = torch.randn(3)
        assert torch.equal(f(chain(length), x), follow(chain(length), x))
    return f


def test_recursion_error():
    f = converted_follow()
    hits = f.stats()["hits"]
    deep, x = chain(5000), torch.randn(3)
    for call in (f, follow, f):
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            call(deep, x)
    f(chain(4), x)
    assert f.stats()["hits"] == hits + 1
    assert f.stats()["generated"] == 1


def test_deep_chain():
    f = converted_follow()
    hits = f.stats()["hits"]
    deep, x = chain(10_000), torch.randn(3)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        assert torch.equal(f(deep, x), follow(deep, x))
    finally:
        sys.setrecursionlimit(limit)
    assert f.stats()["hits"] == hits + 1


class Tagged:
    def __init__(self, kind, parts, value=None):
        self.kind, self.parts, self.value = kind, parts, value


def tagged(size):
    if size == 1:
        return Tagged("number", (), random.random())
    left = random.randrange(1, size)
    return Tagged(random.choice(["sum", "product"]), (tagged(left), tagged(size - left)))


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


# --- what a recursion sees besides its arguments, changed between two calls of it ----------------


def with_vectors(count=20):
    return [(root, torch.randn(3)) for (root,) in trees(count)]


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


# --- children in a comprehension ----------------------------------------------------------------


class Family:
    def __init__(self, value, children):
        self.value, self.children = value, children


def family(size):
    children = random_children(size, family)
    return Family(random.randrange(20) / 10, children)


def with_nodes(count=20):
    return [(family(random.randrange(2, 9)), torch.randn(3)) for _ in range(count)]


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


@differential(graphs=2, hits=10)
def test_sum_of_a_comprehension_trains():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return torch.sin(layer(x * node.value))
        return torch.tanh(layer(sum([go(child, x) for child in node.children])))

    return trained(go, [layer])


@differential(graphs=2, hits=10)
def test_sum_of_a_generator_expression():
    def go(node, x):
        if len(node.children) == 0:
            return torch.sin(x * node.value)
        return torch.tanh(sum(go(child, x) for child in node.children))

    return Program(lambda root, x: go(root, x), with_nodes())


@differential(graphs=2, hits=10)
def test_number_of_nodes():
    def size(node):
        return 1 + sum(size(child) for child in node.children)

    return Program(lambda root, x: x * size(root), with_nodes())


@differential(reasons=["kind_changed"])
def test_children_become_a_tuple_or_none():
    def size(node):
        return 1 + sum([size(child) for child in node.children])

    calls = with_nodes(24)

    def change():
        for root, _ in calls[9:12]:
            root.children = tuple(root.children)
        for root, _ in calls[15:18]:
            root.children[0].children.append(Family(0.5, []))

    return Program(lambda root, x: x * size(root), [*calls[:9], change, *calls[9:]])


@differential(graphs=1, hits=6)
def test_backward_outside():
    """Autograd's engine is the last to hold the node, with objects of Python's in it."""
    model = TreeRNN()
    converted = []

    def step(root):
        return model(root)

    def convert(_):
        converted.append(torchjanus.function(step))
        return lambda root: converted[0](root)[1].backward(), converted[0]

    return Program(lambda root: step(root)[1].backward(), trees(12), watch=[model], convert=convert)


# --- whether there is a gradient differs from activation to activation --------------------------


@differential(graphs=1, hits=12)
def test_leaves_without_a_gradient():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return x * node.value
        return torch.tanh(layer(go(node.children[0], x)))

    return trained(go, [layer])


def summing(layer):
    """Adds up what the children give, from zeros on."""

    def go(node, x):
        total = torch.zeros(3)
        for child in node.children:
            total = total + layer(go(child, x))
        return torch.sin(total + x * node.value)

    return go


@differential(graphs=1, hits=12)
def test_sum_that_begins_with_zeros():
    layer = nn.Linear(3, 3)

    return trained(summing(layer), [layer])


@differential(graphs=1, hits=12)
def test_zeros_that_are_added_to_in_place():
    layer = nn.Linear(3, 3)

    def go(node, x):
        total = torch.zeros(3)
        for child in node.children:
            total += layer(go(child, x))
        return torch.sin(total + x * node.value)

    return trained(go, [layer])


@differential(graphs=1, hits=12)
def test_root_becomes_a_leaf():
    """The failing assumption: then nothing has a gradient, and eager raises."""
    layer = nn.Linear(3, 3)

    def go(node, x):
        total = torch.zeros(3)
        for child in node.children:
            total = total + torch.tanh(layer(go(child, x)))
        return total + x * node.value

    calls = with_nodes(24)
    for place in (10, 15):
        calls[place] = (Family(0.5, []), torch.randn(3))
    return trained(go, [layer], calls)


@differential(hits=7)
def test_the_program_asks_for_a_gradient():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return x * node.value
        below = go(node.children[0], x)
        if below.requires_grad:
            return torch.tanh(layer(below))
        return layer(below) * 2

    return trained(go, [layer])


@differential(hits=15)
def test_a_result_that_may_have_no_gradient():
    layer = nn.Linear(3, 3)

    def go(node, x):
        if not node.children:
            return x * node.value
        return layer(go(node.children[0], x))

    return Program(lambda root, x: go(root.children[0], x), with_nodes(), watch=[layer])


@differential(graphs=1, hits=12)
def test_children_that_are_one_object():
    """Each visit of a shared child gives its gradient once more."""
    layer = nn.Linear(3, 3)

    calls = with_nodes()
    for root, _ in calls[8:]:
        root.children.append(root.children[0])
        root.children[0].children += [calls[0][0].children[0]] * 2
    return trained(summing(layer), [layer], calls)


def test_deep_chain_of_children():
    layer = nn.Linear(3, 3)
    layer.weight.data.mul_(0.3)

    go = summing(layer)

    def step(root, x):
        layer.zero_grad()
        loss = go(root, x).sum()
        loss.backward()
        return loss, layer.weight.grad

    f = torchjanus.function(step)
    for root, x in with_nodes(10):
        f(root, x)
    hits, deep, x = f.stats()["hits"], Family(0.5, []), torch.randn(3)
    for _ in range(10_000):
        deep = Family(0.5, [deep])
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        for mine, expected in zip(f(deep, x), step(deep, x), strict=True):
            torch.testing.assert_close(mine, expected)
        assert f.stats()["hits"] == hits + 1
    finally:
        while deep.children:
            deep = deep.children.pop()
        sys.setrecursionlimit(limit)


# --- tensors made of the children's results -----------------------------------------------------


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


# --- parameters that only some trees come to ----------------------------------------------------


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
