"""Handlers of signals run in the program's own code, also if the signal comes while a graph is made."""

import os
import signal
import time

import pytest

import torch
import torchjanus


class TooLongError(Exception):
    pass


def raised_by_timer(error, delay):
    """Whether what the handler raises comes to the program, and what was noted about the step."""

    def handler(number, frame):
        raise error

    before = signal.signal(signal.SIGALRM, handler)
    w = torch.ones(3, requires_grad=True)

    def step(x):
        z = ((w * x).tanh() - 1).pow(2).sum()
        for j in range(6):
            z = z + (w * j).sin().sum()
        z.backward()
        w.grad = None
        return z.item()

    step = torchjanus.function(step)
    try:
        for _ in range(3):
            step(torch.ones(3))
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            step(torch.ones(3))
            time.sleep(1)
        except error:
            assert signal.getsignal(signal.SIGALRM) is handler
            return True, step.stats()["reasons"]
        return False, step.stats()["reasons"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("error", [TooLongError, KeyboardInterrupt, ValueError, AttributeError])
def test_what_a_handler_raises_is_not_lost(error):
    for number in range(1, 13):
        assert raised_by_timer(error, number * 0.0005) == (True, [])


def test_descriptor_is_told_once():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    handled = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: handled.append(number))
    descriptor = signal.set_wakeup_fd(writer)
    try:
        for number in range(1, 9):
            f = torchjanus.function(lambda x: ((x * 2).tanh() - 1).pow(2).sum() + x.sin().sum())
            for _ in range(3):
                f(torch.ones(3))
            signal.setitimer(signal.ITIMER_REAL, number * 0.0005)
            f(torch.ones(3))
            while len(handled) < number:
                time.sleep(0.001)
        assert os.read(reader, 100) == bytes([signal.SIGALRM] * 8)
    finally:
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGALRM, before)
        os.close(reader)
        os.close(writer)


def test_handlers_and_flags_are_as_before():
    seen = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    handler = signal.getsignal(signal.SIGALRM)
    try:
        f = torchjanus.function(lambda x: x * 2 + len(seen))
        for _ in range(6):
            f(torch.ones(3))
        assert signal.getsignal(signal.SIGALRM) is handler
        signal.raise_signal(signal.SIGALRM)
        assert seen == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
