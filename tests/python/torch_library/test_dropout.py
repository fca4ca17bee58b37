"""What graphs draw themselves for dropout: the numbers, and the generator's state after them, are torch's."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
from torch import nn

# Around the 312 pairs of numbers that the generator computes at once.
SIZES = [(1,), (2,), (311,), (312,), (313,), (624,), (3, 5, 400)]


@pytest.mark.parametrize("chance", [1e-6, 0.3, 0.5, 0.999999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@differential(hits=22)
def test_sizes(dtype, chance):
    def step(x):
        shift = torch.rand((), dtype=torch.float32)  # one number: pairs begin in the middle
        return F.dropout(x, chance), F.dropout(x * 2, chance), shift, torch.rand(3)

    calls = [(torch.ones(size, dtype=dtype),) for size in SIZES for _ in range(4)]
    return Program(step, calls)


@differential(hits=11)
def test_probabilities_that_vary():
    def step(x, chance):
        return torch.empty_like(x).bernoulli_(chance) * x

    calls = [(torch.randn(40, 40), chance) for chance in (0.5, 0.25, 0.0, 1.0, 0.75, 0.1, 0.9)]
    return Program(step, [*calls, (torch.randn(40, 40), 1.5), *calls])


@differential(hits=6)
def test_a_run_that_is_given_up_has_drawn_nothing():
    def step(x):
        y = F.dropout(x, 0.5)
        if y.sum() > 1000:
            return y * 0
        return y

    calls = [(torch.full((20, 20), 1000.0 if i == 7 else 0.1),) for i in range(10)]
    return Program(step, calls)


PARTS = {
    "variational autoencoder": lambda y: y[:, :16] + torch.randn_like(y[:, :16]) * y[:, 16:].exp(),
    "columns": lambda y: F.dropout(y[:, 3:], 0.5) * torch.rand_like(y[:, 3:]),
    "every other row": lambda y: F.dropout(y[::2], 0.5) + torch.randn_like(y[::2]),
    "chunks": lambda y: F.dropout(y.chunk(3)[1][:, 2:], 0.3),
    "repeated": lambda y: F.dropout(y[:1].expand(5, 32), 0.5),
}


@pytest.mark.parametrize("name", PARTS)
@differential(hits=3)
def test_draws_for_parts_of_tensors(name):
    """They go into new memory, in the order of the indices."""
    linear = nn.Linear(32, 32)

    def step(x):
        linear.zero_grad()
        y = PARTS[name](linear(x))
        y.sum().backward()
        return y

    return Program(step, [(torch.randn(12, 32),) for _ in range(6)], watch=[linear])


LAYOUTS = {
    "transposed": lambda y: y.t(),
    "permuted": lambda y: y.view(3, 4, 32).permute(2, 0, 1) * 2,
    "columns, transposed": lambda y: y[:, 3:].t(),
    "rows of one element, transposed": lambda y: y[:, 2:3].t(),
    "channels last": lambda y: y.view(3, 4, 4, 8).permute(0, 3, 1, 2).relu(),
}
DRAWS = {
    "dropout": lambda y: F.dropout(y, 0.4),
    "twice": lambda y: F.dropout(F.dropout(y, 0.4).relu(), 0.2),
    "rand_like": lambda y: y + torch.rand_like(y, dtype=torch.float32),
    "alone": lambda y: torch.rand_like(y, dtype=torch.float64),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("layout", LAYOUTS)
@differential(hits=3)
def test_draws_in_another_order_than_that_of_the_indices(layout, draw):
    """They fill new memory from its beginning to its end, which lies as the operand does."""
    linear = nn.Linear(32, 32)

    def step(x):
        y = DRAWS[draw](LAYOUTS[layout](linear(x)))
        (y * y).sum().backward() if y.requires_grad else None
        return y.detach(), torch.rand(2)

    return Program(step, [(torch.randn(12, 32),) for _ in range(6)], watch=[linear])


@pytest.mark.parametrize("layout", LAYOUTS)
@differential(hits=3)
def test_such_draws_with_gradients_due_outside(layout):
    linear = nn.Linear(32, 32)

    def step(x):
        return F.dropout(LAYOUTS[layout](linear(x)), 0.4)

    def calls():
        for _ in range(6):
            x = torch.randn(12, 32, requires_grad=True)
            yield (x,)

    return Program(step, list(calls()), watch=[linear])


@pytest.mark.parametrize("drop", [F.dropout2d, F.dropout3d])
@differential(hits=3)
def test_whole_channels_are_drawn_in_the_order_of_the_indices(drop):
    def step(x):
        return drop(x, 0.4), drop(x.transpose(0, 1), 0.4), torch.rand(2)

    rest = [5] * (2 if drop is F.dropout2d else 3)
    return Program(step, [(torch.randn(3, *rest, 4).movedim(-1, 1),) for _ in range(6)])


@pytest.mark.parametrize("name", ["encoder", "decoder", "attention"])
@differential(hits=5, graphs=2)
def test_dropout_in_transformers_with_the_batch_first(name):
    """Their attention gives results whose memory is the sequence's first."""
    layers = {
        "encoder": lambda: nn.TransformerEncoderLayer(16, 2, 32, 0.2, batch_first=True),
        "decoder": lambda: nn.TransformerDecoderLayer(16, 2, 32, 0.2, batch_first=True),
        "attention": lambda: nn.MultiheadAttention(16, 2, 0.2, batch_first=True),
    }
    layer = layers[name]()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    table = torch.randn(1, 50, 16)

    def step(x):
        optimizer.zero_grad()
        x = F.dropout(x + table[:, : x.size(1)], 0.1)
        if name == "attention":
            y = F.dropout(layer(x, x, x, need_weights=False)[0], 0.3)
        else:
            y = layer(x) if name == "encoder" else layer(x, x)
        loss = y.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(torch.randn(3, length, 16),) for length in (5, 7, 6, 5, 8, 9, 7, 6, 4, 5)]
    return Program(step, calls, watch=[layer])


