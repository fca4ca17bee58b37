# ruff: noqa
# fmt: off
"""Functions whose source is hard to find, for test_syntax.py. Not a test module: see
profile_programs."""

import functools

first, second = (lambda x: x + 1), (lambda x: x + 1)
same_line = [lambda: 1, lambda: 2, lambda: (lambda: 3)]
spread = lambda x: (  # noqa: E731
    x,
    lambda y: x + y,
)
with_default = lambda f=lambda: 1: f()  # noqa: E731


def plain(a, b=1):
    assert a, "asserts are not rewritten here"
    return a + b


def decorator(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorator
@decorator
def decorated(x):
    return x


@functools.cache
def cached(x):
    return x


def outer(n):
    total = n

    def inner(k):
        nonlocal total
        total += k
        return [total + i for i in range(k)]

    if n:

        def inner_too(k):
            return k + total

    else:

        def inner_too(k):
            return k - total

    return inner, inner_too, lambda: total


class Thing:
    __secret = 1

    def method(self):
        return self.__secret, super().__repr__(), Thing, __class__

    @staticmethod
    def static(x):
        return x

    @classmethod
    def of_class(cls):
        def nested():
            return cls.__secret

        return nested

    @property
    def prop(self):
        return [self.__secret for _ in range(2)]

    class Inner:
        def method(self):
            __x = 1
            return __x

    handler = lambda self: self.__secret  # noqa: E731


def local_class(base):
    class Local(base):
        def method(self):
            return super().method(), Local, base

    return Local


async def coroutine(x):
    return [i async for i in x]


def generator(n):
    yield from range(n)


def strings(x):
    return f"""{x:>{x}}
    {(lambda y: y)(x)!r} {functools.reduce(lambda a, b: a + b, [x])}"""


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


def umlaut(ä):
    return ä, "ß", lambda ö: ö
