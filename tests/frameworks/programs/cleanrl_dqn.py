"""DQN in a single file, in CleanRL's style: a replay buffer of NumPy arrays and a target network."""

import random
import sys

import gymnasium as gym
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn, optim

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
START, BATCH, FREQUENCY, TARGET = 500, 64, 2, 250


class QNetwork(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(np.array(env.observation_space.shape).prod(), 120), nn.ReLU(),
            nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, env.action_space.n),
        )  # fmt: skip

    def forward(self, x):
        return self.network(x)


class ReplayBuffer:
    def __init__(self, capacity, shape):
        self.observations = np.zeros((capacity, *shape), np.float32)
        self.next_observations = np.zeros((capacity, *shape), np.float32)
        self.actions = np.zeros((capacity, 1), np.int64)
        self.rewards, self.dones = np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
        self.count = 0

    def columns(self):
        return (
            self.observations,
            self.next_observations,
            self.actions,
            self.rewards,
            self.dones,
        )

    def add(self, *transition):
        place = self.count % len(self.rewards)
        for column, value in zip(self.columns(), transition, strict=True):
            column[place] = value
        self.count += 1

    def sample(self, size):
        chosen = np.random.randint(0, min(self.count, len(self.rewards)), size)
        return tuple(torch.tensor(column[chosen]) for column in self.columns())


def linear_schedule(start_e, end_e, duration, t):
    return max((end_e - start_e) / duration * t + start_e, end_e)


random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
env = gym.make("CartPole-v1")
env.action_space.seed(1)
q_network, target_network = QNetwork(env), QNetwork(env)
optimizer = optim.Adam(q_network.parameters(), lr=2.5e-4)
target_network.load_state_dict(q_network.state_dict())
rb = ReplayBuffer(10_000, env.observation_space.shape)
obs, _ = env.reset(seed=1)
for global_step in range(STEPS):
    epsilon = linear_schedule(1, 0.05, STEPS // 2, global_step)
    if random.random() < epsilon:
        action = env.action_space.sample()
    else:
        q_values = q_network(torch.Tensor(obs).unsqueeze(0))
        action = torch.argmax(q_values, dim=1).cpu().numpy()[0]
    next_obs, reward, terminated, truncated, _ = env.step(action)
    rb.add(obs, next_obs, action, reward, terminated)
    obs = env.reset()[0] if terminated or truncated else next_obs
    if global_step > START and global_step % FREQUENCY == 0:
        observations, next_observations, actions, rewards, dones = rb.sample(BATCH)
        with torch.no_grad():
            target_max, _ = target_network(next_observations).max(dim=1)
            td_target = rewards.flatten() + 0.99 * target_max * (1 - dones.flatten())
        old_val = q_network(observations).gather(1, actions).squeeze()
        loss = F.mse_loss(td_target, old_val)
        if global_step % 100 == 0 and global_step <= 900:
            print(global_step, loss.item(), old_val.mean().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if global_step > START and global_step % TARGET == 0:
        for target_param, q_param in zip(
            target_network.parameters(), q_network.parameters(), strict=True
        ):
            target_param.data.copy_(0.5 * q_param.data + 0.5 * target_param.data)
print("finite", bool(torch.isfinite(loss)))
