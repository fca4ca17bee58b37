"""A LightningModule with manual optimisation: an autoencoder with two optimizers and accumulated gradients."""

import sys

import lightning as L
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


class Autoencoder(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.GELU(), nn.Linear(48, 64))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        encoder_optimizer, decoder_optimizer = self.optimizers()
        code = self.encoder(x)
        loss = F.mse_loss(self.decoder(code), x) + 1e-3 * code.abs().mean()
        self.manual_backward(loss / 2)
        if (batch_idx + 1) % 2 == 0:
            self.clip_gradients(
                encoder_optimizer, gradient_clip_val=0.5, gradient_clip_algorithm="norm"
            )
            encoder_optimizer.step()
            decoder_optimizer.step()
            encoder_optimizer.zero_grad()
            decoder_optimizer.zero_grad()
        self.log("loss", loss, on_step=False, on_epoch=True)

    def on_train_epoch_end(self):
        for schedule in self.lr_schedulers():
            schedule.step()
        print(self.current_epoch, self.trainer.callback_metrics["loss"].item())

    def configure_optimizers(self):
        encoder = torch.optim.Adam(self.encoder.parameters(), lr=2e-3)
        decoder = torch.optim.SGD(self.decoder.parameters(), lr=0.05, momentum=0.9)
        schedules = [
            torch.optim.lr_scheduler.ExponentialLR(each, 0.9) for each in (encoder, decoder)
        ]
        return [encoder, decoder], schedules


L.seed_everything(3)
data = torch.randn(2000, 6) @ torch.randn(6, 64) + 0.1 * torch.randn(2000, 64)
model = Autoencoder()
trainer = L.Trainer(
    max_epochs=EPOCHS, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)  # fmt: skip
trainer.fit(model, DataLoader(TensorDataset(data), batch_size=32, shuffle=True))
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
