"""Operators that the graph does not know, and their gradients by what autograd recorded."""

import io

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn


def trained(model, loss_of, shape, calls=8):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(shape),) for _ in range(calls)], watch=[model])


class Recurrent(nn.LSTM):
    """A layer with projections, which stays an operator of torch's, called as one of GRU's."""

    def __init__(self, size=4):
        super().__init__(size, size + 1, proj_size=size)

    def forward(self, x, state=None):
        cell = x.new_zeros(1, x.shape[1], self.hidden_size)
        state = x.new_zeros(1, x.shape[1], self.proj_size) if state is None else state
        output, (state, _) = super().forward(x, (state, cell))
        return output, state


def attention(model, x):
    query, key, value = model(x).chunk(3, -1)
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.3).pow(2).mean()


DRAWING = {
    "layers with dropout between": lambda: (
        nn.LSTM(4, 5, 2, dropout=0.3, proj_size=3), lambda m, x: m(x)[0].pow(2).mean(), (3, 2, 4)
    ),
    "attention of a module": lambda: (
        nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True),
        lambda m, x: m(x, x, x)[0].pow(2).mean(), (3, 2, 8),
    ),
    "attention": lambda: (nn.Linear(8, 24), attention, (3, 2, 8)),
    "activations": lambda: (
        nn.Sequential(nn.Linear(8, 8), nn.RReLU(), nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2)),
        lambda m, x: m(x).pow(2).mean(), (3, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", DRAWING)
@differential()
def test_gradients_of_what_draws(program):
    return trained(*DRAWING[program]())


@differential()
def test_in_the_iterations_of_a_loop():
    layer = Recurrent()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        hidden, t = x[0], 0
        while t < x.shape[0]:
            hidden = layer(x[t : t + 1] + hidden)[0][0]
            t += 1
        loss = hidden.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(3 + i % 5, 2, 4),) for i in range(30)], watch=[layer])


@differential()
def test_what_a_loop_begins_with_stays_until_its_gradient():
    """The planned memory of `h`'s first value is free behind the loop but for what was recorded."""
    encoder, decoder, head = Recurrent(), Recurrent(), nn.Linear(8, 4)

    def step(words, length):
        encoder.zero_grad()
        h = torch.zeros(1, 1, 4)
        outputs = torch.zeros(9, 4)
        for i in range(length):
            output, h = encoder(words[i].view(1, 1, -1), h)
            outputs[i] = output[0, 0]
        x, loss = words[0].view(1, 1, -1), 0
        for _ in range(3):
            weights = torch.softmax(h[0, 0] @ outputs.t(), 0)
            x = torch.relu(head(torch.cat((x[0, 0], weights @ outputs)))).view(1, 1, -1)
            output, h = decoder(x, h)
            loss += output.square().sum()
        loss.backward()
        return loss

    return Program(step, [(torch.randn(9, 4), 2 + i % 5) for i in range(20)], watch=[encoder])


@differential()
def test_what_a_side_recorded_stays_until_its_gradient():
    weight = torch.randn(3, 4, requires_grad=True)

    def step(x):
        weight.grad = None
        h = torch.relu(weight * 2) + 1
        if x.sum() > 0:
            h = torch.logcumsumexp(h, 0)
            h = torch.cdist(h, h * x)
        else:
            h = torch.logcumsumexp(h * x, 1)
            h = torch.cdist(h + 1, h)
        y = torch.tanh((h + 1).exp().log() * 2) + 1
        z = torch.softmax(y * 3, 0) + (y * y).sum(0)
        loss = (z.cumsum(0) * y).sum()
        loss.backward()
        return loss

    return Program(step, [(torch.randn(3, 4),) for _ in range(20)], watch=[weight])


@differential(hits=25)
def test_on_both_sides_of_a_branch():
    layer = Recurrent()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        if x.sum() > 0:
            hidden = layer(x)[0]
        else:
            hidden = layer(x * 2)[0] * 0.5
        loss = hidden.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(3, 2, 4),) for _ in range(30)], watch=[layer])