REFUSED = {
    "dropout": lambda y: F.dropout(y, 0.5, inplace=True),
    "bernoulli_": lambda y: y.bernoulli_(0.4),
    "normal_": lambda y: y.normal_(),
    "randn_like": torch.randn_like,
}


@pytest.mark.parametrize("name", REFUSED)
@differential(reasons=["unsupported_tensor"])
def test_draws_in_place_and_of_normal_numbers_in_another_order(name):
    """Torch draws normal numbers otherwise where elements don't lie in the order of their indices."""

    def step(x):
        return REFUSED[name](x.clone().t())

    return Program(step, [(torch.randn(12, 32),) for _ in range(6)])


def images(count=8):
    return [(torch.randn(2, 3, 8, 6).to(memory_format=torch.channels_last),) for _ in range(count)]


LAYERS = {
    "convolution": lambda: nn.Conv2d(3, 4, 3),
    "convolution of filters that lie so": lambda: nn.Conv2d(3, 4, 3).to(
        memory_format=torch.channels_last
    ),
    "batch norm": lambda: nn.BatchNorm2d(3),
    "batch norm in evaluation": lambda: nn.BatchNorm2d(3).eval(),
    "maxima": lambda: nn.MaxPool2d(2),
    "averages": lambda: nn.AvgPool2d(2),
    "adaptive averages": lambda: nn.AdaptiveAvgPool2d((2, 3)),
}


@pytest.mark.parametrize("name", sorted(LAYERS))
@differential(hits=5, graphs=1)
def test_dropout_of_channels_last(name):
    layer = LAYERS[name]()

    def step(x):
        return F.dropout(layer(x), 0.5, True).detach()

    return Program(step, images())


@differential(hits=5, graphs=1)
def test_training_with_dropout_of_channels_last():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
        nn.Linear(96, 2),
    ).to(memory_format=torch.channels_last)  # fmt: skip

    def step(x):
        model.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss.detach()

    return Program(step, images(), watch=[model])
