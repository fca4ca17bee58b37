"""Programs over trees as people write them: each in a style of its own, as a training step."""

import random
from collections import deque
from dataclasses import dataclass, field

import torch.nn.functional as F
from differential import Program, differential
from random_trees import random_children

import torch
from torch import nn

HIDDEN = 3


class Node:
    def __init__(self, word, children, label=None):
        self.word, self.children, self.label = word, children, label


def node(size):
    return Node(random.randrange(10), random_children(size, node), random.randrange(3))


def roots(count=20, largest=10):
    return [(node(random.randrange(2, largest)),) for _ in range(count)]


def trained(forward, modules, calls):
    """A training step of the loss that forward(root) gives."""
    modules = nn.ModuleList(modules)
    optimizer = torch.optim.SGD(modules.parameters(), lr=0.05)

    def step(*tree):
        optimizer.zero_grad()
        loss = forward(*tree)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls, watch=[modules, optimizer])


# --- sums over children that begin with a number --------------------------------------------------


class ChildSum(nn.Module):
    """Tai et al.'s child-sum TreeLSTM."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, HIDDEN)
        self.iou = nn.Linear(2 * HIDDEN, 3 * HIDDEN)
        self.forget_x, self.forget_h = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.classify = nn.Linear(HIDDEN, 3)


@differential(graphs=1, hits=12)
def test_child_sum_with_a_total_of_zero():
    model = ChildSum()

    def encode(tree):
        x = model.words.weight[tree.word]
        total = 0
        kept = 0
        for child in tree.children:
            h, c = encode(child)
            total = total + h
            kept = kept + torch.sigmoid(model.forget_x(x) + model.forget_h(h)) * c
        mixed = torch.zeros(HIDDEN) + total
        i, o, u = model.iou(torch.cat([x, mixed])).chunk(3)
        c = torch.sigmoid(i) * torch.tanh(u) + kept
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(tree):
        h, _ = encode(tree)
        return -F.log_softmax(model.classify(h), 0)[tree.label]

    return trained(forward, [model], roots())


@differential(graphs=1, hits=12)
def test_total_added_up_in_place():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        total = 0.0
        for child in tree.children:
            total += go(child)
        return torch.tanh(layer.bias * tree.word + total)

    return trained(lambda tree: go(tree).square().sum(), [layer], roots())


@differential(graphs=1, hits=12)
def test_total_that_begins_with_another_number():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        total = 1
        for child in tree.children:
            total = total * torch.sigmoid(go(child))
        return torch.tanh(layer.bias * tree.word * total - total)

    return trained(lambda tree: go(tree).square().sum(), [layer], roots())


@differential(hits=6)
def test_total_used_where_a_number_would_be_wrong():
    """`tanh` of a number raises: leaves have one."""
    layer = nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        total = 0
        for child in tree.children:
            total = total + go(child)
        if tree.word == 77:
            return torch.tanh(total)
        return torch.tanh(layer.bias * tree.word + total)

    calls = roots(24)
    calls[14][0].children.append(Node(77, []))
    return trained(lambda tree: go(tree).square().sum(), [layer], calls)


@differential()
def test_total_of_another_shape():
    """A leaf's total has no shape, which shows."""
    layer = nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        total = 0
        for child in tree.children:
            total = total + go(child)
        own = layer.bias.sum() * tree.word + total
        return torch.tanh(own * layer.bias)

    return trained(lambda tree: go(tree).square().sum(), [layer], roots())


@differential(graphs=1, hits=12)
def test_losses_of_all_nodes():
    embed, mix, classify = nn.Embedding(10, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 3)

    def go(tree):
        loss = 0
        state = embed.weight[tree.word]
        for child in tree.children:
            below, child_loss = go(child)
            state = state + torch.tanh(mix(below))
            loss = loss + child_loss
        return state, loss - F.log_softmax(classify(state), 0)[tree.label]

    return trained(lambda tree: go(tree)[1], [embed, mix, classify], roots())


# --- parameters that only some nodes use ----------------------------------------------------------


@differential(hits=6)
def test_layer_for_leaves_in_a_loop_over_children():
    leaf, inner = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        if not tree.children:
            return torch.tanh(leaf.bias * tree.word)
        state = torch.ones(HIDDEN)
        for child in tree.children:
            state = state + torch.tanh(inner(go(child)))
        return state

    return trained(lambda tree: go(tree).square().sum(), [leaf, inner], roots())


@differential(hits=6)
def test_layer_for_some_children():
    even, odd = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        state = torch.ones(HIDDEN) * tree.word
        for child in tree.children:
            below = go(child)
            state = state + (even(below) if child.word % 2 == 0 else odd(below)).tanh()
        return state

    return trained(lambda tree: go(tree).square().sum(), [even, odd], roots())


@differential(hits=6)
def test_top_down_then_bottom_up():
    down, up = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def go(tree, above):
        here = torch.tanh(down(above) + tree.word)
        state = here
        for child in tree.children:
            state = state + torch.tanh(up(go(child, here)))
        return state

    start = torch.ones(HIDDEN)
    return trained(lambda tree: go(tree, start).square().sum(), [down, up], roots())


# --- nodes of other kinds -------------------------------------------------------------------------


def phrase(size):
    if size == 1:
        return {"word": random.randrange(10), "left": None, "right": None}
    left = random.randrange(1, size)
    return {"word": -1, "left": phrase(left), "right": phrase(size - left)}


