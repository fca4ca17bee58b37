"""Advantage actor-critic on CartPole: short rollouts of varying length, each followed by an update.

python examples/a3c.py                      eagerly
torchjanus run examples/a3c.py              as speculative graphs
"""

import argparse

import cartpole
import torch.nn.functional as F

import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, inputs, hidden, actions):
        super().__init__()
        self.enter = nn.Linear(inputs, hidden)
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, x):
        x = torch.tanh(self.enter(x))
        return self.actor(x), self.critic(x).squeeze(-1)


def rollout(model, environment, observation, longest):
    """Plays at most so many steps; ends early with the episode."""
    observations, actions, rewards, ended = [], [], [], False
    while len(rewards) < longest and not ended:
        x = torch.tensor(observation)
        with torch.no_grad():
            scores, _ = model(x)
        action = torch.multinomial(scores.softmax(-1), 1).item()
        following, reward, fallen, timed_out, _ = environment.step(action)
        ended = fallen or timed_out
        observations.append(x)
        actions.append(action)
        rewards.append(reward)
        observation = following
    return torch.stack(observations), torch.tensor(actions), rewards, ended, observation


def update(model, optimizer, observations, actions, rewards, following, discount, entropy_weight):
    """One step of learning; `following` is the value of what comes after the last step."""
    scores, values = model(observations)
    returns = []
    for reward in reversed(rewards):
        following = reward + discount * following
        returns.insert(0, following)
    returns = torch.stack(returns)
    chances = F.log_softmax(scores, dim=1)
    advantage = returns - values
    policy_loss = -(chances.gather(1, actions.unsqueeze(1)).squeeze(1) * advantage.detach()).mean()
    entropy = -(chances.exp() * chances).sum(1).mean()
    loss = policy_loss + 0.5 * advantage.pow(2).mean() - entropy_weight * entropy
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--longest", type=int, default=20, help="steps of a rollout at most")
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--discount", type=float, default=0.99)
    parser.add_argument("--entropy", type=float, default=0.01)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    environment = cartpole.make()
    observation, _ = environment.reset(seed=options.seed)
    observation = [float(value) for value in observation]
    model = ActorCritic(len(observation), options.hidden, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    total, episodes, steps = 0.0, 0, 0
    for number in range(options.updates):
        observations, actions, rewards, ended, observation = rollout(
            model, environment, observation, options.longest
        )
        following = torch.zeros(())
        if ended:
            episodes += 1
            observation, _ = environment.reset()
        else:
            with torch.no_grad():
                following = model(torch.tensor(observation))[1]
        observation = [float(value) for value in observation]
        loss = update(
            model, optimizer, observations, actions, rewards, following, options.discount, options.entropy
        )  # fmt: skip
        total += loss.item()
        steps += len(rewards)
        if number % options.every == options.every - 1:
            mean = total / options.every
            print(
                f"update {number + 1}  loss {mean:.4f}  steps an episode {steps / max(1, episodes):.1f}"
            )
            total, episodes, steps = 0.0, 0, 0


if __name__ == "__main__":
    main()
