"""Parts of tensors whose number or size varies from call to call, with their gradients."""

import pytest
from differential import Program, differential

import torch


@pytest.mark.parametrize("split", [torch.chunk, torch.unsafe_chunk, torch.tensor_split])
@pytest.mark.parametrize("varies", ["size", "number"])
@differential(graphs=12, hits=4)
def test_parts_whose_number_varies(split, varies):
    def step(p, parts):
        p.grad = None
        pieces = split(p, parts)
        sum(piece.atan().sum() for piece in pieces).backward()
        return [piece.detach() for piece in pieces]

    sizes = [6, 4, 5, 7, 6, 8, 9, 4, 5, 10]
    calls = [
        (
            torch.randn(n if varies == "size" else 7, 2).requires_grad_(),
            3 if varies == "size" else n,
        )
        for n in sizes
    ]
    return Program(step, calls)


@differential(hits=3)
def test_part_put_into_a_tensor_of_varying_size():
    def step(x, y):
        x.grad = None
        torch.diagonal_scatter(x, y).atan().sum().backward()
        return x.grad

    sizes = [(4, 4), (5, 5), (6, 6), (4, 7), (5, 8), (6, 6), (7, 4)]
    return Program(
        step, [(torch.randn(m, n).requires_grad_(), torch.randn(min(m, n))) for m, n in sizes]
    )