@differential()
def test_second_gradients():
    layer = Recurrent()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x):
        x = x.clone().requires_grad_()
        loss = layer(x)[0].pow(2).sum()
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        penalty = gradient.pow(2).sum() + loss
        optimizer.zero_grad()
        penalty.backward()
        optimizer.step()
        return penalty

    return Program(step, [(torch.randn(3, 2, 4),) for _ in range(8)], watch=[layer])


@differential()
def test_two_gradients_of_one_call():
    weight = torch.randn(3, 3, requires_grad=True)

    def step(x):
        weight.grad = None
        y = torch.logcumsumexp(weight * x, 0)
        y.sum().backward(retain_graph=True)
        (y * y).sum().backward()
        return weight.grad

    return Program(step, [(torch.randn(3, 3),) for _ in range(8)], watch=[weight])


@pytest.mark.parametrize("others", [0, 3])
@differential()
def test_backward_outside(others):
    """What autograd keeps of a call must stay as it was when the graph runs again."""
    layer = Recurrent()
    kept = []

    def forward(x):
        return layer(torch.tanh(x) * 2)[0].pow(2).sum()

    def convert(_):
        converted = torchjanus.function(forward)
        return outside(converted), converted

    def outside(forward):
        def step(x):
            kept.append(forward(x))
            if len(kept) <= others:
                return None
            for parameter in layer.parameters():
                parameter.grad = None
            kept.pop(0).backward()
            return [parameter.grad for parameter in layer.parameters()]

        return step

    calls = [(torch.randn(3, 2, 4),) for _ in range(9)]
    return Program(outside(forward), calls, watch=[layer], convert=convert)


@differential()
def test_views_have_gradients_and_share_memory():
    def step(x):
        diagonal = torch.linalg.diagonal(x)
        halves = torch.hsplit(x, 2)
        return diagonal, halves, x.pow(2).sum()

    return Program(step, [(torch.randn(4, 4, requires_grad=True),) for _ in range(6)])


@differential()
def test_views_on_the_way_of_another_gradient():
    def step(x):
        diagonal = torch.linalg.diagonal(x * 2)
        return diagonal, diagonal.pow(2).sum()

    return Program(step, [(torch.randn(4, 4, requires_grad=True),) for _ in range(6)])


@differential(reasons=["operation_failed"])
def test_operators_that_give_other_sizes_than_torch_says():
    def step(a, b):
        return torch.linalg.lstsq(a, b, driver="gelsd").residuals.sum()

    calls = [(torch.randn(5, 3), torch.randn(5, 3)) for _ in range(6)]
    return Program(step, calls)


@differential(hits=13)
def test_what_is_tried_out_draws_nothing():
    """Sizes that vary make torch be asked what the operator gives; it draws to tell."""

    def step(x, n):
        labels = torch.randint(0, 10, (4,))
        noise = torch.rand(4, n)
        return noise.sum(1) + labels + x

    return Program(step, [(torch.randn(4), 2 + i % 5) for i in range(20)])


# --- operators that the program registered ------------------------------------------------------


