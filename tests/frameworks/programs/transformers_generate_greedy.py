"""Texts from a small GPT-2, by the most likely token each time."""

import sys

from transformers import GPT2Config, GPT2LMHeadModel

import torch

PROMPTS = int(sys.argv[1]) if len(sys.argv) > 1 else 8

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=96,
    n_positions=128,
    n_embd=64,
    n_layer=4,
    n_head=4,
    bos_token_id=0,
    eos_token_id=None,
)
model = GPT2LMHeadModel(config).eval()

for prompt in range(PROMPTS):
    tokens = torch.randint(1, 96, (4, 6 + prompt % 3))
    mask = torch.ones_like(tokens)
    given = model.generate(
        tokens, attention_mask=mask, max_new_tokens=60, do_sample=False, pad_token_id=0
    )
    print(prompt, tuple(given.shape), given[0, -8:].tolist(), int(given.sum()))

with torch.no_grad():
    scores = model(given).logits
print("scores", scores.double().sum().item())
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
