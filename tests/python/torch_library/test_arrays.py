"""NumPy's arrays of tensors that a step computes: they share the tensors' memory, and are made behind the run.
Arrays that existed before: the run reads what they hold as it begins."""

import copy

import numpy as np
import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def shown(value):
    """What there is to see of arrays."""
    if isinstance(value, np.ndarray):
        return ("array", str(value.dtype), value.shape, value.strides, value.tolist())
    if isinstance(value, (tuple, list)):
        return type(value)(map(shown, value))
    return value


def program(step, calls=None, watch=(), around=lambda step, *given: step(*given)):
    """Only the step is converted; what it gives is looked at by Python."""

    def convert(_):
        converted = torchjanus.function(step)
        return lambda *given: shown(around(converted, *given)), converted

    return Program(
        lambda *given: shown(around(step, *given)),
        [(torch.randn(4, 3),) for _ in range(7)] if calls is None else calls,
        watch=watch,
        convert=convert,
    )


def into_list(x):
    found = []
    found.append((x * 2).numpy())
    found.append(x.sum(0).numpy())
    return found


def beside_its_tensor(x):
    y = x * 2
    return y, y.numpy(), y.t().numpy(), y[1:].numpy()


def written_later(x):
    y = x * 2
    array = y.numpy()
    y.add_(1)
    return array, y


def of_one_side(x):
    y = x * 2
    return y.numpy() if x.sum() > 0 else (y + 1).numpy()


STEPS = {
    "a result": lambda x: (x * 2).numpy(),
    "detached": lambda x: (x * 2).detach().cpu().numpy(),
    "asarray": lambda x: np.asarray(x * 2),
    "of an argument": lambda x: (x.numpy(), x + 1),
    "integers": lambda x: x.argmax(1).numpy(),
    "flags": lambda x: (x > 0).numpy(),
    "a number": lambda x: x.sum().numpy(),
    "half precision": lambda x: (x * 2).half().numpy(),
    "not contiguous": lambda x: (x * 2).t().numpy(),
    "a list": into_list,
    "beside its tensor": beside_its_tensor,
    "a tensor that is written later": written_later,
    "twice the same": lambda x: (lambda array: (array, array))((x * 2).numpy()),
    "is one": lambda x: (isinstance((x * 2).numpy(), np.ndarray), x + 1),
}


@pytest.mark.parametrize("name", STEPS)
def test_arrays(name):
    differential(hits=3)(lambda: program(STEPS[name]))()


@differential(hits=3)
def test_an_array_of_one_side_of_a_branch():
    return program(of_one_side, [(torch.randn(4, 3),) for _ in range(16)])


@differential(hits=3)
def test_the_memory_is_shared():
    def step(x):
        y = x * 2
        return y, y[1:].numpy(), x.numpy()

    def around(step, x):
        x = x.clone()
        y, part, whole = step(x)
        part += 1
        whole *= 3
        return y, part, x, whole

    return program(step, around=around)


