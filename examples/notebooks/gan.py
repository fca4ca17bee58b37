# %% [markdown]
# # A generative adversarial network
#
# Two networks with an optimizer each take turns: the critic tells made points from real ones, and the generator makes
# points that the critic takes for real. Real points lie on a circle.

# %%
import itertools

import torch.nn.functional as F

import torch
import torchjanus
from torch import nn

# %load_ext torchjanus
torch.manual_seed(0)
NOISE, BATCH = 8, 64


def real_points(count):
    angle = 6.2832 * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def layers(*sizes):
    made = []
    for before, after in itertools.pairwise(sizes):
        made += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
    return nn.Sequential(*made[:-1])


generator, critic = layers(NOISE, 64, 64, 2), layers(2, 64, 64, 1)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))

# %% [markdown]
# Training. Both updates are in one graph, and so is the list of losses, which Python keeps.

# %%
# %%torchjanus
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
history = []
for step in range(400):
    real, noise = real_points(BATCH), torch.randn(BATCH, NOISE)
    fake = generator(noise)
    critic_optimizer.zero_grad()
    critic_loss = F.binary_cross_entropy_with_logits(critic(real), ones)
    critic_loss = critic_loss + F.binary_cross_entropy_with_logits(critic(fake.detach()), zeros)
    critic_loss.backward()
    critic_optimizer.step()

    generator_optimizer.zero_grad()
    generator_loss = F.binary_cross_entropy_with_logits(critic(fake), ones)
    generator_loss.backward()
    generator_optimizer.step()
    history.append(generator_loss.item())
    if step % 100 == 99:
        radius = fake.detach().norm(dim=1)
        print(f"step {step + 1}  radius {radius.mean().item():.3f} ± {radius.std().item():.3f}")

# %% [markdown]
# What ran in this process, with a summary first: `torchjanus.explain()`, and as a page
# `torchjanus.report(None, "gan.html")`.

# %%
torchjanus.explain()
