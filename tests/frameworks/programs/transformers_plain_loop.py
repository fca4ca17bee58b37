"""A small GPT-2 in a plain loop: AdamW, a linear schedule with warm-up, clipped gradients."""

import sys

from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 5

torch.manual_seed(0)
patterns = torch.randint(0, 64, (512, 8)).repeat(1, 4)
loader = DataLoader(TensorDataset(patterns), batch_size=16, shuffle=True)
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=64,
        n_positions=32,
        n_embd=64,
        n_layer=2,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
    )
)
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = get_linear_schedule_with_warmup(
    optimizer, num_warmup_steps=10, num_training_steps=EPOCHS * len(loader)
)

model.train()
step = 0
for epoch in range(EPOCHS):
    for (batch,) in loader:
        outputs = model(input_ids=batch, labels=batch)
        outputs.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        step += 1
        if step % 20 == 0:
            print(
                f"epoch {epoch} step {step} loss {outputs.loss.item()!r} lr {schedule.get_last_lr()[0]!r}"
            )
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
