"""Threads that wait in a function of C when lazy execution begins, and then use what is pending."""

import contextlib
import sys
import threading
import time

import pytest

import torch
import torchjanus
from torchjanus import _core


def in_a_with(lock, weight):
    with lock:
        doubled = weight * 2.0
    return doubled


def behind_a_call(lock, weight):
    lock.acquire()
    doubled = weight * 2.0
    return doubled


def in_the_same_line(lock, weight):
    return (lock.acquire(), weight * 2.0)[1]


def begin_a_thread():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def read_by_another_thread(wait, around, meanwhile=int):
    weight = torch.ones(8, dtype=torch.float64).requires_grad_()
    optimizer = torch.optim.SGD([weight], 0.1)
    lock, read = threading.Lock(), []
    lock.acquire()
    thread = threading.Thread(target=lambda: read.append(wait(lock, weight)))
    thread.start()
    time.sleep(0.1)
    with around():
        for _ in range(12):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            optimizer.step()
        is_pending = _core.lazy_counts()["pending"] > 0
        meanwhile()
        lock.release()
        thread.join()
    return read[0].detach(), is_pending


@pytest.mark.parametrize("meanwhile", [int, begin_a_thread])
@pytest.mark.parametrize("wait", [in_a_with, behind_a_call, in_the_same_line])
def test_a_thread_that_waits(wait, meanwhile):
    expected, _ = read_by_another_thread(wait, contextlib.nullcontext)
    for _ in range(3):
        found, is_pending = read_by_another_thread(wait, torchjanus.lazy, meanwhile)
        assert is_pending
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("wait", [in_a_with, behind_a_call])
def test_two_threads_that_wait_in_one_function(wait):
    def run(around):
        weight, read = torch.ones(8, dtype=torch.float64), []
        locks = [threading.Lock() for _ in range(2)]
        for lock in locks:
            lock.acquire()
        threads = [
            threading.Thread(target=lambda lock=lock: read.append(wait(lock, weight)))
            for lock in locks
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        with around():
            for lock, thread in zip(locks, threads):
                for _ in range(12):
                    weight.mul_(1.5).add_(0.5)
                lock.release()
                thread.join()
        return read

    expected = run(contextlib.nullcontext)
    for _ in range(3):
        torch.testing.assert_close(run(torchjanus.lazy), expected)


def test_a_thread_that_is_traced_keeps_its_trace_function():
    lines, lock = [], threading.Lock()

    def trace(frame, event, value):
        if frame.f_code is in_a_with.__code__:
            lines.append((event, frame.f_lineno - in_a_with.__code__.co_firstlineno))
        return trace

    def traced():
        sys.settrace(trace)
        in_a_with(lock, torch.ones(1))
        sys.settrace(None)

    lock.acquire()
    thread = threading.Thread(target=traced)
    thread.start()
    time.sleep(0.1)
    with torchjanus.lazy():
        lock.release()
        thread.join()
    assert lines[:3] == [("call", 0), ("line", 1), ("line", 2)]
    assert lines[-1][0] == "return"
