"""One of two processes that train together: `python one_of_two_ranks.py RANK FILE_OF_THE_STORE`, which prints for
each training its name, at which steps it updated its parameters by a graph, and whether they are the other's."""

import json
import sys

import torch.distributed as dist

import torch
import torchjanus
from torch import nn

STEPS = 8
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
}
RANK = int(sys.argv[1])


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(20, 70), nn.Tanh(), nn.Linear(70, 33), nn.Tanh(), nn.Linear(33, 3)
    )


def of_norm(parameters):
    nn.utils.clip_grad_norm_(parameters, 0.1)


def of_norms_each(parameters):
    """As some large-batch optimizers scale by the norms of parameters and gradients."""
    for each in parameters:
        norm = each.grad.pow(2).sum().sqrt()
        each.grad.mul_(each.detach().norm() / (norm + 1e-3))
        each.grad.sub_(each.grad.mean(0, keepdim=True))


def computes_gradients(parallel):
    def gradients(net, x, y):
        ((net(x) - y) ** 2).mean().backward()

    if parallel:  # its hooks average the gradients
        return gradients
    converted = torchjanus.function(gradients, profile_runs=2)

    def averaged(net, x, y):
        converted(net, x, y)
        for each in net.parameters():
            dist.all_reduce(each.grad)
            each.grad /= 2

    return averaged


def train(make, clip, parallel):
    def update(parameters, optimizer):
        if clip is not None:
            clip(parameters)
        optimizer.step()

    gradients = computes_gradients(parallel)
    update = torchjanus.function(update, profile_runs=2)
    generator = torch.Generator().manual_seed(RANK)

    def steps(net, count):
        net = nn.parallel.DistributedDataParallel(net) if parallel else net
        parameters = list(net.parameters())
        optimizer = make(parameters)
        by_graph = []
        for _ in range(count):
            optimizer.zero_grad()
            x, y = (torch.randn(8, size, generator=generator) for size in (20, 3))
            gradients(net, x, y)
            before = update.stats()["hits"]
            # The other rank has made calls before.
            if count == STEPS or RANK == 1:
                update(parameters, optimizer)
            by_graph.append(update.stats()["hits"] - before)
        return nn.utils.parameters_to_vector(parameters).detach(), by_graph

    steps(model(), 3)
    mine, by_graph = steps(model(), STEPS)
    both = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(both, mine)
    return {"by_graph": by_graph, "different": int((both[0] != both[1]).sum())}


def trainings():
    for name, make in OPTIMIZERS.items():
        yield name, train(make, None, False)
    for name in ("SGD", "AdamW"):
        yield f"{name} with norms", train(OPTIMIZERS[name], of_norm, False)
        yield f"{name} with norms, parallel", train(OPTIMIZERS[name], of_norm, True)
    yield "SGD with norms of each", train(OPTIMIZERS["SGD"], of_norms_each, False)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=RANK, world_size=2)
    print(json.dumps(dict(trainings())))
    dist.destroy_process_group()
