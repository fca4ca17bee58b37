"""Whole training steps around one operator: gradients cleared, the operator applied to a parameter as it
lies or to a view of it, backward() inside, the same tensors call after call.

Programs that take gradients outside leave the executor less to decide: here a gradient takes the old
one's place, a parameter is written while views of it are used, results of earlier calls are held. In
float64, so that small differences of how a sum is added up don't grow over the calls.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import databases

import torch

STEP_SIZE = 0.05


@dataclass
class Layout:
    """How the operator's input lies in the parameter: `store` makes a parameter of the input (None: it
    can't), `view` finds the input in the parameter, inside of the step."""

    name: str
    store: Callable[[torch.Tensor], torch.Tensor | None]
    view: Callable[[torch.Tensor], torch.Tensor]


def transposed(parameter: torch.Tensor) -> torch.Tensor:
    return parameter.transpose(-1, -2)


def store_transposed(value: torch.Tensor) -> torch.Tensor | None:
    return value.transpose(-1, -2).clone().contiguous() if value.dim() > 1 else None


def store_sliced(value: torch.Tensor) -> torch.Tensor | None:
    return value.repeat_interleave(2, -1) if value.dim() > 0 else None


def store_row(value: torch.Tensor) -> torch.Tensor | None:
    return value[0].clone() if value.dim() > 0 and value.shape[0] > 1 else None


def layouts(value: torch.Tensor) -> list[Layout]:
    """Those that there are for an input."""
    shape = tuple(value.shape)
    every = [
        Layout("as it lies", lambda value: value.clone(), lambda parameter: parameter),
        Layout("transposed", store_transposed, transposed),
        Layout("sliced", store_sliced, lambda parameter: parameter[..., ::2]),
        Layout("expanded", store_row, lambda parameter: parameter.expand(shape)),
    ]
    return [layout for layout in every if layout.store(value) is not None]


def place_of_parameter(positional: tuple) -> tuple[int, ...] | None:
    """Where the first tensor that needs a gradient stands among the arguments."""
    for index, argument in enumerate(positional):
        if isinstance(argument, torch.Tensor) and argument.requires_grad:
            return (index,)
        if isinstance(argument, (list, tuple)):
            inner = place_of_parameter(tuple(argument))
            if inner is not None:
                return (index, *inner)
    return None


def at(positional: Any, place: tuple[int, ...]) -> Any:
    return positional if not place else at(positional[place[0]], place[1:])


def replaced(positional: Any, place: tuple[int, ...], value: Any) -> Any:
    """The arguments with another value at a place."""
    if len(place) == 0:
        return value
    index = place[0]
    inner = replaced(positional[index], place[1:], value)
    kind = type(positional)
    return kind([*positional[:index], inner, *positional[index + 1 :]])


def smooth_loss(outputs: list[torch.Tensor]) -> Any:
    """A number whose gradient differs from element to element."""
    loss = 0
    for output in outputs:
        if output.requires_grad:
            real = torch.view_as_real(output) if output.is_complex() else output
            loss = loss + real.atan().sum()
    return loss


def make_step(call: Callable, place: tuple[int, ...], layout: Layout, use: str) -> Callable:
    """`use`: what becomes of results and gradient (USES)."""
    view = layout.view

    def backward(parameter, positional, keywords):
        parameter.grad = None
        value = view(parameter)
        result = call(*replaced(positional, place, value), **keywords)
        outputs = [result] if isinstance(result, torch.Tensor) else list(result)
        loss = smooth_loss(outputs)
        loss.backward()
        return value, result, outputs, loss

    def detached(parameter, positional, keywords):
        _, _, outputs, _ = backward(parameter, positional, keywords)
        return [output.detach() for output in outputs]

    def update(parameter, positional, keywords):
        _, _, _, loss = backward(parameter, positional, keywords)
        with torch.no_grad():
            parameter -= STEP_SIZE * parameter.grad
        return loss.detach()

    def retained(parameter, positional, keywords):
        value, result, _, loss = backward(parameter, positional, keywords)
        return value, result, loss

    return {"detached": detached, "update": update, "retained": retained}[use]


def leaves(value: torch.Tensor) -> Iterator[Callable[[], torch.Tensor]]:
    """Makers of parameters that hold the value in different orders, with gaps, in part of their memory."""
    yield value.clone
    if value.dim() > 1:
        yield lambda: transposed(store_transposed(value))
    if value.dim() > 0:
        yield lambda: store_sliced(value)[..., ::2]
        yield lambda: torch.cat([value, value])[: value.shape[0]]


@dataclass
class StepCase:
    name: str
    step: Callable
    make_arguments: list[
        Callable[[], tuple]
    ]  # one for each of the argument tuples, called by turns


# Detached results only; an update of the parameter; results and the view that they were made of.
USES = ("detached", "update", "retained")


def step_cases(op: Any, samples: int | None, fresh: Callable) -> Iterator[StepCase]:
    """All steps around an operator; one that meets its samples by turns; one that meets parameters that lie
    in many ways by turns, for each sample."""
    if not op.supports_autograd or torch.float64 not in op.supported_dtypes("cpu"):
        return
    by_turns: list[Callable[[], tuple]] = []
    last = None
    for case in databases.operator_cases(op, samples, torch.float64):
        if case.form != "function":
            continue
        positional, keywords = case.arguments
        place = place_of_parameter(positional)
        if place is None:
            continue
        value = at(positional, place).detach()
        step = make_step(case.call, place, layouts(value)[0], "update")
        makers = [
            lambda make=make, case=case: (make().detach().requires_grad_(), *fresh(case.arguments))
            for make in leaves(value)
        ]
        yield StepCase(f"{case.name}[{case.index}] leaves by turns", step, makers)
        for layout in layouts(value):

            def make_arguments(layout=layout, value=value, case=case):
                positional, keywords = fresh(case.arguments)
                return layout.store(value).requires_grad_(), positional, keywords

            for use in USES:
                step = make_step(case.call, place, layout, use)
                name = f"{case.name}[{case.index}] {layout.name}, {use}"
                yield StepCase(name, step, [make_arguments])
            if layout.name == "as it lies" and last in (None, place):
                by_turns.append(make_arguments)
                last = place
    if len(by_turns) > 1 and last is not None:
        step = make_step(op.op, last, layouts(torch.zeros(()))[0], "detached")
        yield StepCase(f"{databases.full_name(op)} by turns", step, by_turns)
