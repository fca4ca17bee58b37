"""Trains twice with workers, optimizers of all kinds and gradients that are clipped; run by a test."""

import torch
import torchjanus
from torch import nn


def trained(optimizer_class: type, **options: float) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.1), nn.Linear(36, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 5),
    )  # fmt: skip
    optimizer = optimizer_class(model.parameters(), lr=0.01, **options)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    data = torch.utils.data.TensorDataset(torch.randn(96, 1, 8, 8), torch.arange(96) % 5)
    losses = []
    for workers in (0, 1):
        for images, classes in torch.utils.data.DataLoader(data, 8, num_workers=workers):
            loss = nn.functional.cross_entropy(model(images), classes)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.detach())
    return [*losses, *(value.detach().clone() for value in model.state_dict().values())]


def main() -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    for optimizer, options in (
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {"amsgrad": True}),
        (torch.optim.RMSprop, {}),
        (torch.optim.Adagrad, {}),
    ):
        eager = trained(optimizer, **options)
        with torchjanus.lazy():
            lazy = trained(optimizer, **options)
        for one, other in zip(eager, lazy, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
    print("equal")


if __name__ == "__main__":
    main()
