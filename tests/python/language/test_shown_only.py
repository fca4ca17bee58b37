"""Numbers and texts that are only shown, and tests that decide when: no graph for each of them."""

import logging

import pytest
from differential import Program, differential

import torch
from torch import nn


def numbered(count=60):
    return [(torch.randn(5, 4), index) for index in range(count)]


@differential(hits=57, graphs=1, aborts=0)
def test_print_of_every_tenth_step():
    """The test has gone one way in all the profiled calls."""
    model = nn.Linear(4, 3)

    def step(x, index):
        loss = model(x).pow(2).mean()
        if index % 10 == 9:
            print(f"[{index + 1:5d}] loss: {loss.item():.3f}")
        return loss

    return Program(step, numbered(), watch=[model])


class Trainer:
    def __init__(self):
        self.steps = 0
        self.running = 0.0
        self.history = []


@differential(hits=57, graphs=1, aborts=0)
def test_running_loss_that_is_shown_and_reset():
    model, trainer = nn.Linear(4, 3), Trainer()

    def step(x):
        trainer.steps += 1
        loss = model(x).pow(2).mean()
        trainer.running += loss.item()
        if not trainer.steps % 20:
            print(f"{trainer.running / 20:.3f}")
            trainer.history.append(trainer.running / 20)
            trainer.running = 0.0
        return loss

    return Program(step, [(x,) for x, _ in numbered()], watch=[model, trainer])


@differential(hits=57, graphs=1, aborts=0)
def test_update_after_several_steps():
    """Accumulated gradients: the side that was not seen is half of the step."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x, index):
        loss = model(x).pow(2).mean()
        loss.backward()
        if (index + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        return loss.detach()

    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return Program(step, numbered(), watch=[model])


@differential(hits=57, graphs=1, aborts=0)
def test_warm_up_that_ends():
    """The profiled calls lie before its end."""
    model, trainer = nn.Linear(4, 3), Trainer()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def rate(step):
        if step < 10:
            return float(step) / 10
        return max(0.0, 1 - float(step) / 40)

    def step(x, index):
        trainer.steps += 1
        loss = model(x).pow(2).mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.param_groups[0]["lr"] = 0.1 * rate(trainer.steps)
        optimizer.step()
        if not trainer.steps <= 30:
            trainer.running += loss.item()
        return loss.detach()

    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return Program(step, numbered(), watch=[model, trainer])


@differential(hits=50, graphs=2)
def test_side_of_a_bound_that_can_not_be_merged():
    """Then the test is followed, as any other."""
    model, trainer = nn.Linear(4, 3), Trainer()

    def step(x, index):
        loss = model(x).pow(2).mean()
        if index > 40:
            trainer.best = x
        return loss

    return Program(step, numbered(), watch=[model, trainer])


@differential(hits=50, graphs=2)
def test_side_of_a_remainder_that_can_not_be_merged():
    """Then the test is followed, as any other."""
    model, trainer = nn.Linear(4, 3), Trainer()

    def step(x, index):
        loss = model(x).pow(2).mean()
        if index % 10 == 9:
            trainer.best = x
        return loss

    return Program(step, numbered(), watch=[model, trainer])


@differential(hits=50, graphs=2)
def test_text_that_is_another_one_in_each_call():
    model, trainer = nn.Linear(4, 3), Trainer()

    def step(x, name):
        loss = model(x).pow(2).mean()
        print("file", name, f"{name!r:>12} {loss.item():.3f}")
        trainer.name = name
        trainer.history.append((name, loss.item()))
        return loss, name

    calls = [(x, f"file{index}") for x, index in numbered()]
    return Program(step, calls, watch=[model, trainer])


@differential(hits=50, graphs=3)
def test_text_of_an_attribute_that_is_another_one_in_each_call():
    model, trainer = nn.Linear(4, 3), Trainer()
    trainer.title = ""

    def step(x):
        print(trainer.title)
        return model(x).sum()

    def name(index):
        def change():
            trainer.title = f"epoch {index}"

        return change

    calls = []
    for x, index in numbered():
        calls += [name(index), (x,)]
    return Program(step, calls, watch=[model])


@differential(hits=20, graphs=8)
def test_texts_that_choose():
    """Few texts that the program tells apart have graphs of their own; sizes still vary."""
    layers = {"relu": nn.ReLU(), "tanh": nn.Tanh(), "none": nn.Identity(), "elu": nn.ELU()}

    def step(x, name):
        return layers[name](x).sum()

    names = list(layers)
    calls = [(torch.randn(2 + index % 5, 4), names[index % 4]) for index in range(40)]
    return Program(step, calls)


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
def test_logging_of_numbers(level):
    @differential(hits=57, graphs=1, aborts=0)
    def program():
        model, log = nn.Linear(4, 3), logging.getLogger("shown")
        log.setLevel(level)
        log.addHandler(logging.NullHandler())
        log.propagate = False

        def step(x, index):
            loss = model(x).pow(2).mean()
            log.info("step %d loss %f", index, loss.item())
            return loss

        return Program(step, numbered(), watch=[model])

    program()
