"""Activation checkpointing: each block of a small transformer is recomputed in the backward pass."""

import sys

import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 120


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).unbind(2)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 48)
        self.blocks = nn.ModuleList([Block(48, 4) for _ in range(4)])
        self.head = nn.Linear(48, 32)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
tokens = torch.arange(24).repeat(8, 1).add(torch.arange(8).unsqueeze(1)).remainder(32)
for step in range(STEPS):
    optimizer.zero_grad()
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 32), tokens[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
