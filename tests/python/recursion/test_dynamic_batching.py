"""Recursion over wide trees: invocations that do not need each other are computed together."""

import random
from contextlib import suppress

import torch.nn.functional as F
from differential import Program, differential, rise_mib
from tree_lstm import TreeLSTM
from tree_rnn import TreeRNN
from trees import Branch, Leaf

import torch
import torchjanus
from torch import nn


def tree_rnn(hidden=4):
    return TreeRNN(20, hidden, 3)


def tree_lstm(hidden=4):
    """Its losses go into a list."""
    return TreeLSTM(20, hidden, 3)


def full_tree(height):
    label = random.randrange(3)
    if height == 0:
        return Leaf(random.randrange(-20, 20), label)
    return Branch(full_tree(height - 1), full_tree(height - 1), label)


def tree(size):
    """Of any form, with so many leaves."""
    label = random.randrange(3)
    if size == 1:
        return Leaf(random.randrange(-20, 20), label)
    left = random.randrange(1, size)
    return Branch(tree(left), tree(size - left), label)


def trees(count):
    """Wide ones, and some of every form."""
    return [(full_tree(4) if i % 3 else tree(random.randrange(2, 30)),) for i in range(count)]


@differential(graphs=1, hits=12)
def test_training():
    model = tree_rnn()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)

    def step(root):
        state, loss = model(root)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, state

    return Program(step, trees(16), watch=[model, optimizer])


@differential(graphs=1, hits=12)
def test_forward_alone():
    model = tree_rnn()

    def step(root):
        with torch.no_grad():
            return model(root)

    return Program(step, trees(16), watch=[model])


@differential(graphs=1, hits=6)
def test_backward_outside():
    model = tree_rnn()

    def step(root):
        return model(root)

    def convert(f):
        converted = torchjanus.function(f)

        def call(root):
            converted(root)[1].backward()

        return call, converted

    def call(root):
        step(root)[1].backward()

    return Program(call, trees(12), watch=[model], convert=lambda _: convert(step))


def training_over_trees(hidden=4):
    """A model, its optimizer and a step over any number of trees."""
    model = tree_lstm(hidden)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(*batch):
        model.losses = []
        for root in batch:
            model(root)
        loss = torch.stack(model.losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


@differential(graphs=1, hits=8)
def test_several_trees_and_a_list_of_losses():
    model, optimizer, step = training_over_trees()
    calls = [(full_tree(3), full_tree(4), tree(12)) for _ in range(12)]
    return Program(step, calls, watch=[model, optimizer])


@differential(graphs=1, hits=4)
def test_weights_gradients_of_many_invocations():
    """More than are put side by side at a time."""
    model, optimizer, step = training_over_trees(hidden=160)
    calls = [tuple(tree(size) for size in (150 + i, 140, 99)) for i in range(8)]
    return Program(step, calls, watch=[model, optimizer])


@differential(graphs=1, hits=8)
def test_gradient_of_a_gradient():
    model = tree_rnn()

    def step(root):
        _, loss = model(root)
        weights = list(model.parameters())
        gradients = torch.autograd.grad(loss, weights, create_graph=True)
        penalty = sum((g * g).sum() for g in gradients)
        (loss + penalty).backward()
        result = penalty.detach()
        for weight in weights:
            weight.grad = None
        return result

    return Program(step, trees(12), watch=[model])


@differential(graphs=1, hits=8)
def test_state_from_above():
    """What a node hands down is computed before its children."""
    down = nn.Linear(4, 4)

    def walk(node, x):
        x = torch.tanh(down(x)) * 0.5 + x
        if isinstance(node, Leaf):
            return (x * node.word).sum()
        return walk(node.left, x) - walk(node.right, x * 2)

    def step(root, x):
        down.zero_grad()
        loss = walk(root, x)
        loss.backward()
        return loss

    return Program(step, [(each, torch.randn(4)) for (each,) in trees(12)], watch=[down])


@differential(graphs=1, hits=8)
def test_sum_that_is_looked_at():
    """A sum that goes from call to call is also a factor: no two calls can be put off."""
    layer = nn.Linear(3, 3)

    def walk(node, total):
        if isinstance(node, Leaf):
            return total + layer(total * node.word)
        return walk(node.right, walk(node.left, total) * 0.5)

    def step(root, x):
        layer.zero_grad()
        result = walk(root, x).sum()
        result.backward()
        return result

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(12)], watch=[layer])


@differential(graphs=1, hits=8)
def test_sum_that_is_only_added_to():
    layer = nn.Linear(3, 3)

    def walk(node, total, x):
        if isinstance(node, Leaf):
            return total + layer(x * node.word)
        return walk(node.right, walk(node.left, total, x), x)

    def step(root, total, x):
        layer.zero_grad()
        result = walk(root, total, x)
        result.sum().backward()
        return result

    calls = [(each, torch.randn(3), torch.randn(3)) for (each,) in trees(12)]
    return Program(step, calls, watch=[layer])


