"""Texts of what the run changes afterwards: made after the run, they show what there was before."""

import datetime
import enum

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch


def arguments(count=8):
    return [(torch.randn(3), torch.randn(3)) for _ in range(count)]


def percent(x, w):
    text = "w %s" % (w,)  # noqa: UP031
    w -= x
    return text


def listed(x, w):
    text = str([x[0].item(), w])
    w -= x
    return text


def with_others(x, w):
    print("%s %s" % (x, 1))  # noqa: UP031
    x.add_(1)


def format_method(x, w):
    text = "{} {}".format(x[0].item(), {"w": w})
    w -= x
    return text


@pytest.mark.parametrize("step", [percent, listed, with_others, format_method])
@differential(reasons=["expression"])
def test_a_tensor_that_is_written_later(step):
    return Program(step, arguments())


@differential(hits=5)
def test_a_view_of_a_tensor_that_is_written_later():
    def step(x, w):
        y = x[1:]
        print(y, [y], (y, x[0]), {"y": y})
        text = f"{x[1]} {x[1]:.2f} {[x[0]]}", "%s %s" % (y, 1), "{} {}".format(y, w.data)  # noqa: UP031
        x.add_(1)
        w.mul_(2)
        return text, x * w

    return Program(step, arguments())


@differential(hits=5)
def test_a_number_within_a_leaf():
    w = torch.randn(3, requires_grad=True)

    def step(x, _):
        text = f"{w[1]} {w[1]:.3f}"
        with torch.no_grad():
            w.add_(x)
        return text

    return Program(step, arguments(), watch=[w])


@differential(hits=5)
def test_a_gradient_that_is_scaled_and_dropped_later():
    w = torch.randn(3, requires_grad=True)

    def step(x, _):
        (w * x).sum().backward()
        print(w.grad, [w.grad])
        w.grad.mul_(0.5)
        text = f"{w.grad}"
        w.grad = None
        return text

    return Program(step, arguments(), watch=[w])


class Meter:
    def __init__(self):
        self.count = 0

    def __str__(self):
        return str(self.count)

    __repr__ = __str__


class Counting(Meter):
    def __str__(self):
        self.count += 1
        return f"shown {self.count} times"


class Kind(enum.Enum):
    MEAN = 1


@differential(hits=5)
def test_objects_that_write_their_text():
    meter = Meter()

    def step(x, _):
        meter.count += 1
        print("%s %% loss %.1f" % (meter, x[0].item()))
        meter.count += 1
        made = Counting()
        texts = "%s %d" % (made, 1), "%s" % made, "%-20s %5.1f" % (made, x[0].item())  # noqa: UP031
        print(meter)
        return texts, made.count

    return Program(step, arguments(), watch=[meter])


@differential(hits=5)
def test_objects_whose_text_lasts():
    day = datetime.timedelta(days=1)

    def step(x, _):
        loss = x[0].item()
        print("%s %.3f %s %s %s" % (day, loss, x.dtype, Meter, Kind.MEAN))
        return "{} {} {}".format(x.shape, loss, day)

    return Program(step, arguments())


@differential(hits=5)
def test_objects_whose_text_lasts_in_an_f_string():
    began, took = datetime.date(2026, 11, 30), datetime.timedelta(days=1)

    def step(x, _):
        loss = x[0].item()
        text = f"{began} {began:%d.%m.} {took!r:>40} {F.relu} {loss:.3f} {Meter}"
        return text, format(began), x * 2

    return Program(step, arguments())


@differential(hits=5)
def test_objects_that_fields_of_a_format_show():
    meter = Meter()

    def step(x, _):
        meter.count += 1
        loss, made = x[0].item(), Counting()
        text = "{1:.2f} {0} {made}".format(meter, loss, made=made)
        meter.count += 1
        return text, "{} {!r} {{}}".format(meter, loss), made.count

    return Program(step, arguments(), watch=[meter])


def by_format(x, meter):
    text = "{0!r} {1}".format(meter, x[0].item())
    meter.count += 1
    return text


def twice(x, meter):
    text = "{0} {0} {1}".format(Counting(), x[0].item())
    meter.count += 1
    return text


def by_name(x, meter):
    text = "%(meter)s %(loss)s" % {"meter": meter, "loss": x[0].item()}
    meter.count += 1
    return text


def in_a_list(x, meter):
    text = "%s" % [meter, x[0].item()]  # noqa: UP031
    meter.count += 1
    return text


@pytest.mark.parametrize("step", [by_format, twice])
@differential(hits=3)
def test_objects_that_fields_show_otherwise(step):
    meter = Meter()
    return Program(step, [(torch.randn(3), meter) for _ in range(6)], watch=[meter])


@pytest.mark.parametrize("step", [by_name, in_a_list])
@differential(reasons=["expression"])
def test_an_object_among_what_is_formatted_later(step):
    meters = [Meter() for _ in range(6)]
    return Program(step, [(torch.randn(3), meter) for meter in meters], watch=meters)
