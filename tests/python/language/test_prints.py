"""What a step shows, in the iterations of its loops as well: it is printed, logged and written after the run,
in order, with the values that there were."""

import contextlib
import functools
import io
import logging
import sys
import warnings

import pytest
from differential import Program, differential

import torch
import torchjanus


def rows(count=30):
    return [(torch.randn(2 + (i * 7 + i * i) % 9, 4),) for i in range(count)]


def each_row(x):
    for i, row in enumerate(x):
        print(i, row.sum().item())
    return x * 2


def some_rows(x):
    print("begin", x.shape[0])
    for i, row in enumerate(x):
        if row.sum() > 1:
            print(f"row {i}: {row.sum().item():.3f}")
        elif row.sum() < -1:
            print("low", i, end=";", sep="-")
    print("end")
    return x * 2


def until_small(x):
    y, iterations = x * 1, 0
    while y.norm() > 0.5:
        y = y / 2
        iterations += 1
        print("norm", round(y.norm().item(), 3), "after", iterations)
    print("done")
    return y


def nested(x):
    for i, row in enumerate(x):
        print("row", i)
        for value in row.tolist():
            if value > 0:
                print("  value", value)
        value = row.sum()
        while value > 1:
            value = value / 2
            print("  halved", value.item())
    return x


def left(x):
    for i, row in enumerate(x):
        print("look at", i)
        if row.sum() > 2:
            print("found", i)
            return row * 2
    else:
        print("none")
    return x[0] * 1


def tensors(x):
    for row in x:
        print(row * 2)
    return x


def two_loops(x):
    for row in x:
        print("first", row[0].item())
    total = x.sum().item()
    print("between", total)
    for row in x:
        print("second", row[1].item(), total)
    return x * total


def on_one_side(x):
    if x.sum() > 0:
        for row in x:
            print("positive", row.sum().item())
    else:
        print("negative")
    return x


def joined(x):
    print("sums: " + ", ".join(f"{row.sum().item():.2f}" for row in x))
    print(" ".join(str(round(v, 3)) for v in x.sum(1).tolist()))
    return x * 2


STEPS = [each_row, some_rows, until_small, nested, left, tensors, two_loops, on_one_side, joined]


@pytest.mark.parametrize("step", STEPS)
@differential(hits=20, graphs=2)
def test_prints(step):
    return Program(step, rows())


@differential(hits=20, graphs=2)
def test_log_records():
    stream = io.StringIO()
    logger = logging.getLogger("iterations")
    logger.handlers = [logging.StreamHandler(stream)]
    logger.setLevel(logging.INFO)
    logger.propagate = False

    def step(x):
        for i, row in enumerate(x):
            logger.debug("row %d", i)
            if row.sum() > 1:
                logger.info("large %.3f in %d", row.sum().item(), i)
        return x * 2

    read = [lambda: print(stream.getvalue())]
    return Program(step, [each for call in rows() for each in (call, *read)])


@differential(hits=20)
def test_a_text_that_goes_through_the_iterations():
    def step(x):
        text = "begin"
        for row in x:
            text = f"sum {row.sum().item():.2f}"
            print(text)
        return x * 2

    return Program(step, rows())


@differential(aborts=1, hits=30)
def test_nothing_is_shown_by_a_run_that_is_given_up():
    def step(x):
        for row in x:
            print("one over", 1 / row[0].item())
        return x * 2

    calls = rows(40)
    for (x,) in calls[7::5]:
        x[-1, 0] = 0
    return Program(step, calls)


@differential(hits=15)
def test_warnings():
    def step(x):
        for row in x:
            if row.sum() > 3:
                warnings.warn(f"large: {row.sum().item():.2f}", RuntimeWarning, stacklevel=1)
        return x * 2

    return Program(step, rows())


@differential(hits=15, graphs=3)
def test_prints_of_iterations_that_train():
    w = torch.ones(4, requires_grad=True)

    def step(x):
        loss = 0.0
        for row in x:
            part = (row * w).tanh().sum()
            print("part", part.item())
            loss = loss + part
        w.grad = None
        loss.backward()
        return w.grad.clone()

    return Program(step, rows(), watch=[w])


# --- objects ----------------------------------------------------------------------------------------


class Shown:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Shown({self.value:.2f})"


class Formatted(Shown):
    def __str__(self):
        return f"<{self.value:.1f}>"

    def __format__(self, form):
        return f"{self!s}:{form}"


@differential(hits=6, graphs=1)
def test_objects_whose_class_writes_their_text():
    outside = Formatted(2.0)

    def step(x):
        outside.value += x.sum().item()
        made = Shown(outside.value * 2)
        print(outside, made, f"{outside} {outside!r} {made!s}", repr(made), str(outside))
        return x * made.value

    return Program(step, [(torch.randn(3),) for _ in range(10)], watch=[outside])


class Unshown:
    pass


@differential(reasons=["unknown_callable"])
def test_an_object_with_pythons_own_text():
    unshown = Unshown()

    def step(x):
        print(str(type(unshown)), end="")
        print(unshown if x is None else "none", end="")
        print(unshown, file=io.StringIO())
        return x * 2

    return Program(step, [(torch.randn(3),) for _ in range(5)])


def numbered_batches(count=12):
    return [(torch.randn(5, 4), i) for i in range(count)]


