"""Losses in every form of their arguments, in whole steps."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn

SHAPES = {"rows": (5, 4), "one": (4,), "3-D": (2, 4, 3), "4-D": (2, 4, 3, 2)}


def classes_like(scores):
    if scores.dim() == 1:
        return torch.randint(0, 4, ())
    return torch.randint(0, 4, (scores.shape[0], *scores.shape[2:]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": True},
        {"ignore_index": 1},
        {"label_smoothing": 0.1},
        {"weight": True, "ignore_index": 2, "label_smoothing": 0.2},
    ],
    ids=str,
)
@differential()
def test_cross_entropy(shape, reduction, options):
    options = dict(options)
    if options.get("weight"):
        options["weight"] = torch.rand(4) + 0.1

    def step(scores, targets):
        scores.grad = None
        loss = F.cross_entropy(scores, targets, reduction=reduction, **options)
        loss.sum().backward()
        return loss.detach(), scores.grad

    batches = []
    for _ in range(5):
        scores = torch.randn(*SHAPES[shape]).requires_grad_()
        batches.append((scores, classes_like(scores)))
    return Program(step, batches)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@differential()
def test_cross_entropy_of_probabilities(shape, reduction, smoothing, weighted):
    weight = torch.rand(4) + 0.1 if weighted else None
    loss_of = nn.CrossEntropyLoss(weight, reduction=reduction, label_smoothing=smoothing)

    def step(scores, targets):
        scores.grad = targets.grad = None
        dim = 0 if scores.dim() == 1 else 1
        loss = loss_of(scores, targets.softmax(dim))
        loss.sum().backward()
        return loss.detach(), scores.grad, targets.grad

    size = SHAPES[shape]
    return Program(
        step,
        [
            (torch.randn(*size).requires_grad_(), torch.randn(*size).requires_grad_())
            for _ in range(5)
        ],
    )


@differential()
def test_cross_entropy_that_ignores_all():
    def step(scores, targets):
        scores.grad = None
        loss = F.cross_entropy(scores, targets)
        loss.backward()
        return loss.detach(), scores.grad

    batches = [(torch.randn(3, 4).requires_grad_(), torch.randint(0, 4, (3,))) for _ in range(4)]
    ignored = torch.full((3,), -100)
    return Program(step, [*batches, (torch.randn(3, 4).requires_grad_(), ignored), batches[0]])


@pytest.mark.parametrize("bad", [4, -1, 1000])
@differential(hits=3)
def test_cross_entropy_of_no_class(bad):
    def step(scores, targets):
        scores.grad = None
        loss = F.cross_entropy(scores, targets)
        loss.backward()
        return loss.detach(), scores.grad

    batches = [(torch.randn(3, 4).requires_grad_(), torch.randint(0, 4, (3,))) for _ in range(5)]
    wrong = torch.tensor([0, bad, 1])
    return Program(step, [*batches, (torch.randn(3, 4).requires_grad_(), wrong), batches[0]])


LOSSES = {
    "nll": lambda x, y, r: F.nll_loss(x.log_softmax(1), y.abs().long() % 4, reduction=r),
    "nll weighted": lambda x, y, r: F.nll_loss(
        x.log_softmax(1), y.abs().long() % 4, torch.arange(1.0, 5.0), ignore_index=1, reduction=r
    ),
    "bce": lambda x, y, r: F.binary_cross_entropy(x.sigmoid()[:, 0], y.sigmoid(), reduction=r),
    "bce logits": lambda x, y, r: F.binary_cross_entropy_with_logits(
        x[:, 0], y.sigmoid(), torch.arange(1.0, 6.0), reduction=r
    ),
    "bce positive": lambda x, y, r: F.binary_cross_entropy_with_logits(
        x[:, 0], y.sigmoid(), pos_weight=torch.tensor(2.0), reduction=r
    ),
    "kl": lambda x, y, r: F.kl_div(
        x.log_softmax(1), y[:, None].expand(5, 4).softmax(1), reduction=r
    ),
    "kl log": lambda x, y, r: F.kl_div(
        x.log_softmax(1), y[:, None].expand(5, 4).log_softmax(1), reduction=r, log_target=True
    ),
    "huber": lambda x, y, r: F.huber_loss(x[:, 0], y, reduction=r, delta=0.5),
    "smooth": lambda x, y, r: F.smooth_l1_loss(x[:, 0], y, reduction=r, beta=0.3),
    "l1": lambda x, y, r: F.l1_loss(x[:, 0], y, reduction=r),
    "hinge": lambda x, y, r: F.hinge_embedding_loss(x[:, 0], y.sign(), reduction=r),
    "margin": lambda x, y, r: F.margin_ranking_loss(x[:, 0], x[:, 1], y.sign(), 0.1, reduction=r),
    "multi margin": lambda x, y, r: F.multi_margin_loss(x, y.abs().long() % 4, reduction=r),
    "soft margin": lambda x, y, r: F.soft_margin_loss(x[:, 0], y.sign(), reduction=r),
    "triplet": lambda x, y, r: F.triplet_margin_loss(x, x * 2 + 1, y[:, None] * x, reduction=r),
    "cosine": lambda x, y, r: F.cosine_embedding_loss(x, x.flip(1), y.sign(), reduction=r),
    "poisson": lambda x, y, r: F.poisson_nll_loss(x[:, 0], y.abs(), full=True, reduction=r),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
@differential()
def test_loss(name, reduction):
    loss_of = LOSSES[name]

    def step(x, y):
        x.grad = None
        loss = loss_of(x, y, reduction)
        loss.sum().backward()
        return loss.detach(), x.grad

    return Program(step, [(torch.randn(5, 4).requires_grad_(), torch.randn(5)) for _ in range(5)])
