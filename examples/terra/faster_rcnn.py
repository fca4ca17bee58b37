"""Faster R-CNN on made pictures: a network proposes regions, a second one classifies them, trained together.

How many proposals are left after non-maximum suppression depends on data, and both the suppression and the pooling of
regions are Python loops. NumPy makes the anchors and draws which anchors and regions count: third-party calls inside.

python examples/terra/faster_rcnn.py                      eagerly
torchjanus run examples/terra/faster_rcnn.py              as speculative graphs
"""

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn

STRIDE = 8


def make_anchors(rows, columns, sizes=(14, 24), forms=(0.6, 1.0, 1.6)):
    """Corners of all anchors, cell by cell."""
    around = []
    for size in sizes:
        for form in forms:
            height, width = size * np.sqrt(form), size / np.sqrt(form)
            around.append([-width / 2, -height / 2, width / 2, height / 2])
    y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    middles = (np.stack([x, y, x, y], -1) + 0.5) * STRIDE
    return (middles[:, :, None] + np.array(around)).reshape(-1, 4).astype(np.float32)


def overlaps(boxes, others):
    """Intersection over union, of each with each."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    together = (high - low).clamp(min=0).prod(-1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    return together / (areas[:, None] + (others[:, 2:] - others[:, :2]).prod(-1) - together)


def encode(boxes, truth):
    size, middle = boxes[:, 2:] - boxes[:, :2], (boxes[:, 2:] + boxes[:, :2]) / 2
    true_size, true_middle = truth[:, 2:] - truth[:, :2], (truth[:, 2:] + truth[:, :2]) / 2
    return torch.cat([(true_middle - middle) / size, torch.log(true_size / size)], 1)


def decode(boxes, moves):
    size, middle = boxes[:, 2:] - boxes[:, :2], (boxes[:, 2:] + boxes[:, :2]) / 2
    middle = middle + moves[:, :2] * size
    size = size * torch.exp(moves[:, 2:].clamp(max=2.0))
    return torch.cat([middle - size / 2, middle + size / 2], 1)


def suppress(boxes, limit, most):
    """Numbers of the boxes that overlap no better one by more than the limit; the best come first."""
    shared = overlaps(boxes, boxes)
    kept, left = [], torch.arange(len(boxes))
    while len(left) > 0 and len(kept) < most:
        best = left[0].item()
        kept.append(best)
        left = left[shared[best, left] <= limit]
    return kept


def draw(is_object, is_background, count):
    """Numbers of at most so many boxes, a quarter of them objects."""
    objects, background = np.flatnonzero(is_object.numpy()), np.flatnonzero(is_background.numpy())
    objects = np.random.permutation(objects)[: count // 4]
    background = np.random.permutation(background)[: count - len(objects)]
    return torch.from_numpy(objects), torch.from_numpy(background)


class FasterRCNN(nn.Module):
    def __init__(self, width, hidden, classes, anchors):
        super().__init__()
        layers, inputs = [], 3
        for outputs in (width, 2 * width, 4 * width):
            layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.ReLU()]
            layers += [nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU()]
            inputs = outputs
        self.trunk = nn.Sequential(*layers)
        self.look = nn.Conv2d(inputs, inputs, 3, padding=1)
        self.is_object = nn.Conv2d(inputs, anchors, 1)
        self.moves = nn.Conv2d(inputs, 4 * anchors, 1)
        self.hidden = nn.Sequential(nn.Linear(inputs * 16, hidden), nn.ReLU())
        self.kinds = nn.Linear(hidden, classes + 1)  # class 0: background
        self.last_moves = nn.Linear(hidden, 4)

    def look_everywhere(self, features):
        x = F.relu(self.look(features))
        scores = self.is_object(x)[0].permute(1, 2, 0).flatten()
        return scores, self.moves(x)[0].permute(1, 2, 0).reshape(-1, 4)

    def look_at(self, features, regions):
        """Pools each region to 4×4 and classifies it."""
        last_row, last_column = features.shape[2] - 1, features.shape[3] - 1
        pooled = []
        for left, top, right, bottom in (regions / STRIDE).round().int().tolist():
            left, top = min(left, last_column), min(top, last_row)
            region = features[0, :, top : max(top, bottom) + 1, left : max(left, right) + 1]
            pooled.append(F.adaptive_max_pool2d(region, 4))
        x = self.hidden(torch.stack(pooled).flatten(1))
        return self.kinds(x), self.last_moves(x)


def proposals(scores, anchors, moves, size, most=40, candidates=120):
    """The best boxes that do not cover each other: how many there are depends on the scores."""
    boxes = decode(anchors, moves).clamp(0, size)
    large = ((boxes[:, 2:] - boxes[:, :2]) >= 6).all(1)
    boxes, scores = boxes[large], scores[large]
    best = scores.argsort(descending=True, stable=True)[:candidates]
    boxes = boxes[best]
    return boxes[suppress(boxes, 0.4, most)]


def loss_of_proposals(scores, moves, anchors, boxes, count=64):
    shared = overlaps(anchors, boxes)
    overlap, nearest = shared.max(1)
    is_object = overlap >= 0.5
    is_object[shared.argmax(0)] = True  # each box has an anchor
    objects, background = draw(is_object, (overlap < 0.3) & ~is_object, count)
    chosen = torch.cat([objects, background])
    loss = F.binary_cross_entropy_with_logits(scores[chosen], is_object[chosen].float())
    wanted = encode(anchors[objects], boxes[nearest[objects]])
    return loss + F.smooth_l1_loss(moves[objects], wanted)


def loss_of_regions(model, features, regions, boxes, kinds, count=32):
    regions = torch.cat([regions, boxes])
    overlap, nearest = overlaps(regions, boxes).max(1)
    objects, background = draw(overlap >= 0.5, overlap < 0.5, count)
    chosen = torch.cat([objects, background])
    wanted = torch.zeros(len(chosen), dtype=torch.int64)
    wanted[: len(objects)] = kinds[nearest[objects]]
    scores, moves = model.look_at(features, regions[chosen])
    loss = F.cross_entropy(scores, wanted)
    wanted_moves = encode(regions[objects], boxes[nearest[objects]])
    loss = loss + F.smooth_l1_loss(moves[: len(objects)], wanted_moves)
    return loss, (scores.argmax(1) == wanted).float().mean().item()


def train_step(model, optimizer, picture, boxes, kinds):
    features = model.trunk(picture)
    anchors = torch.from_numpy(make_anchors(*features.shape[2:]))
    scores, moves = model.look_everywhere(features)
    with torch.no_grad():
        regions = proposals(scores, anchors, moves, picture.shape[-1])
    first = loss_of_proposals(scores, moves, anchors, boxes)
    second, right = loss_of_regions(model, features, regions, boxes, kinds)
    optimizer.zero_grad()
    (first + second).backward()
    optimizer.step()
    return first.item(), second.item(), right, len(regions)


def make_picture(size, classes):
    """One to four rectangles on noise: their corners, and classes from 1, which decide the colour."""
    picture = np.random.normal(0, 0.1, (1, 3, size, size)).astype(np.float32)
    boxes, kinds = [], []
    for _ in range(np.random.randint(1, 5)):
        kind, (width, height) = np.random.randint(classes), np.random.randint(12, 33, 2)
        left, top = np.random.randint(0, size - width), np.random.randint(0, size - height)
        picture[0, kind % 3, top : top + height, left : left + width] = 1 - kind / classes
        boxes.append([left, top, left + width, top + height])
        kinds.append(kind + 1)
    corners = torch.tensor(np.array(boxes), dtype=torch.float32)
    return torch.from_numpy(picture), corners, torch.tensor(kinds)


def make_models(width, hidden, classes):
    return (FasterRCNN(width, hidden, classes, anchors=6),)


def main(steps=120, seed=0, every=10, width=16, hidden=128, size=128, classes=4):
    common.seed_all(seed)
    (model,) = make_models(width, hidden, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in common.timed(steps):
        picture, boxes, kinds = make_picture(size, classes)
        first, second, right, count = train_step(model, optimizer, picture, boxes, kinds)
        if step % every == every - 1:
            print(
                f"step {step + 1}  loss of proposals {first:.4f}  of regions {second:.4f}"
                f"  right {right:.3f}  proposals {count}"
            )


if __name__ == "__main__":
    common.call(main, __doc__)