@differential(graphs=1, hits=8)
def test_random_numbers_keep_their_order():
    layer = nn.Linear(4, 4)

    def walk(node):
        if isinstance(node, Leaf):
            return layer(torch.rand(4) * node.word)
        left, right = walk(node.left), walk(node.right)
        return F.dropout(torch.tanh(layer(left + right)), 0.5, training=True)

    def step(root):
        layer.zero_grad()
        loss = walk(root).sum()
        loss.backward()
        return loss

    return Program(step, trees(12), watch=[layer])


@differential(graphs=1, hits=8)
def test_index_out_of_range():
    """In the middle of the recursion: the run is given up, and eager raises."""
    model = tree_rnn()

    def step(root):
        with torch.no_grad():
            return model(root)

    wrong = full_tree(4)
    wrong.left.right.left.left.word = 20
    return Program(step, [*trees(8), (wrong,), *trees(3)], watch=[model])


@differential(graphs=1, aborts=1, hits=8)
def test_another_kind_below():
    model = tree_rnn()

    def step(root):
        with torch.no_grad():
            return model(root)

    class Other:
        word, label = 3, 1

    other = full_tree(4)
    other.right.right.left.left = Other()
    calls = [*trees(8), (other,), *trees(3)]

    def guarded(root):
        with suppress(AttributeError):
            return step(root)

    return Program(step, calls, watch=[model])


@differential(graphs=1, hits=7)
def test_label_out_of_range():
    """A loss that is computed late fails: nothing of the step is done."""
    model, optimizer, step = training_over_trees()
    wrong = full_tree(3)
    wrong.right.left.label = 3
    calls = [(full_tree(3), tree(12)) for _ in range(10)]
    calls.insert(8, (full_tree(2), wrong))
    return Program(step, calls, watch=[model, optimizer])


@differential(hits=10)
def test_exception_in_the_middle():
    layer = nn.Linear(3, 3)

    def walk(node, x):
        if isinstance(node, Leaf):
            if node.word >= 20:
                raise ValueError(f"no word {node.word}")
            return layer(x * node.word)
        return torch.tanh(walk(node.left, x) - walk(node.right, x))

    def step(root, x):
        layer.zero_grad()
        loss = walk(root, x).sum()
        loss.backward()
        return loss

    wrong = full_tree(4)
    wrong.left.right.right.left.word = 20
    calls = [(each, torch.randn(3)) for (each,) in [*trees(9), (wrong,), *trees(4)]]
    return Program(step, calls, watch=[layer])


