"""A BERT classifier in a plain loop, with padded batches of varying length and an evaluation after each epoch."""

import sys

from transformers import BertConfig, BertForSequenceClassification

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3

torch.manual_seed(0)


def batches(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Whether token 5 occurs before token 6; lengths vary, zeros pad."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        lengths = torch.randint(8, 24, (16,), generator=generator)
        longest = int(lengths.max())
        tokens = torch.randint(7, 40, (16, longest), generator=generator)
        mask = (torch.arange(longest)[None] < lengths[:, None]).long()
        labels = torch.randint(0, 2, (16,), generator=generator)
        tokens[:, 2] = torch.where(labels == 1, 5, 6)
        tokens[:, 5] = torch.where(labels == 1, 6, 5)
        found.append({"input_ids": tokens * mask, "attention_mask": mask, "labels": labels})
    return found


config = BertConfig(
    vocab_size=40,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    num_labels=2,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
training, validation = batches(60, 1), batches(10, 2)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for batch in training:
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    right = 0
    with torch.no_grad():
        for batch in validation:
            logits = model(**batch).logits
            right += (logits.argmax(-1) == batch["labels"]).sum().item()
    print(f"epoch {epoch}: loss {total / len(training)!r}, accuracy {right / 160!r}")
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
