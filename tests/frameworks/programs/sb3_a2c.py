"""stable-baselines3's A2C on Pendulum: a Gaussian policy, many short rollouts, a learning rate that falls."""

import sys

from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback, EveryNTimesteps
from stable_baselines3.common.env_util import make_vec_env

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 8000


class Show(BaseCallback):
    def _on_step(self) -> bool:
        logged = self.logger.name_to_value
        if "train/policy_loss" in logged and self.num_timesteps <= 1600:
            print(
                self.num_timesteps,
                logged["train/policy_loss"],
                logged["train/value_loss"],
                logged["train/std"],
            )
        return True


env = make_vec_env("Pendulum-v1", n_envs=4, seed=3)
model = A2C(
    "MlpPolicy", env, n_steps=5, learning_rate=lambda remaining: 7e-4 * remaining, gae_lambda=0.9, ent_coef=0.01,
    policy_kwargs=dict(net_arch=[64, 64], activation_fn=nn.ReLU), seed=3, device="cpu",
)  # fmt: skip
model.learn(
    total_timesteps=STEPS, callback=EveryNTimesteps(n_steps=800, callback=Show()), log_interval=None
)
print("finite", all(bool(torch.isfinite(p).all()) for p in model.policy.parameters()))
