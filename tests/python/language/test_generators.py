"""Generators of the program whose elements are used where they are yielded."""

import pytest
from differential import Program, differential

import torch


def rows(count=30):
    return [(torch.randn(2 + (i * 7 + i * i) % 9, 4),) for i in range(count)]


def chunks(x, size):
    for i in range(0, x.shape[0], size):
        yield x[i] * 2


def positive(x):
    for row in x:
        if row.sum() > 0:
            yield row * 2


def numbered(x):
    index = 0
    for row in positive(x):
        yield index, row
        index += 1


def both(x):
    yield x.sum()
    yield from positive(x)
    yield -x.sum()


def summed(x):
    total = torch.zeros(())
    for part in chunks(x, 2):
        total = total + part.sum()
    return x * total


def listed(x):
    return x * sum([row.sum().item() for row in positive(x)])


def interleaved(x):
    seen = []

    def reading():
        for row in x:
            yield row.sum().item() + len(seen)

    for value in reading():
        if value < 0:
            continue
        seen.append(value)
    return x * len(seen), seen


def of_generators(x):
    total = torch.zeros(())
    for i, row in numbered(x):
        total = total + i * row.sum()
    for part in both(x):
        total = total + part.sum()
    return total


def printed(x):
    for row in positive(x):
        print(row[0].item())
    return x * 2


@pytest.mark.parametrize("step", [summed, listed, interleaved, of_generators, printed])
@differential(hits=20, graphs=2)
def test_consumed_at_once(step):
    return Program(step, rows())


@differential(reasons=["generator"])
def test_left_early():
    def step(x):
        for row in positive(x):
            if row[0] > 1:
                break
        else:
            return x
        return x + row

    return Program(step, [(torch.randn(3, 4),) for _ in range(40)])


@differential(aborts=1, hits=30)
def test_a_generator_that_fails():
    def inverse(x):
        for row in x:
            yield 1 / row[0].item()

    def step(x):
        total = 0.0
        for value in inverse(x):
            total += value
        return x * total

    calls = rows(40)
    for (x,) in calls[8::5]:
        x[-1, 0] = 0
    return Program(step, calls)


# --- what a generator returns ---------------------------------------------------------------------


def returning():
    yield 1.0
    return "plain"


def returning_within():
    try:
        yield 1.0
        return "within"
    finally:
        pass


def returning_in_a_loop():
    while True:
        yield 2.0
        return "in a loop"


def returning_nothing():
    yield 3.0


class Counted:
    """An iterator of the program whose end has a value."""

    def __init__(self, end):
        self.left, self.end = 2, end

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration(*self.end)
        self.left -= 1
        return float(self.left)


def delegating(make):
    value = yield from make()
    yield value


RETURNING = [
    returning,
    returning_within,
    returning_in_a_loop,
    returning_nothing,
    lambda: Counted(("the end",)),
    lambda: Counted(()),
    lambda: [1.0, 2.0],
]


@pytest.mark.parametrize("make", RETURNING)
@pytest.mark.parametrize("use", [list, lambda values: [*values, 0], lambda values: tuple(values)])
@differential()
def test_yield_from_gives_what_a_generator_returns(make, use):
    return Program(lambda x: (x * 2, use(delegating(make))), rows(6))


@differential()
def test_yield_from_gives_what_a_generator_of_tensors_returns():
    def rows_and_sum(x):
        total = torch.zeros(())
        for row in x:
            yield row * 2
            total = total + row.sum()
        return total

    def outer(x):
        total = yield from rows_and_sum(x)
        yield total * 3

    def step(x):
        parts = torch.zeros(())
        for part in outer(x):
            parts = parts + part.sum()
        return parts

    return Program(step, [(torch.randn(3, 4),) for _ in range(8)])


@differential(reasons=["generator"])
def test_value_of_a_generator_that_next_meets():
    class Passing:
        def __init__(self):
            self.values = returning()

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.values)

    return Program(lambda x: (x * 2, list(delegating(Passing))), rows(6))


# --- elements that are taken step by step ---------------------------------------------------------


class Counter:
    def __init__(self):
        self.number, self.log = 0, []


def counting(counter):
    for _ in range(3):
        yield counter.number


def lengths(values):
    for _ in range(3):
        yield len(values)


def growing(values):
    for value in values:
        yield value


def logging(log):
    for number in range(4):
        log.append(number)
        yield number
    log.append("end")


def guarded(log):
    try:
        yield 1
        yield 2
    finally:
        log.append("finally")


def handling(log):
    try:
        yield 1
        yield 2
    except GeneratorExit:
        log.append("left")
        raise


def accumulating():
    seen = []
    for number in range(3):
        seen.append(number)
        yield seen


def attribute_between(x, counter):
    seen = []
    for _, value in enumerate(counting(counter)):
        seen.append(value)
        counter.number += 1
    return x * 2, seen


def length_between(x, counter):
    values, seen = [5], []
    for value, _ in zip(lengths(values), range(9)):
        seen.append(value)
        values.append(1)
    return x * 2, seen


def kept_between(x, counter):
    counter.log.clear()
    seen = []
    for _, value in enumerate(lengths(counter.log)):
        seen.append(value)
        counter.log.append(value)
    return x * 2, seen


def grown_between(x, counter):
    values, seen = [1], []
    for _, value in enumerate(growing(values)):
        seen.append(value)
        if len(values) < 5:
            values.append(value + 1)
    return x * 2, seen


def variable_between(x, counter):
    number, seen = 0, []

    def reading():
        for _ in range(3):
            yield number

    for _, value in enumerate(reading()):
        seen.append(value)
        number += 1
    return x * 2, seen


