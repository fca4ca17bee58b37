"""Hooks that parameters and other leaves have had since before the step."""

import pytest
from differential import Program, differential
from hooked_training import batches, network, training

import torch
import torchjanus
from torch import nn


@differential(hits=5, graphs=1)
def test_gradients_are_clamped():
    model = network()
    for p in model.parameters():
        p.register_hook(lambda g: torch.clamp(g, -0.5, 0.5))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return Program(training(model, optimizer), batches(8), watch=[model, optimizer])


@differential(hits=5, graphs=1)
def test_rows_are_frozen():
    embedding, head = nn.Embedding(7, 4), nn.Linear(4, 2)
    mask = torch.ones(7, 1)
    mask[:3] = 0
    embedding.weight.register_hook(lambda g: g * mask)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], 0.1)

    def step(words):
        optimizer.zero_grad()
        loss = head(embedding(words).mean(1)).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(torch.randint(7, (5, 3)),) for _ in range(8)]
    return Program(step, calls, watch=[embedding, head, optimizer])


@differential(hits=5)
def test_two_hooks_one_of_which_gives_nothing():
    w = torch.ones(3, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.sum().item()))
    w.register_hook(lambda g: g * 2)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w, seen])


@differential(hits=5)
def test_used_twice_and_accumulated():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: g.sign())

    def step(x):
        y = (w * x).sum() + (w * w * x).sum()
        y.backward(retain_graph=True)
        first = w.grad.clone()
        y.backward()
        return first, w.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w])


@differential(hits=5)
def test_hook_in_autograd_grad():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 3)
    v.register_hook(lambda g: g + 1)

    def step(x):
        return torch.autograd.grad((w * v * x).sum(), [w, v])

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w, v])


@differential(hits=5)
def test_after_the_accumulation():
    model = network()

    def clamp(p):
        p.grad.clamp_(-0.5, 0.5)

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(clamp)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return Program(training(model, optimizer), batches(8), watch=[model, optimizer])


@differential(hits=5)
def test_after_the_accumulation_a_new_gradient():
    w = torch.ones(3, requires_grad=True)
    count = [0]

    def after(p):
        count[0] += 1
        p.grad = p.grad * 0.5 if count[0] < 5 else p.grad * 0.25

    w.register_post_accumulate_grad_hook(after)

    def step(x):
        (w * x).sum().backward()
        return w.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(9)], watch=[w, count])


@differential(hits=5)
def test_gradient_due_outside():
    w = torch.ones(3, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.clone()))

    def loss_of(x):
        return (w * w * x).sum()

    def outer(loss_of, x):
        loss = loss_of(x)
        loss.backward()
        return loss.detach()

    converted = torchjanus.function(loss_of)
    return Program(
        lambda x: outer(loss_of, x),
        [(torch.randn(3),) for _ in range(8)],
        watch=[w, seen],
        convert=lambda _: (lambda x: outer(converted, x), converted),
    )


@differential(hits=5)
def test_hooks_come_and_go():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    handles = []
    factor = [2.0]

    def register():
        handles.append(model[0].weight.register_hook(lambda g: g * factor[0]))

    def remove():
        handles.pop(0).remove()

    def change():
        factor[0] = 3.0

    calls = [*batches(5), register, *batches(5), register, *batches(5), change, *batches(2)]
    calls += [remove, *batches(5), remove, *batches(3)]
    return Program(training(model, optimizer), calls, watch=[model, optimizer])


@differential(hits=4)
def test_frozen_leaf_keeps_its_hook():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 2)
    w.requires_grad_(False)

    def step(x):
        v.grad = None
        (w * v * x).sum().backward()
        return v.grad.clone()

    def thaw():
        w.requires_grad_(True)

    calls = [(torch.randn(3),) for _ in range(6)]
    return Program(step, [*calls, thaw, *calls], watch=[w, v])


@differential(reasons=["hook"])
def test_order_of_several_hooks():
    model = network()
    order = []
    for name, p in model.named_parameters():
        p.register_hook(lambda g, name=name: order.append(name))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return Program(training(model, optimizer), batches(6), watch=[model, order])


@differential(reasons=["hook"])
def test_hooks_that_draw():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for p in (w, v):
        p.register_hook(lambda g: g + torch.randn_like(g))

    def step(x):
        (w * v * x).sum().backward()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v])


@differential(reasons=["hook"])
def test_hook_that_writes_the_gradient():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def double(g):
        g.mul_(2)

    w.register_hook(double)

    def step(x):
        w.grad = v.grad = None
        (w + v + x).sum().backward()
        return w.grad.clone(), v.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v])


@pytest.mark.parametrize("when", ["register_hook", "register_post_accumulate_grad_hook"])
@differential(reasons=["hook"])
def test_gradient_of_another_leaf(when):
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    seen = []

    def look(_):
        seen.append(None if w.grad is None else w.grad.sum().item())

    getattr(v, when)(look)

    def step(x):
        w.grad = v.grad = None
        (w * v * x).sum().backward()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v, seen])


