"""Objects that existed before the call, of the program's own classes derived from list."""

import pytest
from differential import Program, differential

import torch


def batches(count=8):
    return [(torch.randn(3, 4),) for _ in range(count)]


class Chain(list):
    """As the lists of processors that transformers generates by."""

    def __call__(self, x, **options):
        for each in self:
            x = each(x, **options)
        return x

    def scaled(self, x):
        return x * len(self)


class OwnDict(dict):
    pass


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


class Shifted:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x + self.by


@differential(hits=5, graphs=1)
def test_called_for_each_element():
    chain = Chain([Scaled(2.0), Shifted(torch.randn(4)), Scaled(0.5)])
    chain.name = "chain"

    def step(x):
        return chain(x), chain.scaled(x), chain[1].by, chain[-1](x), chain.name, len(chain[1:])

    return Program(step, batches(), watch=[chain])


@differential(hits=12)
def test_elements_that_change():
    chain = Chain([Scaled(2.0), Shifted(1.0)])

    def step(x):
        return chain(x), Scaled in [type(each) for each in chain]

    def grow():
        chain.append(Scaled(3.0))

    def replace():
        chain[0] = Shifted(2.0)

    return Program(step, [*batches(), grow, *batches(), replace, *batches()], watch=[chain])


@differential(hits=5)
def test_an_iteration_of_the_class_itself():
    class Backwards(Chain):
        def __iter__(self):
            return reversed([*list.__iter__(self)])

        def __len__(self):
            return 7

    chain = Backwards([Scaled(2.0), Shifted(1.0)])

    def step(x):
        return chain(x) * len(chain)

    return Program(step, batches(), watch=[chain])


@differential(hits=5, graphs=1)
def test_appended_to():
    kept = Chain()

    def step(x):
        kept.append(x * 2)
        return x + 1

    return Program(step, batches(), watch=[kept])


@differential(hits=5, graphs=1)
def test_written():
    chain = Chain([Scaled(2.0), torch.randn(4), 3.0])
    alias = chain

    def step(x):
        chain[1] = x[0] * 2
        chain[2] += 1.0
        chain.insert(0, chain.pop(1))
        alias.reverse()
        chain.reverse()
        chain.extend([x, *chain])
        chain[3:] = []
        chain.insert(1, chain.pop(0))
        return chain[1] + len(alias), chain[0](x)

    return Program(step, batches(), watch=[chain])


@differential(hits=4)
def test_written_by_its_own_methods():
    class Counting(Chain):
        def append(self, element):
            super().append(element)
            self.appended = getattr(self, "appended", 0) + 1
            del self[:-1]

        def __len__(self):
            return 100 + super().__len__()

    chain = Counting([0.0])

    def step(x):
        chain.append(x.sum())
        return chain[0] * len(chain)

    return Program(step, batches(10), watch=[chain])


@differential(hits=4)
def test_written_between_readings():
    chain = Chain([Scaled(2.0), Scaled(3.0)])

    def step(x):
        before = chain(x)
        chain.append(Scaled(4.0))
        among = chain(x)
        chain.pop()
        return before, among, chain(x), len(chain)

    return Program(step, batches(), watch=[chain])


@differential(hits=0, reasons=["expression"])
def test_its_text_after_a_change():
    chain = Chain([1, 2])

    def step(x):
        chain[0] = 3
        return x * 2, str(chain)

    return Program(step, batches(), watch=[chain])


class Cautious(Chain):
    """Has fewer elements than it holds, and goes through them in its own way."""

    def __iter__(self):
        return iter([Scaled(5.0)])

    def __len__(self):
        return 1


@differential(reasons=["expression"])
def test_a_pattern_asks_for_its_own_length():
    chain = Cautious([Scaled(2.0), Shifted(1.0)])

    def step(x):
        match chain:
            case [first, second]:
                return second(first(x))
            case [first]:
                return first(x) + 1
        return x

    return Program(step, batches(), watch=[chain])


@differential(hits=5)
def test_reversed_does_not_ask_for_its_own_iteration():
    chain = Cautious([Scaled(2.0), Shifted(1.0)])

    def step(x):
        for each in reversed(chain):
            x = each(x)
        return x

    return Program(step, batches(), watch=[chain])


def changed_between(make, text_of):
    words = make({"a": 1, "b": 2})

    def step(x):
        return x * 2, text_of(words)

    def change():
        words.pop(0 if make is Chain else "a")

    return Program(step, [*batches(), change, *batches()], watch=[words])


@pytest.mark.parametrize("make", [Chain, OwnDict])
@differential(hits=0, reasons=["expression"])
def test_a_text_of_what_it_holds(make):
    return changed_between(make, lambda words: "{}".format(words))  # noqa: UP032


@pytest.mark.parametrize("make", [Chain, OwnDict])
@differential(hits=0, reasons=["dynamic_value"])
def test_the_joined_texts_that_it_holds(make):
    return changed_between(make, ",".join)
