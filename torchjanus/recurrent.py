"""Recurrent layers as programs: what torch.gru, torch.lstm, torch.rnn_tanh and torch.rnn_relu compute.

The front end inlines `layers` in the place of these functions. So the time steps are a loop like any
other, unrolled or in the graph, with the gates in one kernel. All tensors have time as their first
dimension. The input's products of all time steps are one product, as in torch. That is why the cells
are not torch.gru_cell and its like, which multiply their input themselves: over lengths that vary that
is half as fast. The equations of the cells are src/ops/recurrent.cpp's.

Source: the documentation of torch.nn.GRU, torch.nn.LSTM and torch.nn.RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch.nn.functional import linear

import torch
from torch import Tensor

States = tuple[Tensor, ...]
"""The states that a cell passes from step to step, its output first."""


class OnlyInGraphs(NotImplementedError):
    """Raised by a cell that is called in Python. Its equations are in src/ops/recurrent.cpp."""


def gru_cell(product: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    """The states after one time step.

    Args:
        product: The input's product with its weight and bias, (batch, gates x units).
        states: The states before the step, (batch, units) each.
        weight: The state's weight, (gates x units, units).
        bias: The state's bias, (gates x units,), or None.
    """
    raise OnlyInGraphs


def lstm_cell(product: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    """As gru_cell(), of two states: the output and the memory."""
    raise OnlyInGraphs


def tanh_cell(product: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    """As gru_cell(), of a plain cell: one gate."""
    raise OnlyInGraphs


def relu_cell(product: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    """As tanh_cell(), with another activation."""
    raise OnlyInGraphs


def one_direction(
    cell: Callable[[Tensor, States, Tensor, Tensor | None], States],
    inputs: Tensor,
    states: States,
    weights: Sequence[Tensor],
    backwards: bool,
) -> tuple[Tensor, States]:
    """One layer in one direction: its outputs of all steps, and the states after the last."""
    bias_of_input, bias = (weights[2], weights[3]) if len(weights) > 2 else (None, None)
    products = linear(inputs, weights[0], bias_of_input)
    steps = inputs.size(0)
    outputs = []
    for i in range(steps):
        states = cell(products[steps - 1 - i if backwards else i], states, weights[1], bias)
        outputs.append(states[0])
    if backwards:
        outputs.reverse()
    return torch.stack(outputs), states


def layers(
    cell: Callable[[Tensor, States, Tensor, Tensor | None], States],
    inputs: Tensor,
    states: States,
    weights: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> States:
    """All layers: the outputs of the last one for all steps, and the states of all after the last step.

    Args:
        cell: The cell of a step, one of those above.
        inputs: (steps, batch, features).
        states: (layers x directions, batch, units) each, as the returned states.
        weights: In torch's order: for each layer and direction those of the input and of the state, then
            the biases.
    """
    directions, each = (2 if bidirectional else 1), (4 if has_biases else 2)
    given = [state.unbind(0) for state in states]
    last: list[list[Tensor]] = [[] for _ in states]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            begin = tuple(state[place] for state in given)
            own = weights[place * each : place * each + each]
            output, end = one_direction(cell, inputs, begin, own, direction == 1)
            outputs.append(output)
            for all_of_kind, state in zip(last, end, strict=True):
                all_of_kind.append(state)
        inputs = torch.cat(outputs, 2) if bidirectional else outputs[0]
        if dropout != 0 and train and layer + 1 < num_layers:
            inputs = torch.dropout(inputs, dropout, True)
    return inputs, *[torch.stack(all_of_kind) for all_of_kind in last]
