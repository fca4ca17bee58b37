"""torch's scaled dot-product attention: with dropout a program of the graph, else ATen's operator."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

SIZES = (2, 3, 5, 4)


def leaves(*sizes):
    return [torch.randn(each, requires_grad=True) for each in sizes]


CASES = {
    "no mask": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "scale that is an int": {"scale": 1},
    "flags": {"attn_mask": lambda: torch.rand(5, 5) > 0.4},
    "numbers": {"attn_mask": lambda: torch.randn(2, 1, 5, 5)},
    "queries that see nothing": {"attn_mask": lambda: torch.arange(5)[:, None] > torch.arange(5)},
    "negative scale": {"scale": -0.5},
    "dropout of everything": {"dropout_p": 1.0},
    "no dropout": {"dropout_p": 0.0},
    "learned mask": {"attn_mask": lambda: torch.randn(5, 5, requires_grad=True)},
}


@pytest.mark.parametrize("case", CASES)
@differential()
def test_attention(case):
    query, key, value = leaves(SIZES, SIZES, (2, 3, 5, 6))
    given = {"dropout_p": 0.3, **CASES[case]}
    if "attn_mask" in given:
        given["attn_mask"] = given["attn_mask"]()

    def step(x):
        for leaf in (query, key, value):
            leaf.grad = None
        output = F.scaled_dot_product_attention(query * x, key, value, **given)
        output.square().sum().backward()
        return output.detach()

    watch = [query, key, value, given.get("attn_mask")]
    return Program(step, [(torch.randn(()),) for _ in range(7)], watch)


@differential()
def test_result_with_its_gradient():
    query, key, value = leaves(SIZES, SIZES, SIZES)

    def step(x):
        return F.scaled_dot_product_attention(query, key * x, value, None, 0.2, True)

    return Program(step, [(torch.randn(()),) for _ in range(7)], [query, key, value])


@differential(hits=2)
def test_lengths_that_vary():
    weight = torch.randn(4, 12, requires_grad=True)

    def step(x):
        weight.grad = None
        query, key, value = (x @ weight).chunk(3, -1)
        output = F.scaled_dot_product_attention(query, key, value, dropout_p=0.5, is_causal=True)
        output.sum().backward()
        return output.detach()

    lengths = [5, 5, 6, 5, 8, 7, 3, 9, 4]
    return Program(step, [(torch.randn(2, each, 4),) for each in lengths], [weight])


@differential(hits=2)
def test_lengths_and_masks_that_vary():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)

    def step(x):
        layer.zero_grad()
        size = x.size(1)
        mask = torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=1)
        loss = layer(x, mask, torch.arange(size) >= x[:, :1, 0] * 100 + size - 2).square().mean()
        loss.backward()
        return loss.detach()

    sizes = [(2, 5), (2, 5), (3, 6), (4, 5), (3, 8), (2, 7), (5, 3), (4, 9), (3, 4)]
    calls = [(torch.rand(*each, 8),) for each in sizes]
    return Program(step, calls, list(layer.parameters()))


@pytest.mark.parametrize("heads", [1, 4])
@differential()
def test_layer_of_a_transformer(heads):
    layer = nn.TransformerEncoderLayer(8, heads, 16, dropout=0.2, batch_first=True)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, [(torch.randn(3, 5, 8),) for _ in range(7)], list(layer.parameters()))


UNLIKE = {
    "half precision": lambda x: F.scaled_dot_product_attention(*[x.bfloat16()] * 3, dropout_p=0.3),
    "groups of queries": lambda x: F.scaled_dot_product_attention(
        x, x[:, :1], x[:, :1], dropout_p=0.3, enable_gqa=True
    ),
}


@pytest.mark.parametrize("case", UNLIKE)
@differential(tolerance=1e-2)
def test_torchs_own_operator(case):
    step = UNLIKE[case]
    return Program(lambda x: step(x) * 2, [(torch.randn(2, 4, 5, 4),) for _ in range(7)])


@differential(hits=2)
def test_dropout_that_varies():
    query, key, value = leaves(SIZES, SIZES, SIZES)

    def step(x, drop):
        query.grad = None
        output = F.scaled_dot_product_attention(query * x, key, value, None, drop)
        output.sum().backward()
        return output.detach()

    drops = [0.1, 0.0, 0.1, 0.0, 0.1, 0.2, 0.3, 0.0, 0.0, 0.25, 0.0]
    return Program(step, [(torch.randn(()), each) for each in drops], [query, key, value])


@differential(reasons=["dynamic_value"])
def test_dropout_that_varies_and_drops_everything():
    query, key, value = leaves(SIZES, SIZES, SIZES)

    def step(x, drop):
        return F.scaled_dot_product_attention(query * x, key, value, None, drop) * 2

    drops = [0.1, 0.2, 1.0, 1.0, 1.0, 1.0]
    return Program(step, [(torch.randn(()), each) for each in drops], [query, key, value])


EMPTY = {
    "values": ((3, 4), (5, 4), (5, 0), None),
    "keys": ((3, 4), (0, 4), (0, 4), (3, 0)),
    "queries": ((0, 4), (5, 4), (5, 4), (1, 5)),
}


@pytest.mark.parametrize("case", EMPTY)
@differential()
def test_no_elements(case):
    *sizes, of_mask = EMPTY[case]
    query, key, value = leaves(*sizes)
    mask = None if of_mask is None else torch.randn(of_mask, requires_grad=True)

    def step(x):
        output = F.scaled_dot_product_attention(query * x, key, value, mask, 0.3)
        return output, torch.rand(2) * x

    return Program(step, [(torch.randn(()),) for _ in range(7)], [query, key, value, mask])


def test_a_mask_that_would_enlarge_the_scores_raises():
    def step(x, mask):
        return F.scaled_dot_product_attention(x, x, x, mask, 0.3) * 2

    converted = torchjanus.function(step)
    with torchjanus.options.without("background"):
        for _ in range(5):
            with pytest.raises(RuntimeError, match="broadcast"):
                converted(torch.randn(1, 2, 3, 4), torch.randn(2, 1, 3, 3))


def test_no_scores_are_written_without_dropout():
    def step(x):
        return F.scaled_dot_product_attention(x, x, x) * 2, x

    converted = torchjanus.function(step)
    with torchjanus.options.without("background"):
        for _ in range(6):
            converted(torch.randn(SIZES))
    assert "softmax" not in torchjanus.graph(converted)
    assert "attention" in torchjanus.graph(converted)
