"""Four of JANUS's programs written for JAX: a system that is given graphs only, as a function without side effects.

Each begins with the parameters of the PyTorch program and sees its batches, so that their losses can be compared.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import nn

import torch

Parameters = dict[str, Any]


def parameters_of(model: Any) -> Parameters:
    return {name: jnp.asarray(value.numpy()) for name, value in model.state_dict().items()}


class Arrays:
    """JAX's arrays of tensors that stay what they are, made once: handing them over is not what is measured."""

    def __init__(self) -> None:
        self.made: dict[
            int, tuple[Any, Any]
        ] = {}  # by the tensor's id: it, so that no other gets the id, and its array

    def of(self, value: Any) -> Any:
        if not isinstance(value, (torch.Tensor, list)):
            return value
        if id(value) not in self.made:
            self.made[id(value)] = value, converted(value)
        return self.made[id(value)][1]


def converted(value: Any) -> Any:
    return (
        jnp.asarray(value, jnp.float32) if isinstance(value, list) else jnp.asarray(value.numpy())
    )


def linear(p: Parameters, name: str, x: Any) -> Any:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def cross_entropy(scores: Any, y: Any) -> Any:
    return -jnp.take_along_axis(nn.log_softmax(scores), y[:, None], 1).mean()


def binary_cross_entropy(scores: Any, wanted: float) -> Any:
    return jnp.mean(nn.softplus(scores) - wanted * scores)


# --- optimizers ---


def zeros(p: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, p)


def momentum(p: Any, gradients: Any, speeds: Any, rate: float) -> tuple[Any, Any]:
    speeds = jax.tree.map(lambda v, g: 0.9 * v + g, speeds, gradients)
    return jax.tree.map(lambda x, v: x - rate * v, p, speeds), speeds


def adam(p: Any, gradients: Any, state: Any, rate: float, decays: tuple) -> tuple[Any, Any]:
    first, second, steps = state
    steps = steps + 1
    first = jax.tree.map(lambda m, g: decays[0] * m + (1 - decays[0]) * g, first, gradients)
    second = jax.tree.map(lambda v, g: decays[1] * v + (1 - decays[1]) * g * g, second, gradients)

    def moved(x: Any, m: Any, v: Any) -> Any:
        root = jnp.sqrt(v / (1 - decays[1] ** steps)) + 1e-8
        return x - rate * m / (1 - decays[0] ** steps) / root

    return jax.tree.map(moved, p, first, second), (first, second, steps)


def clipped(gradients: Any, most: float) -> Any:
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, most / (norm + 1e-6)), gradients)


# --- models, and what they lose ---


def convolved(p: Parameters, name: str, x: Any) -> Any:
    x = jax.lax.conv(x, p[f"{name}.weight"], (1, 1), "SAME") + p[f"{name}.bias"][:, None, None]
    window = (1, 1, 2, 2)
    return jax.lax.reduce_window(nn.relu(x), -jnp.inf, jax.lax.max, window, window, "VALID")


def lenet_loss(p: Parameters, x: Any, y: Any) -> Any:
    x = convolved(p, "conv2", convolved(p, "conv1", x))
    x = nn.relu(linear(p, "fc1", x.reshape(len(x), -1)))
    return cross_entropy(linear(p, "fc2", x), y)


def layers(p: Parameters, names: tuple[int, ...], x: Any, prefix: str, between: Callable) -> Any:
    for name in names[:-1]:
        x = between(linear(p, f"{prefix}{name}", x))
    return linear(p, f"{prefix}{names[-1]}", x)


def leaky(x: Any) -> Any:
    return nn.leaky_relu(x, 0.2)


def painted(p: Parameters, noise: Any) -> Any:
    return jnp.tanh(layers(p, (0, 2, 4, 6), noise, "", leaky))


def judged(p: Parameters, x: Any) -> Any:
    return layers(p, (0, 2, 4), x, "", leaky)


def critic_loss(critic: Parameters, painter: Parameters, real: Any, noise: Any) -> Any:
    on_real = binary_cross_entropy(judged(critic, real), 1.0)
    return on_real + binary_cross_entropy(judged(critic, painted(painter, noise)), 0.0)