@differential(hits=3)
def test_an_array_that_stays_in_an_object():
    class Last:
        output = None

    last = Last()
    last.losses = []
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        output = model(x)
        loss = F.mse_loss(output, torch.ones(4, 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last.output = output.detach().cpu().numpy()
        last.losses.append(loss.detach().numpy())
        return loss

    def around(step, x):
        return step(x), last.output, list(last.losses)

    return program(step, watch=[model], around=around)


@differential(hits=3)
def test_the_array_of_a_parameter():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        weight = model.weight.detach().numpy()
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        return weight

    return program(step, watch=[model])


# --- arrays that existed before the call ------------------------------------------------------------


def batches(seed=0):
    """Other arrays in each call."""
    random = np.random.default_rng(seed)
    for _ in range(7):
        order = random.permutation(8)[:4]
        yield torch.randn(8, 3), order, random.random((4, 3)), random.random(8) > 0.5


def gradient_of(leaf):
    leaf.square().sum().backward()
    return leaf.grad * 2


READ = {
    "an index": lambda x, order, numbers, chosen: x[order] * 2,
    "an index among others": lambda x, order, numbers, chosen: x[order, 1:] + x[order, None, 0],
    "a mask": lambda x, order, numbers, chosen: x[chosen].sum(0),
    "int32": lambda x, order, numbers, chosen: x[small],
    "two indices": lambda x, order, numbers, chosen: x[small, small],
    "rows of indices": lambda x, order, numbers, chosen: x[(rows_of_indices,)],
    "a copy": lambda x, order, numbers, chosen: torch.tensor(numbers) + x[:4],
    "a copy of that dtype": lambda x, order, numbers, chosen: torch.tensor(
        numbers, dtype=torch.float32
    ),
    "a leaf": lambda x, order, numbers, chosen: gradient_of(
        torch.tensor(numbers, requires_grad=True)
    ),
    "another dtype": lambda x, order, numbers, chosen: (
        torch.as_tensor(numbers, dtype=torch.float32) * 2
    ),
    "of flags": lambda x, order, numbers, chosen: torch.Tensor(chosen) + x[:, 0],
    "of integers": lambda x, order, numbers, chosen: torch.DoubleTensor(order) * x[:4, 0],
    "twice": lambda x, order, numbers, chosen: (x[order], torch.tensor(order), torch.tensor(order)),
}
small = np.array([1, 0, 2], np.int32)
rows_of_indices = np.array([[0, 1], [2, 3]])


@pytest.mark.parametrize("name", READ)
def test_existing_arrays(name):
    differential(hits=3)(lambda: program(READ[name], list(batches())))()


@differential(hits=3)
@pytest.mark.parametrize("in_place", [False, True])
def test_an_existing_array_of_an_object(in_place):
    class Buffer:
        order = np.arange(4)

    buffer = Buffer()

    def turn():
        turned = np.roll(buffer.order, 1)
        if in_place:
            buffer.order[:] = turned
        else:
            buffer.order = turned

    batches = [(torch.randn(4, 3),) for _ in range(7)]
    return program(
        lambda x: x[buffer.order] + 1, [each for batch in batches for each in (batch, turn)]
    )


@differential(hits=6)
def test_an_existing_array_of_another_length():
    random = np.random.default_rng(0)
    lengths = [5, 5, 5, 5, 5, 6, 7, 6, 8, 5, 7]
    return program(
        lambda x, order: x[order] * 2,
        [(torch.randn(8, 3), random.integers(0, 8, length)) for length in lengths],
    )


@differential(hits=3)
def test_a_loss_of_rows_that_an_array_chooses():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x, order, numbers, chosen):
        loss = F.mse_loss(model(x[order]), x[order, :1] * torch.tensor(numbers).mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return program(step, list(batches()), watch=[model])


@differential(reasons=["expression"])
def test_an_array_in_a_loop_that_writes_its_memory():
    order = np.arange(4)
    tensor = torch.from_numpy(order)

    def step(x, n):
        total = torch.zeros(4, 3)
        for _ in range(n):
            total = total + x[order]
            tensor.copy_(tensor.roll(1))
        return total

    return program(step, [(torch.randn(4, 3), n) for n in range(2, 12)], watch=[tensor])


existing = np.ones((4, 3))


shared_array = np.arange(4)
shared_tensor = torch.from_numpy(shared_array)


def written_before_it_is_read(x):
    shared_tensor.copy_(torch.tensor([3, 2, 1, 0]))
    y = x[shared_array]
    shared_tensor.copy_(torch.tensor([0, 1, 2, 3]))
    return y


def part_written_before(x):
    shared_tensor[:2].copy_(torch.tensor([1, 0]))
    y = x[shared_array]
    shared_tensor.detach()[:2].add_(torch.tensor([-1, 1]))
    return y, x[shared_array]


def written_on_one_side(x):
    if x.sum() > 0:
        shared_tensor.copy_(shared_tensor.flip(0))
    return x[shared_array], shared_tensor.clone()


def written_later_and_read_again(x):
    y = x[shared_array]
    shared_tensor.copy_(shared_tensor.flip(0))
    return y, torch.tensor(shared_array), x[shared_array]


def on_the_same_memory(x):
    made = torch.as_tensor(existing)
    made += 1
    other = torch.Tensor(existing32)
    other += 1
    found = existing.sum(), existing32.sum()
    made -= 1
    other -= 1
    return found


texts = np.array(["a"])
existing32 = np.ones((4, 3), np.float32)


class Plain:
    pass


def with_gradient(x):
    try:
        return nn.Parameter(x).numpy()
    except RuntimeError:
        return x * 2


def requires_gradient_later(x):
    y = x * 2
    array = y.numpy()
    y.requires_grad_()
    return array


def set_attribute(x):
    array = (x * 2).numpy()
    try:
        array.name = 1
    except AttributeError:
        return x
    return x + 1


IMPERATIVE = {
    "sums": lambda x: (x * 2).numpy().sum() + x,
    "sizes": lambda x: x * len((x * 2).numpy()),
    "shape": lambda x: x * (x * 2).numpy().shape[0],
    "an element": lambda x: x * (x * 2).numpy()[0, 0],
    "arithmetic": lambda x: (x * 2).numpy() * 2 + 1,
    "comparison": lambda x: (x * 2).numpy() == (x * 2).numpy(),
    "truth": lambda x: x + 1 if (x.sum() * 2).numpy() else x,
    "elements": lambda x: [row for row in (x * 2).numpy()],
    "methods": lambda x: (x * 2).numpy().flatten().astype(np.float32),
    "functions": lambda x: np.clip((x * 2).numpy(), 0, 1),
    "a tensor again": lambda x: torch.from_numpy((x * 2).numpy()) + 1,
    "a copy": lambda x: (x * 2).numpy().copy(),
    "a gradient": with_gradient,
    "a gradient later": requires_gradient_later,
    "an attribute": set_attribute,
    "printed": lambda x: (print((x * 2).numpy()), x + 1)[1],
    "compared with an object": lambda x: np.ones(3) == Plain(),
    "compared with an existing array": lambda x: ((x * 2).numpy() == existing, x + 1),
    "an existing array compared with an object": lambda x: ((existing == Plain()), x + 1),
    "rows of indices alone": lambda x: x[rows_of_indices],
    "an array on the memory of a tensor": written_before_it_is_read,
    "an array on the memory of a part": part_written_before,
    "an array on memory that one side writes": written_on_one_side,
    "an array read before and after": written_later_and_read_again,
    "tensors on the memory of an array": on_the_same_memory,
    "texts": lambda x: (x + 1, texts is existing),
    "a copy of the object": lambda x: copy.copy((x * 2).numpy()),
    "in a set": lambda x: type(x.numpy()) in {np.ndarray},
    "text": lambda x: f"{(x * 2).numpy()}",
    "bfloat16": lambda x: (x * 2).bfloat16().float().numpy().tolist(),
    "arguments": lambda x: (x * 2).numpy(force=True),
    "items": lambda x: x * (x.sum() * 2).numpy().item(),
    "a number": lambda x: x * float((x.sum() * 2).numpy()),
}


@pytest.mark.parametrize("name", IMPERATIVE)
def test_what_is_done_with_arrays_in_between(name):
    """It is right, whatever of it runs as a graph."""
    step = IMPERATIVE[name]
    inputs = [(torch.randn(4, 3),) for _ in range(12)]
    converted = torchjanus.function(step)
    for (x,) in inputs:
        before = shared_array.copy()
        expected = shown(step(x))
        after = shared_array.copy()
        shared_array[:] = before
        actual = shown(converted(x))
        assert np.array_equal(shared_array, after)
        if isinstance(expected, torch.Tensor):
            assert torch.equal(expected, actual)
        else:
            assert repr(expected) == repr(actual)
    assert all(each["code"] != "internal_error" for each in torchjanus.stats(converted)["reasons"])


def two_tensors_of_one_array():
    array = np.arange(8.0)
    return torch.from_numpy(array), torch.from_numpy(array)


def tensors_of_parts_of_an_array():
    array = np.arange(8.0)
    return torch.from_numpy(array[:6]), torch.from_numpy(array[2:])


def a_tensor_and_its_array():
    tensor = torch.arange(8.0)
    return tensor, torch.from_numpy(tensor[2:].numpy())


def a_tensor_of_an_array_and_its_own():
    tensor = torch.arange(8.0)
    return torch.from_numpy(tensor[2:].numpy()), tensor


SHARING = (
    two_tensors_of_one_array,
    tensors_of_parts_of_an_array,
    a_tensor_and_its_array,
    a_tensor_of_an_array_and_its_own,
)


@pytest.mark.parametrize("make", SHARING)
@pytest.mark.parametrize("from_the_start", [True, False])
def test_storages_on_the_same_memory(make, from_the_start):
    """What the run writes to one shows in the other, from the start or in later calls only."""
    written, read = make()
    apart = torch.ones(8, dtype=read.dtype)

    def step(n, other):
        written.fill_(n)
        return other * 2

    converted = torchjanus.function(step)
    for n in range(10):
        other = read if from_the_start or n > 5 else apart
        assert torch.equal(converted(n, other), step(n, other))
    stats = torchjanus.stats(converted)
    assert (stats["hits"] == 0) == from_the_start
    assert all(each["code"] != "internal_error" for each in stats["reasons"])


def test_parts_of_an_array_that_lie_apart():
    """Memory of NumPy's is no reason against a graph."""
    array = np.arange(8.0)
    written, read = torch.from_numpy(array[:4]), torch.from_numpy(array[4:])

    def step(n):
        written.fill_(n)
        return read * 2 + written

    converted = torchjanus.function(step)
    for n in range(10):
        assert torch.equal(converted(n), step(n))
    assert torchjanus.stats(converted)["hits"] == 7


def test_mask_of_two_dimensions_beside_an_ellipsis():
    """Eager counts it as one dimension, unlike a tensor."""
    mask = np.arange(20).reshape(5, 4) % 3 == 0

    def step(x):
        y = x * 2
        return y[..., mask]

    converted = torchjanus.function(step)
    for _ in range(6):
        with pytest.raises(IndexError, match="shape of the mask"):
            converted(torch.randn(5, 4))
