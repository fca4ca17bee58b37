"""A T5 that learns to reverse sequences; then it generates."""

import sys

from transformers import T5Config, T5ForConditionalGeneration

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150

torch.manual_seed(0)
config = T5Config(
    vocab_size=32, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4, dropout_rate=0.1, pad_token_id=0,
    eos_token_id=1, decoder_start_token_id=0,
)  # fmt: skip
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)

for step in range(STEPS):
    source = torch.randint(2, 32, (16, 10))
    labels = torch.cat([source.flip(1), torch.ones(16, 1, dtype=torch.long)], 1)
    loss = model(input_ids=source, attention_mask=torch.ones_like(source), labels=labels).loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 15 == 0:
        print(step, loss.item(), schedule.get_last_lr())

model.eval()
source = torch.randint(2, 32, (4, 10))
given = model.generate(source, max_new_tokens=12, do_sample=False)
print("reversed", given.tolist())
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