def painter_loss(painter: Parameters, critic: Parameters, noise: Any) -> Any:
    return binary_cross_entropy(judged(critic, painted(painter, noise)), 1.0)


def a3c_loss(p: Parameters, x: Any, actions: Any, rewards: Any, following: Any) -> Any:
    hidden = jnp.tanh(linear(p, "enter", x))
    values = linear(p, "critic", hidden)[:, 0]
    _, returns = jax.lax.scan(
        lambda after, reward: (reward + 0.99 * after,) * 2, following, rewards, reverse=True
    )
    chances = nn.log_softmax(linear(p, "actor", hidden))
    advantage = returns - values
    taken = jnp.take_along_axis(chances, actions[:, None], 1)[:, 0]
    policy = -(taken * jax.lax.stop_gradient(advantage)).mean()
    entropy = -(jnp.exp(chances) * chances).sum(1).mean()
    return policy + 0.5 * (advantage**2).mean() - 0.01 * entropy


def ppo_loss(p: Parameters, x: Any, actions: Any, old: Any, advantages: Any, returns: Any) -> Any:
    chances = nn.log_softmax(layers(p, (0, 2, 4), x, "actor.", jnp.tanh))
    values = layers(p, (0, 2), x, "critic.", jnp.tanh)[:, 0]
    ratio = jnp.exp(jnp.take_along_axis(chances, actions[:, None], 1)[:, 0] - old)
    advantages = (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)
    gain = jnp.minimum(ratio * advantages, jnp.clip(ratio, 0.8, 1.2) * advantages)
    entropy = -(jnp.exp(chances) * chances).sum(1).mean()
    return -gain.mean() + 0.5 * ((returns - values) ** 2).mean() - 0.01 * entropy


# --- steps: like what PyTorch's programs give, of models the step on batches of tensors ---


def stepping(state: Any, advance: Callable) -> Callable:
    """`advance(state, *arguments)` gives a loss and the next state."""
    compiled, arrays = jax.jit(advance, donate_argnums=0), Arrays()

    def step(*arguments: Any) -> Any:
        nonlocal state
        loss, state = compiled(state, *map(arrays.of, arguments))
        return jax.block_until_ready(loss)

    return step


def lenet_step(model: Any) -> Callable:
    def advance(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
        p, speeds = state
        loss, gradients = jax.value_and_grad(lenet_loss)(p, x, y)
        return loss, momentum(p, gradients, speeds, 0.01)

    p = parameters_of(model)
    return stepping((p, zeros(p)), advance)


def gan_step(painter: Any, critic: Any) -> Callable:
    def advance(state: Any, real: Any, noise: Any) -> tuple[Any, Any]:
        (painter, critic), states = state
        lost, gradients = jax.value_and_grad(critic_loss)(critic, painter, real, noise)
        critic, after = adam(critic, gradients, states[1], 2e-4, (0.5, 0.999))
        fooled, gradients = jax.value_and_grad(painter_loss)(painter, critic, noise)
        painter, before = adam(painter, gradients, states[0], 2e-4, (0.5, 0.999))
        return (lost, fooled), ((painter, critic), (before, after))

    both = parameters_of(painter), parameters_of(critic)
    step = stepping((both, tuple((zeros(p), zeros(p), 0) for p in both)), advance)
    return lambda real: step(real, converted(torch.randn(len(real), 100)))


def clipped_adam(model: Any, loss_of: Callable) -> Callable:
    def advance(state: Any, *arguments: Any) -> tuple[Any, Any]:
        p, moments = state
        loss, gradients = jax.value_and_grad(loss_of)(p, *arguments)
        return loss, adam(p, clipped(gradients, 0.5), moments, 0.003, (0.9, 0.999))

    p = parameters_of(model)
    return stepping((p, (zeros(p), zeros(p), 0)), advance)


def a3c_step(model: Any) -> Callable:
    return clipped_adam(model, a3c_loss)


STEPS: dict[str, Callable] = {
    "lenet": lenet_step,
    "gan": gan_step,
    "a3c": a3c_step,
    "ppo": lambda model: clipped_adam(model, ppo_loss),
}
