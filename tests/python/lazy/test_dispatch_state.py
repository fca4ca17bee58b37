"""Looks while something is active that handles operators: it gets none that was called before."""

import pytest
from lazily import assert_as_eager
from torch.utils._python_dispatch import TorchDispatchMode

import torch
import torchjanus
from torch import nn
from torchjanus import _core


def test_autocast():
    def program():
        b = torch.arange(36.0).reshape(6, 6)
        a = b.double()
        found = []
        for i in range(30):
            y, z = (a + i) @ a, (b + i) @ b
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert (b @ b).dtype == torch.bfloat16
                found += [y[0, 0].item(), z.sum().item()]
                assert z.dtype == torch.float32
        return found

    assert_as_eager(program)


def test_training_with_a_look_inside_autocast():
    def program():
        torch.manual_seed(1)
        front, model = nn.Linear(8, 8), nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 4))
        parameters = [*front.parameters(), *model.parameters()]
        optimizer = torch.optim.SGD(parameters, 0.01)
        for _ in range(20):
            optimizer.zero_grad()
            hidden = front(torch.randn(4, 8))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scale = hidden.detach()[0, 0].item()
                loss = (model(hidden) * (1 + 0 * scale)).float().pow(2).mean()
            loss.backward()
            optimizer.step()
        return [each.detach().double() for each in parameters]

    torch.manual_seed(0)
    expected = program()
    with torchjanus.lazy():
        found = program()
        assert _core.lazy_counts()["noted"] > 0
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.names.append(str(function))
        return function(*arguments, **(keywords or {}))


@pytest.mark.parametrize("look", [torch.Tensor.numpy, torch.Tensor.tolist])
def test_modes_get_what_is_called_within_them(look):
    def names():
        a, found = torch.randn(4, 4).double(), []
        for _ in range(12):
            y = (a + 1) @ a
            with Names() as mode:
                z = y.sin()
                look(z)
            found.append(mode.names)
        return found

    expected = names()
    assert "aten.sin.default" in expected[0] and "aten.mm.default" not in expected[0]
    with torchjanus.lazy():
        assert names() == expected
        assert _core.lazy_counts()["noted"] > 0


class Wrapper(torch.Tensor):
    """Reads the memory of the tensor in it when `sum` is called."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        (tensor,) = arguments
        return torch.tensor(sum((tensor.inner * 2).tolist()))


def test_a_look_inside_torch_dispatch():
    """There, all keys above Python's are excluded."""
    assert_as_eager(lambda: [Wrapper(torch.arange(4.0) + i).sum().item() for i in range(12)])


def test_looks_inside_jagged_tensors():
    def program():
        found = []
        for i in range(8):
            values = torch.arange(6.0).double().reshape(2, 3) * 2 + i
            offsets = torch.tensor([0, 1, 1]) + torch.tensor([0, 0, 1])
            jagged = torch.nested.nested_tensor_from_jagged(values, offsets)
            found.append([part.tolist() for part in jagged.unbind()])
        return found

    assert_as_eager(program)


def test_functorch():
    def program():
        weight, found = torch.arange(8.0).double(), []
        for i in range(20):
            outer = weight * 2 + i

            def loss(v, outer=outer):
                return (v * outer.tolist()[3]).sum() + (v * v).sum()

            found.append(torch.func.grad(loss)(weight))
            outer = weight * 2 + i
            found.append(torch.func.vmap(lambda v, outer=outer: v * outer[1:2].numpy()[0])(weight))
        return found

    assert_as_eager(program)


def test_inference_mode():
    def program():
        x, found = torch.arange(8.0).double().requires_grad_(), []
        for i in range(12):
            y = x * 2 + i
            with torch.inference_mode():
                z = x * 3
                found += [y.tolist(), z.tolist()]
            y = x * 3
            y.sum().backward()
            assert not y.is_inference() and z.is_inference()
        return [*found, x.grad]

    assert_as_eager(program)


@pytest.mark.filterwarnings("ignore")
def test_a_trace_has_none_of_what_was_called_before():
    def program():
        counter = torch.zeros(8).double()
        for _ in range(12):
            counter.add_(1.0)
            counter.mul_(1.0)
            counter.tolist()
        counter.add_(1.0)
        traced = torch.jit.trace(
            lambda x: x + counter.tolist()[0], (torch.zeros(8).double(),), check_trace=False
        )
        kinds = [node.kind() for node in traced.graph.nodes() if node.kind() != "prim::Constant"]
        assert kinds == ["aten::add"]
        return [traced(torch.ones(8).double()) for _ in range(3)]

    assert_as_eager(program)
