"""Whole steps, gradients inside, in which memory is shared in ways that few programs share it: what
`tests/oracles/steps.py` showed to differ once, made small."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch


def parameters(*shape, count=6, layout=lambda x: x):
    return [(layout(torch.randn(*shape)).requires_grad_(),) for _ in range(count)]


@differential()
def test_gradient_without_memory():
    """What autograd gives for the sign is zeros that lie nowhere."""

    def step(p):
        p.grad = None
        loss = torch.sgn(p).atan().sum()
        loss.backward()
        with torch.no_grad():
            p -= 0.1 * p.grad
        return loss.detach()

    return Program(step, parameters(3, 4))


@differential()
def test_gradient_without_memory_of_a_result():
    def step(p):
        return p * 2

    def whole(p):
        torch.sgn(step(p)).sum().backward()
        return p.grad

    def convert(_):
        import torchjanus

        converted = torchjanus.function(step)

        def outside(p):
            torch.sgn(converted(p)).sum().backward()
            return p.grad

        return outside, converted

    return Program(whole, parameters(3, 4), convert=convert)


@pytest.mark.parametrize("operator", [torch.linalg.inv, torch.sigmoid, torch.sort, torch.cumsum])
@pytest.mark.parametrize("layout", ["transposed", "with gaps", "in order"])
@differential()
def test_gradients_lie_as_their_parameters(operator, layout):
    def step(p):
        p.grad = None
        y = operator(p, dim=1) if operator is torch.cumsum else operator(p)
        y = y[0] if isinstance(y, tuple) else y
        y.atan().sum().backward()
        return p.grad.t()

    lay = {
        "transposed": lambda x: x.t(),
        "with gaps": lambda x: torch.stack([x, x], 1)[:, 0],
        "in order": lambda x: x,
    }[layout]
    return Program(step, parameters(4, 4, layout=lay))


@differential()
def test_gradients_of_a_model_channels_last():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3))
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).atan().sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(2, 3, 8, 8),) for _ in range(6)], watch=[model, optimizer])


@differential(hits=2)
def test_gradients_with_sizes_that_vary():
    def step(p):
        p.grad = None
        p.atan().sum().backward()
        return p.grad

    return Program(step, [(torch.randn(3, n).t().requires_grad_(),) for n in (4, 5, 6, 7, 4, 8, 9)])


@differential(hits=5)
def test_dropout_that_drops_nothing_in_some_runs():
    """Its result is then its operand, and its gradient the one that came."""

    def step(p, drop):
        p.grad = None
        y = F.feature_alpha_dropout(p, **drop)
        y.atan().sum().backward()
        return y.detach()

    chances = [0.0, 0.5, 0.0, 0.5, 0.0, 0.3, 0.2, 0.0, 0.5, 0.1]
    drops = [{"p": p, "training": True} for p in chances]
    ps = parameters(3, 4, 2, 2, count=len(drops))
    return Program(step, [(p, drop) for (p,), drop in zip(ps, drops, strict=True)])


@pytest.mark.parametrize("split", [torch.chunk, torch.unsafe_chunk, torch.tensor_split])
@pytest.mark.parametrize("varies", ["size", "number"])
@differential(graphs=12, hits=4)
def test_parts_whose_number_varies(split, varies):
    def step(p, parts):
        p.grad = None
        pieces = split(p, parts)
        sum(piece.atan().sum() for piece in pieces).backward()
        return [piece.detach() for piece in pieces]

    sizes = [6, 4, 5, 7, 6, 8, 9, 4, 5, 10]
    calls = [
        (
            torch.randn(n if varies == "size" else 7, 2).requires_grad_(),
            3 if varies == "size" else n,
        )
        for n in sizes
    ]
    return Program(step, calls)


@differential(reasons=["unknown_callable"])
def test_lazy_negative():
    def step(x):
        return torch.imag(torch.conj(torch.view_as_complex(x))) * 2 + 1

    return Program(step, [(torch.randn(3, 2),) for _ in range(5)])


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


@differential(hits=3)
def test_part_put_into_a_tensor_of_varying_size():
    def step(x, y):
        x.grad = None
        torch.diagonal_scatter(x, y).atan().sum().backward()
        return x.grad

    sizes = [(4, 4), (5, 5), (6, 6), (4, 7), (5, 8), (6, 6), (7, 4)]
    return Program(
        step, [(torch.randn(m, n).requires_grad_(), torch.randn(min(m, n))) for m, n in sizes]
    )


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


@differential(hits=6)
def test_no_gradient_in_some_runs():
    """That of a norm of order 0 is None, not zeros."""

    def step(p, order):
        p.grad = None
        torch.linalg.vector_norm(p, order).atan().backward()
        return p.grad

    orders = [2.0, 3.0, 1.0, 2.0, 4.0, 1.5, 2.5, 0.0, 2.0, 0.0, 3.0]
    ps = parameters(3, 4, count=len(orders))
    return Program(step, [(p, order) for (p,), order in zip(ps, orders, strict=True)])
