"""Exceptions that the program raises and handles itself: ways through the graph that lead to the handler.
PYTEST_DONT_REWRITE"""

import functools
import math
import types

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def calls(count=16, *more):
    """Tensors whose sum is positive and negative by turns, irregularly."""
    signs = [1, -1, 1, 1, -1, -1, 1, -1] * (count // 8 + 1)
    return [
        (torch.rand(4, 3) * signs[index], *(each(index) for each in more)) for index in range(count)
    ]


class Found(Exception):
    pass


class Measured(Exception):
    def __init__(self, value):
        super().__init__("measured")
        self.value = value


# --- raised and handled -----------------------------------------------------------------------------


@differential(hits=10, graphs=1)
def test_both_ways_in_one_function():
    def step(x):
        try:
            y = x * 2
            if y.sum() < 0:
                raise ValueError("negative")
            y = y + 1
        except ValueError:
            y = x * 3
        return y

    return Program(step, calls())


@differential(hits=10, graphs=1)
def test_raised_two_calls_further_in():
    def loss_of(x):
        loss = x.sum()
        if loss < 0:
            raise FloatingPointError("negative")
        return loss, [x, x * 2]

    def twice(x):
        loss, parts = loss_of(x)
        return loss * 2 + parts[1].sum()

    def step(x):
        try:
            return twice(x)
        except FloatingPointError:
            return x.mean()

    return Program(step, calls())


@differential(hits=10, graphs=1)
def test_what_the_exception_says():
    def step(x):
        try:
            if x.sum() < 0:
                raise ValueError("negative", x.sum().item())
            return x * 2
        except ValueError as error:
            print("caught", error.args[0], f"{error.args[1]:.3f}", isinstance(error, Exception))
            return x * error.args[1]

    return Program(step, calls())


@differential(hits=10, graphs=1)
def test_its_text():
    def step(x):
        try:
            if x.sum() < 0:
                raise ValueError(f"sum {x.sum().item():.3f}")
        except ValueError as error:
            print(error, str(error), repr(error), f"{error}", type(error).__name__)
            return x * 2
        return x * 3

    return Program(step, calls())


@differential(hits=10, graphs=1)
def test_a_class_of_the_program_with_a_value():
    def step(x):
        try:
            if x.sum() < 0:
                raise Measured(x.sum())
            return x + 1
        except Measured as found:
            return x * found.value

    return Program(step, calls())


@differential(hits=10, graphs=1)
@pytest.mark.parametrize("always", [True, False])
def test_raised_in_every_call_or_in_none(always):
    def step(x):
        try:
            y = x * 2
            if (x.abs().sum() > 0) == always:
                raise KeyError("a")
            y = y + 1
        except (ValueError, KeyError) as error:
            y = x * len(error.args)
        return y

    return Program(step, calls())


@differential(hits=8, aborts=1)
def test_raised_for_the_first_time_after_the_graph():
    def step(x):
        try:
            if x.sum() > 1000:
                raise ValueError
            return x * 2
        except ValueError:
            return x

    return Program(step, [*calls(14), (torch.full((4, 3), 1000.0),), *calls(4)])


@differential(hits=10)
def test_an_exception_that_nobody_handles():
    def step(x):
        try:
            if x.sum() < -6:
                raise ValueError("negative")
        except KeyError:
            return x
        return x * 2

    return Program(step, calls(24))


# --- which handler ----------------------------------------------------------------------------------


@differential(hits=10, graphs=1)
def test_the_handler_further_out():
    def step(x):
        try:
            try:
                if x.sum() < 0:
                    raise Found
                y = x * 2
            except KeyError:
                y = x
        except Found:
            y = x * 3
        return y

    return Program(step, calls())


@differential(hits=10, graphs=1)
def test_raised_again():
    def first(x):
        try:
            if x.sum() < 0:
                raise ValueError("negative")
            return x + 1
        except ValueError:
            raise

    def second(x):
        try:
            return first(x)
        except ValueError as error:
            raise RuntimeError("second") from error

    def step(x):
        try:
            return second(x)
        except RuntimeError as error:
            return x * len(str(error))

    return Program(step, calls())


@differential(hits=10)
def test_two_kinds_of_exceptions():
    def step(x):
        try:
            if x.sum() < -5:
                raise ValueError("small")
            if x.sum() < 0:
                raise KeyError("negative")
        except KeyError:
            return x * 3
        except ValueError:
            return x * 4
        return x * 2

    return Program(step, calls(24))


# --- else, finally ----------------------------------------------------------------------------------


@differential(hits=10, graphs=1)
def test_else_and_finally():
    log = []

    def step(x):
        try:
            if x.sum() < 0:
                raise ValueError
        except ValueError:
            y = x * 3
        else:
            y = x * 2
        finally:
            log.append(1)
        return y

    return Program(step, calls(), [log])


@differential(hits=10, graphs=1)
def test_finally_on_the_way_out():
    count = {"left": 0}

    def inner(x):
        try:
            if x.sum() < 0:
                raise ValueError
            return x + 1
        finally:
            count["left"] += 1

    def step(x):
        try:
            return inner(x)
        except ValueError:
            return x * count["left"]

    return Program(step, calls(), [count])


@differential(hits=10, graphs=1)
def test_an_assertion():
    def step(x):
        try:
            assert x.sum() > 0, "negative"
            return x * 2
        except AssertionError as error:
            return x * len(str(error))

    return Program(step, calls())


# --- loops ------------------------------------------------------------------------------------------


@differential(hits=10)
def test_iterations_that_are_left_out():
    def step(x):
        total = x * 2
        for row in (x * torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])).unbind(0):
            try:
                if row.sum() < 0:
                    raise Found
                total = total + row
            except Found:
                continue
        return total

    return Program(step, calls())


