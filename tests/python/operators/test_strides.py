"""Strides: what `view` accepts, when `reshape` copies, and how results lie in memory."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def transposed(rows, columns):
    return torch.randn(columns, rows).t()


LAYOUTS = {
    "in order": lambda: torch.randn(4, 6),
    "transposed": lambda: transposed(4, 6),
    "part": lambda: torch.randn(4, 8)[:, :6],
    "every other": lambda: torch.randn(8, 6)[::2],
    "repeated": lambda: torch.randn(1, 6).expand(4, 6),
}

STEPS = {
    "copied by reshape": lambda x: torch.tanh(x.reshape(-1).view(-1, 6)),
    "copied and added": lambda x: sum([x.reshape(-1).view(-1, 6), x]),
    "put in order": lambda x: x.t().contiguous() * 2,
    "put in order and viewed": lambda x: x.t().contiguous().view(2, 12).relu(),
    "cloned in order": lambda x: x.clone(memory_format=torch.contiguous_format) + 1,
    "cloned": lambda x: x.clone() * 3,
    "of two layouts": lambda x: (x + torch.ones(6, 4).t(), torch.ones(4, 6) - x),
    "split and merged": lambda x: x.view(4, 2, 3).transpose(0, 1).reshape(8, 3) * 2,
    "a column": lambda x: x[:, 1].view(-1, 1) * 2,
    "repeated": lambda x: x.expand(2, 4, 6).permute(1, 0, 2) * 3,
    "products": lambda x: (x @ x.t()).view(-1),
    "flattened": lambda x: x.flatten().mul(2).view(2, -1),
    "asked": lambda x: (x.is_contiguous(), x.t().is_contiguous(), x * 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("step", STEPS)
@differential()
def test_results_lie_as_in_eager(step, layout):
    return Program(STEPS[step], [(LAYOUTS[layout](),) for _ in range(6)])


@differential(hits=1)
def test_view_of_another_layout_raises_after_a_graph_was_made():
    def step(x):
        return (x * 2).view(-1).sum()

    calls = [(torch.randn(3, 4),) for _ in range(5)]
    return Program(step, calls + [(transposed(3, 4),) for _ in range(4)])


@differential(hits=1)
def test_write_through_a_view_of_another_layout_raises():
    def step(x):
        m = (x * 2).clone()
        m.view(-1)[0] = 3.0
        return m

    calls = [(torch.randn(3, 4),) for _ in range(5)]
    return Program(step, calls + [(transposed(3, 4),) for _ in range(4)])


@differential()
def test_written_tensors_keep_their_layout():
    def step(x):
        m = x * 1
        m.copy_(torch.ones(3, 4))
        m.t()[1].add_(0.5)
        m[0] = 2.0
        return m, m.t() + 1

    return Program(step, [(transposed(3, 4),) for _ in range(6)])


@differential()
def test_a_write_to_a_copying_reshape_stays_there():
    def step(x):
        flat = x.reshape(-1)
        flat.add_(1)
        return flat, x * 2

    return Program(step, [(transposed(3, 4),) for _ in range(6)])


@differential()
def test_gradients_through_copies():
    weight = torch.randn(4, 6, requires_grad=True)

    def step(x):
        weight.grad = None
        loss = (weight.t().reshape(4, 6) * x).t().contiguous().view(-1).pow(2).sum()
        loss.backward()
        return loss

    return Program(step, [(torch.randn(4, 6),) for _ in range(6)], watch=[weight])


@differential()
def test_heads_of_attention():
    def step(x):
        heads = x.view(2, 5, 4, 3).transpose(1, 2)
        scores = torch.softmax(heads @ heads.transpose(-2, -1), -1)
        return (scores @ heads).transpose(1, 2).contiguous().view(2, 5, 12)

    return Program(step, [(torch.randn(2, 5, 12),) for _ in range(6)])


@differential()
def test_heads_of_attention_for_varying_batches():
    def step(x):
        batch = x.shape[0]
        heads = x.view(batch, -1, 4, 3).transpose(1, 2)
        return heads.transpose(1, 2).reshape(batch, -1, 12) + x

    return Program(step, [(torch.randn(2 + i % 4, 3 + i % 3, 12),) for i in range(12)])


@pytest.mark.parametrize("layout", ["in order", "transposed"])
@differential()
def test_views_of_what_only_the_run_knows(layout):
    def step(x):
        return torch.logcumsumexp(x, 0).view(-1).mul(2), torch.logcumsumexp(x.t(), 1).t()

    def broken(x):
        return torch.logcumsumexp(x.t(), 0).view(-1).sum()

    return Program(
        step if layout == "transposed" else broken, [(torch.randn(4, 6),) for _ in range(6)]
    )


@differential(hits=1)
def test_a_view_that_only_the_run_knows_to_be_none_raises():
    def step(x):
        return torch.logcumsumexp(x, 0).view(-1).sum()

    calls = [(torch.randn(3, 4),) for _ in range(5)]
    return Program(step, calls + [(transposed(3, 4),) for _ in range(4)])


@pytest.mark.parametrize("layer", [torch.nn.GRU, torch.nn.LSTM, torch.nn.RNN])
@differential()
def test_recurrent_layers_without_dropout_have_gradients(layer):
    model = layer(4, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        output, _ = model(x)
        loss = output.view(-1).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(3, 2, 4),) for _ in range(6)], watch=[model])


@pytest.mark.parametrize(
    "rows",
    [
        lambda x, index: torch.nn.functional.embedding(index, x),
        lambda x, index: x.t().gather(1, index.repeat(1, 3)),
        lambda x, index: x.t().softmax(0),
        lambda x, index: torch.nn.functional.log_softmax(x.t(), 1),
    ],
)
@differential()
def test_dropout_of_what_lies_in_order_whatever_it_was_made_of(rows):
    def step(x, indices):
        return torch.nn.functional.dropout(rows(x, indices[:, 1].unsqueeze(1)), 0.5).view(-1)

    return Program(step, [(torch.randn(4, 4), torch.randint(0, 4, (4, 3))) for _ in range(6)])


@pytest.mark.parametrize(
    "of",
    [
        lambda x: x.sort(0)[0],
        lambda x: x.cumprod(0),
        lambda x: x.logcumsumexp(0),
        lambda x: x[torch.tensor([0, 3, 3])],
        lambda x: x.gather(0, torch.zeros(2, 3, dtype=torch.long)),
        lambda x: torch.nn.functional.pad(x[None], (1, 1), mode="reflect"),
        lambda x: torch.nn.functional.interpolate(x[None], scale_factor=2),
        lambda x: torchjanus.meta.reindex(x, (3, 4), lambda i, j: (j, i)),
    ],
)
@differential()
def test_gradient_that_is_a_view_of_what_an_operator_that_may_fail_gave(of):
    def step(x):
        x.grad = None
        y = of(x.t())
        (y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum().backward()
        return y.detach(), x.grad

    return Program(step, [(torch.randn(3, 4, requires_grad=True),) for _ in range(6)])


@differential(hits=3)
def test_sides_that_lie_differently():
    def step(x, side):
        wide, turned = (x * 1)[:, ::2], (x * 1).t()
        if side.sum() > 0:
            wide = wide * 2
            turned = turned.contiguous()
        return wide, turned.reshape(-1)

    return Program(step, [(torch.randn(3, 4), torch.tensor(i % 2)) for i in range(16)])


@differential(hits=3)
def test_a_loop_with_iterations_or_none_that_lies_differently():
    def step(x):
        y, iterations = x.repeat_interleave(2, 0)[::2], 0
        while iterations < 3 and y.abs().max() > 0.1:
            iterations += 1
            y = (y * 0.6).tanh() * 0.7
        return y

    small = [1, 1, 0.001, 1, 0.001, 1, 1, 0.001, 0.001, 1, 1, 1, 0.001, 1]
    return Program(step, [(torch.randn(3, 4) * scale,) for scale in small])


@differential(hits=3)
def test_a_loop_of_rows_that_lie_apart():
    def step(x, steps):
        h = x[:, 0]
        for _ in range(steps):
            h = torch.tanh(h * 0.9)
        return h, h.view(-1)

    return Program(step, [(torch.randn(3, 5, 4), 2 + i % 4) for i in range(12)])


@differential(hits=4)
def test_the_run_decides_how_what_leaves_a_branch_lies():
    def step(x):
        y = F.pad(x[None], (1, 1), mode="reflect")[0, :, 1:5]
        if x.sum() > 0:
            y = (y * 2).cumsum(0)
        return y, y * 2, y.exp()[1:]

    signs = [1, -1, 1, -1, 1, 1, -1, -1, 1, -1, 1, -1, 1, -1]
    return Program(step, [(torch.rand(3, 4) * sign,) for sign in signs])


@differential(hits=4)
def test_the_run_decides_how_what_leaves_a_loop_lies():
    def step(x, iterations):
        y = F.interpolate(x[None], scale_factor=2.0)[0, :, ::2]
        while iterations < 3 and y.abs().max() > 0.1:
            iterations += 1
            y = (y * 0.6).tanh() * 0.7
        return y, [y, y.neg()]

    small = [1, 1, 0.001, 1, 0.001, 1, 1, 0.001, 0.001, 1, 1, 1, 0.001, 1]
    return Program(step, [(torch.randn(3, 4) * scale, i % 2) for i, scale in enumerate(small)])


@differential(hits=4)
def test_layouts_that_never_differ_keep_their_plan():
    def step(x):
        y = x.cumsum(0)
        if x.sum() > 0:
            y = (y * 2).cumsum(1)
        return y

    signs = [1, -1, 1, -1, 1, 1, -1, -1, 1, -1]
    return Program(step, [(torch.rand(3, 4) * sign,) for sign in signs])


@differential(hits=3)
def test_a_kept_gradient_that_is_one_number_for_all():
    weight = torch.ones(3, requires_grad=True)

    def step(x):
        weight.grad = None
        hidden = (weight * x).sin()
        hidden.retain_grad()
        hidden.sum().backward()
        hidden.grad.mul_(torch.arange(3.0))
        return hidden.grad, weight.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[weight])


def gradient_programs():
    """Losses whose gradients eager lays out as the leaf only where it puts them there."""
    weight = nn.Parameter(torch.randn(5, 7))
    filters = nn.Parameter(torch.randn(4, 3, 3, 3))
    table = nn.Embedding(9, 5)
    x, image = torch.randn(4, 7), torch.randn(2, 3, 6, 6)
    last = image.contiguous(memory_format=torch.channels_last)
    words = torch.tensor([1, 4, 1])
    return {
        "transposed": (weight, lambda: (x @ weight.t()).tanh().sum()),
        "product from the left": (weight, lambda: (weight @ x.t()).tanh().sum()),
        "einsum": (weight, lambda: torch.einsum("bi,oi->bo", x, weight).tanh().sum()),
        "channels last": (filters, lambda: nn.functional.conv2d(last, filters).tanh().sum()),
        "tied": (table.weight, lambda: (table(words).tanh() @ table.weight.t()).tanh().sum()),
    }


GRADIENTS = ["transposed", "product from the left", "einsum", "channels last", "tied"]


@pytest.mark.parametrize("name", GRADIENTS)
@differential(graphs=1)
def test_gradients_lie_as_their_leaves(name):
    leaf, loss = gradient_programs()[name]

    def step():
        loss().backward()
        flat = leaf.grad.contiguous().view(-1).sum()
        return flat, leaf.grad.is_contiguous(), leaf.grad.stride(), torch.randn_like(leaf.grad)

    def outside():
        leaf.grad.view(-1)
        leaf.grad = None

    return Program(step, [call for _ in range(6) for call in ((), outside)][:-1], watch=[leaf])


@pytest.mark.parametrize("name", GRADIENTS)
@differential()
def test_gradients_that_are_asked_for_laid_in_order(name):
    leaf, loss = gradient_programs()[name]

    def step():
        (gradient,) = torch.autograd.grad(loss(), leaf)
        laid = gradient.contiguous()
        return laid, laid.view(-1)

    return Program(step, [() for _ in range(6)], watch=[leaf])


@pytest.mark.parametrize("name", GRADIENTS)
def test_noise_like_gradients_that_are_asked_for(name):
    """Eager draws in the order of the gradient's memory, which only the run knows."""
    leaf, loss = gradient_programs()[name]

    def step():
        (gradient,) = torch.autograd.grad(loss(), leaf)
        return torch.randn_like(gradient)

    converted = torchjanus.function(step)
    for _ in range(5):
        torch.manual_seed(3)
        expected = step()
        torch.manual_seed(3)
        assert torch.equal(converted(), expected)


