"""Methods of texts that are made of numbers of the run: the texts are made after it."""

import logging

import pytest
from differential import Program, differential

import torch

METHODS = {
    "replace": lambda text, name: text.replace("e+0", "e+").replace(".", ",", 1),
    "strip": lambda text, name: text.strip("0") + text.lstrip() + text.rstrip("0123456789"),
    "case": lambda text, name: text.upper().lower().title().capitalize().swapcase().casefold(),
    "width": lambda text, name: (
        text.ljust(12) + text.rjust(12, "-") + text.center(12) + text.zfill(9)
    ),
    "prefix": lambda text, name: text.removeprefix("-").removesuffix("0") + text.expandtabs(4),
    "of a known text": lambda text, name: name.replace("#", text),
}


def calls():
    return [(torch.randn(3) * 10**index,) for index in range(9)]


@differential(hits=6, graphs=1)
@pytest.mark.parametrize("name", METHODS)
def test_methods_that_give_a_text(name):
    change = METHODS[name]

    def step(x):
        text = f"{float(x.sum()):.3g}"
        print(change(text, "loss: #"))
        return x * 2, change(text, "#")

    return Program(step, calls())


@differential(hits=6, graphs=1)
def test_a_text_that_is_logged():
    logger = logging.getLogger("texts_of_numbers")

    def step(x):
        logger.warning("%s", f"{float(x.mean()):.2e}".replace("e+0", "e+"))
        return x * 2

    return Program(step, calls())


@differential(reasons=["dynamic_value"], hits=0)
def test_what_depends_on_the_text():
    def step(x):
        return x * (2 if f"{float(x.sum()):.3g}".startswith("-") else 3)

    return Program(step, calls())


@differential(reasons=["would_raise"], hits=0)
def test_a_method_that_raises():
    def step(x):
        try:
            return x * 2, f"{float(x.sum()):.3g}".center(9, "ab")
        except TypeError:
            return x * 3, ""

    return Program(step, calls())
