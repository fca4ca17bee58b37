"""accelerate: a text classifier with accumulated gradients, a schedule and gathered metrics."""

import sys

import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 5

set_seed(42)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(200, 32)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 4))

    def forward(self, tokens):
        return self.head(self.norm(self.embedding(tokens).mean(1)))


tokens = torch.randint(0, 200, (2048, 20))
labels = (tokens < 50).sum(1).clamp(3, 6) - 3
loader = DataLoader(TensorDataset(tokens, labels), batch_size=32, shuffle=True)
model = Bag()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=160)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

for epoch in range(EPOCHS):
    model.train()
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    model.eval()
    right, count = 0, 0
    for x, y in loader:
        with torch.inference_mode():
            predictions = model(x).argmax(-1)
        predictions, y = accelerator.gather_for_metrics((predictions, y))
        right += (predictions == y).sum().item()
        count += len(y)
    accelerator.print(epoch, loss.item(), right / count, schedule.get_last_lr()[0])
model = accelerator.unwrap_model(model)
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
