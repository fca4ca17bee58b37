"""Convolutional programs in single precision, where images are kept channels last between operators:
results, gradients and state must be eager's, in eager's layout."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

BATCHES = 6


def block(inputs: int, outputs: int, **settings) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False, **settings),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 1)

    def forward(self, x):
        return F.relu(x + self.second(F.leaky_relu(self.norm(self.first(x)), 0.1)))


def head(features: int) -> list[nn.Module]:
    return [nn.Flatten(), nn.Linear(features, 5)]


NETWORKS = {
    "batch norm": lambda: [*block(3, 8), *block(8, 12), *head(12 * 4)],
    "one channel": lambda: [
        nn.Conv2d(1, 8, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        *head(8 * 16),
    ],
    "residual": lambda: [nn.Conv2d(3, 8, 3, stride=2), Residual(8), Residual(8), *head(8 * 9)],
    "groups": lambda: [*block(3, 8), *block(8, 8, groups=4), *head(8 * 4)],
    "to single pixels": lambda: [*block(3, 6), *block(6, 6), *block(6, 10), *head(10)],
    "average": lambda: [*block(3, 8), nn.Conv2d(8, 8, 3), nn.AdaptiveAvgPool2d(1), *head(8)],
    "filters of a pixel": lambda: [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 16, 1, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 8, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 4, 1, stride=(3, 1)),
        *head(4 * 8),
    ],
    "transposed": lambda: [
        nn.Conv2d(3, 6, 3, stride=2, padding=1),
        nn.BatchNorm2d(6),
        nn.ConvTranspose2d(6, 3, 2, stride=2),
        *head(3 * 64),
    ],
    "dropout": lambda: [
        *block(3, 8),
        nn.Dropout(0.3),
        nn.Conv2d(8, 8, 3),
        nn.Dropout2d(0.3),
        *head(32),
    ],
    "without affine": lambda: [
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8, affine=False, momentum=None),
        nn.ELU(),
        *head(8 * 36),
    ],
    "without statistics": lambda: [
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8, track_running_stats=False),
        nn.Sigmoid(),
        *head(8 * 36),
    ],
}


def network(name: str, memory_format: torch.memory_format | None = None):
    model = nn.Sequential(*NETWORKS[name]())
    channels = model[0].in_channels
    images = [torch.randn(6, channels, 8, 8) for _ in range(BATCHES)]
    if memory_format is not None:
        model = model.to(memory_format=memory_format)
        images = [each.contiguous(memory_format=memory_format) for each in images]
    return model, [(each, torch.randint(0, 5, (6,))) for each in images]


@pytest.mark.parametrize("name", NETWORKS)
@differential(hits=2, tolerance=2e-4, dtype=torch.float32)
def test_training(name):
    model, batches = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches, watch=[model, optimizer])


@pytest.mark.parametrize("name", ["batch norm", "residual", "filters of a pixel"])
@differential(hits=2, tolerance=2e-4, dtype=torch.float32)
def test_layout_chosen_by_the_user(name):
    model, batches = network(name, torch.channels_last)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return Program(step, batches, watch=[model])


@pytest.mark.parametrize(
    "name", ["batch norm", "residual", "average", "dropout", "filters of a pixel"]
)
@differential(hits=2, tolerance=1e-4, dtype=torch.float32)
def test_evaluation(name):
    model, batches = network(name)
    model.eval()

    def evaluate(x, y):
        with torch.no_grad():
            return model(x)

    return Program(evaluate, batches, watch=[model])


@differential(hits=2, tolerance=2e-4, dtype=torch.float32)
def test_images_that_leave_the_graph():
    first, second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3)
    norm = nn.BatchNorm2d(8)
    kept = {}

    def step(x):
        a = first(x)
        b = F.relu(norm(a))
        c = second(b)
        values, places = F.max_pool2d(c, 2, return_indices=True)
        gradients = torch.autograd.grad(values.sum(), [x, first.weight, a])
        return a, b, c.transpose(1, 3), values, places, gradients, b.view(6, -1)

    batches = [(torch.randn(6, 3, 8, 8, requires_grad=True),) for _ in range(BATCHES)]
    return Program(step, batches, watch=[first, second, norm, kept])


@differential(hits=2, tolerance=2e-4, dtype=torch.float32)
def test_gradients_that_are_clipped_and_accumulated():
    model, batches = network("batch norm")
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step(x, y):
        optimizer.zero_grad()
        for _ in range(2):
            F.cross_entropy(model(x), y).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return norm

    return Program(step, batches, watch=[model])


@differential(hits=2, tolerance=2e-4, dtype=torch.float32)
def test_batches_of_other_sizes():
    model, batches = network("batch norm")
    sizes = [6, 6, 6, 6, 4, 6, 4, 3, 3, 6]
    calls = [(torch.randn(n, 3, 8, 8), torch.randint(0, 5, (n,))) for n in sizes]

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return Program(step, batches + calls, watch=[model])


SHAPES = [
    (4, 3, 5, 7),
    (5, 17),
    (8, 6, 9),
    (3, 4, 2, 3, 5),
    (1, 3, 8, 8),
    (6, 40, 1, 1),
    (33, 33, 3, 1),
]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@differential(hits=2, tolerance=1e-9)
def test_batch_norm(shape, affine, last):
    """Every shape and layout of batch norm, far from zero, in double precision."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    channels = shape[1]
    mean, variance = torch.zeros(channels), torch.ones(channels)
    weight = torch.randn(channels, requires_grad=True) if affine else None
    bias = torch.randn(channels, requires_grad=True) if affine else None

    def step(x):
        y = F.batch_norm(x, mean, variance, weight, bias, True, 0.3, 1e-4)
        return y, torch.autograd.grad((y * y.cos()).sum(), [x, weight, bias] if affine else [x])

    def batch():
        x = torch.randn(shape) * 3 + 20
        if last and len(shape) in formats:
            x = x.contiguous(memory_format=formats[len(shape)])
        return (x.requires_grad_(),)

    return Program(step, [batch() for _ in range(BATCHES)], watch=[mean, variance, weight, bias])


