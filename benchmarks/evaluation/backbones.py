"""The ten image networks of Jittor's evaluation, own definitions, in inference on pictures of 112×112."""

from collections.abc import Callable

import torch.nn.functional as F
from programs import Benchmark

import torch
from torch import nn

from . import paper

CLASSES = 1000
SIZE = 112


def conv(inputs: int, outputs: int, size: int, stride: int = 1, padding: int = 0) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, padding), nn.ReLU())


def dense(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(), nn.Linear(inputs, outputs), nn.ReLU())


def alexnet() -> nn.Module:
    return nn.Sequential(
        conv(3, 64, 11, 4, 2), nn.MaxPool2d(3, 2),
        conv(64, 192, 5, 1, 2), nn.MaxPool2d(3, 2),
        conv(192, 384, 3, 1, 1), conv(384, 256, 3, 1, 1), conv(256, 256, 3, 1, 1),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(),
        dense(256 * 36, 4096), dense(4096, 4096), nn.Linear(4096, CLASSES),
    )  # fmt: skip


def vgg11() -> nn.Module:
    layers: list[nn.Module] = []
    inputs = 3
    for outputs, count in ((64, 1), (128, 1), (256, 2), (512, 2), (512, 2)):
        for _ in range(count):
            layers.append(conv(inputs, outputs, 3, 1, 1))
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    head = [nn.AdaptiveAvgPool2d(7), nn.Flatten(), dense(512 * 49, 4096), dense(4096, 4096)]
    return nn.Sequential(*layers, *head, nn.Linear(4096, CLASSES))


class Fire(nn.Module):
    """Few channels, which two convolutions look at side by side."""

    def __init__(self, inputs: int, squeezed: int, outputs: int) -> None:
        super().__init__()
        self.squeeze = conv(inputs, squeezed, 1)
        self.small = conv(squeezed, outputs, 1)
        self.large = conv(squeezed, outputs, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.squeeze(x)
        return torch.cat([self.small(x), self.large(x)], dim=1)


def squeezenet1_1() -> nn.Module:
    def pool() -> nn.Module:
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    return nn.Sequential(
        conv(3, 64, 3, 2), pool(), Fire(64, 16, 64), Fire(128, 16, 64), pool(), Fire(128, 32, 128),
        Fire(256, 32, 128), pool(), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256),
        Fire(512, 64, 256), nn.Dropout(), conv(512, CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip


class Scales(nn.Module):
    """Res2Net's convolution: each slice of the channels sees the result of the one before."""

    def __init__(self, width: int, scales: int, stride: int) -> None:
        super().__init__()
        self.slices, self.stride = scales, stride
        self.parts = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
            )
            for _ in range(scales - 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, *rest = x.chunk(self.slices, dim=1)
        results: list[torch.Tensor] = []
        for part, piece in zip(self.parts, rest, strict=True):
            goes_on = results and self.stride == 1
            results.append(part(piece + results[-1] if goes_on else piece))
        whole = first if self.stride == 1 else F.avg_pool2d(first, 3, self.stride, 1)
        return torch.cat([whole, *results], dim=1)


class Block(nn.Module):
    """A bottleneck. `make_middle` gives the layers between the two convolutions of one pixel."""

    def __init__(
        self, inputs: int, width: int, outputs: int, stride: int, make_middle: Callable
    ) -> None:
        super().__init__()
        self.enter = nn.Conv2d(inputs, width, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.middle = make_middle(width, stride)
        self.leave = nn.Conv2d(width, outputs, 1, bias=False)
        self.last_norm = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x if self.shortcut is None else self.shortcut(x)
        x = self.middle(F.relu(self.norm(self.enter(x))))
        return F.relu(self.last_norm(self.leave(x)) + kept)


def grouped(groups: int) -> Callable:
    def make(width: int, stride: int) -> nn.Module:
        middle = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        return nn.Sequential(middle, nn.BatchNorm2d(width), nn.ReLU())

    return make


class Residual(nn.Module):
    """ResNet and its kin; `width` is that of the first stage's bottlenecks."""

    def __init__(self, counts: tuple[int, ...], width: int, make_middle: Callable) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        blocks: list[nn.Module] = []
        inputs = 64
        for stage, count in enumerate(counts):
            for number in range(count):
                stride = 2 if stage and number == 0 else 1
                outputs = 256 << stage
                blocks.append(Block(inputs, width << stage, outputs, stride, make_middle))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(inputs, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 3, 2, 1)
        return self.classify(F.adaptive_avg_pool2d(self.blocks(x), 1).flatten(1))


FIFTY, HUNDRED, HUNDRED_FIFTY = (3, 4, 6, 3), (3, 4, 23, 3), (3, 8, 36, 3)

MAKE: dict[str, Callable[[], nn.Module]] = {
    "alexnet": alexnet,
    "vgg11": vgg11,
    "resnet50": lambda: Residual(FIFTY, 64, grouped(1)),
    "resnet152": lambda: Residual(HUNDRED_FIFTY, 64, grouped(1)),
    "wide_resnet50_2": lambda: Residual(FIFTY, 128, grouped(1)),
    "wide_resnet101_2": lambda: Residual(HUNDRED, 128, grouped(1)),
    "squeezenet1_1": squeezenet1_1,
    "resnext50_32x4d": lambda: Residual(FIFTY, 128, grouped(32)),
    "resnext101_32x8d": lambda: Residual(HUNDRED, 256, grouped(32)),
    "res2net50": lambda: Residual(
        FIFTY, 104, lambda width, stride: Scales(width // 4, 4, stride)
    ),
}  # fmt: skip


def without_gradients(model: nn.Module) -> Callable:
    def step(x):
        with torch.no_grad():
            return model(x)

    return step


def inference(name: str, batch: int, size: int = SIZE) -> Benchmark:
    def build():
        pictures = [(torch.randn(batch, 3, size, size),) for _ in range(2)]
        return [MAKE[name]().eval()], without_gradients, pictures

    return Benchmark(f"{paper.JITTOR_BACKBONES[name]}, batch {batch}", build)


class BasicBlock(nn.Module):
    """Seven operators: of Jittor's example."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.last_conv, self.last_norm = (
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x
        x = F.relu(self.norm(self.conv(x)))
        return F.relu(self.last_norm(self.last_conv(x)) + kept)


def residual_block() -> Benchmark:
    def build():
        return [BasicBlock(64).eval()], without_gradients, [(torch.randn(4, 64, 28, 28),)]

    return Benchmark("a residual block", build)
