"""Differential programs: None on one side of a branch, a tensor or number on the other."""

import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn


def batches(count=16):
    return [(torch.randn(4) + 0.3 * (-1) ** i,) for i in range(count)]


@differential(hits=10, graphs=2)
def test_tested_later():
    def step(x):
        extra = None
        if x.sum() > 0:
            extra = x * 2
        y = x + 1
        if extra is not None:
            y = y * extra
        return y

    return Program(step, batches())


@differential(hits=10, graphs=2)
def test_other_side_and_is_none():
    def step(x):
        extra = x * 2 if x.sum() > 0 else None
        if extra is None:
            return x - 1
        return extra + x

    return Program(step, batches())


@differential(hits=10, graphs=2)
def test_given_back():
    def step(x):
        best = None
        if x.max() > 1:
            best = x.max() * 2
        return best

    return Program(step, batches())


@differential(hits=10, graphs=2)
def test_number():
    def step(x):
        scale = None
        if x.sum() > 0:
            scale = x.mean().item()
        return x if scale is None else x * scale

    return Program(step, batches())


@differential(hits=10, graphs=2)
def test_argument_of_a_function():
    def helper(x, mask=None):
        if mask is not None:
            x = x * mask
        return x.sum()

    def step(x):
        mask = (x > 0).to(x.dtype) if x.sum() > 0 else None
        return helper(x, mask)

    return Program(step, batches())


@differential(hits=4)
def test_in_an_attribute():
    class Memory:
        last = None

    memory = Memory()

    def step(x):
        memory.last = None
        if x.sum() > 0:
            memory.last = x * 2
        y = x
        if memory.last is not None:
            y = y + memory.last
        return y

    return Program(step, batches(), watch=[memory])


@differential(hits=10, graphs=3)
def test_gradient_through_it():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.Adam(parameters, 0.01)

    def step(x):
        optimizer.zero_grad()
        hidden = first(x)
        penalty = None
        if hidden.sum() > 0:
            penalty = second(hidden).pow(2).mean()
        loss = F.relu(hidden).mean()
        if penalty is not None:
            loss = loss + 0.1 * penalty
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches(30), watch=[first, second, optimizer])


@differential(hits=4)
def test_used_without_a_test():
    """What would raise where it is None."""

    def step(x):
        extra = None
        if x.sum() > -100:
            extra = x * 2
        return extra + 1

    return Program(step, batches())


@differential(hits=4)
def test_two_tests_at_once():
    def step(x):
        a = x * 2 if x.sum() > 0 else None
        b = x * 3 if x[0] > 0 else None
        if a is not None and b is not None:
            return a + b
        return x

    return Program(step, batches(30))


@differential(hits=4)
def test_shown():
    def step(x):
        a = x[0].item() if x.sum() > 0 else None
        print(a)
        return x * 2

    return Program(step, batches())


@differential(hits=4)
def test_in_containers():
    def step(x):
        a = x * 2 if x.sum() > 0 else None
        parts = {"a": a, "x": x}
        chosen = [part for part in parts.values() if part is not None]
        return sum(chosen)

    return Program(step, batches())


@differential(hits=4)
def test_equality_and_kind():
    def step(x):
        a = x * 2 if x.sum() > 0 else None
        if isinstance(a, torch.Tensor):
            return a
        return x - 1 if a == None else x  # noqa: E711

    return Program(step, batches())


@differential(hits=8)
def test_printed_on_one_side():
    def step(x):
        if x.sum() > 0:
            print("positive", x[1].item())
            y = x * 2
        else:
            y = x - 1
            print("negative", end="\n\n")
        print("then", y)
        return y

    return Program(step, batches())


@differential(hits=8)
def test_printed_on_sides_of_sides():
    def step(x):
        y = x * 2
        if x.sum() > 0:
            print(f"outer {y.sum().item():.3f}")
            if x[0] > 0:
                y = y + 1
                print(f"inner {y.mean().item():.3f}", y)
            print("outer again")
        if x[1] > 0:
            return y
        print("not returned early")
        return y * 3

    return Program(step, batches(40))


@differential(hits=8)
def test_texts_of_sides():
    def step(x):
        if x.sum() > 0:
            text = f"mean {x.mean().item():.2f}"
        else:
            text = "negative"
        return x * 2, text

    return Program(step, batches(24))


@differential(hits=8)
def test_text_of_one_side_that_nobody_reads():
    def step(x):
        y = x * 1
        if x.sum() > 0:
            text = f"{x.mean().item():.2f}"
            y = y + len(str(3))
            del text
        return y

    return Program(step, batches(24))


@differential(hits=8)
def test_file_written_on_one_side():
    import io

    stream = io.StringIO()
    log = []

    def step(x):
        if x.max() > 1:
            print("large", x.max().item(), file=stream)
        log.append(stream.getvalue().count("large") if len(log) > 100 else 0)
        return x * 2

    return Program(step, batches(24), watch=[log])
