"""A GAN of points on a ring, in Lightning, with toggled optimizers."""

import sys

import lightning as L
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, outputs),
    )


class Gan(L.LightningModule):
    def __init__(self, latent: int = 8) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.latent = latent
        self.generator, self.discriminator = mlp(latent, 2), mlp(2, 1)
        self.register_buffer("fixed", torch.randn(64, latent))

    def forward(self, z):
        return self.generator(z)

    def training_step(self, batch, batch_idx):
        (real,) = batch
        g, d = self.optimizers()
        z = torch.randn(len(real), self.latent).type_as(real)
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        self.toggle_optimizer(g)
        g_loss = F.binary_cross_entropy_with_logits(self.discriminator(self(z)), ones)
        self.manual_backward(g_loss)
        g.step()
        g.zero_grad()
        self.untoggle_optimizer(g)

        self.toggle_optimizer(d)
        real_loss = F.binary_cross_entropy_with_logits(self.discriminator(real), ones)
        fake_loss = F.binary_cross_entropy_with_logits(self.discriminator(self(z).detach()), zeros)
        d_loss = (real_loss + fake_loss) / 2
        self.manual_backward(d_loss)
        d.step()
        d.zero_grad()
        self.untoggle_optimizer(d)
        self.log_dict({"g_loss": g_loss, "d_loss": d_loss})

    def on_train_epoch_end(self):
        with torch.no_grad():
            radius = self(self.fixed).norm(dim=1).mean()
        metrics = self.trainer.callback_metrics
        print(self.current_epoch, metrics["g_loss"].item(), metrics["d_loss"].item(), radius.item())

    def configure_optimizers(self):
        betas = (0.5, 0.999)
        return [
            torch.optim.Adam(part.parameters(), lr=1e-3, betas=betas)
            for part in (self.generator, self.discriminator)
        ]


L.seed_everything(11)
angle = 6.2832 * torch.rand(2048)
data = TensorDataset(2 * torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(2048, 2))
model = Gan()
trainer = L.Trainer(
    max_epochs=EPOCHS, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)  # fmt: skip
trainer.fit(model, DataLoader(data, batch_size=64, shuffle=True))
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
