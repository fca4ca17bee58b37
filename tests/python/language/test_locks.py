"""threading.Lock and RLock in a step: a run takes them as it begins, and gives them back behind its writes."""

import threading

import pytest
from differential import Program, differential

import torch
import torchjanus

lock = threading.Lock()
other_lock = threading.Lock()
reentrant = threading.RLock()
condition = threading.Condition(threading.Lock())


class Counter:
    def __init__(self, lock):
        self.lock = lock
        self.count = 0
        self.total = torch.zeros(3)

    def add(self, x):
        with self.lock:
            self.count += 1
            self.total = self.total + x
            return self.total * self.count


def batches(count=8):
    return [(torch.randn(3),) for _ in range(count)]


def asked_elsewhere():
    """Whether another thread could take the locks."""
    answers = []

    def ask():
        for each in (lock, reentrant):
            answers.append(each.acquire(blocking=False))
            if answers[-1]:
                each.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return answers


def program(step, calls=None, around=lambda step, *arguments: step(*arguments)):
    """Only the step is converted; behind each call another thread asks for the locks."""

    def convert(_):
        converted = torchjanus.function(step)
        return lambda *arguments: (around(converted, *arguments), asked_elsewhere()), converted

    return Program(
        lambda *arguments: (around(step, *arguments), asked_elsewhere()),
        batches() if calls is None else calls,
        convert=convert,
    )


@differential(hits=4)
def test_with():
    def step(x):
        with lock:
            y = x * 2
        return y + 1

    return program(step)


take, give = lock.acquire, lock.release


@differential(hits=4)
def test_bound_methods_of_a_lock():
    def step(x):
        take()
        y = x * 2
        taken = lock.locked()
        give()
        return y, taken

    return program(step)


@differential(hits=4)
def test_acquire_and_release():
    def step(x):
        lock.acquire()
        try:
            y = x * 2
        finally:
            lock.release()
        return y + 1

    return program(step)


@differential(hits=4)
def test_a_lock_of_an_object():
    counter = Counter(threading.Lock())
    return Program(lambda x: (counter.add(x), counter.count), batches())


@differential(hits=10, graphs=1)
def test_a_lock_that_is_replaced():
    counter = Counter(threading.Lock())

    def replace():
        counter.lock = threading.Lock()

    calls = [call for batch in batches(16) for call in (batch, replace)]
    return Program(lambda x: (counter.add(x), counter.count), calls)


@differential(hits=8)
def test_another_kind_of_lock():
    counter = Counter(threading.Lock())

    def replace():
        counter.lock = threading.RLock()

    return Program(lambda x: (counter.add(x), counter.count), [*batches(), replace, *batches()])


@differential(hits=4)
def test_reentrant():
    def inner(x):
        with reentrant:
            return x + 1

    def step(x):
        with reentrant:
            y = inner(x * 2)
        return inner(y)

    return program(step)


@differential(hits=4)
def test_reentrant_and_taken_around_the_call():
    def step(x):
        with reentrant:
            return x * 2

    def around(step, x):
        with reentrant:
            return step(x), asked_elsewhere()

    return program(step, around=around)


@differential(hits=4)
def test_two_paths_to_one_reentrant_lock_or_to_two():
    shared = threading.RLock()

    def step(x, one, other):
        with one:
            with other:
                return x * 2

    calls = [(x, shared, shared) for (x,) in batches()]
    calls += [(x, shared, threading.RLock()) for (x,) in batches()]
    return Program(step, calls)


@differential(hits=4)
def test_two_locks():
    def step(x, one, other):
        with one:
            x = x * 2
        with other:
            return x + 1

    calls = [(x, lock, other_lock) for (x,) in batches()]
    calls += [(x, lock, lock) for (x,) in batches()]
    return Program(step, calls)


@differential(hits=4)
def test_locked():
    def step(x):
        before = lock.locked()
        with lock:
            y = x * 2 if lock.locked() else x
        return y, before, lock.locked()

    return program(step)


@differential(hits=4, aborts=1, reasons=["guard_failed"])
def test_locked_by_somebody():
    def step(x):
        return x * 2, lock.locked()

    calls = batches()
    return program(step, [*calls, lock.acquire, *calls[:2], lock.release, *calls])


@differential(hits=4)
def test_acquire_that_does_not_wait():
    def step(x):
        with lock:
            again = lock.acquire(blocking=False)
            other = lock.acquire(False)
        free = lock.acquire(timeout=3)
        lock.release()
        return x * 2, again, other, free

    return program(step)


@differential(hits=4)
def test_a_condition_is_notified():
    def step(x):
        with condition:
            condition.notify_all()
            return x * 2

    return program(step)


