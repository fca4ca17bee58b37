"""Recurrent layers as programs: what torch.gru, torch.lstm, torch.rnn_tanh and torch.rnn_relu compute.

Graphs are made of these instead of the layers' own operators: so the rounds are a loop like any other,
unrolled or in the graph, with gates in one kernel and the products of all rounds in one.
All take time as the first dimension and give `(output, last state, ...)`; the input's products of all
rounds are one, as torch computes them: so the cells are not torch.gru_cell and its like, which multiply
their inputs themselves (over lengths that vary, half as fast).

Source of the equations: the documentation of torch.nn.GRU, torch.nn.LSTM and torch.nn.RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch.nn.functional import linear

import torch
from torch import Tensor

States = tuple[Tensor, ...]
"""What a cell hands from round to round, its output first."""


def gru_cell(ours: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    """A round, of the products of its input and of its state with their weights."""
    (state,) = states
    reset, kept, fresh = ours.chunk(3, 1)
    its_reset, its_kept, its_fresh = linear(state, weight, bias).chunk(3, 1)
    reset, kept = torch.sigmoid(its_reset + reset), torch.sigmoid(its_kept + kept)
    fresh = torch.tanh(fresh + its_fresh * reset)
    return ((state - fresh) * kept + fresh,)


def lstm_cell(ours: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    output, state = states
    entering, kept, fresh, shown = (linear(output, weight, bias) + ours).chunk(4, 1)
    state = torch.sigmoid(kept) * state + torch.sigmoid(entering) * torch.tanh(fresh)
    return torch.sigmoid(shown) * torch.tanh(state), state


def tanh_cell(ours: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    return (torch.tanh(linear(states[0], weight, bias) + ours),)


def relu_cell(ours: Tensor, states: States, weight: Tensor, bias: Tensor | None) -> States:
    return (torch.relu(linear(states[0], weight, bias) + ours),)


def one_way(
    cell: Callable[[Tensor, States, Tensor, Tensor | None], States],
    inputs: Tensor,
    states: States,
    weights: Sequence[Tensor],
    backwards: bool,
) -> tuple[Tensor, States]:
    """One layer in one direction: its outputs of all rounds, and the states after the last."""
    bias_of_input, bias = (weights[2], weights[3]) if len(weights) > 2 else (None, None)
    products = linear(inputs, weights[0], bias_of_input)
    rounds = inputs.size(0)
    outputs = []
    for i in range(rounds):
        states = cell(products[rounds - 1 - i if backwards else i], states, weights[1], bias)
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
    """All layers: the last one's outputs of all rounds, and the states of all after the last round.

    `inputs` are (rounds, batch, features).
    `states` are (layers x directions, batch, units) each, as those that are given back; `weights` come in
    torch's order: of each layer and direction for the input and the state, then the biases.
    """
    ways, each = (2 if bidirectional else 1), (4 if has_biases else 2)
    given = [state.unbind(0) for state in states]
    last: list[list[Tensor]] = [[] for _ in states]
    for layer in range(num_layers):
        outputs = []
        for way in range(ways):
            place = layer * ways + way
            begin = tuple(state[place] for state in given)
            own = weights[place * each : place * each + each]
            output, end = one_way(cell, inputs, begin, own, way == 1)
            outputs.append(output)
            for all_of_kind, state in zip(last, end, strict=True):
                all_of_kind.append(state)
        inputs = torch.cat(outputs, 2) if bidirectional else outputs[0]
        if dropout != 0 and train and layer + 1 < num_layers:
            inputs = torch.dropout(inputs, dropout, True)
    return inputs, *[torch.stack(all_of_kind) for all_of_kind in last]
