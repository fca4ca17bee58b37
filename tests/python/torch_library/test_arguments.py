"""Layers and losses in every form of their arguments, in whole steps."""

import pytest
import torch.nn.functional as F
from differential import Call, Program, differential

import torch
from torch import nn

# ---- recurrent cells and layers


def parameters_grad(module):
    return [p.grad for p in module.parameters()]


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("state", ["given", "none", "absent", "keyword"])
@differential()
def test_cell(kind, bias, batched, state):
    cell = kind(3, 4, bias=bias)
    optimizer = torch.optim.SGD(cell.parameters(), 0.1)
    shape = (2,) if batched else ()

    def step(xs, h):
        optimizer.zero_grad()
        loss = 0
        for x in xs:
            if state == "given":
                h = cell(x, h)
            elif state == "keyword":
                h = cell(hx=h, input=x)
            elif state == "none":
                h = cell(x, None)
            else:
                h = cell(x)
            out = h[0] if isinstance(h, tuple) else h
            loss = loss + out.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss, h

    def start():
        h = torch.randn(*shape, 4)
        return (h, torch.randn(*shape, 4)) if kind is nn.LSTMCell else h

    batches = [([torch.randn(*shape, 3) for _ in range(3)], start()) for _ in range(5)]
    return Program(step, batches, watch=[cell])


