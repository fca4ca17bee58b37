"""The program's own context managers that are generators."""

import contextlib
import warnings

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
def test_scope_that_does_not_always_yield():
    """The run decides it; Python raises where it does not."""

    @contextlib.contextmanager
    def scope(x):
        if x.sum() > 0:
            return
        yield 2.0

    def step(x):
        with scope(x) as factor:
            return x * factor

    return Program(step, batches(14))


@differential(hits=4)
def test_scope_that_handles_what_raises():
    log = []

    @contextlib.contextmanager
    def scope(name):
        try:
            yield
        except ValueError as error:
            log.append((name, type(error).__name__))
        else:
            log.append(name)
        finally:
            log.append("left")

    def step(x, flag):
        y = x.exp()
        with scope("outer"), scope("inner"):
            y = y * 2
            if flag:
                raise ValueError("three")
            y = y * 3
        return y

    return Program(step, [(*each, True) for each in batches()], watch=[log])


@differential(hits=8)
def test_scope_around_what_raises_now_and_then():
    """One side of a branch leads through the generator's handler."""
    log = []

    @contextlib.contextmanager
    def scope():
        log.append("entered")
        with contextlib.suppress(KeyError):
            yield
        log.append("left")

    def step(x):
        with scope():
            if x.sum() > 0:
                raise KeyError("positive")
            x = x * 2
        return x + 1

    return Program(step, batches(14), watch=[log])


@differential(hits=4)
def test_scope_that_raises_again():
    log = []

    @contextlib.contextmanager
    def scope():
        try:
            yield
        except KeyError as error:
            log.append("translated")
            raise ValueError("another") from error
        finally:
            log.append("left")

    def step(x):
        y = x.exp()
        try:
            with scope():
                y = y * 2
                raise KeyError("one")
        except ValueError:
            y = y * 3
        return y

    return Program(step, batches(), watch=[log])


@differential(reasons=["would_raise"])
def test_scope_around_what_nobody_handles():
    log = []

    @contextlib.contextmanager
    def scope():
        try:
            yield
        finally:
            log.append("left")

    def step(x):
        with scope():
            raise ValueError("three")
        return x * 2

    return Program(step, batches(6), watch=[log])


@differential(reasons=["generator"])
def test_scope_around_the_end_of_an_iteration():
    @contextlib.contextmanager
    def scope():
        try:
            yield
        except StopIteration:
            pass

    def step(x):
        y = x.exp()
        try:
            with scope():
                raise StopIteration
        except StopIteration:
            y = y * 3
        return y

    return Program(step, batches())


@differential(reasons=["generator"])
def test_scope_that_raises_before_its_yield():
    @contextlib.contextmanager
    def scope(names):
        try:
            yield names["missing"]
        except KeyError:
            yield "missing"

    def step(x):
        with scope({}) as name:
            return x * 2, name

    return Program(step, batches())


@differential(reasons=["generator"])
def test_scope_that_yields_in_a_loop():
    @contextlib.contextmanager
    def scope(names):
        for name in names:
            yield name

    def step(x):
        with scope(["one"]) as name:
            return x * 2, name

    return Program(step, batches())


@differential(hits=4)
def test_scope_whose_yields_stand_on_two_sides():
    log = []

    @contextlib.contextmanager
    def scope(fast):
        if fast:
            log.append("fast")
            try:
                yield 2.0
            finally:
                log.append("no longer")
        else:
            context = contextlib.nullcontext
            with context(), torch.no_grad():
                yield 3.0
        log.append("left")

    def step(x, w):
        with scope(True) as first, scope(False) as second:
            y = x * w * first * second
        return y, y.requires_grad, (w * 2).requires_grad

    w = torch.randn(4, requires_grad=True)
    return Program(step, [(*each, w) for each in batches()], watch=[log])


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


@differential(hits=4, graphs=1)
def test_generators_and_modes_on_an_exit_stack():
    """As accelerate's `accumulate` has them."""
    state = {"depth": 0}
    log = []

    @contextlib.contextmanager
    def deeper(by):
        state["depth"] += by
        try:
            yield by
        finally:
            state["depth"] -= by
            log.append(by)

    @contextlib.contextmanager
    def accumulating(*depths):
        with contextlib.ExitStack() as stack:
            for depth in depths:
                stack.enter_context(deeper(depth))
            stack.enter_context(torch.no_grad())
            yield len(depths)

    def step(x, w):
        with accumulating(1, 2) as count:
            y = x * w * count * state["depth"]
        return y + state["depth"], y.requires_grad, (w * 2).requires_grad

    w = torch.randn(4, requires_grad=True)
    return Program(step, [(*each, w) for each in batches()], watch=[state, log])


@differential(hits=6)
def test_one_of_two_contexts_on_an_exit_stack():
    """Which one it is changes from call to call."""
    log = []

    @contextlib.contextmanager
    def quiet():
        log.append("quiet")
        yield
        log.append("loud")

    def step(x, flag):
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.nullcontext() if flag else quiet())
            y = x * 2
        return y

    return Program(step, [(x, i % 2 == 0) for i, (x,) in enumerate(batches(14))], watch=[log])


@differential(hits=4)
def test_an_exit_stack_of_generators_in_a_branch():
    """They are left on each of its sides."""
    log = []

    @contextlib.contextmanager
    def scope():
        log.append("entered")
        yield 2
        log.append("left")

    def step(x):
        with contextlib.ExitStack() as stack:
            factor = stack.enter_context(scope())
            if x.sum() > 0:
                return x * factor
            x = x + 1
        return x

    return Program(step, batches(14), watch=[log])


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