@differential(graphs=1, hits=12)
def test_binary_constituents_in_dicts():
    embed, compose = nn.Embedding(10, HIDDEN), nn.Linear(2 * HIDDEN, HIDDEN)

    def encode(part):
        if part["left"] is None:
            return embed.weight[part["word"]]
        both = torch.cat([encode(part["left"]), encode(part["right"])])
        return torch.tanh(compose(both))

    calls = [(phrase(random.randrange(2, 9)),) for _ in range(20)]
    return trained(lambda part: encode(part).square().sum(), [embed, compose], calls)


@dataclass
class Constant:
    value: float


@dataclass
class Operation:
    sign: str
    left: "Constant | Operation"
    right: "Constant | Operation"


def expression(size):
    if size == 1:
        return Constant(random.uniform(-1, 1))
    left = random.randrange(1, size)
    return Operation(random.choice("+-*"), expression(left), expression(size - left))


@differential(graphs=2, hits=10)
def test_expression_evaluator():
    scale = nn.Linear(HIDDEN, HIDDEN)

    def evaluate(term):
        if isinstance(term, Constant):
            return scale.bias * term.value
        left, right = evaluate(term.left), evaluate(term.right)
        if term.sign == "+":
            return left + right
        if term.sign == "-":
            return left - right
        return left * right

    calls = [(expression(random.randrange(2, 9)),) for _ in range(24)]
    return trained(lambda term: evaluate(term).square().sum(), [scale], calls)


@differential(hits=6)
def test_operators_with_layers_of_their_own():
    """An operation that a term does not have leaves its layer without a gradient."""
    layers = nn.ModuleDict({"+": nn.Linear(HIDDEN, HIDDEN), "*": nn.Linear(HIDDEN, HIDDEN)})

    def evaluate(term):
        if isinstance(term, Constant):
            return torch.full((HIDDEN,), 0.5) * term.value
        left, right = evaluate(term.left), evaluate(term.right)
        if term.sign == "*":
            return torch.tanh(layers["*"](left * right))
        return torch.tanh(layers["+"](left + right))

    calls = [(expression(random.randrange(2, 12)),) for _ in range(30)]
    return trained(lambda term: evaluate(term).square().sum(), [layers], calls)


@differential(graphs=2, hits=10)
def test_mutual_recursion_of_statements_and_terms():
    block, term = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def of_block(tree):
        state = torch.ones(HIDDEN) * tree.word
        for child in tree.children:
            state = torch.tanh(block(state) + of_term(child))
        return state

    def of_term(tree):
        state = term.bias * tree.word
        for child in tree.children:
            state = state * torch.sigmoid(of_block(child))
        return state

    return trained(lambda tree: of_block(tree).square().sum(), [block, term], roots(24))


# --- what is made of all children -----------------------------------------------------------------


@differential(hits=4)
def test_attention_over_children():
    query, key = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        own = torch.tanh(query.bias * tree.word)
        if not tree.children:
            return own
        states = torch.stack([go(child) for child in tree.children])
        weights = torch.softmax(key(states) @ query(own), dim=0)
        return torch.tanh(own + weights @ states)

    return trained(lambda tree: go(tree).square().sum(), [query, key], roots())


@differential(graphs=1, hits=12)
def test_largest_of_the_children():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        own = torch.tanh(layer.bias * tree.word)
        if not tree.children:
            return own
        return torch.tanh(own + torch.stack([layer(go(child)) for child in tree.children]).amax(0))

    return trained(lambda tree: go(tree).square().sum(), [layer], roots())


@differential(graphs=1, hits=12)
def test_largest_of_the_children_by_max():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        own = torch.tanh(layer.bias * tree.word)
        if tree.children:
            below = [go(child) for child in tree.children]
            own = own + torch.stack(below).max(dim=0).values
        return torch.tanh(layer(own))

    return trained(lambda tree: go(tree).square().sum(), [layer], roots())


@differential(graphs=1, hits=12)
def test_mean_of_the_children():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def go(tree):
        own = torch.tanh(layer.bias * tree.word)
        if tree.children:
            own = own + torch.stack([go(child) for child in tree.children]).mean(dim=0)
        return torch.tanh(layer(own))

    return trained(lambda tree: go(tree).square().sum(), [layer], roots())


# --- states kept in nodes and dicts ---------------------------------------------------------------


@differential(hits=4)
def test_memo_by_node():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def forward(tree):
        memo = {}

        def go(part):
            if part in memo:
                return memo[part]
            state = torch.tanh(layer.bias * part.word)
            for child in part.children:
                state = state + torch.tanh(layer(go(child)))
            memo[part] = state
            return state

        return go(tree).square().sum()

    return trained(forward, [layer], roots())


@differential(hits=4)
def test_levels_by_a_queue():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def forward(tree):
        total = torch.zeros(HIDDEN)
        queue = deque([tree])
        while queue:
            part = queue.popleft()
            total = torch.tanh(layer(total) + part.word)
            queue.extend(part.children)
        return total.sum()

    return trained(forward, [layer], roots())


@dataclass
class Kept:
    word: int
    children: list = field(default_factory=list)
    state: torch.Tensor | None = None


def kept(size):
    return Kept(random.randrange(10), random_children(size, kept))


@differential(reasons=["limit"])
def test_state_that_is_none_at_first():
    layer = nn.Linear(HIDDEN, HIDDEN)

    def reset(part):
        part.state = None
        for child in part.children:
            reset(child)

    def fill(part):
        for child in part.children:
            fill(child)
        state = torch.tanh(layer.bias * part.word)
        for child in part.children:
            state = state + torch.tanh(layer(child.state))
        part.state = state

    def forward(tree):
        reset(tree)
        fill(tree)
        return tree.state.square().sum()

    return trained(forward, [layer], [(kept(random.randrange(2, 9)),) for _ in range(20)])
