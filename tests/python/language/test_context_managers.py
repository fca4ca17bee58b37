"""The program's own context managers that are generators."""

import contextlib

from differential import Program, differential

import torch


def batches(count=8, rows=3):
    return [(torch.randn(rows, 4),) for _ in range(count)]


@differential(hits=4)
def test_own_scope():
    depth = {"now": 0}

    @contextlib.contextmanager
    def scope(value, *, factor=1):
        before = depth["now"]
        depth["now"] = value * factor
        try:
            yield value + 1
        finally:
            depth["now"] = before

    def step(x):
        with scope(2, factor=3) as next_value, scope(5):
            y = x * next_value * depth["now"]
        return y + depth["now"]

    return Program(step, batches(), watch=[depth])


@differential(hits=4)
def test_scope_of_a_method_that_returns():
    class Model:
        def __init__(self):
            self.mode, self.log = "plain", []

        @contextlib.contextmanager
        def using(self, mode):
            before, self.mode = self.mode, mode
            with torch.no_grad():
                yield
            self.log.append(mode)
            self.mode = before

        def forward(self, x):
            with self.using("double"):
                if self.mode == "double":
                    return x * 2
            return x

    model = Model()
    weight = torch.randn(4, requires_grad=True)

    def step(x):
        y = model.forward(x * weight)
        return y, y.requires_grad, model.mode

    return Program(step, batches(), watch=[model])


@differential(hits=4)
def test_scope_in_loops_and_branches():
    @contextlib.contextmanager
    def counted(box):
        box.append(1)
        yield len(box)
        box.pop()

    def step(x):
        box, total = [], x
        for _ in range(3):
            with counted(box) as count:
                if x.sum() > 0:
                    total = total + count
                    continue
                total = total * 2
        return total, len(box)

    return Program(step, batches(12))


@differential(hits=7)
def test_scope_that_branches():
    """Which half of the generator runs, the run decides."""

    @contextlib.contextmanager
    def scope(x):
        if x.sum() > 0:
            yield 2.0
        else:
            yield 3.0

    def step(x):
        with scope(x) as factor:
            y = x * factor
        return y

    return Program(step, batches(12))


@differential(reasons=["would_raise"])
def test_scope_that_does_not_yield():
    @contextlib.contextmanager
    def scope(on):
        if on:
            yield

    def step(x):
        with scope(x.shape[0] > 5):
            return x * 2

    return Program(step, batches(6))


@differential(reasons=["would_raise"])
def test_scope_around_what_raises():
    log = []

    @contextlib.contextmanager
    def scope():
        try:
            yield
        except ValueError:
            log.append("caught")

    def step(x):
        with scope():
            if x.shape[0] == 3:
                raise ValueError("three")
        return x * 2

    return Program(step, batches(6), watch=[log])


class Recorded:
    """Writes down that it is entered and left; may handle exceptions."""

    def __init__(self, log, name, handles=False):
        self.log, self.name, self.handles = log, name, handles

    def __enter__(self):
        self.log.append(("enter", self.name))
        return self

    def __exit__(self, kind, exception, traceback):
        self.log.append(("leave", self.name, kind is None))
        return self.handles


@differential(hits=4, graphs=1)
def test_exit_stacks():
    log = []
    existing = Recorded(log, "existing")

    @contextlib.contextmanager
    def accumulating(*names):
        with contextlib.ExitStack() as stack:
            for name in names:
                stack.enter_context(Recorded(log, name))
            stack.enter_context(contextlib.nullcontext())
            stack.push(existing)
            yield len(names)

    def step(x):
        with accumulating("first", "second") as count:
            y = x * count
        return y + len(log)

    return Program(step, batches(), watch=[log])


@differential(hits=4)
def test_an_exit_stack_that_handles_an_exception():
    log = []

    def step(x, flag):
        y = x.exp()
        with contextlib.ExitStack() as stack:
            stack.enter_context(Recorded(log, "outer"))
            stack.enter_context(Recorded(log, "inner", handles=True))
            if flag:
                raise ValueError("too much")
        return y * 2

    return Program(step, [(*each, True) for each in batches()], watch=[log])


@differential(hits=4)
def test_another_context_on_the_exit_stack():
    log = []
    state = Recorded(log, "state")
    state.context = contextlib.nullcontext(2.0)

    def step(x):
        with contextlib.ExitStack() as stack:
            return x * stack.enter_context(state.context)

    def change():
        state.context = contextlib.nullcontext(3.0)

    return Program(step, [*batches(5), change, *batches(5)])


class Failing(Recorded):
    def __exit__(self, kind, exception, traceback):
        raise ValueError("it does not end")


@differential(reasons=["would_raise"])
def test_an_exit_stack_with_a_context_that_raises_where_it_is_left():
    log = []

    def step(x):
        y = x.exp()
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(Recorded(log, "outer"))
                stack.enter_context(Failing(log, "inner"))
                z = y * 2
        except ValueError:
            z = y * 3
        return z

    return Program(step, batches(), watch=[log])
