"""torch.func: an ensemble of five networks trained at once by vmap over stacked parameters."""

import copy
import sys

import torch.nn.functional as F
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300

torch.manual_seed(0)
models = [
    nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    for _ in range(5)
]
params, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")
x = torch.randn(1024, 8)
y = (x[:, :4] * x[:, 4:]).sum(1, keepdim=True)


def loss_of(params, buffers, inputs, targets):
    return F.mse_loss(functional_call(base, (params, buffers), (inputs,)), targets)


step = vmap(grad_and_value(loss_of), in_dims=(0, 0, None, None))
for i in range(STEPS):
    chosen = torch.randint(0, len(x), (64,))
    gradients, losses = step(params, buffers, x[chosen], y[chosen])
    with torch.no_grad():
        for name, gradient in gradients.items():
            params[name] -= 0.05 * gradient
    if i % 50 == 0:
        print(i, losses.tolist())
print("parameters", sum(p.detach().double().abs().sum().item() for p in params.values()))