@differential(hits=10)
def test_out_of_two_loops():
    def step(x):
        total = x[0]
        try:
            for row in x:
                for _ in range(2):
                    if total.sum() > 2:
                        raise Found
                    total = total + row
        except Found:
            total = total * 2
        return total

    return Program(step, calls(20))


@differential(hits=8)
def test_in_a_loop_of_the_graph():
    def step(x, iterations):
        total = x
        for index in range(iterations):
            try:
                if (total * (index - 2)).sum() < 0:
                    raise ValueError
                total = total + 1
            except ValueError:
                total = total - 2
        return total

    return Program(step, calls(20, lambda index: 2 + index % 5))


# --- what was done before it was raised -------------------------------------------------------------


@differential(hits=10, graphs=1)
def test_changes_before_it_are_kept():
    state, seen, buffer = {"calls": 0, "bad": 0}, [], torch.zeros(3)

    def inner(x):
        state["calls"] += 1
        seen.append(x.sum().item())
        buffer.add_(1)
        print("inner")
        if x.sum() < 0:
            state["bad"] += 1
            buffer.mul_(2)
            print("raises", x.sum().item())
            raise Found
        print("returns")
        return {"parts": [x * buffer, x + torch.rand(3)]}

    def step(x):
        try:
            found = inner(x)
        except Found:
            return x * state["bad"] + buffer
        return found["parts"][0] + found["parts"][1] * len(found)

    return Program(step, calls(), [state, seen, buffer])


@differential(hits=10)
def test_a_gradient_through_what_it_holds():
    weight = nn.Parameter(torch.randn(3))
    optimizer = torch.optim.SGD([weight], 0.1)

    def loss_of(x):
        loss = (x * weight).sum()
        if x.sum() < 0:
            raise Measured(loss * 2)
        return loss

    def step(x):
        optimizer.zero_grad()
        try:
            loss = loss_of(x)
        except Measured as found:
            loss = found.value + weight.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, calls(), [weight])


@differential(hits=10, graphs=1)
def test_raised_by_an_element_of_a_list():
    def scaled(row):
        if row.sum() < -1.5:
            raise Found
        return row * 2

    def step(x):
        try:
            return torch.stack([scaled(row) for row in x]).sum()
        except Found:
            return x.mean()

    return Program(step, calls())


@differential(hits=8)
def test_a_generator_that_has_to_be_closed():
    log = []

    def rows(x):
        try:
            yield from (row * 2 for row in x)
        finally:
            log.append("closed")

    def step(x):
        total = x[0] * 0
        try:
            for row in rows(x):
                if row.sum() < -1.5:
                    raise Found
                total = total + row
        except Found:
            return x.mean(0)
        return total

    return Program(step, calls(24), [log])


# --- training ---------------------------------------------------------------------------------------


@differential(hits=10)
def test_a_step_that_is_skipped():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loss_of(x):
        loss = model(x).mean()
        if not x.sum() > 0:
            raise FloatingPointError("skip")
        return loss

    def step(x):
        optimizer.zero_grad()
        try:
            loss = loss_of(x)
            loss.backward()
            optimizer.step()
        except FloatingPointError:
            return None
        return loss.item()

    return Program(step, calls(24), [model])


# --- exceptions of Python's own code ----------------------------------------------------------------


@differential(hits=10)
def test_keys_that_are_missing():
    scales = {"a": 2.0}

    def step(x):
        try:
            scale = scales["b"]
        except KeyError:
            scale = 3.0
        return x * scale

    def add():
        scales["b"] = 5.0

    return Program(step, [*calls(16), add, *calls(8)], [scales])


