"""stable-baselines3's PPO on CartPole, with a callback that prints what was logged."""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 4000


class ShowLosses(BaseCallback):
    def _on_rollout_start(self) -> None:
        logged = self.logger.name_to_value
        if "train/loss" in logged and self.num_timesteps <= 2048:
            print(
                self.num_timesteps,
                logged["train/loss"],
                logged["train/value_loss"],
                logged["train/approx_kl"],
            )

    def _on_step(self) -> bool:
        return True


env = make_vec_env("CartPole-v1", n_envs=4, seed=1)
model = PPO(
    "MlpPolicy",
    env,
    n_steps=128,
    batch_size=64,
    n_epochs=6,
    learning_rate=3e-4,
    seed=1,
    device="cpu",
)
model.learn(total_timesteps=STEPS, callback=ShowLosses(), log_interval=None)
mean, spread = evaluate_policy(
    model, make_vec_env("CartPole-v1", n_envs=1, seed=2), n_eval_episodes=5
)
print("reward", mean > 8, spread >= 0)
print("finite", all(bool(torch.isfinite(p).all()) for p in model.policy.parameters()))
