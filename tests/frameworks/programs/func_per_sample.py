"""torch.func: gradients of each sample by vmap of grad, clipped one by one, with noise: DP-SGD."""

import sys

import torch.nn.functional as F
from torch.func import functional_call, grad, vmap
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 8

torch.manual_seed(3)
x = torch.randn(960, 20)
y = (x[:, :10].sum(1) > x[:, 10:].sum(1)).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)


def loss_of(params, sample, label):
    logits = functional_call(model, params, (sample.unsqueeze(0),))
    return F.cross_entropy(logits, label.unsqueeze(0))


per_sample = vmap(grad(loss_of), in_dims=(None, 0, 0))
for epoch in range(EPOCHS):
    norms = 0.0
    for inputs, labels in loader:
        params = {name: p.detach() for name, p in model.named_parameters()}
        gradients = per_sample(params, inputs, labels)
        norm = torch.sqrt(sum(g.flatten(1).pow(2).sum(1) for g in gradients.values()))
        scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        for name, p in model.named_parameters():
            clipped = torch.einsum("b,b...->...", scale, gradients[name])
            p.grad = (clipped + 0.1 * torch.randn_like(p)) / len(inputs)
        optimizer.step()
        norms += norm.mean().item()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    print(epoch, norms / len(loader), accuracy)
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
