"""YOLOv3 with a small Darknet and two scales, on made pictures with a few boxes each.

Targets are built by Python loops over the boxes, whose number differs from picture to picture; NumPy finds the anchor
of the best form. The step reads losses and the share of found boxes as numbers and prints nothing else of them.

python examples/terra/yolo_v3.py                      eagerly
torchjanus run examples/terra/yolo_v3.py              as speculative graphs
"""

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn

ANCHORS = np.array([[[10, 10], [14, 8], [8, 14]], [[22, 22], [32, 18], [18, 32]]], dtype=np.float32)
STRIDES = (8, 16)


def convolution(inputs, outputs, size=3, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.1),
    )


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.narrow = convolution(width, width // 2, 1)
        self.wide = convolution(width // 2, width)

    def forward(self, x):
        return x + self.wide(self.narrow(x))


class Yolo(nn.Module):
    """Two maps of predictions: for each cell and anchor x, y, width, height, whether there is a box, and classes."""

    def __init__(self, width, classes):
        super().__init__()
        self.values = 5 + classes
        self.to_8 = nn.Sequential(
            convolution(3, width),
            convolution(width, 2 * width, stride=2),
            Residual(2 * width),
            convolution(2 * width, 4 * width, stride=2),
            Residual(4 * width),
            convolution(4 * width, 8 * width, stride=2),
            Residual(8 * width),
        )
        self.to_16 = nn.Sequential(
            convolution(8 * width, 16 * width, stride=2), Residual(16 * width)
        )
        self.neck = convolution(16 * width, 8 * width, 1)
        self.head_16 = nn.Conv2d(8 * width, 3 * self.values, 1)
        self.upwards = convolution(8 * width, 4 * width, 1)
        self.joined = convolution(12 * width, 8 * width)
        self.head_8 = nn.Conv2d(8 * width, 3 * self.values, 1)

    def forward(self, pictures):
        fine = self.to_8(pictures)
        coarse = self.neck(self.to_16(fine))
        above = F.interpolate(self.upwards(coarse), scale_factor=2, mode="nearest")
        maps = (self.head_8(self.joined(torch.cat([above, fine], 1))), self.head_16(coarse))
        return [self.by_anchor(each) for each in maps]

    def by_anchor(self, x):
        batch, _, height, width = x.shape
        return x.view(batch, 3, self.values, height, width).permute(0, 1, 3, 4, 2)


def best_anchor(width, height):
    """Scale and anchor whose form has the most in common with the box."""
    together = np.minimum(ANCHORS, np.array([width, height])).prod(-1)
    overlap = together / (ANCHORS.prod(-1) + width * height - together)
    return np.unravel_index(np.argmax(overlap), overlap.shape)


def build_targets(boxes, maps):
    """What each map is to predict, and where."""
    targets = [torch.zeros_like(each) for each in maps]
    for picture, of_picture in enumerate(boxes):
        for kind, x, y, width, height in of_picture:
            scale, anchor = best_anchor(width, height)
            target, stride = targets[scale], STRIDES[scale]
            column, row = int(x // stride), int(y // stride)
            cell = target[picture, anchor, row, column]
            cell[0], cell[1] = x / stride - column, y / stride - row
            cell[2] = float(np.log(width / ANCHORS[scale, anchor, 0]))
            cell[3] = float(np.log(height / ANCHORS[scale, anchor, 1]))
            cell[4] = 1.0
            cell[5 + kind] = 1.0
    return targets


def loss_of_map(predicted, target):
    """The loss, how many boxes there are, and how many of them are predicted."""
    is_box = target[..., 4] == 1
    found = predicted[is_box]
    wanted = target[is_box]
    places = F.binary_cross_entropy_with_logits(found[:, :2], wanted[:, :2], reduction="sum")
    sizes = F.mse_loss(found[:, 2:4], wanted[:, 2:4], reduction="sum")
    kinds = F.binary_cross_entropy_with_logits(found[:, 5:], wanted[:, 5:], reduction="sum")
    boxes = F.binary_cross_entropy_with_logits(
        predicted[..., 4], target[..., 4], reduction="sum", pos_weight=torch.tensor(4.0)
    )
    loss = places + sizes + kinds + 0.5 * boxes
    return loss, len(wanted), (found[:, 4] > 0).sum().item()


def train_step(model, optimizer, pictures, boxes):
    maps = model(pictures)
    total, count, found = 0.0, 0, 0
    for predicted, target in zip(maps, build_targets(boxes, maps), strict=True):
        loss, boxes_here, found_here = loss_of_map(predicted, target)
        total = total + loss / len(pictures)
        count += boxes_here
        found += found_here
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item(), found / count


def make_batch(batch, size, classes):
    """Up to four rectangles a picture: class, middle, width and height. The class decides the colour."""
    colours = np.linspace(-1, 1, classes)
    pictures = np.random.normal(0, 0.1, (batch, 3, size, size)).astype(np.float32)
    boxes = []
    for picture in pictures:
        of_picture = []
        for _ in range(np.random.randint(1, 5)):
            kind, (width, height) = np.random.randint(classes), np.random.randint(8, 33, 2)
            left, top = np.random.randint(0, size - width), np.random.randint(0, size - height)
            picture[kind % 3, top : top + height, left : left + width] = 1.0
            picture[(kind + 1) % 3, top : top + height, left : left + width] = colours[kind]
            of_picture.append(
                (int(kind), left + width / 2, top + height / 2, int(width), int(height))
            )
        boxes.append(of_picture)
    return torch.from_numpy(pictures), boxes


def make_models(width, classes):
    return (Yolo(width, classes),)


def main(steps=100, seed=0, every=10, batch=4, width=8, size=96, classes=6):
    common.seed_all(seed)
    (model,) = make_models(width, classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in common.timed(steps):
        pictures, boxes = make_batch(batch, size, classes)
        loss, found = train_step(model, optimizer, pictures, boxes)
        if step % every == every - 1:
            print(f"step {step + 1}  loss {loss:.4f}  found {found:.3f}")


if __name__ == "__main__":
    common.call(main, __doc__)
