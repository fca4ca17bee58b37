"""Packed sequences: recurrent layers over sequences of several lengths."""

import pytest
from differential import Program, differential
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import torch
from torch import nn

KINDS = {"gru": nn.GRU, "lstm": nn.LSTM, "tanh": nn.RNN}
FORMS = {
    "plain": {},
    "without biases": {"bias": False},
    "both ways": {"bidirectional": True},
    "two layers both ways": {"num_layers": 2, "bidirectional": True},
    "dropout": {"num_layers": 2, "dropout": 0.3},
}


def batches(count, most=9):
    for _ in range(count):
        lengths = torch.randint(2, most, (6,))
        lengths[0] = lengths[0].clamp(min=3)
        yield torch.randn(6, int(lengths.max()), 3), lengths


def learning(layer, calls, batch_first=True, enforce_sorted=False):
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x, lengths):
        if not batch_first:
            x = x.transpose(0, 1)
        packed = pack_padded_sequence(
            x, lengths, batch_first=batch_first, enforce_sorted=enforce_sorted
        )
        packed, states = layer(packed)
        outputs, lengths = pad_packed_sequence(packed, batch_first=batch_first)
        states = states if isinstance(states, tuple) else (states,)
        loss = outputs.square().sum() + sum(state.sin().sum() for state in states)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), outputs.detach(), lengths, [state.detach() for state in states]

    return Program(step, list(calls), watch=[layer])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=2)
def test_layer(kind, form):
    layer = KINDS[kind](3, 4, batch_first=True, **FORMS[form])
    return learning(layer, batches(10))


@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=2)
def test_sorted_steps_first(kind):
    layer = KINDS[kind](3, 4)
    calls = [(x, lengths.sort(descending=True).values) for x, lengths in batches(10)]
    return learning(layer, calls, batch_first=False, enforce_sorted=True)


@differential(hits=5, graphs=2)
def test_what_is_packed_as_result():
    layer = nn.LSTM(3, 4, batch_first=True)

    @torch.no_grad()
    def step(x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, (hidden, _) = layer(packed)
        outputs, _ = pad_packed_sequence(output, batch_first=True, total_length=12)
        return packed, output.data, output.batch_sizes, hidden, outputs

    return Program(step, list(batches(10)), watch=[layer])


@differential(hits=5, graphs=3)
def test_what_is_packed_as_argument():
    layer = nn.GRU(3, 4)

    def step(packed):
        output, hidden = layer(packed)
        padded, lengths = pad_packed_sequence(output)
        return padded.sum(0).detach(), hidden.detach(), lengths

    calls = [
        (pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False),)
        for x, lengths in batches(12)
    ]
    return Program(step, calls, watch=[layer])


@differential(reasons=["autograd"])
def test_result_with_a_gradient_due_outside():
    """Then how long the results are would have to be kept for it."""
    layer = nn.GRU(3, 4, batch_first=True)

    def step(x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = pad_packed_sequence(layer(packed)[0], batch_first=True)
        return outputs.sum()

    return Program(step, list(batches(8)), watch=[layer])


@differential(hits=4)
def test_lengths_that_raise():
    """A length of 0, and batches of one step: Python's."""
    layer = nn.LSTM(3, 4, batch_first=True)
    calls = list(batches(10))
    calls[7][1][2] = 0
    calls[8][1].fill_(1)
    return learning(layer, calls)


@differential(hits=5, graphs=1)
def test_named_tuple_with_a_constructor_of_its_own():
    def step(x):
        made = PackedSequence(x * 2, torch.ones(3, dtype=torch.long))
        return made.data + 1, made.batch_sizes, made.sorted_indices, isinstance(made, tuple), made

    return Program(step, [(torch.randn(3, 2),) for _ in range(8)])