@differential(reasons=["hook"])
def test_parameter_written_in_a_hook():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def update(p):
        p.data.sub_(p.grad, alpha=0.1)
        p.grad = None

    for p in (w, v):
        p.register_post_accumulate_grad_hook(update)

    def step(x):
        (w * v * x).sum().backward()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v])


@differential(hits=3)
def test_hook_that_fails():
    w = torch.ones(3, requires_grad=True)
    limit = [1e9]

    def check(g):
        if g.sum().item() > limit[0]:
            raise ValueError("too large")
        return g * 2

    w.register_hook(check)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad.clone()

    def lower():
        limit[0] = 0.0

    calls = [(torch.rand(3),) for _ in range(7)]
    return Program(step, [*calls, lower, *calls[:3]], watch=[w])


def accumulator(leaf):
    return leaf.expand_as(leaf).grad_fn.next_functions[0][0]


def edge(leaf):
    return torch.autograd.graph.get_gradient_edge(leaf).node


def halving(node, seen):
    return node.register_prehook(lambda gradients: (gradients[0] * 0.5,))


def counting(node, seen):
    return node.register_hook(lambda *_: seen.append(1))


@pytest.mark.parametrize("find", [accumulator, edge])
@pytest.mark.parametrize("register", [halving, counting])
@pytest.mark.parametrize("first", [True, False])
def test_hooks_of_the_gradient_accumulator(find, register, first):
    def build():
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        seen, kept = [], []

        def hook():
            kept.append(find(model[0].weight))
            kept.append(register(kept[0], seen))

        def release():
            kept.pop().remove()
            kept.clear()

        calls = [*batches(4), hook, *batches(4), release, *batches(5)]
        if first:
            calls = calls[4:]
        return Program(training(model, optimizer), calls, watch=[model, optimizer, seen])

    differential(reasons=["hook"], hits=0 if first else 3)(build)()


@differential(hits=5, graphs=1)
def test_an_accumulator_that_lives_has_no_hooks():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    nodes = []

    def keep():
        nodes.extend(accumulator(p) for p in model.parameters())

    calls = [*batches(5), keep, *batches(4)]
    return Program(training(model, optimizer), calls, watch=[model, optimizer])


@differential(hits=5, graphs=1)
def test_hooks_of_accumulators_that_get_nothing():
    model, other = network(), torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([*model.parameters(), other], 0.1)
    seen = []
    node = accumulator(other)
    node.register_hook(lambda *_: seen.append(1))
    program = Program(training(model, optimizer), batches(8), watch=[model, optimizer, seen])
    program.step.node = node
    return program


@differential(hits=5)
def test_hooks_of_an_argument_s_accumulator():
    model, seen = network(), []
    xs = [torch.randn(5, 4, requires_grad=True) for _ in range(3)]
    nodes = [accumulator(x) for x in xs[1:]]
    for node in nodes:
        node.register_hook(lambda *_: seen.append(1))

    def step(x):
        x.grad = None
        model(x).sum().backward()
        return x.grad.clone()

    step.nodes = nodes
    calls = [(xs[0],)] * 6 + [(xs[1],), (xs[0],), (xs[2],), (xs[0],)]
    return Program(step, calls, watch=[model, seen])


@differential(hits=5)
def test_autograd_grad_calls_no_hook_of_an_accumulator():
    w, seen = torch.ones(3, requires_grad=True), []
    node = accumulator(w)
    node.register_prehook(lambda gradients: seen.append(1))

    def step(x):
        return torch.autograd.grad((w * w * x).sum(), w)

    step.node = node
    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w, seen])


def with_backward_outside(model, seen, nodes, calls):
    """Only the loss is converted. Tensors do not keep their accumulators `nodes`: the program does."""

    def loss_of(x):
        return model(x).square().sum()

    def outer(loss_of, x):
        model.zero_grad()
        loss = loss_of(x)
        loss.backward()
        return loss.detach()

    converted = torchjanus.function(loss_of)
    outer.nodes = nodes
    return Program(
        lambda x: outer(loss_of, x),
        calls,
        watch=[model, seen],
        convert=lambda _: (lambda x: outer(converted, x), converted),
    )


@differential(hits=5)
def test_hook_of_an_accumulator_with_the_gradient_due_outside():
    model, seen = network(), []
    node = accumulator(model[0].weight)
    node.register_prehook(lambda gradients: (gradients[0] * 0.5,))
    node.register_hook(lambda *_: seen.append(1))

    return with_backward_outside(model, seen, [node], batches(8))


def hooked_later(step, calls, leaves):
    """The calls, and the calls once more after each leaf's accumulator got a hook."""
    seen, nodes = [], []

    def register():
        for leaf in leaves:
            nodes.append(accumulator(leaf))
            halving(nodes[-1], seen)
            counting(nodes[-1], seen)

    return Program(step, [*calls, register, *calls], watch=[*leaves, seen])


