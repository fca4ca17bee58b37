"""Programs with torch.distributions: lazy properties, checks of arguments, broadcasting, samples."""

import pytest
from differential import Program, differential
from torch.distributions import Categorical, Independent, Normal

import torch
from torch import distributions, nn


def batches(*shape, count=8):
    return [(torch.randn(*shape),) for _ in range(count)]


@differential(hits=6)
def test_policy_update():
    model = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, actions, gain):
        policy = Categorical(logits=model(x))
        loss = -(policy.log_prob(actions) * gain).mean() - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    calls = [
        (torch.randn(rows, 4), torch.randint(0, 3, (rows,)), torch.randn(rows))
        for rows in (6, 6, 6, 6, 9, 9, 5, 7, 9, 4)
    ]
    return Program(step, calls, [model, optimizer])


@differential()
def test_sample_of_a_policy():
    model = nn.Linear(4, 3)

    @torch.no_grad()
    def step(x):
        policy = Categorical(logits=model(x))
        action = policy.sample()
        return action.item(), policy.log_prob(action)

    return Program(step, batches(4), [model])


def test_actions_that_do_not_exist_raise_as_in_eager():
    @differential(aborts=1, hits=9)
    def program():
        def step(x, actions):
            return Categorical(logits=x).log_prob(actions)

        calls = [(torch.randn(5, 3), torch.randint(0, 3, (5,))) for _ in range(6)]
        return Program(step, [*calls, (torch.randn(5, 3), torch.full((5,), 3)), *calls])

    program()


KINDS = {
    "probabilities": lambda x: Categorical(probs=x.softmax(-1)).entropy(),
    "normal": lambda x: Normal(x.mean(1), x.std(1)).log_prob(x[:, 0]),
    "normal of numbers": lambda x: Normal(0.0, 1.0).log_prob(x),
    "reparameterised": lambda x: Normal(x.mean(1), x.exp().mean(1)).rsample(),
    "samples": lambda x: Normal(x, x.exp()).sample((3,)),
    "independent": lambda x: Independent(Normal(x, x.exp()), 1).log_prob(x * 0.5),
    "Bernoulli": lambda x: distributions.Bernoulli(logits=x).log_prob((x > 0).float()),
    "uniform": lambda x: distributions.Uniform(x, x + 1).log_prob(x + 0.5),
    "divergence": lambda x: distributions.kl_divergence(
        Normal(x, x.exp()), Normal(torch.zeros_like(x), torch.ones_like(x))
    ),
    "transformed": lambda x: distributions.TransformedDistribution(
        Normal(x, x.exp()), [distributions.TanhTransform()]
    ).log_prob(x.tanh() * 0.5),
    "moments": lambda x: Normal(x, x.exp()).stddev + Normal(x, x.exp()).mean,
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("trains", [False, True])
def test_distribution(name, trains):
    @differential()
    def program():
        weight = torch.rand(3, requires_grad=trains)

        def step(x):
            result = KINDS[name](x * weight)
            weight.grad = None
            if result.requires_grad:
                result.sum().backward()
            return result.detach()

        return Program(step, batches(4, 3), [weight])

    program()


@differential(hits=3)
def test_broadcast_tensors():
    def step(x, y):
        same, wide = torch.broadcast_tensors(x, y)
        whole, other = torch.broadcast_tensors(x, x)
        return same is x, whole is x, other is x, wide.shape, (same * wide).sum()

    calls = [(torch.randn(n, 3), torch.randn(3)) for n in (4, 4, 4, 4, 5, 6, 4)]
    return Program(step, calls)


@differential()
def test_sizes_as_values():
    def step(x):
        size = x.shape
        sums = size + (1,), (2, *size) + size, size + torch.Size((7,)), size * 2
        made = torch.Size([1, 2]), torch.Size(), torch.Size(size), torch.Size((2, 3)).numel()
        kinds = [type(each) is torch.Size for each in (*sums, *made)]
        return x + 1, sums, made, kinds, size == torch.Size((4, 3))

    return Program(step, batches(4, 3))


@differential()
def test_numbers_written_at_indices():
    def step(x, scale):
        y = x * scale
        y[y > 0] = 0.5
        y[torch.tensor([0, 1])] = scale
        return y

    calls = [(torch.randn(4, 3), 0.1 * i) for i in range(8)]
    return Program(step, calls)


class Scaled:
    """A descriptor of the program's own."""

    def __init__(self, name):
        self.name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__[self.name] * owner.unit


class Measured:
    unit = 3.0
    length = Scaled("_length")

    def __init__(self, length):
        self._length = length


@differential(hits=20)
def test_descriptors_of_the_program():
    outside = Measured(torch.ones(3))

    def step(x):
        inside = Measured(x)
        return inside.length + outside.length, type(Measured.length) is Scaled

    def change():
        Measured.unit = 4.0

    def put_back():
        Measured.unit = 3.0

    calls = batches(3)
    return Program(step, [*calls, change, *calls, put_back, *calls], [outside])
