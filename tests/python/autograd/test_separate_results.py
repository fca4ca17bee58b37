"""Several results that go their own ways: one is written, freed or batched, and another's gradient does not mind."""

import pytest
from backward_outside import used_outside
from differential import differential
from torch.nn import functional as F

import torch


def outside(outputs, use, weight):
    calls = [(torch.randn(3, 3, requires_grad=True),) for _ in range(8)]
    return used_outside(outputs, use, [weight], calls)


def loss_and_chances(weight, x):
    scores = x * weight
    return F.cross_entropy(scores, torch.tensor([0, 1, 2])), scores.softmax(1)


def two_of_one(weight, x):
    scores = x.sin() * weight
    return scores.sin() * 3, scores.exp()


def write_second(results):
    with torch.no_grad():
        results[1].mul_(100)
    results[0].sum().backward()


def write_first(results):
    with torch.no_grad():
        results[0].mul_(100)
    results[1].sum().backward()


def write_second_and_ask_for_it(results):
    with torch.no_grad():
        results[1].mul_(100)
    results[0].sum().backward(retain_graph=True)
    results[1].sum().backward()


@pytest.mark.parametrize("outputs", [loss_and_chances, two_of_one])
@pytest.mark.parametrize("use", [write_second, write_first, write_second_and_ask_for_it])
@differential(hits=2)
def test_one_is_written(outputs, use):
    weight = torch.randn(3, 3, requires_grad=True)
    return outside(lambda x: outputs(weight, x), use, weight)


def shared_sum(weight, x):
    moved = x + weight
    return (moved * moved).sum(), moved.exp().sum()


def shared_view(weight, x):
    flat = torch.cat([weight, x]).view(-1)
    return flat.square().sum(), flat.tanh().sum()


def shared_product(weight, x):
    scaled = x * weight
    return scaled.square().sum(), scaled.exp().sum()


def one_after_the_other(results):
    for result in results:
        result.backward()


def together(results):
    (results[0] + 2 * results[1]).backward()


@pytest.mark.parametrize("outputs", [shared_sum, shared_view, shared_product])
@pytest.mark.parametrize("use", [one_after_the_other, together])
@differential(hits=2)
def test_they_share_what_saves_something_or_nothing(outputs, use):
    weight = torch.randn(3, 3, requires_grad=True)
    return outside(lambda x: outputs(weight, x), use, weight)


@differential(hits=2)
def test_batched_gradients_of_one_that_has_others_on_the_way():
    weight, other = (torch.randn(3, 3, requires_grad=True) for _ in range(2))

    def outputs(x):
        a, b = weight * x, other * x
        return a, b, a * b, b * 2

    def use(results):
        seeds = torch.eye(9).view(9, 3, 3)
        return torch.autograd.grad(results[2], weight, seeds, is_grads_batched=True)

    return outside(outputs, use, weight)


def transposed(weight, x):
    return (x * weight).relu().t().reshape(-1)


def expanded(weight, x):
    return (x * weight).tanh().sum(1, keepdim=True).exp().expand(3, 2).contiguous()


def sliced(weight, x):
    return (x * weight).tanh()[:, 1:].flatten()


def in_order(weight, x):
    return (x * weight).relu().contiguous()


@pytest.mark.parametrize("outputs", [transposed, expanded, sliced, in_order])
@differential(hits=2)
def test_a_copy_of_a_kept_result_is_written(outputs):
    weight = torch.randn(3, 3, requires_grad=True)

    def use(result):
        result += 1
        result.sum().backward()

    return outside(lambda x: outputs(weight, x), use, weight)
