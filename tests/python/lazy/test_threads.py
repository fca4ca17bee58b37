"""Two threads, each with lazy execution of its own, that use each other's tensors."""

import contextlib
import threading

import pytest

import torch
import torchjanus


def in_turns(*bodies):
    """Runs generators, each in a thread of its own, a step of each at a time."""
    events = [threading.Event() for _ in bodies]
    errors = []

    def run(index):
        try:
            body = bodies[index]
            events[index].wait(60)
            for _ in body:
                events[index].clear()
                events[(index + 1) % len(bodies)].set()
                events[index].wait(60)
        except BaseException as error:
            errors.append(error)
        finally:
            events[(index + 1) % len(bodies)].set()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    events[0].set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def read_each_other(around):
    shared = {"a": torch.arange(12.0, dtype=torch.float64).view(3, 4), "b": torch.ones(4).double()}

    def body(mine, other):
        with around():
            for i in range(8):
                shared[mine] = torch.tanh(shared[mine] * 0.5 + shared[other] * i)
                yield

    in_turns(body("a", "b"), body("b", "a"))
    return shared["a"], shared["b"]


def write_what_the_other_reads(around):
    weight = torch.ones(4, dtype=torch.float64)
    sums = []

    def writer():
        with around():
            for i in range(8):
                weight.mul_(1.5).add_(i)
                yield

    def reader():
        with around():
            for _ in range(8):
                sums.append((weight * 2).sum() + weight[1])
                yield

    in_turns(writer(), reader())
    return weight, sums


def train_in_both(around):
    weight = torch.ones(4, 4, dtype=torch.float64, requires_grad=True)

    def trainer(seed):
        x = torch.sin(torch.arange(16.0, dtype=torch.float64).view(4, 4) + seed)
        with around():
            for _ in range(8):
                torch.tanh(x @ weight).square().sum().backward()
                with torch.no_grad():
                    weight.sub_(weight.grad, alpha=0.1)
                    weight.grad = None
                yield

    in_turns(trainer(1), trainer(2))
    return weight.detach()


@pytest.mark.parametrize(
    "program",
    [read_each_other, write_what_the_other_reads, train_in_both],
    ids=lambda p: p.__name__,
)
def test_threads(program):
    expected = program(contextlib.nullcontext)
    found = program(torchjanus.lazy)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_looks_of_both_at_once():
    """No lock is waited for in both directions."""
    weights = [torch.ones(64, 64) for _ in range(2)]
    sums = []

    def run(mine):
        with torchjanus.lazy():
            for _ in range(150):
                x = torch.tanh(weights[mine] * 1.01)
                weights[mine] = x + weights[1 - mine] * 0.001
                sums.append(x.sum().item())

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    assert len(sums) == 300
