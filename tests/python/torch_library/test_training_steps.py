"""Whole training steps: forward, backward and update in one graph, with eager's numbers and state."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "nesterov": lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3
    ),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-2),
}


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        # A bias before a batch norm would have a gradient of rounding errors only.
        self.convolution = nn.Conv2d(1, 3, 3, bias=False)
        self.norm = nn.BatchNorm2d(3)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(3 * 3 * 3, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.convolution(x))), 2)
        return self.head(self.dropout(x.flatten(1)))


def train(make_optimizer, convert, body):
    torch.manual_seed(0)
    model = Network().double()
    optimizer = make_optimizer(model.parameters())
    step = body(model, optimizer)
    if convert:
        step = torchjanus.function(step)
    data = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(7):
        x = torch.randn(6, 1, 8, 8, generator=data, dtype=torch.float64)
        y = torch.randint(0, 5, (6,), generator=data)
        losses.append(step(x, y))
    if convert:
        assert step.stats()["hits"] > 0, step.stats()["reasons"]
    return losses, model.state_dict(), optimizer.state_dict()


def assert_same_training(make_optimizer, body):
    expected = train(make_optimizer, False, body)
    actual = train(make_optimizer, True, body)
    torch.testing.assert_close(actual[0], expected[0])
    torch.testing.assert_close(actual[1], expected[1])
    torch.testing.assert_close(actual[2]["state"], expected[2]["state"])


def plain(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name):
    assert_same_training(OPTIMIZERS[name], plain)


def test_clipping_and_accumulation():
    def body(model, optimizer):
        def step(x, y):
            optimizer.zero_grad(set_to_none=False)
            for part in range(2):
                (
                    F.cross_entropy(model(x[part * 3 : part * 3 + 3]), y[part * 3 : part * 3 + 3])
                    / 2
                ).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return 0.0

        return step

    assert_same_training(OPTIMIZERS["sgd"], body)


def test_autograd_grad_twice():
    def penalty(x, w):
        w = w.detach().requires_grad_()
        (first,) = torch.autograd.grad((x @ w).sin().sum(), w, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), w)
        return first.detach(), second

    x, w = torch.randn(3, 4), torch.randn(4, 2)
    converted = torchjanus.function(penalty)
    for _ in range(6):
        torch.testing.assert_close(converted(x, w), penalty(x, w))
    assert converted.stats()["hits"] > 0, converted.stats()["reasons"]


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