@pytest.mark.parametrize(
    ("filters", "groups"), [((8, 4, 3, 3), 2), ((8, 8, 1, 1), 1), ((8, 8, 3, 3), 1)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@differential(hits=2, tolerance=2e-4, dtype=torch.float32)
def test_gradients_of_filters_that_are_results(filters, groups, dtype):
    """However the library lays them out beside images that are channels last."""
    first = torch.randn(8, 3, 3, 3, dtype=dtype)
    weight = torch.randn(filters, dtype=dtype, requires_grad=True)
    mean, variance = torch.zeros(8, dtype=dtype), torch.ones(8, dtype=dtype)

    def step(x):
        y = F.conv2d(F.conv2d(x.float(), first.float(), padding=1).to(dtype), weight, groups=groups)
        y = F.batch_norm(y, mean, variance, training=True)
        return torch.autograd.grad(y.square().mean() + y.cos().mean(), weight)

    batches = [(torch.randn(4, 3, 12, 12, dtype=dtype),) for _ in range(BATCHES)]
    return Program(step, batches)


@pytest.mark.parametrize("train", [True, False])
@differential(tolerance=1e-3, dtype=torch.float32)
def test_model_that_is_channels_last(train):
    """How a convolution's result lies is not known before it is there; a norm gives the same."""
    model = nn.Sequential(nn.Conv2d(3, 5, 1), nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 4, 3))
    model = model.to(memory_format=torch.channels_last).train(train)

    def step(x):
        model.zero_grad()
        y = model(x)
        y.square().mean().backward()
        return y, y.sum(1)

    def batch():
        return (torch.randn(2, 3, 7, 8).contiguous(memory_format=torch.channels_last),)

    return Program(step, [batch() for _ in range(BATCHES)], watch=[model])


def test_pooled_means_keep_the_images_channels_last():
    """Their gradient is one number for all pixels of a channel, which is no layout to keep to."""

    def copies() -> int:
        model = nn.Sequential(
            *block(3, 8), *block(8, 8)[:3], *block(8, 8)[:2], nn.AdaptiveAvgPool2d(1), *head(8)
        )
        x, y = torch.randn(16, 3, 16, 16), torch.randint(0, 5, (16,))

        def step():
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()

        converted = torchjanus.function(step)
        for _ in range(8):
            converted()
        (entry,) = converted.snapshot()["cache"]
        return entry["program"].count("copy ")

    with torchjanus.options.without("layouts"):
        others = copies()
    assert copies() > others
