"""How gradients lie in memory: as their leaves do, channels last, or nowhere."""

import pytest
from differential import Program, differential

import torch
import torchjanus


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
