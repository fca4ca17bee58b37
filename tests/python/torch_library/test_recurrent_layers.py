"""Layers of recurrent networks: graphs run them as the programs of torchjanus/recurrent.py."""

import sys

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn

KINDS = {
    "gru": nn.GRU,
    "lstm": nn.LSTM,
    "tanh": nn.RNN,
    "relu": lambda *arguments, **options: nn.RNN(*arguments, nonlinearity="relu", **options),
}
FORMS = {
    "plain": {},
    "without biases": {"bias": False},
    "both ways": {"bidirectional": True},
    "two layers": {"num_layers": 2},
    "two layers both ways": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "batch first": {"batch_first": True},
    "dropout": {"num_layers": 3, "dropout": 0.3},
}


def all_of(states):
    return states if isinstance(states, tuple) else (states,)


def learning(layer, inputs, first_state=None, rate=0.1):
    optimizer = torch.optim.SGD(layer.parameters(), rate)

    def step(x):
        optimizer.zero_grad()
        output, states = layer(x, first_state)
        loss = output.square().sum() + sum(state.sin().sum() for state in all_of(states))
        loss.backward()
        optimizer.step()
        return loss, output.detach(), states

    watch = [layer] if first_state is None else [layer, *all_of(first_state)]
    return Program(step, [(x,) for x in inputs], watch=watch)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=1)
def test_layer(kind, form):
    layer = KINDS[kind](3, 4, **FORMS[form])
    return learning(layer, [torch.randn(5, 2, 3) for _ in range(8)])


@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=1)
def test_lengths_that_vary(kind):
    layer = KINDS[kind](3, 4, bidirectional=True, batch_first=True)
    return learning(layer, [torch.randn(2, 2 + i % 5, 3) for i in range(12)])


@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=1)
def test_long_ones_are_a_loop_of_the_graph(kind):
    layer = KINDS[kind](3, 4, bidirectional=True)
    return learning(layer, [torch.randn(90, 2, 3) for _ in range(8)], rate=0.001)


@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=1)
def test_first_states_that_learn(kind):
    layer = KINDS[kind](3, 4, 2)
    state = torch.randn(2, 2, 4, requires_grad=True)
    states = (state, torch.randn(2, 2, 4, requires_grad=True)) if kind == "lstm" else state
    return learning(layer, [torch.randn(5, 2, 3) for _ in range(8)], states)


@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=1)
def test_unbatched(kind):
    return learning(KINDS[kind](3, 4), [torch.randn(5, 3) for _ in range(8)])


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=1)
def test_gradients_due_outside(kind, batch_first):
    """What is handed out lies as eager's, and has a grad_fn of the same name."""
    layer = KINDS[kind](3, 4, batch_first=batch_first)

    def forward(x):
        return layer(x)

    def outside(forward):
        def step(x):
            output, states = results = forward(x)
            layer.zero_grad()
            (output.square().sum() + sum(state.sin().sum() for state in all_of(states))).backward()
            return results

        return step

    def convert(_):
        converted = torchjanus.function(forward)
        return outside(converted), converted

    calls = [(torch.randn(5, 2, 3),) for _ in range(8)]
    return Program(outside(forward), calls, watch=[layer], convert=convert)


@pytest.mark.parametrize("kind", KINDS)
@differential(hits=5, graphs=1)
def test_without_gradients(kind):
    layer = KINDS[kind](3, 4, 2, batch_first=True).eval()

    def step(x):
        with torch.no_grad():
            return layer(x)

    return Program(step, [(torch.randn(5, 2, 3),) for _ in range(8)])


@differential(hits=12)
def test_state_carried_from_call_to_call():
    layer, states = nn.LSTM(3, 4), [torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)]
    optimizer = torch.optim.Adam(layer.parameters(), 0.01)

    def step(x):
        optimizer.zero_grad()
        output, end = layer(x, tuple(states))
        states[:] = [state.detach() for state in end]
        loss = output.square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(6, 2, 3),) for _ in range(20)], watch=[layer, states])


