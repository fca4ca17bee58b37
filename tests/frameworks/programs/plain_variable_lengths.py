"""A transformer of torch.nn on batches whose length varies from batch to batch, with masks kept in an attribute."""

import math
import sys

import torch.nn.functional as F

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=40, width=32):
        super().__init__()
        self.src_mask = None
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.decoder = nn.Linear(width, vocabulary)
        self.width = width

    def forward(self, tokens, padding):
        if self.src_mask is None or self.src_mask.size(0) != tokens.size(1):
            size = tokens.size(1)
            self.src_mask = torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=1)
        x = self.embed(tokens) * math.sqrt(self.width)
        x = self.encoder(x, mask=self.src_mask, src_key_padding_mask=padding)
        return F.log_softmax(self.decoder(x), dim=-1)


torch.manual_seed(0)
model = LanguageModel()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
total = 0.0
for step in range(1, STEPS + 1):
    length, count = int(torch.randint(6, 20, ())), int(torch.randint(4, 9, ()))
    starts = torch.randint(0, 40, (count, 1))
    tokens = (starts + torch.arange(length + 1)).remainder(40)
    lengths = torch.randint(4, length + 1, (count,))
    padding = torch.arange(length) >= lengths.unsqueeze(1)
    targets = tokens[:, 1:].masked_fill(padding, -100)
    loss = F.nll_loss(model(tokens[:, :-1], padding).flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    total += loss.item()
    if step % 25 == 0:
        print(step, total / 25)
        total = 0.0
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
