"""stable-baselines3's DQN on CartPole, with a replay buffer and a target network."""

import sys

from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 4000


class ShowLoss(BaseCallback):
    def _on_step(self) -> bool:
        early = self.num_timesteps <= 1200
        if early and self.num_timesteps % 200 == 0 and "train/loss" in self.logger.name_to_value:
            logged = self.logger.name_to_value
            print(self.num_timesteps, float(logged["train/loss"]), self.model.exploration_rate)
        return True


env = make_vec_env("CartPole-v1", n_envs=1, seed=5)
model = DQN(
    "MlpPolicy", env, learning_rate=1e-3, buffer_size=5000, learning_starts=200, batch_size=64, train_freq=4,
    gradient_steps=2, target_update_interval=200, exploration_fraction=0.3, policy_kwargs=dict(net_arch=[64, 64]),
    seed=5, device="cpu",
)  # fmt: skip
model.learn(total_timesteps=STEPS, callback=ShowLoss(), log_interval=None)
mean, spread = evaluate_policy(
    model, make_vec_env("CartPole-v1", n_envs=1, seed=6), n_eval_episodes=4
)
print("reward", mean > 8, spread >= 0)
print("finite", all(bool(torch.isfinite(p).all()) for p in model.policy.parameters()))
