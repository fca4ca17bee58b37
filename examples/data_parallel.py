"""The small decoder of small_gpt.py, trained by several processes that average their gradients.

torchrun --nproc-per-node=2 examples/data_parallel.py                          eagerly
torchrun --nproc-per-node=2 -m torchjanus run examples/data_parallel.py        as speculative graphs
make data-parallel                                                             the same, with reports
"""

import argparse
import os

import small_gpt
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import torch
from torch import distributed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8, help="of each process")
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--every", type=int, default=20, help="print the loss every so many steps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
    else:  # a group of one
        store = distributed.HashStore()
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    rank = distributed.get_rank()
    torch.manual_seed(options.seed)
    text, characters = small_gpt.load_characters(None)
    model = DistributedDataParallel(
        small_gpt.GPT(
            characters, options.width, options.layers, options.heads, options.length, dropout=0.1
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(options.seed + 1 + rank)
    total = 0.0
    for step in range(options.steps):
        given, following = small_gpt.draw(text, options.batch, options.length)
        optimizer.zero_grad()
        scores = model(given)
        loss = F.cross_entropy(scores.flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % options.every == options.every - 1:
            mean = torch.tensor(total / options.every / distributed.get_world_size())
            distributed.all_reduce(mean)
            if rank == 0:
                print(f"step {step + 1}  loss {mean.item():.4f}")
            total = 0.0
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
