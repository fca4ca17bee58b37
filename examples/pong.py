"""Advantage actor-critic on the frames of Pong. Needs gymnasium and ale-py (`pip install gymnasium ale-py`).

python examples/pong.py                     eagerly
torchjanus run examples/pong.py             as speculative graphs
"""

import argparse

import a3c

import torch
from torch import nn


class FrameReader(nn.Module):
    """What to do, and what the game is worth, from how a frame differs from the one before."""

    def __init__(self, hidden, actions):
        super().__init__()
        self.see = nn.Sequential(
            nn.Conv2d(1, 16, 8, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.Flatten(),
            nn.Linear(32 * 8 * 8, hidden), nn.ReLU(),
        )  # fmt: skip
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, x):
        x = self.see(x)
        return self.actor(x), self.critic(x).squeeze(-1)


class Game:
    """Pong, seen as the difference of two frames of 80×80 points that are either dark or bright."""

    ACTIONS = (2, 3)  # up and down

    def __init__(self, seed):
        import ale_py
        import gymnasium

        gymnasium.register_envs(ale_py)
        self.environment = gymnasium.make("ALE/Pong-v5")
        self.start(seed)

    def start(self, seed=None):
        frame, _ = self.environment.reset(seed=seed)
        self.before = self.seen = self.field(frame)

    def field(self, frame):
        field = torch.from_numpy(frame)[34:194:2, ::2, 0]
        return ((field != 144) & (field != 109) & (field != 0)).float()

    def look(self):
        return (self.seen - self.before).unsqueeze(0)

    def play(self, action):
        """The reward, and whether the game is over."""
        frame, reward, over, cut_off, _ = self.environment.step(self.ACTIONS[action])
        self.before, self.seen = self.seen, self.field(frame)
        return reward, over or cut_off


def rollout(model, game, longest):
    """Plays until a point is won or lost, at most so many steps."""
    frames, actions, rewards, over = [], [], [], False
    while len(rewards) < longest and not over and not (rewards and rewards[-1]):
        x = game.look()
        with torch.no_grad():
            scores, _ = model(x.unsqueeze(0))
        action = torch.multinomial(scores.softmax(-1), 1).item()
        reward, over = game.play(action)
        frames.append(x)
        actions.append(action)
        rewards.append(float(reward))
    return torch.stack(frames), torch.tensor(actions), rewards, over


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--longest", type=int, default=40, help="steps of a rollout at most")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    game = Game(options.seed)
    model = FrameReader(options.hidden, len(Game.ACTIONS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    total, points = 0.0, 0.0
    for number in range(options.updates):
        frames, actions, rewards, over = rollout(model, game, options.longest)
        following = torch.zeros(())
        if over:
            game.start()
        elif rewards[-1] == 0:
            with torch.no_grad():
                following = model(game.look().unsqueeze(0))[1][0]
        loss = a3c.update(model, optimizer, frames, actions, rewards, following, 0.99, 0.01)
        total += loss.item()
        points += sum(rewards)
        if number % options.every == options.every - 1:
            print(f"update {number + 1}  loss {total / options.every:.4f}  points {points:+.0f}")
            total, points = 0.0, 0.0


if __name__ == "__main__":
    main()
