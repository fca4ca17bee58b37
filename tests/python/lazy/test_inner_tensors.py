"""Tensors made of others, to which the program writes: sparse, quantised and nested ones."""

import pytest
from lazily import assert_as_eager

import torch

OPERATORS = {
    "dense": torch.Tensor.to_dense,
    "product": lambda m: m @ torch.arange(16.0).double().reshape(4, 4),
    "sum": lambda m: torch.arange(16.0).double().reshape(4, 4).add_(m.to_sparse_coo()),
    "clone": lambda m: m.clone().to_dense(),
    "scaled": lambda m: (m * 2).to_dense(),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_values_of_sparse_tensors(layout, operator):
    def program():
        dense = torch.eye(4).double()
        dense[0, 2] = 3
        matrix = dense.to_sparse(layout=layout)
        values = matrix._values() if layout is torch.sparse_coo else matrix.values()
        found = []
        for _ in range(12):
            values.mul_(1.02).add_(0.05)
            found.append(OPERATORS[operator](matrix) * 1.0)
        return found

    assert_as_eager(program)


def test_indices_of_a_sparse_tensor():
    def program():
        indices, values = torch.tensor([[0, 1, 2]]), torch.arange(3.0).double()
        matrix = torch.sparse_coo_tensor(indices, values, (8,), check_invariants=False)
        found = []
        for _ in range(4):
            matrix._indices().add_(1)
            found.append(matrix.to_dense() * 1.0)
        return found

    assert_as_eager(program)


def test_sparse_gradients_that_are_scaled_in_place():
    def program():
        torch.manual_seed(2)
        table = torch.nn.Embedding(20, 4, sparse=True).double()
        optimizer = torch.optim.SGD(table.parameters(), 0.1)
        for i in range(20):
            optimizer.zero_grad()
            (table((torch.arange(6) + i) % 20).pow(2).sum() * 3).backward()
            gradient = table.weight.grad.coalesce()
            gradient._values().mul_(0.25).add_(0.01)
            table.weight.grad = gradient
            optimizer.step()
        return [table.weight.detach()]

    assert_as_eager(program)


@pytest.mark.filterwarnings("ignore")
def test_scales_of_channels():
    """A quantiser keeps the tensor of scales that it was given."""

    def program():
        x = torch.arange(16.0).reshape(4, 4) / 8
        scales, zeros = torch.full((4,), 0.1).double(), torch.zeros(4, dtype=torch.int64)
        quantised = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
        found = []
        for _ in range(12):
            scales.mul_(1.01).add_(0.001)
            found += [quantised.dequantize(), quantised.q_per_channel_scales()]
        return found

    assert_as_eager(program)


@pytest.mark.filterwarnings("ignore")
def test_parts_of_nested_tensors():
    def program():
        nested = torch.nested.nested_tensor(
            [torch.arange(6.0).reshape(2, 3), torch.ones(3, 3)]
        ).double()
        found = []
        for _ in range(8):
            for part in nested.unbind():
                part.add_(1.0).mul_(1.01)
            found.append(torch.nested.to_padded_tensor(nested, 0.0))
        return found

    assert_as_eager(program)