@differential(hits=20)
def test_an_iteration_at_a_time_in_loops_and_branches():
    encoder, decoder = nn.GRU(3, 4), nn.LSTM(4, 4)

    def step(x):
        encoder.zero_grad()
        decoder.zero_grad()
        state = torch.zeros(1, 1, 4)
        for word in x:
            output, state = encoder(word.view(1, 1, -1), state)
        states = (state, torch.zeros(1, 1, 4))
        if x.sum() > 0:
            output, states = decoder(output, states)
        else:
            output, states = decoder(output * 2, states)
        loss = output.sum() + states[1].square().sum()
        loss.backward()
        return loss

    return Program(
        step, [(torch.randn(2 + i % 4, 3),) for i in range(30)], watch=[encoder, decoder]
    )


@differential(hits=5)
def test_varying_iterations_on_one_side_of_a_branch():
    layer = nn.GRU(3, 4)

    def step(x, flag):
        layer.zero_grad()
        loss = layer(x)[1].square().sum() if flag.item() > 0 else layer(x * 2)[0].sum()
        loss.backward()
        return loss

    calls = [(torch.randn(2 + i % 4, 2, 3), torch.randn(1)) for i in range(30)]
    return Program(step, calls, watch=[layer])


@differential(hits=5, graphs=1, tolerance=1e-4, dtype=torch.float32)
def test_layers_that_torch_is_quicker_with():
    """In float32, over lengths that vary, with many units."""
    layer = nn.LSTM(8, 128)
    return learning(layer, [torch.randn(3 + i % 5, 32, 8) for i in range(12)], rate=0.001)


@differential(hits=5)
def test_weights_that_project():
    """What torch.lstm computes with them stays an operator of torch's."""
    return learning(nn.LSTM(3, 4, proj_size=2), [torch.randn(5, 2, 3) for _ in range(8)])


@pytest.mark.parametrize("kind", KINDS)
@differential(hits=12, reasons=["guard_failed"])
def test_no_iterations_at_all(kind):
    """Torch raises there."""
    layer = KINDS[kind](3, 4)
    return learning(layer, [torch.randn(i % 5, 2, 3) for i in range(1, 22)])


@differential(hits=0, reasons=["would_raise"])
def test_sizes_that_do_not_fit():
    layer = nn.GRU(3, 4)
    return Program(lambda x: layer(x), [(torch.randn(5, 2, 7),) for _ in range(8)])


@pytest.mark.parametrize(
    "layer, batch, iterations, is_left",
    [
        (nn.GRU(3, 4), 2, 5, False),
        (nn.GRU(3, 128), 32, 90, False),
        (nn.LSTM(3, 128), 32, 5, False),
        (nn.LSTM(3, 4), 2, 64, False),
        (nn.LSTM(3, 4), 2, 90, True),
        (nn.LSTM(3, 4).double(), 2, 90, False),
        (nn.LSTM(3, 128), 32, 90, True),
    ],
)
def test_whether_the_operator_of_the_layer_is_left(layer, batch, iterations, is_left):
    step = torchjanus.function(lambda x: layer(x)[1])
    for _ in range(5):
        step(torch.randn(iterations, batch, 3, dtype=layer.weight_ih_l0.dtype))
    assert ("opaque" in str(step.graph())) == is_left


def test_what_the_operator_of_a_layer_gives_is_asked_quickly():
    """Of torch, with data: without, each step of each layer takes milliseconds in Python."""
    layer = nn.LSTM(3, 4, 6, proj_size=2)
    step = torchjanus.function(lambda x: layer(x)[0].sum(), profile_runs=0)
    in_torch = []

    def count(frame, event, _):
        if event == "call" and "_meta_registrations" in frame.f_code.co_filename:
            in_torch.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        step(torch.randn(100, 2, 3))
    finally:
        sys.setprofile(None)
    assert "opaque" in step.graph()
    assert len(in_torch) < 100


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"bidirectional": True},
        {"num_layers": 2},
        {"bias": False, "num_layers": 2, "bidirectional": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("batched", [True, False])
@differential()
def test_options_of_layers(kind, options, batched):
    layer = kind(3, 4, **options)

    def step(x):
        layer.zero_grad()
        out, h = layer(x)
        hidden = h[0] if isinstance(h, tuple) else h
        (out.pow(2).sum() + hidden.sum()).backward()
        return out, h

    shape = (5, 2, 3) if batched else (5, 3)
    return Program(step, [(torch.randn(*shape),) for _ in range(5)], watch=[layer])
