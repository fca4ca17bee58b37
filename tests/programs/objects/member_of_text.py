"""A member of an enumeration of texts is compared by its text, which is known."""

import enum

import torch


class Kind(str, enum.Enum):
    MEAN = "mean"
    SUM = "sum"


class Settings:
    kind = Kind.MEAN


settings = Settings()


def step(x):
    scale = {Kind.MEAN: 2.0, "sum": 3.0}[settings.kind]
    return x.mean() * scale if settings.kind == "mean" else x.sum() * scale


CALLS = [(torch.randn(3),) for _ in range(6)]