@differential(hits=4)
def test_a_lock_on_one_side_of_a_branch():
    def step(x):
        if x.sum() > 0:
            with lock:
                y = x * 2
        else:
            y = x + 1
        return y

    return program(step, batches(16))


@differential(hits=4)
def test_taken_twice_on_one_side_of_a_branch():
    def step(x):
        reentrant.acquire()
        if x.sum() > 0:
            reentrant.acquire()
        y = x * 2
        reentrant.release()
        if x.sum() > 0:
            reentrant.release()
        return y

    return program(step, batches(16))


@differential(hits=4)
def test_a_lock_in_each_iteration():
    def step(x, n):
        while x.sum() < n:
            with lock:
                x = x.abs() + 1
        return x

    return program(step, [(x, 4 + i % 3 * 5) for i, (x,) in enumerate(batches(16))])


@differential(hits=4)
def test_an_exception_that_is_caught():
    def step(x):
        try:
            with lock:
                y = x * 2
                raise ValueError("no")
        except ValueError:
            return y, lock.locked()

    return program(step)


def all_free():
    assert asked_elsewhere() == [True, True]


@differential(hits=4, aborts=1)
def test_an_exception_that_only_python_raises():
    def step(x):
        with lock:
            y = x * 2
            if y.sum() > 100:
                raise ValueError("no")
        return y

    calls = [(torch.full((3,), 50.0 if i == 9 else 0.5),) for i in range(16)]
    return Program(step, [each for call in calls for each in (call, all_free)])


@differential(hits=4, aborts=1)
def test_an_operator_that_raises_under_a_lock():
    def step(x, index):
        with lock:
            return x[index] * 2

    def indices(i):
        return torch.tensor([9 if i == 9 else 1, 0])

    calls = [(x, indices(i)) for i, (x,) in enumerate(batches(16))]
    return Program(step, [each for call in calls for each in (call, all_free)])


def held_elsewhere():
    """Another thread has the lock for a moment from now on."""
    taken = threading.Event()

    def hold():
        with lock:
            taken.set()
            threading.Event().wait(0.05)

    threading.Thread(target=hold).start()
    taken.wait()


@differential(hits=4, aborts=2, reasons=["guard_failed"])
def test_contended():
    def step(x):
        with lock:
            return x * 2

    calls = batches()
    return program(step, [*calls, held_elsewhere, *calls, held_elsewhere, *calls])


def test_no_other_thread_comes_between_a_read_and_its_write():
    """Runs as long as these give up Python's lock."""
    counter = Counter(threading.Lock())
    counter.total = torch.zeros(300, 300)
    step = torchjanus.function(Counter.add)
    stop = threading.Event()
    own, others = 60, 0

    def count():
        nonlocal others
        while not stop.is_set():
            with counter.lock:
                seen = counter.count
                for _ in range(100):
                    pass
                counter.count = seen + 1
            others += 1
            stop.wait(1e-4)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(own):
            step(counter, torch.ones(300, 300))
    finally:
        stop.set()
        thread.join()
    assert torchjanus.stats(step)["hits"] > 0
    assert counter.count == own + others
    assert counter.total[0, 0] == own


def leaves_it_taken(x):
    other_lock.acquire()
    return x * 2


def gives_back_what_the_caller_took(x):
    x = x * 2
    other_lock.release()
    return x


def shows_under_a_lock(x):
    with lock:
        print("under the lock")
    return x * 2


def waits_if_told(x):
    with lock:
        lock.acquire(blocking=bool(x.sum() > 1e9))
    return x * 2


def waits_for_itself(x):
    with lock:
        lock.acquire(timeout=0.001)
    return x * 2


@torch.library.custom_op("locks::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    with lock:
        return x * 2


@doubled.register_fake
def _(x):
    return torch.empty_like(x)


def uses_an_operator_that_takes_it(x):
    with lock:
        x = x + 1
    return doubled(x)


def take_and_leave(step, x):
    y = step(x)
    other_lock.release()
    return y


def taken_before(step, x):
    other_lock.acquire()
    return step(x)


IMPERATIVE = {
    "a lock that stays taken": (leaves_it_taken, "heap_write", take_and_leave),
    "one of the caller's": (gives_back_what_the_caller_took, "heap_write", taken_before),
    "a lock that waits if the run says so": (waits_if_told, "dynamic_value", None),
    "a lock that waits for itself": (waits_for_itself, "would_raise", None),
    "what is shown": (shows_under_a_lock, "unknown_callable", None),
    "an operator of the program": (uses_an_operator_that_takes_it, "unknown_callable", None),
}


@pytest.mark.parametrize("name", IMPERATIVE)
def test_what_stays_imperative(name):
    step, reason, around = IMPERATIVE[name]
    options = {} if around is None else {"around": around}
    differential(reasons=[reason])(lambda: program(step, **options))()