class Records(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(
            (record.getMessage(), record.levelname, record.name, record.lineno, record.funcName)
        )


@differential(hits=5)
def test_log_records_of_a_step():
    logger = logging.Logger("training", logging.INFO)
    records = Records()
    logger.addHandler(records)

    def step(x, i):
        y = x * 2
        logger.info("loss %.4f at %d", y.sum().item(), i)
        logger.debug("not shown")
        logger.warning(f"mean {y.mean().item():.3f}")
        return y

    return Program(step, numbered_batches(8), watch=[records.lines])


@differential(hits=5)
def test_text_files():
    file = io.StringIO()

    def step(x, i):
        y = x * 2
        file.write(f"{y.sum().item():.4f}\n")
        print("done", i, file=file)
        return y

    def look():
        seen.append(file.getvalue())

    seen = []
    calls = numbered_batches(8)
    return Program(step, [*calls[:6], look, *calls[6:], look], watch=[seen])


def calls(*shapes, count=6):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


@differential(hits=2, graphs=1)
def test_print_is_replayed_in_order():
    def step(x):
        print("before", x.shape[0])
        loss = (x * 2).sum()
        print(f"loss {loss.item():.4f}", end="\n\n")
        print("after", loss.item() > 0)
        return loss

    return Program(step, calls((3,)))


@differential(hits=3)
def test_print_every_third_step():
    def step(x, index):
        loss = (x**2).sum()
        if index % 3 == 0:
            print("step", index, loss.item())
        return loss

    return Program(step, [(torch.randn(3), index) for index in range(15)])


class Logger:
    """A writer of the program's own, as it is put in the place of sys.stdout."""

    def __init__(self):
        self.file, self.texts, self.flushed, self.left = io.StringIO(), 0, 0, 1000

    def write(self, text):
        if not self.left:
            raise OSError("full")
        self.left -= 1
        self.texts += 1
        self.file.write(text)

    def flush(self):
        self.flushed += 1


def look_at(logger):
    return lambda: (logger.file.getvalue(), logger.texts, logger.flushed, logger.left)


@differential(hits=6, graphs=1)
def test_a_writer_of_the_program_knows_what_was_printed():
    logger, seen = Logger(), []

    def step(x):
        y = (x * 2).sum()
        print("loss", y.item(), [1, 2], file=logger)
        print("a", "b", sep=None, end=None, file=logger, flush=True)
        print(f"{y.item():.3f}", sep="-", end="", file=logger)
        seen.append(logger.texts)
        return y * logger.texts + logger.flushed

    def look():
        seen.append(look_at(logger)())

    batches = calls((3,), count=9)
    return Program(step, [*batches, look], watch=[seen])


@differential(hits=6, graphs=1)
def test_one_in_the_place_of_stdout():
    logger, seen = Logger(), []

    def step(x):
        before = sys.stdout
        sys.stdout = logger
        y = (x * 2).sum()
        print("loss", y.item())
        count = sys.stdout.texts
        sys.stdout = before
        return y * count

    def look():
        seen.append(look_at(logger)())

    batches = calls((3,), count=9)
    return Program(step, [*batches, look], watch=[seen])


def test_what_a_writer_of_the_program_raises_is_handled():
    def run(step):
        torch.manual_seed(0)
        logger, notes = Logger(), []
        logger.left = 7
        w = torch.ones(3)
        for x in torch.randn(12, 3):
            step(x, w, logger, notes)
        return notes, w.tolist(), look_at(logger)()

    def step(x, w, logger, notes):
        try:
            w.add_(1)
            print("at", file=logger)
            notes.append((w * x).sum().item())
        except OSError as error:
            notes.append(str(error))

    converted = torchjanus.function(step)
    assert run(step) == run(converted)
    assert [each["code"] for each in torchjanus.stats(converted)["reasons"]] != []


class Counter:
    """Notes what it gets, by whatever way `write` is found."""

    def __init__(self):
        self.texts = 0

    def note(self, text):
        self.texts += 1

    def flush(self):
        pass


class ByProperty(Counter):
    write = property(lambda self: self.note)


class ByAttribute(Counter):
    def __init__(self):
        super().__init__()
        self.write = self.note


class BySearch(Counter):
    def __getattr__(self, name):
        if name == "write":
            return self.note
        raise AttributeError(name)


class ByPartial(Counter):
    write = functools.partialmethod(Counter.note)


class OfText(io.StringIO):
    """Its `flush` alone is the program's."""

    texts = 0

    def flush(self):
        self.texts += 1


@pytest.mark.parametrize("kind", [ByProperty, ByAttribute, BySearch, ByPartial, OfText])
def test_whatever_way_a_writer_is_written(kind):
    def run(step):
        torch.manual_seed(0)
        writer = kind()
        return [step(x, writer).item() for x in torch.randn(10, 3, dtype=torch.float64)]

    def step(x, writer):
        print("a", "b", file=writer, flush=True)
        return x.sum() * writer.texts

    assert run(torchjanus.function(step)) == pytest.approx(run(step))


def test_no_standard_output():
    printed = io.StringIO()

    def step(x):
        before = sys.stdout
        sys.stdout = None
        print("never")
        sys.stdout = before
        return x * 2

    converted = torchjanus.function(step)
    with contextlib.redirect_stdout(printed):
        for _ in range(8):
            converted(torch.ones(3))
    assert printed.getvalue() == ""


def test_arguments_that_print_does_not_take():
    def step(x):
        try:
            print("a", "b", sep=3, file=logger)
        except TypeError as error:
            return str(error), x * 2
        return "", x

    logger = Logger()
    converted = torchjanus.function(step)
    for _ in range(8):
        assert converted(torch.ones(3))[0] == step(torch.ones(3))[0]
