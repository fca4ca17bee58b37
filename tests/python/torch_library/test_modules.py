"""Modules: containers of them, those that the step itself makes (slices of containers, losses, activations), and calls
with other parameters."""

import functools
from collections import OrderedDict

import pytest
import torch.nn.functional as F
from differential import Program, compare, default_dtype, differential, observe, seeded

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)])
        self.tail = None

    def forward(self, x):
        x = self.body[2:](self.body[:2](x))
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def training(step_of):
    """The program that trains a net by what `step_of` makes of it."""

    def build():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = step_of(model, x, y)
            loss.backward()
            optimizer.step()
            return loss

        batches = [(torch.randn(5, 4), torch.randn(5, 2)) for _ in range(7)]
        return Program(step, batches, watch=[model, optimizer])

    return build


@differential()
def test_slices_of_containers():
    return training(lambda model, x, y: F.mse_loss(model(x), y))()


@differential(hits=3)
def test_a_changed_container():
    program = training(lambda model, x, y: F.mse_loss(model(x), y))()
    model = program.watch[0]
    program.calls.insert(5, lambda: model.layers.insert(0, nn.Identity()))
    return program


@differential()
def test_losses_and_activations_made_in_the_step():
    def loss_of(model, x, y):
        out = nn.Dropout(0.25)(nn.LeakyReLU(0.1)(model(x)))
        return nn.MSELoss()(out, y) + nn.CrossEntropyLoss(label_smoothing=0.1)(out, y.argmax(1))

    return training(loss_of)()


@differential()
def test_a_module_of_the_programs_own():
    class Scaled(nn.Module):
        def __init__(self, inner, scale):
            super().__init__()
            self.inner, self.scale = inner, scale
            self.register_buffer("offset", torch.ones(2))

        def forward(self, x):
            return self.inner(x) * self.scale + self.offset

    def loss_of(model, x, y):
        return F.mse_loss(Scaled(model, 0.5)(x), y)

    return training(loss_of)()


def keeps_a_slice(model, x):
    model.tail = model.body[:2]
    return model.tail(x).sum()


def returns_a_slice(model, x):
    part = model.body[:2]
    return part, part(x).sum()


def makes_parameters(model, x):
    layer = nn.Linear(4, 2)
    return layer(x).sum()


def replaces_a_module(model, x):
    model.body[1] = nn.ReLU()
    return model(x)


def freezes_a_slice(model, x):
    for p in model.body[:1].parameters():
        p.requires_grad = False
    return model(x)


def evaluates_a_slice(model, x):
    model.layers[:2].eval()
    return model(x)


@pytest.mark.parametrize(
    "use",
    [
        keeps_a_slice,
        returns_a_slice,
        makes_parameters,
        replaces_a_module,
        freezes_a_slice,
        evaluates_a_slice,
    ],
)
def test_modules_that_outlive_the_step(use):
    """Whether these run as graphs does not matter: what they do must be what they do eagerly."""

    def build():
        model = Net()
        batches = [(torch.randn(5, 4),) for _ in range(6)]
        return Program(functools.partial(use, model), batches, watch=[model])

    with default_dtype(torch.float64):
        expected = observe(seeded(build, {}), converted=False)
        actual = observe(seeded(build, {}), converted=True)
        for index, (one, other) in enumerate(zip(expected.steps, actual.steps, strict=True)):
            compare(one, other, f"after call {index}", 1e-10)


def calls(*shapes, count=6):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


@differential(hits=2, graphs=1)
def test_ordered_dict_module_list_and_parameter_list():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                OrderedDict(
                    [("one", nn.Linear(3, 4)), ("two", nn.Tanh()), ("three", nn.Linear(4, 3))]
                )
            )
            self.table = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
            self.register_buffer("offset", torch.randn(3))

        def forward(self, x):
            x = self.layers(x) + self.offset
            for name, layer in self.table.items():
                x = layer(x) if name == "a" else x + layer(x)
            for scale in self.scales:
                x = x * scale
            return x

    net = Net()

    def step(x):
        return net(x)

    return Program(step, calls((4, 3)), watch=[net])


def batches(count=8, rows=3):
    return [(torch.randn(rows, 4),) for _ in range(count)]


@differential(hits=4)
def test_functional_call():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        parameters = dict(model.named_parameters())
        inner = torch.func.functional_call(model, parameters, (x,)).pow(2).mean()
        gradients = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
        updated = {
            name: parameter - 0.1 * gradient
            for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
        }
        loss = torch.func.functional_call(model, updated, (x,)).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, batches(), watch=[model])