@differential(hits=10)
def test_the_end_of_an_iterator():
    def step(x):
        rows, total = iter(x), x[0]
        while True:
            try:
                row = next(rows)
            except StopIteration:
                break
            total = total + row
        return total

    return Program(step, calls())


class Options:
    def __init__(self):
        self.scale = 2.0

    def __getattr__(self, name):
        if name == "missing":
            raise AttributeError(name)
        return 3.0


@differential(hits=10)
def test_attributes_that_are_asked_for():
    options = Options()

    def step(x):
        try:
            y = x * options.missing
        except AttributeError:
            y = x * getattr(options, "missing", 4.0)
        return y * getattr(options, "other", 0.0) if not hasattr(options, "missing") else y

    def add():
        options.missing = 5.0

    return Program(step, [*calls(16), add, *calls(8)])


@differential(hits=8)
def test_texts_that_are_no_numbers():
    def step(x, text):
        try:
            return x * int(text)
        except ValueError:
            return x * 7

    return Program(step, calls(16, lambda index: ["3", "three"][index % 2]))


# --- what is not converted --------------------------------------------------------------------------


@differential(reasons=["dynamic_value"])
def test_an_exception_that_is_kept():
    errors = []

    def step(x):
        try:
            raise ValueError("kept")
        except ValueError as error:
            errors.append(error.with_traceback(None) if False else error)
        return x * len(errors)

    def forget():
        errors.clear()

    return Program(step, [each for call in calls(6) for each in (call, forget)])


@differential(reasons=["expression"])
def test_the_frames_that_it_came_through():
    def step(x):
        try:
            raise ValueError
        except ValueError as error:
            return x * 2 if error.__traceback__ is not None else x

    return Program(step, calls(6))


# --- numbers for which Python raises ----------------------------------------------------------------

OPERATIONS = {
    "a quotient": (lambda n: 6 / n, ZeroDivisionError, [3, 0, 5, 4, 0, 7]),
    "a quotient of floats": (lambda n: 6 / n, ZeroDivisionError, [3.0, 0.0, 5.0, 4.0, 0.0, 7.0]),
    "a whole quotient": (lambda n: 6 // n, ZeroDivisionError, [3, 0, 5, 4, 0, 7]),
    "a remainder": (lambda n: 6 % n, ZeroDivisionError, [3, 0, 5, 4, 0, 7]),
    "both": (lambda n: sum(divmod(6, n)), ArithmeticError, [3, 0, 5, 4, 0, 7]),
    "a power": (lambda n: 0.0**n, ZeroDivisionError, [3, -1, 5, 4, -2, 7]),
    "a power of ints": (lambda n: 0**n, ZeroDivisionError, [3, -1, 5, 4, -2, 7]),
    "an inverse": (lambda n: n**-1, ZeroDivisionError, [3, 0, 5, 4, 0, 7]),
    "a shift": (lambda n: 1 << n, ValueError, [3, -1, 5, 4, -2, 7]),
    "a shift back": (lambda n: 100 >> n, ValueError, [3, -1, 5, 4, -2, 7]),
    "an int": (lambda n: int(n * 2), ValueError, [1.5, math.nan, 2.5, 3.5, math.nan, 4.5]),
    "in a callee": (lambda n: (lambda m: 6 / m)(n - 1), Exception, [3, 1, 5, 4, 1, 7]),
}


@differential(hits=3, graphs=4)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_numbers_that_raise_in_some_calls(operation, first):
    compute, kind, values = OPERATIONS[operation]
    holder = types.SimpleNamespace(number=0)

    def step(x):
        try:
            factor = compute(holder.number)
        except kind:
            factor = 77
        return x * factor

    def at_once(step):
        return (torchjanus.function(step, profile_runs=0),) * 2

    steps = []
    for value in values[first:] + values:
        steps += [functools.partial(setattr, holder, "number", value), (torch.ones(3),)]
    return Program(step, steps, watch=[holder], convert=at_once)


@differential(hits=3)
def test_numbers_that_raise_in_a_loop():
    def step(x, count, zero):
        for i in range(count):
            try:
                factor = 6 / (i - zero)
            except ZeroDivisionError:
                factor = 77
            x = x * factor
        return x

    pairs = [(1, 3), (2, 0), (3, 2), (4, 2), (5, 7), (2, 4), (7, 1), (8, 9), (9, 12), (3, 8)]
    return Program(step, [(torch.ones(3), count, zero) for count, zero in pairs])
