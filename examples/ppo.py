"""Proximal policy optimization on CartPole: whole episodes, then several passes over minibatches of them.

python examples/ppo.py                      eagerly
torchjanus run examples/ppo.py              as speculative graphs
"""

import argparse

import cartpole
from torch.distributions import Categorical

import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, inputs, hidden, actions):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
            nn.Linear(hidden, actions),
        )  # fmt: skip
        self.critic = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return Categorical(logits=self.actor(x)), self.critic(x).squeeze(-1)


@torch.no_grad()
def play(model, environment, longest):
    """An episode, of at most so many steps."""
    observation, _ = environment.reset()
    observations, actions, chances, values, rewards = [], [], [], [], []
    while True:
        x = torch.tensor([float(value) for value in observation])
        policy, value = model(x)
        action = policy.sample()
        observation, reward, fallen, timed_out, _ = environment.step(action.item())
        observations.append(x)
        actions.append(action)
        chances.append(policy.log_prob(action))
        values.append(value)
        rewards.append(float(reward))
        if fallen or timed_out or len(rewards) >= longest:
            break
    arrays = [torch.stack(each) for each in (observations, actions, chances, values)]
    return *arrays, rewards


def advantages_of(values, rewards, discount, smoothing):
    """Generalized advantage estimates, from the last step backwards."""
    following, estimate, result = 0.0, 0.0, []
    for reward, value in zip(reversed(rewards), reversed(values.tolist()), strict=True):
        estimate = reward + discount * following - value + discount * smoothing * estimate
        following = value
        result.append(estimate)
    return torch.tensor(result[::-1])


def update(model, optimizer, x, actions, old_chances, advantages, returns, clip):
    policy, values = model(x)
    ratio = (policy.log_prob(actions) - old_chances).exp()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    gain = torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
    loss = -gain.mean() + 0.5 * (returns - values).pow(2).mean() - 0.01 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--episodes", type=int, default=8, help="episodes a round")
    parser.add_argument("--longest", type=int, default=200)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    environment = cartpole.make()
    environment.reset(seed=options.seed)
    model = ActorCritic(4, options.hidden, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for number in range(options.rounds):
        played = [play(model, environment, options.longest) for _ in range(options.episodes)]
        estimates = [advantages_of(values, rewards, 0.99, 0.95) for *_, values, rewards in played]
        x, actions, chances, values = (
            torch.cat(each) for each in list(zip(*played, strict=True))[:4]
        )
        advantages = torch.cat(estimates)
        returns = advantages + values
        for _ in range(options.passes):
            for rows in torch.randperm(len(x)).split(options.batch):
                if len(rows) > 1:
                    loss = update(
                        model, optimizer, x[rows], actions[rows], chances[rows], advantages[rows],
                        returns[rows], 0.2,
                    )  # fmt: skip
        if number % options.every == options.every - 1:
            print(f"round {number + 1}  loss {loss.item():.4f}  length {len(x) / len(played):.1f}")


if __name__ == "__main__":
    main()
