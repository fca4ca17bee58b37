"""Texts from a small Llama-like model: sampled with temperature, top-k and top-p, prompts padded on the left."""

import sys

from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

import torch

BATCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 8

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=100, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
model = LlamaForCausalLM(config).eval()
settings = GenerationConfig(
    max_new_tokens=48, do_sample=True, temperature=0.8, top_k=40, top_p=0.95, pad_token_id=0, eos_token_id=2,
    repetition_penalty=1.1,
)  # fmt: skip

for batch in range(BATCHES):
    lengths = torch.randint(3, 10, (3,))
    prompts = torch.zeros(3, 10, dtype=torch.long)
    for row, length in enumerate(lengths.tolist()):
        prompts[row, 10 - length :] = torch.randint(3, 100, (length,))
    given = model.generate(
        prompts, attention_mask=(prompts != 0).long(), generation_config=settings
    )
    print(batch, tuple(given.shape), given[0, 10:20].tolist(), int(given.sum()))
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