@differential(hits=3)
def test_state_that_is_written():
    """A count, and a sum of what the nodes hold, in the order of the recursion."""

    class Walker(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.nodes = 0
            self.register_buffer("total", torch.zeros(3))

        def forward(self, node, x):
            self.nodes += 1
            if isinstance(node, Leaf):
                state = self.layer(x * node.word)
            else:
                state = torch.tanh(self(node.left, x) + self(node.right, x))
            self.total = self.total * 0.9 + state.detach()
            return state

    walker = Walker()

    def step(root, x):
        walker.zero_grad()
        loss = walker(root, x).sum()
        loss.backward()
        return loss

    calls = [(each, torch.randn(3)) for (each,) in trees(12)]
    return Program(step, calls, watch=[walker])


@differential()
def test_branch_on_a_state():
    """What is called depends on what a tensor holds: nothing can be put off."""
    layer = nn.Linear(3, 3)

    def walk(node, x):
        if isinstance(node, Leaf):
            return layer(x * node.word)
        left = walk(node.left, x)
        if left.sum() > 0:
            return torch.tanh(left)
        return torch.tanh(left + walk(node.right, x))

    def step(root, x):
        layer.zero_grad()
        loss = walk(root, x).sum()
        loss.backward()
        return loss

    return Program(step, [(each, torch.randn(3)) for (each,) in trees(14)], watch=[layer])


@differential(graphs=1, hits=8)
def test_what_one_tree_gives_to_the_next():
    """The trees of a batch are not independent: each begins with what the one before gave."""
    layer = nn.Linear(3, 3)

    def walk(node, x):
        if isinstance(node, Leaf):
            return layer(x * node.word)
        return torch.tanh(walk(node.left, x) + walk(node.right, x))

    def step(first, second, third, x):
        layer.zero_grad()
        for root in (first, second, third):
            x = walk(root, x)
        x.sum().backward()
        return x

    calls = [(full_tree(2), tree(9), full_tree(3), torch.randn(3)) for _ in range(12)]
    return Program(step, calls, watch=[layer])


@differential(graphs=1, hits=8)
def test_losses_of_several_trees_with_a_test_between():
    """Of the first tree's value something is decided before the second is gone through."""
    layer = nn.Linear(3, 3)

    def walk(node, x):
        if isinstance(node, Leaf):
            return layer(x * node.word)
        return torch.tanh(walk(node.left, x) + walk(node.right, x))

    def step(first, second, x):
        layer.zero_grad()
        one = walk(first, x).sum()
        scale = torch.where(one > 0, 2.0, 0.5)
        two = walk(second, x * scale).sum()
        (one + two).backward()
        return one, two

    calls = [(full_tree(3), full_tree(2), torch.randn(3)) for _ in range(12)]
    return Program(step, calls, watch=[layer])


def test_deep_recursion():
    """One invocation on each level."""
    torch.manual_seed(0)
    cell = nn.Linear(3, 3).double()

    class Link:
        def __init__(self, rest):
            self.rest = rest

    class End:
        pass

    def walk(node, x):
        if isinstance(node, End):
            return x
        return torch.tanh(cell(walk(node.rest, x)))

    def chain(length):
        node = End()
        for _ in range(length):
            node = Link(node)
        return node

    def step(root, x):
        cell.zero_grad()
        walk(root, x).sum().backward()
        return cell.weight.grad.clone()

    converted = torchjanus.function(step)
    for length in (3, 5, 8, 4, 6, 7):
        x = torch.randn(3).double()
        torch.testing.assert_close(converted(chain(length), x), step(chain(length), x))


def test_switch():
    """The same gradients, one by one and together, of trees of all sizes."""

    def gradients():
        random.seed(0)
        torch.manual_seed(0)
        model = tree_lstm().double()
        batches = [[tree(random.randrange(2, 40)) for _ in range(4)] for _ in range(8)]

        def step(first, second, third, fourth):
            model.zero_grad()
            model.losses = []
            for root in (first, second, third, fourth):
                model(root)
            torch.stack(model.losses).sum().backward()

        converted = torchjanus.function(step)
        for batch in batches:
            converted(*batch)
        assert converted.stats()["hits"] > 0
        return [each.grad for each in model.parameters()]

    together = gradients()
    with torchjanus.options.without("batch"):
        one_by_one = gradients()
    for one, other in zip(together, one_by_one, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


# --- layouts ----------------------------------------------------------------------------------------


def transposed(rows, columns):
    return torch.randn(columns, rows).t()


def over_matrices(combine, make=transposed):
    """A recursion that gives a matrix for each tree, of which the program sees the strides."""

    def go(node, x):
        if isinstance(node, Leaf):
            return torch.tanh(x * node.word)
        return combine(go(node.left, torch.sin(x)), go(node.right, x * 0.5))

    def step(root, x):
        y = go(root, x)
        return y, y * 2

    return Program(step, [(root, make(3, 4)) for (root,) in trees(16)])


@differential(graphs=1, hits=12)
def test_rows_that_are_transposed():
    return over_matrices(lambda left, right: torch.tanh(left + right))


@differential(graphs=1, hits=12)
def test_rows_that_are_parts():
    def part(rows, columns):
        return torch.randn(rows, columns + 2)[:, 1:-1]

    return over_matrices(lambda left, right: torch.tanh(left - right), part)


@differential(hits=8)
def test_rows_of_which_some_are_transposed():
    """From call to call, too."""
    kinds = [transposed, torch.randn]

    def make(rows, columns):
        return random.choice(kinds)(rows, columns)

    return over_matrices(lambda left, right: torch.tanh(left + right), make)


@differential(graphs=1, hits=12)
def test_rows_that_the_recursion_transposes():
    return over_matrices(lambda left, right: torch.sin(left.t() * 2).t() + right, torch.randn)


# --- what nothing reads any more --------------------------------------------------------------------


class End:
    def __init__(self, number):
        self.number = number


class Link:
    def __init__(self, rest):
        self.rest = rest


def chains(count, length):
    result = [End(float(number)) for number in range(count)]
    for _ in range(length):
        result = [Link(each) for each in result]
    return result


def walk(node, x):
    if isinstance(node, End):
        return torch.sin(x * node.number)
    return torch.tanh(walk(node.rest, x)) * 1.5


def test_rows_are_given_up_once_they_are_read():
    """Each level is half a MiB, and all of them 32."""

    def step(x, roots):
        with torch.no_grad():
            return torch.stack([walk(root, x) for root in roots]).sum(0)

    converted = torchjanus.function(step)
    x = torch.randn(2048)
    lengths = [60, 62, 64, 58, 64, 64, 64, 63]
    results = [converted(x, chains(64, length)) for length in lengths[:6]]
    assert converted.stats()["hits"] == 3
    torchjanus._core.give_back_free_memory()
    calls = [(x, chains(64, length)) for length in lengths[6:]]
    assert rise_mib(lambda: results.extend(converted(*each) for each in calls)) < 12
    for result, length in zip(results, lengths, strict=True):
        torch.testing.assert_close(result, step(x, chains(64, length)))
    for result, each in zip(results[6:], calls, strict=True):
        assert torch.equal(result, converted(*each))


@differential(graphs=1, hits=8)
def test_rows_in_a_list_that_outlives_the_run():
    """They are looked at when all are computed."""

    def listing(node, x, kept):
        if isinstance(node, End):
            return torch.sin(x * node.number)
        below = listing(node.rest, x, kept)
        kept.append(below)
        return torch.tanh(below) * 1.5

    def step(x, roots):
        kept = []
        with torch.no_grad():
            return [listing(root, x, kept) for root in roots], kept

    return Program(step, [(torch.randn(8), chains(8, 4 + i % 3)) for i in range(12)])
