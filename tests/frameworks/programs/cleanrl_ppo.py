"""PPO in a single file, in CleanRL's style: vectorised CartPole, GAE, shuffled minibatches, annealed learning rate."""

import sys

import gymnasium as gym
import numpy as np
from torch.distributions.categorical import Categorical

import torch
from torch import nn, optim

ITERATIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 25
NUM_ENVS, NUM_STEPS, EPOCHS, MINIBATCH = 4, 64, 4, 64
GAMMA, LAMBDA, CLIP, ENTROPY, VALUE = 0.99, 0.95, 0.2, 0.01, 0.5


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, envs):
        super().__init__()
        size = int(np.array(envs.single_observation_space.shape).prod())
        self.critic = nn.Sequential(
            layer_init(nn.Linear(size, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(),
            layer_init(nn.Linear(64, 1), std=1.0),
        )  # fmt: skip
        self.actor = nn.Sequential(
            layer_init(nn.Linear(size, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(),
            layer_init(nn.Linear(64, envs.single_action_space.n), std=0.01),
        )  # fmt: skip

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


np.random.seed(1)
torch.manual_seed(1)
envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(NUM_ENVS)])
agent = Agent(envs)
optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
obs = torch.zeros((NUM_STEPS, NUM_ENVS) + envs.single_observation_space.shape)
actions = torch.zeros((NUM_STEPS, NUM_ENVS) + envs.single_action_space.shape)
logprobs, rewards, dones, values = (torch.zeros((NUM_STEPS, NUM_ENVS)) for _ in range(4))
next_obs = torch.Tensor(envs.reset(seed=1)[0])
next_done = torch.zeros(NUM_ENVS)

for iteration in range(1, ITERATIONS + 1):
    optimizer.param_groups[0]["lr"] = (1.0 - (iteration - 1.0) / ITERATIONS) * 2.5e-4
    for step in range(NUM_STEPS):
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step] = action
        logprobs[step] = logprob
        next_obs, reward, terminations, truncations, _ = envs.step(action.cpu().numpy())
        rewards[step] = torch.tensor(reward).view(-1)
        next_obs = torch.Tensor(next_obs)
        next_done = torch.Tensor(np.logical_or(terminations, truncations))

    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards)
        lastgaelam = 0
        for t in reversed(range(NUM_STEPS)):
            nonterminal = 1.0 - (next_done if t == NUM_STEPS - 1 else dones[t + 1])
            nextvalues = next_value if t == NUM_STEPS - 1 else values[t + 1]
            delta = rewards[t] + GAMMA * nextvalues * nonterminal - values[t]
            advantages[t] = lastgaelam = delta + GAMMA * LAMBDA * nonterminal * lastgaelam
        returns = advantages + values

    b_obs = obs.reshape((-1,) + envs.single_observation_space.shape)
    b_logprobs, b_actions = logprobs.reshape(-1), actions.reshape(-1)
    b_advantages, b_returns = advantages.reshape(-1), returns.reshape(-1)
    b_inds = np.arange(NUM_STEPS * NUM_ENVS)
    for _epoch in range(EPOCHS):
        np.random.shuffle(b_inds)
        for start in range(0, len(b_inds), MINIBATCH):
            mb_inds = b_inds[start : start + MINIBATCH]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                b_obs[mb_inds], b_actions.long()[mb_inds]
            )
            ratio = (newlogprob - b_logprobs[mb_inds]).exp()
            mb_advantages = b_advantages[mb_inds]
            mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
            pg_loss = torch.max(
                -mb_advantages * ratio, -mb_advantages * torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
            ).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb_inds]) ** 2).mean()
            loss = pg_loss - ENTROPY * entropy.mean() + v_loss * VALUE
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    if iteration <= 3:
        print(iteration, v_loss.item(), pg_loss.item(), b_returns.mean().item())
print("finite", bool(torch.isfinite(loss)))
