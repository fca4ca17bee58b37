"""CartPole: gymnasium's where it is installed, else the same equations in a few lines of Python."""

import math
import random


class CartPole:
    """A pole on a cart that is pushed left or right. An episode ends when the pole falls."""

    GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    LONGEST = 500

    def reset(self, seed=None):
        if seed is not None:
            self.random = random.Random(seed)
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return list(self.state), {}

    def step(self, action):
        position, speed, angle, turning = self.state
        force = self.FORCE if action == 1 else -self.FORCE
        total = self.CART + self.POLE
        moment = self.POLE * self.HALF_LENGTH
        push = (force + moment * turning**2 * math.sin(angle)) / total
        inertia = self.HALF_LENGTH * (4 / 3 - self.POLE * math.cos(angle) ** 2 / total)
        turning_change = (self.GRAVITY * math.sin(angle) - math.cos(angle) * push) / inertia
        speed_change = push - moment * turning_change * math.cos(angle) / total
        self.state = [
            position + self.SECONDS * speed,
            speed + self.SECONDS * speed_change,
            angle + self.SECONDS * turning,
            turning + self.SECONDS * turning_change,
        ]
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return list(self.state), 1.0, fallen, self.steps >= self.LONGEST, {}


def make():
    try:
        import gymnasium
    except ImportError:
        return CartPole()
    return gymnasium.make("CartPole-v1")
