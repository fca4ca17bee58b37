"""SAC in a single file, in CleanRL's style: two critics, a squashed Gaussian actor, a learnt temperature, Pendulum."""

import sys

import gymnasium as gym
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn, optim

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 700
START, BATCH, GAMMA, TAU = 200, 64, 0.99, 0.005


class SoftQNetwork(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(inputs, 64), nn.Linear(64, 64), nn.Linear(64, 1)

    def forward(self, x, a):
        x = F.relu(self.fc1(torch.cat([x, a], 1)))
        return self.fc3(F.relu(self.fc2(x)))


class Actor(nn.Module):
    def __init__(self, env, inputs, outputs):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(inputs, 64), nn.Linear(64, 64)
        self.fc_mean, self.fc_logstd = nn.Linear(64, outputs), nn.Linear(64, outputs)
        high, low = env.action_space.high, env.action_space.low
        self.register_buffer("action_scale", torch.tensor((high - low) / 2.0))
        self.register_buffer("action_bias", torch.tensor((high + low) / 2.0))

    def forward(self, x):
        x = F.relu(self.fc2(F.relu(self.fc1(x))))
        log_std = torch.tanh(self.fc_logstd(x))
        return self.fc_mean(x), -5 + 0.5 * 7 * (log_std + 1)

    def get_action(self, x):
        mean, log_std = self(x)
        normal = torch.distributions.Normal(mean, log_std.exp())
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        log_prob = normal.log_prob(x_t)
        log_prob -= torch.log(self.action_scale * (1 - y_t.pow(2)) + 1e-6)
        return y_t * self.action_scale + self.action_bias, log_prob.sum(1, keepdim=True)


np.random.seed(2)
torch.manual_seed(2)
env = gym.make("Pendulum-v1")
env.action_space.seed(2)
actor = Actor(env, 3, 1)
qf1, qf2, qf1_target, qf2_target = (SoftQNetwork(4) for _ in range(4))
qf1_target.load_state_dict(qf1.state_dict())
qf2_target.load_state_dict(qf2.state_dict())
q_optimizer = optim.Adam(list(qf1.parameters()) + list(qf2.parameters()), lr=1e-3)
actor_optimizer = optim.Adam(list(actor.parameters()), lr=3e-4)
log_alpha = torch.zeros(1, requires_grad=True)
alpha = log_alpha.exp().item()
a_optimizer = optim.Adam([log_alpha], lr=1e-3)
buffer = []
obs, _ = env.reset(seed=2)
for global_step in range(STEPS):
    if global_step < START:
        action = env.action_space.sample()
    else:
        action = actor.get_action(torch.Tensor(obs).unsqueeze(0))[0].detach().cpu().numpy()[0]
    next_obs, reward, terminated, truncated, _ = env.step(action)
    buffer.append((obs, next_obs, action, reward, terminated))
    obs = env.reset()[0] if terminated or truncated else next_obs
    if global_step <= START:
        continue
    chosen = np.random.randint(0, len(buffer), BATCH)
    observations, next_observations, actions, rewards, dones = (
        torch.as_tensor(np.array(column, np.float32))
        for column in zip(*(buffer[i] for i in chosen), strict=True)
    )
    with torch.no_grad():
        next_actions, next_log_pi = actor.get_action(next_observations)
        q1_next, q2_next = (
            qf1_target(next_observations, next_actions),
            qf2_target(next_observations, next_actions),
        )
        min_q_next = torch.min(q1_next, q2_next) - alpha * next_log_pi
        next_q_value = rewards.flatten() + (1 - dones.flatten()) * GAMMA * min_q_next.view(-1)
    qf1_loss = F.mse_loss(qf1(observations, actions).view(-1), next_q_value)
    qf2_loss = F.mse_loss(qf2(observations, actions).view(-1), next_q_value)
    qf_loss = qf1_loss + qf2_loss
    q_optimizer.zero_grad()
    qf_loss.backward()
    q_optimizer.step()
    if global_step % 2 == 0:
        for _ in range(2):
            pi, log_pi = actor.get_action(observations)
            min_qf_pi = torch.min(qf1(observations, pi), qf2(observations, pi))
            actor_loss = ((alpha * log_pi) - min_qf_pi).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            with torch.no_grad():
                _, log_pi = actor.get_action(observations)
            alpha_loss = (-log_alpha.exp() * (log_pi - 1)).mean()
            a_optimizer.zero_grad()
            alpha_loss.backward()
            a_optimizer.step()
            alpha = log_alpha.exp().item()
    for model, target in ((qf1, qf1_target), (qf2, qf2_target)):
        for param, target_param in zip(model.parameters(), target.parameters(), strict=True):
            target_param.data.copy_(TAU * param.data + (1 - TAU) * target_param.data)
    if global_step % 50 == 0 and global_step <= START + 150:
        print(global_step, f"{qf_loss.item():.2f} {actor_loss.item():.2f} {alpha:.3f}")
print("finite", bool(torch.isfinite(qf_loss)))