def left_behind_an_effect(x, counter):
    for value in logging(counter.log):
        if value == 1:
            break
        x = x + value
    return x, list(counter.log)


def left_within_try(x, counter):
    for value in guarded(counter.log):
        if value == 1:
            break
    return x * value


def left_within_a_handler(x, counter):
    for value in handling(counter.log):
        if value == 1:
            break
    return x * value


def taken_one_by_one(x, counter):
    values = logging(counter.log)
    first = next(values)
    counter.log.append("between")
    return x * (first + next(values))


def yields_one_list(x, counter):
    return x * 2, [len(each) for _, each in enumerate(accumulating())]


def changed_by_the_consumer(x, counter):
    def one_list():
        held = [0]
        for _ in range(3):
            yield held
            held.append(len(held))

    total = 0
    for number, each in enumerate(one_list()):
        total += len(each) * number
        each.append(7)
    return x * total


def modes_around(x, counter):
    def without_gradients():
        with torch.no_grad():
            for number in range(3):
                yield number

    total = x.sum()
    for number, _ in zip(without_gradients(), x):
        total = total + x.sum() * number
    return total


def puts_back(x, counter):
    def at_work():
        for number in range(2):
            counter.number += 1
            yield number
            counter.number -= 1

    return x * 2, [counter.number for number, _ in zip(at_work(), range(5))]


def asks_tensors(x, counter):
    leaves = [torch.ones(2, requires_grad=True) for _ in range(3)]

    def trainable():
        for leaf in leaves:
            if leaf.requires_grad:
                yield leaf

    count = 0
    for leaf, _ in zip(trainable(), range(9)):
        count += 1
        leaves[-1].requires_grad_(False)
    return x * count


def stored_before(x, counter):
    counter.log = [5]
    seen = []
    for value, _ in zip(lengths(counter.log), range(3)):
        seen.append(value)
        counter.log.append(value)
    return x * sum(seen)


@pytest.mark.parametrize(
    "step",
    [
        attribute_between,
        kept_between,
        grown_between,
        variable_between,
        yields_one_list,
        changed_by_the_consumer,
    ],
)
@differential()
def test_generators_whose_steps_show_within_enumerate(step):
    counter = Counter()
    return Program(
        lambda x: step(x, counter), [(torch.ones(2) * i,) for i in range(8)], watch=[counter]
    )


def attribute_between_taken(x, counter):
    seen = []
    for value, _ in zip(counting(counter), range(3)):
        seen.append(value)
        counter.number += 1
    return x * 2, seen


def variable_between_taken(x, counter):
    number, seen = 0, []

    def reading():
        for _ in range(3):
            yield number

    for value, _ in zip(reading(), range(3)):
        seen.append(value)
        number += 1
    return x * 2, seen


def one_list_taken(x, counter):
    return x * 2, [len(each) for each, _ in zip(accumulating(), range(3))]


@pytest.mark.parametrize(
    "step",
    [
        length_between,
        attribute_between_taken,
        variable_between_taken,
        one_list_taken,
        left_behind_an_effect,
        left_within_try,
        left_within_a_handler,
        taken_one_by_one,
        stored_before,
        modes_around,
        puts_back,
        asks_tensors,
    ],
)
@differential(reasons=["generator"])
def test_generators_whose_steps_show(step):
    counter = Counter()
    return Program(
        lambda x: step(x, counter), [(torch.ones(2) * i,) for i in range(8)], watch=[counter]
    )


class Batches:
    def __init__(self, rows):
        self.rows, self.steps = rows, 0

    def __iter__(self):
        for row in self.rows:
            yield row

    def of(self, count):
        for number in range(count):
            yield number


def counted_steps(x, batches):
    total = x.sum()
    for row in batches:
        total = total + row.sum()
        batches.steps += 1
    for number, value in enumerate(batches.of(3)):
        total = total + number * value
        batches.steps += 1
    return total


def zipped_while_counting(x, batches):
    total = x.sum()
    for value, row in zip(batches.of(3), x):
        total = total + row.sum() * value
        batches.steps += 1
    return total


def averaged(x, batches):
    with torch.no_grad():
        for one, other in zip(batches.model.parameters(), batches.average.parameters()):
            other.mul_(0.5).add_(one, alpha=0.5)
            batches.steps += 1
    return x * batches.steps


def given_back(x, batches):
    def delegating():
        values = batches.of(2)
        first = yield from values
        second = yield from values
        yield (first, second)

    return x * 2, list(delegating())


@pytest.mark.parametrize("step", [counted_steps, zipped_while_counting, averaged, given_back])
@differential()
def test_steps_that_count_in_the_loops_body(step):
    batches = Batches([torch.randn(3) for _ in range(3)])
    batches.model, batches.average = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    calls = [(torch.randn(3, 4),) for _ in range(8)]
    return Program(lambda x: step(x, batches), calls, watch=[batches])


def numbered_steps(x):
    total = torch.zeros(())
    for number, value in enumerate(counting(Counter())):
        total = total + x.sum() * (number + value)
    return total


def zipped_steps(x):
    seen = []
    for value, row in zip(growing([1.0, 2.0, 3.0]), x):
        seen.append(value * row)
    return torch.stack(seen)


def left_early(x):
    for value in growing((1.0, 2.0, 3.0)):
        if value == 2.0:
            break
        x = x * (value + 1)
    return x


@pytest.mark.parametrize("step", [numbered_steps, zipped_steps, left_early])
@differential()
def test_generators_whose_steps_do_not_show(step):
    return Program(step, [(torch.randn(3, 4),) for _ in range(8)])
