"""LeNet on Fashion-MNIST: an ordinary training script. Nothing in it knows of torchjanus.

python examples/lenet.py                      eagerly
torchjanus run examples/lenet.py              as speculative graphs
"""

import argparse
import json
import time
from pathlib import Path

import fashion_mnist
import torch.nn.functional as F
from rich.progress import Progress, TextColumn
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc1 = nn.Linear(64 * 7 * 7, 512)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def evaluate(model, images, labels, batch):
    """The share of images that the model classifies rightly."""
    model.eval()
    correct = 0
    with torch.no_grad():
        for start in range(0, len(images), batch):
            scores = model(images[start : start + batch])
            correct += (scores.argmax(1) == labels[start : start + batch]).sum().item()
    model.train()
    return correct / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=fashion_mnist.DEFAULT_FOLDER)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--images", type=int, default=60_000, help="train on the first N images")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--summary", type=Path, help="write accuracy, speed and curve to this JSON file"
    )
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    images, labels = fashion_mnist.load(options.data, "train")
    images, labels = images[: options.images], labels[: options.images]
    test_images, test_labels = fashion_mnist.load(options.data, "t10k")
    loader = DataLoader(TensorDataset(images, labels), batch_size=options.batch, shuffle=True)

    model = LeNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum)
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[status]}"))
    curve = []  # seconds, and the mean loss of the epoch so far
    trained, started = 0, time.perf_counter()
    with Progress(*columns) as progress:
        for epoch in range(options.epochs):
            task = progress.add_task(f"epoch {epoch + 1}", total=len(loader), status="")
            running_loss, correct, seen = 0.0, 0, 0
            for step, (x, y) in enumerate(loader):
                optimizer.zero_grad()
                scores = model(x)
                loss = F.cross_entropy(scores, y)
                loss.backward()
                optimizer.step()

                running_loss += loss.item()
                correct += (scores.argmax(1) == y).sum().item()
                seen += len(x)
                if step % 20 == 19:
                    passed = time.perf_counter() - started
                    curve.append((passed, running_loss / (step + 1)))
                    speed = (trained + seen) / passed
                    status = (
                        f"loss {running_loss / (step + 1):.4f}  "
                        f"accuracy {correct / seen:.4f}  {speed:.0f} images/s"
                    )
                    progress.update(task, completed=step + 1, status=status)
            progress.update(task, completed=len(loader))
            trained += seen
    seconds = time.perf_counter() - started
    accuracy = evaluate(model, test_images, test_labels, 500)
    print(f"trained on {trained} images in {seconds:.1f} s ({trained / seconds:.0f} images/s)")
    print(f"test accuracy {accuracy:.4f}")
    if options.summary:
        summary = {"accuracy": accuracy, "images_per_second": trained / seconds, "seconds": seconds}
        summary["curve"] = curve
        options.summary.write_text(json.dumps(summary))


if __name__ == "__main__":
    main()