@torch.library.custom_op("torchjanus_tests::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


@torch.library.custom_op("torchjanus_tests::jitter", mutates_args=())
def jitter(x: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    return x + scale * torch.rand_like(x), x.sum()


@torch.library.custom_op("torchjanus_tests::count_", mutates_args=("x",))
def count_(x: torch.Tensor) -> None:
    x.add_(1)


@torch.library.custom_op("torchjanus_tests::untold", mutates_args=())
def untold(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


@torch.library.custom_op("torchjanus_tests::first_of_many", mutates_args=())
def first_of_many(x: torch.Tensor) -> torch.Tensor:
    return x[: rows_of(x)].clone()


def rows_of(x):
    return 1 if len(x) > 9 else len(x)


cube.register_fake(torch.empty_like)
first_of_many.register_fake(lambda x: x.new_empty(rows_of(x), *x.shape[1:]))
first_of_many.register_autograd(
    lambda ctx, gradient: F.pad(gradient, (0, 0, 0, ctx.count - len(gradient))),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "count", len(inputs[0])),
)
jitter.register_fake(lambda x, scale=1.0: (torch.empty_like(x), x.new_empty(())))
cube.register_autograd(
    lambda ctx, gradient: gradient * 3 * ctx.saved_tensors[0] ** 2,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)

SPELLINGS = {
    "function": lambda: cube,
    "packet": lambda: torch.ops.torchjanus_tests.cube,
    "overload": lambda: torch.ops.torchjanus_tests.cube.default,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@differential(hits=4)
def test_registered_operator(spelling):
    operator = SPELLINGS[spelling]()
    return trained(nn.Linear(4, 3), lambda m, x: operator(m(x)).pow(2).mean(), (3, 4))


@differential(hits=4)
def test_registered_operator_that_draws():
    def step(x):
        y = torch.rand(3)
        noisy, total = jitter(x, scale=0.5)
        return noisy + y, total, torch.rand(2)

    return Program(step, [(torch.randn(3),) for _ in range(8)])


@differential(reasons=["unknown_callable"])
def test_registered_operator_that_writes():
    def step(x):
        y = x * 2
        count_(y)
        return y

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["unknown_callable"])
def test_registered_operator_whose_sizes_nobody_knows():
    return Program(lambda x: untold(x * 2), [(torch.randn(8),) for _ in range(6)])


@differential(hits=4)
def test_aten_by_its_name():
    def step(x):
        y = torch.ops.aten.add.Tensor(x, x, alpha=2)
        return torch.ops.aten.cumsum(y, 0), torch.ops.aten.relu.default(y)

    return Program(step, [(torch.randn(3, 2),) for _ in range(8)])


# --- hooks that are there no more ---------------------------------------------------------------


@differential(hits=4)
def test_tensors_that_were_loaded():
    """torch.load leaves an empty dictionary of hooks with each tensor."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], file)
    file.seek(0)
    weights, state = torch.load(file)
    model.load_state_dict(weights, assign=True)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    optimizer.load_state_dict(state)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(3, 4),) for _ in range(8)], watch=[model, optimizer])


@differential(hits=5, reasons=["guard_failed"])
def test_hooks_that_come_and_go():
    weight = torch.randn(3, requires_grad=True)
    weight.register_hook(lambda gradient: gradient * 2).remove()
    weight.register_post_accumulate_grad_hook(lambda parameter: None).remove()
    handles = []

    def step(x):
        weight.grad = None
        (weight * x).sum().backward()
        return x + 1

    calls = [(torch.randn(3),) for _ in range(20)]
    calls[8:8] = [lambda: handles.append(weight.register_hook(lambda gradient: gradient * 2))]
    calls[12:12] = [lambda: handles.pop().remove()]
    return Program(step, calls, watch=[weight])


@differential(reasons=["shape_mismatch"])
def test_gradients_that_are_sparse():
    first, second = nn.Embedding(6, 4, sparse=True), nn.Embedding(6, 4, sparse=True)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)

    def step(a, b):
        optimizer.zero_grad()
        loss = (first(a) * second(b)).sum()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(torch.randint(0, 6, (3,)), torch.randint(0, 6, (3,))) for _ in range(8)]
    return Program(step, calls, watch=[first, second])


@differential(reasons=["operation_failed"], hits=0)
def test_sizes_that_no_trial_showed():
    """A graph that writes and keeps a record has no plan, so that no run learns what its operators give."""
    counter, weight = torch.zeros(()), torch.randn(2, requires_grad=True)

    def step(x):
        counter.add_(1)
        y = first_of_many(x * weight)
        return y * 3 + x[:1], y.shape

    return Program(step, [(torch.randn(4 + i % 5, 2),) for i in range(20)], watch=[counter])


@differential(reasons=["shape_mismatch"], hits=0)
def test_stride_that_varies():
    """Large strides all give size 1."""
    weight = torch.randn(3, 3, 3, 3, requires_grad=True)

    def step(x, stride):
        y = F.conv2d(x, weight, stride=stride)
        weight.grad = None
        y.square().sum().backward()
        return y

    return Program(step, [(torch.randn(2, 3, 9, 9), 2 + i % 3) for i in range(20)], watch=[weight])
