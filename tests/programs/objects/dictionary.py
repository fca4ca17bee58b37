"""Items of a dictionary that existed before the call are read and written by their keys."""

import torch

state = {"mean": torch.zeros(3), "steps": 0}


def step(x):
    state["mean"] = 0.5 * state["mean"] + 0.5 * x
    state["steps"] += 1
    state.setdefault("first", x)
    return state["mean"].sum()


CALLS = [(torch.randn(3),) for _ in range(6)]
WATCHED = [state]
