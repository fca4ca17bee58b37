"""A plain loop over a DataLoader with worker processes and two nested progress bars."""

import sys

import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm, trange

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


class Functions(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        x = torch.rand(16, generator=generator) * 2 - 1
        return x, (x[:4] * x[4:8]).sum().unsqueeze(0) + torch.sin(3 * x[8:]).mean()


def main():
    torch.manual_seed(0)
    loader = DataLoader(
        Functions(2000), batch_size=32, num_workers=2, shuffle=True, persistent_workers=True
    )
    model = nn.Sequential(
        nn.Linear(16, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1)
    )
    criterion = nn.MSELoss()
    optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
    best = float("inf")
    for epoch in trange(EPOCHS, desc="epochs"):
        running_loss = 0.0
        for i, (x, y) in enumerate(tqdm(loader, leave=False)):
            optimizer.zero_grad()
            outputs = model(x)
            loss = criterion(outputs, y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            if i % 20 == 19:
                tqdm.write(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 20!r}")
                running_loss = 0.0
        scheduler.step(loss)
        best = min(best, loss.item())
    print("best", best, optimizer.param_groups[0]["lr"])
    print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))


if __name__ == "__main__":
    main()
