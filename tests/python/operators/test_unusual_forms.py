"""Operators of torch in the less usual forms that programs give them: memory formats, operands that get no gradient,
tensors for numbers."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
from torch import nn


@differential(hits=3)
def test_memory_formats_of_conversions():
    def step(x, image):
        same = x.float(memory_format=torch.preserve_format)
        wide = image.to(torch.float32, memory_format=torch.channels_last)
        return (
            same is x,
            x.double(memory_format=torch.contiguous_format),
            x.t().half(memory_format=torch.contiguous_format),
            x.t().to("cpu", torch.float64, True, True, memory_format=torch.preserve_format),
            wide,
            torch.view_as_real(x.cfloat()) * 2,
        )

    return Program(step, [(torch.randn(3, 4), torch.randn(2, 3, 4, 4)) for _ in range(6)])


@differential(hits=3)
def test_operands_that_get_no_gradient():
    w = nn.Parameter(torch.randn(6, 4))
    sign = nn.Parameter(torch.tensor([1.0, -1, 1, 1, -1, 1]))

    def step(x):
        w.grad = sign.grad = None
        loss = F.cosine_embedding_loss(w, x, sign, margin=0.2)
        loss = loss + F.hinge_embedding_loss(w[:, 0], sign)
        loss.backward()
        return loss.detach(), sign.grad is None

    return Program(step, [(torch.randn(6, 4),) for _ in range(6)], watch=[w, sign])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@differential(hits=3)
def test_embedding_bag(mode):
    bag = nn.EmbeddingBag(10, 4, mode=mode)
    optimizer = torch.optim.SGD(bag.parameters(), 0.1)

    def step(words, offsets):
        optimizer.zero_grad()
        loss = bag(words, offsets).square().mean() + bag(words.view(3, 4)).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def batch(start):
        return torch.randint(10, (12,)), torch.tensor([0, start, 9])

    return Program(step, [batch(2 + i % 4) for i in range(7)], watch=[bag])


@differential(hits=3)
def test_an_element_for_a_number():
    def step(x, y, rate):
        return x.add(y, alpha=rate), torch.addcmul(x, y, y, value=rate)

    return Program(
        step, [(torch.randn(3), torch.randn(3), torch.tensor(0.1 * i)) for i in range(6)]
    )


@differential(hits=3)
def test_equality_of_different_kinds():
    def step(x, dim):
        if dim == () or dim is None or dim == "all":
            return x.sum()
        return x.sum(dim), dim != [], (dim,) == dim

    return Program(step, [(torch.randn(3, 4), 1) for _ in range(6)])


@differential(hits=3)
def test_a_copy_by_to_has_memory_of_its_own():
    def step(x):
        same = x.to(torch.float64, copy=True)
        turned = x.t().to(x, copy=True)
        x.add_(1)
        return same, turned

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)])