@differential(hits=4)
def test_an_exception_leaves_all_of_an_exit_stack():
    """A generator that does nothing about it lets it through."""
    log = []

    @contextlib.contextmanager
    def plain():
        log.append("entered")
        yield
        log.append("not come to")

    def step(x, w):
        y = x * 2
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(Recorded(log, "outer"))
                stack.enter_context(torch.no_grad())
                stack.enter_context(plain())
                raise KeyError("missing")
        except KeyError:
            y = y - 1
        return y, (y * w).requires_grad

    w = torch.randn(4, requires_grad=True)
    return Program(step, [(*each, w) for each in batches()], watch=[log])


@differential(hits=4)
def test_an_exit_stack_handles_what_a_generator_lets_through():
    log = []

    @contextlib.contextmanager
    def plain():
        try:
            yield
        except KeyError as error:
            log.append("seen")
            raise error

    def step(x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(Recorded(log, "outer", handles=True))
            stack.enter_context(plain())
            raise KeyError("missing")
        return x + 5

    return Program(step, batches(), watch=[log])


@differential(reasons=["would_raise"])
def test_an_exit_stack_with_a_generator_that_raises_another():
    log = []

    @contextlib.contextmanager
    def other():
        try:
            yield
        except KeyError:
            raise ValueError("another") from None

    def step(x):
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(Recorded(log, "outer"))
                stack.enter_context(other())
                raise KeyError("missing")
        except ValueError:
            return x - 1

    return Program(step, batches(), watch=[log])


@differential(hits=4)
def test_sides_of_a_generator_that_let_the_exception_through_or_not():
    @contextlib.contextmanager
    def picky(x):
        try:
            yield
        except KeyError:
            if x.sum() > 0:
                raise

    def step(x):
        y = x * 2
        try:
            with picky(x):
                raise KeyError("missing")
            y = y + 1
        except KeyError:
            y = y - 1
        return y

    return Program(step, batches(14))


@differential(hits=4)
def test_a_scope_that_raises_stop_iteration():
    log = []

    @contextlib.contextmanager
    def scope(log):
        yield 2
        raise StopIteration

    def step(x):
        try:
            with scope(log) as factor:
                y = x * factor
        except StopIteration:
            y = x - 1
        except RuntimeError as error:
            y = x - 2
            log.append(str(error))
        return y

    return Program(step, batches(), watch=[log])


@differential(hits=4)
def test_a_scope_that_raises_stop_iteration_in_place_of_another():
    log = []

    @contextlib.contextmanager
    def scope():
        try:
            yield 2
        except KeyError:
            raise StopIteration from None

    def step(x):
        try:
            with scope() as factor:
                x = x * factor
                raise KeyError("missing")
        except RuntimeError as error:
            log.append(error.args)
        return x

    return Program(step, batches(), watch=[log])


@differential(reasons=["generator"])
def test_a_context_that_is_entered_twice():
    log = []

    @contextlib.contextmanager
    def scope():
        log.append("entered")
        yield 2

    def step(x):
        context = scope()
        with context as factor:
            y = x * factor
        try:
            with context as factor:
                y = y * factor
        except AttributeError:
            y = y - 1
        return y

    return Program(step, batches(), watch=[log])


@differential(reasons=["generator"])
def test_a_context_that_a_loop_enters():
    @contextlib.contextmanager
    def scope():
        yield 2

    def step(x):
        y = x.abs() + 1
        context = scope()
        while y.sum() < 100:
            try:
                with context as factor:
                    y = y * factor
            except AttributeError:
                y = y * 3
        return y

    return Program(step, batches(14))


@differential(reasons=["generator"])
def test_an_exit_stack_that_is_not_left():
    """Python ends the generator where it frees it."""
    log = []

    @contextlib.contextmanager
    def scope():
        log.append("entered")
        try:
            yield 2
        finally:
            log.append("left")

    def step(x):
        stack = contextlib.ExitStack()
        return x * stack.enter_context(scope())

    return Program(step, batches(), watch=[log])


@differential(reasons=["generator"])
def test_an_exit_stack_that_is_not_left_on_one_side():
    log = []

    @contextlib.contextmanager
    def scope():
        try:
            yield 2
        finally:
            log.append("left")

    def doubled(x):
        stack = contextlib.ExitStack()
        if x.sum() > 0:
            return x * stack.enter_context(scope())
        return x

    def step(x):
        return doubled(x) + len(log)

    return Program(step, batches(14), watch=[log])


@differential(reasons=["unknown_callable"])
def test_a_scope_that_warns_in_the_place_of_its_caller():
    """Frames of contextlib's own stand between the two."""

    @contextlib.contextmanager
    def scope():
        warnings.warn("from within", stacklevel=2)
        yield 2

    def step(x):
        with scope() as factor:
            return x * factor

    return Program(step, batches())


@differential(reasons=["expression"])
def test_an_exit_stack_with_its_own_notes():
    log = []

    class Stack(contextlib.ExitStack):
        def _push_cm_exit(self, context, leave):
            log.append("noted")
            super()._push_cm_exit(context, leave)

    @contextlib.contextmanager
    def scope():
        yield 2

    def step(x):
        with Stack() as stack:
            x = x * stack.enter_context(scope())
            stack.enter_context(torch.no_grad())
        return x

    return Program(step, batches(), watch=[log])