def parameters(*shape, count=6, layout=lambda x: x):
    return [(layout(torch.randn(*shape)).requires_grad_(),) for _ in range(count)]


@pytest.mark.parametrize("name", ["masked_fill", "batch_norm", "batch_norm of images"])
@differential()
def test_results_in_order_of_operands_that_are_not(name):
    def step(x, mask):
        x = x.transpose(-1, -2)
        if name == "masked_fill":
            return x.masked_fill(mask, 3.0)
        return F.batch_norm(x, None, None, x[0, :, 0], None, training=True)

    def image(x):
        return F.batch_norm(x, x.new_zeros(3), x.new_ones(3)) * 2

    if name == "batch_norm of images":
        images = [torch.randn(2, 3, 4, 5) for _ in range(5)]
        return Program(image, [(x.contiguous(memory_format=torch.channels_last),) for x in images])
    shape = (4, 4) if name == "masked_fill" else (3, 4, 2)
    mask = torch.rand(4, 4) > 0.5
    return Program(step, [(torch.randn(*shape), mask) for _ in range(5)])


@pytest.mark.parametrize(
    "operator",
    [
        lambda x: x.reshape(-1),
        lambda x: x.flatten(),
        lambda x: F.linear(x, x.detach()),
        lambda x: x.reshape(2, -1),
    ],
)
@differential()
def test_names_of_nodes_by_strides(operator):
    def step(x):
        return operator(x.t()), operator(x[0].expand(4, 4)), operator(x[:, ::2].expand(4, 2))

    return Program(step, parameters(4, 4))


OUT = {
    "contiguous": lambda x: torch.zeros(3, 4),
    "transposed": lambda x: torch.zeros(4, 3).t().clone(),
    "like the operand": lambda x: x * 1,
}


@pytest.mark.parametrize("name", OUT)
@differential()
def test_out_keeps_its_strides(name):
    def f(x):
        y = OUT[name](x)
        torch.mul(x, 2, out=y)
        return y, y * 1, torch.exp(y)

    return Program(f, [(torch.rand(4, 3).t(),) for _ in range(6)])


@pytest.mark.parametrize("name", OUT)
@differential()
def test_out_of_the_caller_keeps_its_strides(name):
    def f(x, y):
        torch.mul(x, 2, out=y)
        return y * 1

    def call(i):
        x = torch.rand(4, 3).t() + i
        return x, OUT[name](x)

    return Program(f, [call(i) for i in range(6)])