@differential(hits=6, reasons=["hook"])
def test_hooks_of_accumulators_of_leaves_chosen_from_a_list():
    leaves = [nn.Parameter(torch.randn(3)) for _ in range(2)]

    def step(x, i):
        leaf = leaves[i]
        leaf.grad = None
        (leaf * x).sum().backward()

    return hooked_later(step, [(torch.randn(3), i % 2) for i in range(12)], leaves)


class Tree:
    def __init__(self, value, *children):
        self.value, self.children = value, children


@differential(hits=4, reasons=["hook"])
def test_hooks_of_accumulators_of_leaves_met_in_a_recursion():
    leaves = [torch.randn(3, requires_grad=True) for _ in range(3)]
    bottom = [Tree(leaf) for leaf in leaves]
    middle = Tree(leaves[1], bottom[0], bottom[2])
    trees = [bottom[1], middle, Tree(leaves[0], middle, bottom[1]), Tree(leaves[2], *bottom[:2])]

    def value(tree, x):
        if len(tree.children) == 0:
            return tree.value * x
        left, right = tree.children
        return torch.tanh(value(left, x) + value(right, x) + tree.value)

    def step(tree, x):
        loss = value(tree, x).sum()
        loss.backward()
        return loss.detach()

    calls = [(trees[i % 4], torch.randn(3)) for i in range(12)]
    return hooked_later(step, calls, leaves)


@differential(hits=3, graphs=1, reasons=["hook"])
def test_hooks_of_the_accumulator_of_a_leaf_that_the_run_switches():
    w, seen, nodes = torch.randn(3), [], []

    def step(x):
        w.requires_grad_(True)
        w.grad = None
        (w * x).sum().backward()
        w.requires_grad_(False)

    def register():
        w.requires_grad_(True)
        nodes.append(accumulator(w))
        halving(nodes[0], seen)
        w.requires_grad_(False)

    calls = [(torch.randn(3),) for _ in range(6)]
    return Program(step, [*calls, register, *calls], watch=[w, seen])


@pytest.mark.parametrize("mode", ["all", "any"])
def test_one_hook_of_several_gradients(mode):
    def build():
        model, seen, handles = network(), [], []
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def register():
            handles.append(
                torch.autograd.graph.register_multi_grad_hook(
                    list(model.parameters()), lambda _: seen.append(1), mode=mode
                )
            )

        calls = [*batches(5), register, *batches(4), lambda: handles[0].remove(), *batches(2)]
        return Program(training(model, optimizer), calls, watch=[model, optimizer, seen])

    differential(hits=2, reasons=["unknown_callable"])(build)()


class TwoLayers(nn.Module):
    """Parameters registered in another order than they are used, one of them twice."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))
        self.last = nn.Linear(6, 2)
        self.norm = nn.LayerNorm(6)
        self.first = nn.Linear(4, 6)
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x):
        h = self.norm(self.first(x).tanh() * self.scale)
        return self.last(h) * 2 + self.last(h * self.scale)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.body = nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 2, 1, bias=False)
        )
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = x[:, None, None] + self.embedding(torch.arange(4))
        return self.head(self.body(x).flatten(1))


@pytest.mark.parametrize("kind", ["tensor", "after", "node"])
@pytest.mark.parametrize("make", [TwoLayers, Images])
def test_order_of_hooks_with_the_gradient_due_outside(make, kind):
    @differential(hits=5)
    def build():
        model, seen, nodes = make(), [], []
        for name, p in model.named_parameters():
            if kind == "tensor":
                p.register_hook(lambda g, name=name: seen.append(name))
            elif kind == "after":
                p.register_post_accumulate_grad_hook(lambda p, name=name: seen.append(name))
            else:
                nodes.append(accumulator(p))
                nodes[-1].register_hook(lambda *_, name=name: seen.append(name))

        calls = [(torch.randn(4, 4),) for _ in range(8)]
        return with_backward_outside(model, seen, nodes, calls)

    build()


@differential(hits=5)
def test_only_hooks_of_what_a_result_leads_to():
    one, other, seen = nn.Linear(4, 3), nn.Linear(4, 3), []
    for name, p in [*one.named_parameters(prefix="one"), *other.named_parameters(prefix="other")]:
        p.register_hook(lambda g, name=name: seen.append((name, g is None)))

    def both(x):
        return one(x).sum(), other(x).square().sum()

    def outer(both, x):
        first, second = both(x)
        second.backward()
        return first.detach(), second.detach()

    converted = torchjanus.function(both)
    return Program(
        lambda x: outer(both, x),
        [(torch.randn(5, 4),) for _ in range(8)],
        watch=[one, other, seen],
        convert=lambda _: (lambda x: outer(converted, x), converted),
    )
