"""A classifier with workers, a progress bar and torchmetrics in training and validation."""

import sys

import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)
from tqdm import tqdm

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 4
CLASSES = 5


class Waves(Dataset):
    """Noisy sines; the class is the frequency."""

    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, CLASSES, (count,), generator=generator)
        self.noise = torch.randn(count, 64, generator=generator)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index):
        wave = torch.sin(torch.linspace(0, 6.28, 64) * (self.labels[index] + 1))
        return wave + self.noise[index], self.labels[index]


if __name__ == "__main__":
    torch.manual_seed(0)
    training = DataLoader(Waves(2400, 1), batch_size=32, shuffle=True, num_workers=1)
    validation = DataLoader(Waves(400, 2), batch_size=50)
    model = nn.Sequential(
        nn.Unflatten(1, (1, 64)), nn.Conv1d(1, 16, 9), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 16, 5), nn.ReLU(),
        nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(128, CLASSES),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    metrics = MetricCollection([MulticlassAccuracy(CLASSES), MulticlassF1Score(CLASSES)])
    confusion, mean_loss = MulticlassConfusionMatrix(CLASSES), MeanMetric()
    for epoch in range(EPOCHS):
        model.train()
        bar = tqdm(training, desc=f"epoch {epoch}")
        for x, y in bar:
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean_loss.update(loss.detach())
            batch = metrics(logits, y)
            bar.set_postfix(loss=loss.item(), accuracy=batch["MulticlassAccuracy"].item())
        print(
            epoch, mean_loss.compute().item(), {k: v.item() for k, v in metrics.compute().items()}
        )
        mean_loss.reset()
        metrics.reset()
        model.eval()
        with torch.no_grad():
            for x, y in validation:
                confusion.update(model(x), y)
        print(confusion.compute().diagonal().tolist())
        confusion.reset()
    print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
