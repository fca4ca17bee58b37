"""contextvars.ContextVar: read, set and reset in a step; what is left set is set when the run is complete."""

import contextvars

import pytest
from differential import Program, differential

import torch

scale = contextvars.ContextVar("scale", default=2.0)
collector = contextvars.ContextVar("collector", default=None)
unset = contextvars.ContextVar("unset")


def clear():
    for variable, value in ((scale, 2.0), (collector, None)):
        variable.set(value)


def program(step, calls=8, between=()):
    """The variables begin alike for eager and for the converted step."""
    inputs = [(torch.randn(3),) for _ in range(calls)]

    def observed(x):
        result = step(x)
        return result, scale.get(), collector.get()

    return Program(observed, [clear, *inputs, *between, *(inputs if between else ())])


@differential(hits=4)
def test_reads():
    return program(lambda x: x * scale.get())


@differential(hits=4)
def test_a_value_that_somebody_sets_between_calls():
    return program(lambda x: x * scale.get(), between=[lambda: scale.set(3.0)])


@differential(hits=4)
def test_what_a_step_sets_and_resets():
    def hidden(x):
        found = collector.get()
        if found is not None:
            found.append(x * 2)
        return x + 1

    def step(x):
        outputs = []
        token = collector.set(outputs)
        try:
            y = hidden(hidden(x))
        finally:
            collector.reset(token)
        return y, outputs, collector.get()

    return program(step)


@differential(hits=4)
def test_tokens_within_each_other():
    def step(x):
        outer = scale.set(5.0)
        y = x * scale.get()
        inner = scale.set(7.0)
        y = y + scale.get()
        scale.reset(inner)
        y = y * scale.get()
        scale.reset(outer)
        return y * scale.get()

    return program(step)


@differential(hits=3)
def test_what_is_left_set():
    def step(x):
        scale.set(scale.get() * 0.5)
        return x * scale.get()

    return program(step)


@differential(hits=8)
def test_a_run_that_is_given_up_sets_nothing():
    def step(x):
        scale.set(1.5)
        y = x * scale.get()
        if y.sum() > 100:
            scale.set(4.0)
            return y * 2
        return y

    inputs = [(torch.full((3,), 100.0 if i == 6 else 0.1),) for i in range(12)]
    return Program(lambda x: (step(x), scale.get()), [clear, *inputs])


@differential(hits=3)
def test_a_branch_that_sets_it():
    def step(x):
        if x.sum() > 0:
            scale.set(3.0)
        else:
            scale.set(4.0)
        return x * scale.get()

    inputs = [(torch.full((3,), 1.0 if i % 2 else -1.0),) for i in range(12)]
    return Program(lambda x: (step(x), scale.get()), [clear, *inputs])


@differential(hits=4)
def test_what_is_set_to_what_it_holds():
    return program(lambda x: (scale.set(scale.get()) is None, x * scale.get())[1])


def shown_between(x):
    token = scale.set(3.0)
    print("between")
    scale.reset(token)
    return x * 2


def set_behind_what_is_shown(x):
    print("before")
    scale.set(2.0)
    return x * 2


def reset_twice(x):
    token = scale.set(3.0)
    scale.reset(token)
    try:
        scale.reset(token)
    except RuntimeError:
        x = x + 1
    return x


def read_what_is_not_set(x):
    try:
        return x * unset.get()
    except LookupError:
        return x


def keep_token(x):
    token = scale.set(2.0)
    x = x * 2
    return x, token.old_value is contextvars.Token.MISSING


IMPERATIVE = {
    "a token used twice": (reset_twice, "would_raise"),
    "a variable that is not set": (read_what_is_not_set, "dynamic_value"),
    "what is shown while it is set": (shown_between, "heap_write"),
    "set behind what is shown": (set_behind_what_is_shown, "heap_write"),
    "attributes of a token": (keep_token, "expression"),
}


@pytest.mark.parametrize("name", IMPERATIVE)
def test_what_stays_imperative(name):
    step, reason = IMPERATIVE[name]
    differential(reasons=[reason])(lambda: program(step))()
