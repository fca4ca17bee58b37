"""Tensors of before the call that one side of a branch writes, against eager: where that side is not taken they
stay as they are, whatever else reads or gives them."""

from differential import Program, differential

import torch


def buffers(count, size=6):
    return [torch.randn(size) for _ in range(count)]


def calls(count=14):
    """Both outcomes of `flag > 0`, in changing order."""
    return [(torch.randn(6), torch.tensor(float((index * 7) % 3 - 1))) for index in range(count)]


@differential()
def test_one_side_updates():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            b.mul_(0.5).add_(x)
            a.add_(b, alpha=0.1)
        return a.sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_each_side_updates_another():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            a.add_(x)
        else:
            b.mul_(0.9).sub_(x)
        return (a - b).sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_old_contents_are_read_behind():
    a, b = buffers(2)

    def step(x, flag):
        old = a + 1
        if flag > 0:
            a.mul_(2).add_(x)
        return old + a, old * b

    return Program(step, calls(), watch=[a, b])


@differential()
def test_contents_change_places():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            kept = a.clone()
            a.copy_(b)
            b.copy_(kept)
        else:
            a.add_(x)
        return a - b

    return Program(step, calls(), watch=[a, b])


@differential()
def test_one_value_for_two_places():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            a.mul_(0.5).add_(x)
            result = a
        else:
            result = x
        b.add_(result)
        return b.sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_a_side_within_a_side():
    a, b = buffers(2)

    def step(x, flag):
        if flag > -0.5:
            a.add_(x)
            if flag > 0.5:
                b.mul_(a)
        return a, b.sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_counts_and_tensors():
    a = torch.randn(6)
    state = {"count": 0}

    def step(x, flag):
        scale = 1.0
        if flag > 0:
            state["count"] += 1
            scale = 0.5
            a.add_(x, alpha=scale)
        a.mul_(0.99)
        return a.sum() * scale, state["count"]

    return Program(step, calls(), watch=[a, state])


@differential()
def test_gradients_of_the_side_that_was_taken():
    first, second = (torch.randn(6, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([first, second], 0.1, momentum=0.9)

    def step(x, flag):
        if flag > 0:
            y = (x * first).tanh()
        else:
            y = (x + second).sigmoid() * x
        loss = y.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls(20), watch=[first, second, optimizer])


@differential()
def test_a_later_test_fails():
    a, b = buffers(2)

    def step(x, flag, limit):
        if flag > 0:
            a.add_(x)
            b.mul_(a)
        if limit > 0:
            return a.sum()
        raise ValueError("too much")

    given = [(*each, torch.tensor(1.0)) for each in calls(16)]
    given[11:11] = [(torch.randn(6), torch.tensor(1.0), torch.tensor(-1.0))]
    return Program(step, given, watch=[a, b])