@differential()
def test_relu_cell():
    cell = nn.RNNCell(3, 4, nonlinearity="relu")

    def step(x, h):
        cell.zero_grad()
        h = cell(x, h)
        h = cell(x, h)
        h.sum().backward()
        return h

    return Program(step, [(torch.randn(2, 3), torch.randn(2, 4)) for _ in range(5)], watch=[cell])


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"bidirectional": True},
        {"num_layers": 2},
        {"bias": False, "num_layers": 2, "bidirectional": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("batched", [True, False])
@differential()
def test_layer(kind, options, batched):
    layer = kind(3, 4, **options)

    def step(x):
        layer.zero_grad()
        out, h = layer(x)
        hidden = h[0] if isinstance(h, tuple) else h
        (out.pow(2).sum() + hidden.sum()).backward()
        return out, h

    shape = (5, 2, 3) if batched else (5, 3)
    return Program(step, [(torch.randn(*shape),) for _ in range(5)], watch=[layer])


# ---- cross entropies

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


# ---- operators in place

IN_PLACE = {
    "add": lambda x, y: x.add_(y, alpha=2),
    "add number": lambda x, y: x.add_(1.5),
    "mul": lambda x, y: x.mul_(y),
    "div": lambda x, y: x.div_(y + 3),
    "pow": lambda x, y: x.pow_(2),
    "addcmul": lambda x, y: x.addcmul_(y, y, value=0.3),
    "addcdiv": lambda x, y: x.addcdiv_(y, y + 3, value=0.3),
    "lerp": lambda x, y: x.lerp_(y, 0.3),
    "lerp tensor": lambda x, y: x.lerp_(y, y.sigmoid()),
    "clamp": lambda x, y: x.clamp_(-0.5, 0.5),
    "clamp min": lambda x, y: x.clamp_min_(0.1),
    "relu": lambda x, y: x.relu_(),
    "leaky": lambda x, y: F.leaky_relu_(x, 0.1),
    "elu": lambda x, y: F.elu_(x),
    "silu": lambda x, y: F.silu(x, inplace=True),
    "hardtanh": lambda x, y: F.hardtanh_(x),
    "threshold": lambda x, y: F.threshold_(x, 0.1, 2.0),
    "exp": lambda x, y: x.exp_(),
    "tanh": lambda x, y: x.tanh_(),
    "sigmoid": lambda x, y: x.sigmoid_(),
    "sqrt": lambda x, y: x.abs_().sqrt_(),
    "neg": lambda x, y: x.neg_(),
    "masked_fill": lambda x, y: x.masked_fill_(y > 0, 2.0),
    "masked_fill tensor": lambda x, y: x.masked_fill_(y > 0, y.sum()),
    "fill": lambda x, y: x.fill_(2.0),
    "fill tensor": lambda x, y: x.fill_(y.sum()),
    "zero": lambda x, y: x.zero_(),
    "copy": lambda x, y: x.copy_(y),
    "copy broadcast": lambda x, y: x.copy_(y[0]),
    "index_add": lambda x, y: x.index_add_(0, torch.tensor([0, 2, 0]), y),
    "index_fill": lambda x, y: x.index_fill_(1, torch.tensor([0, 2]), 2.0),
    "index_copy": lambda x, y: x.index_copy_(0, torch.tensor([2, 0, 1]), y),
    "index_put": lambda x, y: x.index_put_((torch.tensor([0, 0]),), y[:2], accumulate=True),
    "scatter": lambda x, y: x.scatter_(1, torch.tensor([[0, 1], [2, 3], [0, 1]]), y[:, :2]),
    "scatter_add": lambda x, y: x.scatter_add_(1, torch.tensor([[0, 0], [2, 3], [0, 1]]), y[:, :2]),
    "setitem": lambda x, y: x.__setitem__((slice(None), 1), y[:, 0]),
    "setitem mask": lambda x, y: x.__setitem__(y > 0, 0.5),
    "tril": lambda x, y: x.tril_(),
    "triu": lambda x, y: x.triu_(1),
    "cumsum": lambda x, y: x.cumsum_(1),
    "baddbmm": lambda x, y: x.addmm_(y, y.t() @ y),
    "addmv": lambda x, y: x[:, 0].addmv_(y, y[0]),
    "renorm": lambda x, y: x.renorm_(2, 0, 0.5),
    "round": lambda x, y: x.round_(),
    "fmod": lambda x, y: x.fmod_(0.5),
    "remainder": lambda x, y: x.remainder_(0.5),
    "where": lambda x, y: x.copy_(torch.where(y > 0, x, y)),
    "view": lambda x, y: x.view(-1).mul_(2),
    "slice": lambda x, y: x[:, ::2].add_(1),
    "logical": lambda x, y: x.ge_(y),
    "xlogy": lambda x, y: x.abs_().xlogy_(y.abs()),
    "nan_to_num": lambda x, y: x.nan_to_num_(0.0),
    "swap": lambda x, y: x.copy_(x.flip(0)),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("place", ["made", "argument"])
@differential()
def test_in_place(name, place):
    write = IN_PLACE[name]

    def step(p, y):
        p.grad = None
        x = p * 1.5
        before = x.sum()
        write(x, y)
        x = x * 2
        loss = (x.pow(2).sum() + before) * 0.5
        loss.backward()
        return x.detach(), p.grad

    def on_argument(x, y):
        write(x, y)
        return x * 2

    if place == "argument":
        return Program(on_argument, [(torch.randn(3, 4), torch.randn(3, 4)) for _ in range(5)])
    return Program(
        step, [(torch.randn(3, 4).requires_grad_(), torch.randn(3, 4)) for _ in range(5)]
    )


# ---- inference mode


@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
@differential()
def test_modes(around, mode):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def step(x):
        with mode():
            y = model(x)
            z = y.view(-1)
            z += 1
        return y

    def plain(x):
        y = model(x)
        return y, y.requires_grad, y.is_inference()

    def convert(function):
        import torchjanus

        converted = torchjanus.function(function)

        def called(x):
            with mode():
                return converted(x)

        return called, converted

    batches = [(torch.randn(5, 4),) for _ in range(5)]
    if not around:
        return Program(step, batches, watch=[model])

    def eager(x):
        with mode():
            return plain(x)

    return Program(eager, batches, watch=[model], convert=lambda _: convert(plain))


@differential()
def test_inference_decorator_and_keyword():
    model = nn.Linear(4, 3)

    @torch.inference_mode()
    def evaluate(x, *, scale=1.0):
        return (model(x) * scale).argmax(1)

    def step(x, **options):
        return evaluate(x, **options)

    calls = [Call((torch.randn(5, 4),), {"scale": 2.0}) for _ in range(5)]
    return Program(step, calls)
