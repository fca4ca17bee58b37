"""A LightningModule with automatic optimisation: a classifier, logged metrics, validation, a schedule."""

import sys

import lightning as L
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


class Classifier(L.LightningModule):
    def __init__(self, hidden: int = 128) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(
            nn.Linear(32, hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 5),
        )
        self.seen = []

    def forward(self, x):
        return self.layers(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.log("train_loss", loss, prog_bar=True)
        self.log("train_accuracy", (logits.argmax(-1) == y).float().mean())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_accuracy", (logits.argmax(-1) == y).float().mean())

    def on_train_epoch_end(self):
        metrics = {name: value.item() for name, value in self.trainer.callback_metrics.items()}
        print(self.current_epoch, metrics)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=2e-3)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)]


L.seed_everything(7)
centers = torch.randn(5, 32)
labels = torch.randint(0, 5, (3200,))
data = TensorDataset(centers[labels] + 1.5 * torch.randn(3200, 32), labels)
training, validation = torch.utils.data.random_split(data, [2560, 640])
model = Classifier()
trainer = L.Trainer(
    max_epochs=EPOCHS, accelerator="cpu", gradient_clip_val=1.0, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(
    model, DataLoader(training, batch_size=32, shuffle=True), DataLoader(validation, batch_size=64)
)
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
