"""str.format: its fields look into objects as they are at that moment."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch


class Meter:
    def __init__(self, name="Loss", form=":.3f"):
        self.name, self.form = name, form
        self.val = self.sum = self.count = self.avg = 0

    def update(self, value):
        self.val = value
        self.sum += value
        self.count += 1
        self.avg = self.sum / self.count


class NamedMeter(Meter):
    def __str__(self):
        return ("{name} {val" + self.form + "} ({avg" + self.form + "})").format(**self.__dict__)


class Schedule:
    rate = 0


def batches():
    return [(torch.randn(3), i) for i in range(8)]


@differential(hits=5)
def test_attributes_that_the_run_writes():
    meter = Meter()

    def step(x, i):
        meter.update(x.sum().item())
        return "Loss {loss.val:.4f} ({loss.avg:.4f})".format(loss=meter), x * 2

    return Program(step, batches(), watch=[meter])


@differential(hits=4)
def test_attributes_in_the_text_of_an_object():
    meter = NamedMeter()

    def step(x, i):
        meter.update(float(i))
        return str(meter), f"{meter} of {i}", x * 2

    return Program(step, batches(), watch=[meter])


@differential(hits=4)
def test_attributes_that_others_write():
    class Box:
        val = None

    box = Box()
    box.val = 0

    def step(x, i):
        return "{0.val} {box.val:>4}".format(box, box=box), x * 2

    def count():
        box.val += 1

    return Program(step, [each for batch in batches() for each in (count, batch)])


@differential(hits=5)
def test_attributes_of_a_class():
    def step(x, i):
        Schedule.rate = i
        return "{c.rate} {}".format(x.shape, c=Schedule), x * 2

    return Program(step, batches())


@differential(hits=5)
def test_keys_and_widths():
    seen = {"loss": {"last": 0.0}, 3: 0}

    def step(x, i):
        seen["loss"]["last"] = x.sum().item()
        seen[3] += 1
        texts = (
            "{0[loss][last]:>{w}.2f} {0[3]} {{}} {1}".format(seen, i, w=10),
            "{:{}}".format(i, 5),
        )
        return texts, "{!r:>20} {!s} {!a}".format(i / 2, i, "ü"), x * 2

    return Program(step, batches(), watch=[seen])


@differential(hits=5)
def test_tensors_functions_and_modules():
    def step(x, i):
        y = x * 2
        return "{:.3f} {t.shape} {t.dtype} {} {f.__name__}".format(y.sum(), torch, t=y, f=F.relu), y

    return Program(step, batches())


WRONG = {
    "both ways of counting": "{} {0}",
    "too few": "{} {} {} {}",
    "no such name": "{loss}",
    "no such conversion": "{!z}",
    "an open brace": "{",
    "three formats": "{:{:{}}}",
}


@pytest.mark.parametrize("name", WRONG)
@differential(reasons=["would_raise"])
def test_wrong_formats(name):
    form = WRONG[name]

    def step(x, i):
        try:
            return form.format(x.sum().item(), 5, 5), x * 2
        except Exception as error:
            return type(error), str(error), x * 2

    return Program(step, batches())


@differential(reasons=["expression"])
def test_a_format_that_only_the_run_knows_and_an_object():
    meter = Meter()

    def step(x, i):
        meter.count += 1
        return f"{x.sum().item():.0f} {{0.count}}".format(meter), x * 2

    return Program(step, batches(), watch=[meter])
