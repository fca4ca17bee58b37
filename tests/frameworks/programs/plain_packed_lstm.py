"""Texts of various lengths through an LSTM: padded, packed, unpacked, the last state classified."""

import sys

import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 6

torch.manual_seed(0)
texts = [torch.randint(1, 30, (int(torch.randint(4, 16, ())),)) for _ in range(600)]
labels = [int((text < 15).sum() * 2 > len(text)) for text in texts]


def collate(pairs):
    texts, labels = zip(*pairs, strict=True)
    lengths = torch.tensor([len(text) for text in texts])
    return pad_sequence(texts, batch_first=True), lengths, torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 2)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(
            self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        mask = torch.arange(outputs.size(1)) < lengths.unsqueeze(1)
        pooled = (outputs * mask.unsqueeze(2)).sum(1) / lengths.unsqueeze(1)
        return self.head(pooled)


loader = DataLoader(
    list(zip(texts, labels, strict=True)), batch_size=20, shuffle=True, collate_fn=collate
)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(EPOCHS):
    total, right = 0.0, 0
    for tokens, lengths, targets in loader:
        logits = model(tokens, lengths)
        loss = F.cross_entropy(logits, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        right += (logits.argmax(1) == targets).sum().item()
    print(epoch, total / len(loader), right / len(texts))
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
