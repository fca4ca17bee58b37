# ruff: noqa
# fmt: off
"""Small programs for test_profile.py: each is called plainly and profiled and must do the same.

Not a test module: pytest would rewrite its asserts. `PROGRAMS` lists functions that make a fresh
(function, arguments, keyword arguments) each time, so that state does not leak from one run to the
next. What a program writes into `log` is compared as well.
"""

import contextlib
import functools
import math
import os.path
import re

log = []
PROGRAMS = []


def name_of(function, arguments):
    """The same in every process: objects are named without where they are in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", f"{function.__name__}{arguments}")


def program(*arguments, **keywords):
    def register(function):
        PROGRAMS.append(
            (name_of(function, arguments), lambda: (function, arguments, keywords))
        )
        return function

    return register


def made(*arguments, **keywords):
    """For functions that make the program to be called."""

    def register(maker):
        PROGRAMS.append((name_of(maker, arguments), lambda: (maker(), arguments, keywords)))
        return maker

    return register


class Noisy:
    """Notes what is done to it."""

    def __init__(self, name, truth=True):
        self.name, self.truth = name, truth

    def __bool__(self):
        log.append(f"bool {self.name}")
        if self.truth is None:
            raise ValueError(f"no truth in {self.name}")
        return self.truth

    def __lt__(self, other):
        log.append(f"{self.name} < {other.name}")
        return Noisy(f"({self.name}<{other.name})", self.truth)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        log.append(f"get {self.name}.{name}")
        return f"{self.name}.{name}"

    def __getitem__(self, key):
        log.append(f"get {self.name}[{key!r}]")
        return key

    def __setitem__(self, key, value):
        log.append(f"set {self.name}[{key!r}]={value!r}")

    def __delitem__(self, key):
        log.append(f"del {self.name}[{key!r}]")

    def __repr__(self):
        return f"Noisy({self.name!r})"

    def __call__(self, *args, **kwargs):
        log.append(f"call {self.name}")
        return args, kwargs


def note(value):
    log.append(value)
    return value


def noisy(truth, name="n"):
    log.append(f"make {name}")
    return Noisy(name, truth)


# --- tests ----------------------------------------------------------------------------------------
@program(True, True)
@program(True, False)
@program(False, True)
@program(False, False)
@program(None, True)
@program(True, None)
def truths(a, b):
    x, y = Noisy("x", a), Noisy("y", b)
    if x and y:
        log.append("both")
    elif x or y:
        log.append("one")
    else:
        log.append("none")
    if not x:
        log.append("not x")
    result = [x and y, x or y, not x, (x and y) or noisy(True), (x or y) and noisy(False, "m")]
    if not (x and not y) or noisy(True):
        log.append("complicated")
    return result, (1 if x else 2), (1 if x and y else 2 if not x else 3), "a" if x or y else "b"


@program(True)
@program(False)
@program(None)
def chains(truth):
    a, b, c = Noisy("a", truth), Noisy("b", truth), Noisy("c", truth)
    if a < b < c:
        log.append("in order")
    value = a < b < c
    while a < b < note(c):
        log.append("loop")
        break
    again = [i for i in range(3) if a < b < c]
    return value, again, (1 if a < b < c and a else 2), not (a < b < c), 1 < 2 < 3


@program(0)
@program(5)
def assertions(n):
    assert n >= 0
    assert note(n) < 3 and n != 2, f"too large: {note('message')}"
    return n


@program()
def assertion_over_lines():
    x = Noisy("x", None)
    assert (
        x
    ), "message"


@program(0)
@program(1)
@program(4)
def loops(n):
    total = 0
    for i in range(n):
        for j in (1, 2, 3):
            if j == 2:
                continue
            if i == 3:
                break
            total += i * j
        else:
            log.append(f"else {i}")
    while n > 0:
        n -= 1
        if n == 2:
            continue
        k = n
        while True:
            k += 1
            if k > 3:
                break
    else:
        log.append("while else")
    return total, n


@program(6)
def recursion_and_while(n):
    count = 0
    while count < n:
        count += 1
        if count == 3:
            try:
                recursion_and_while(n - 2 if n > 2 else None)
            except TypeError as error:
                log.append(str(error))
    return count


def inner_loop(n):
    while n > 0:
        n -= 1
        if n == 1:
            raise KeyError(n)
    return n


@program(5)
def exceptions(n):
    try:
        inner_loop(n)
    except (KeyError, ValueError) as error:
        log.append(repr(error))
    else:
        log.append("else")
    finally:
        log.append("finally")
    try:
        raise ValueError("a") from KeyError("b")
    except Exception as error:
        return repr(error), repr(error.__cause__)


@program(5)
def raises(n):
    def helper(x):
        return inner_loop(
            x,
        )

    return [helper(i) for i in range(n)]


@program([1, 2])
def multiline_chain(value):
    class Chain:
        def then(self, *args):
            return self

        def fail(self, *args, **kwargs):
            raise RuntimeError("chain")

    return (
        Chain()
        .then(1)
        .then(
            2,
        )
        .fail(
            3,
            x=4,
        )
        .then(5)
    )


@program()
def multiline_module_call():
    return (
        math
        .sqrt(
            -1
        )
    )


@program()
def multiline_attribute():
    return (
        log
        .append
        .nothing
    )


@program()
def multiline_subscript():
    table = {"a": 1}
    return table[
        "b"
    ]


@program()
def multiline_test():
    x = Noisy("x", None)
    if (
        log is not None
        and
        x
    ):
        return 1


@program()
def multiline_boolean_value():
    x = Noisy("x", None)
    return (
        (1
        and
        x)
        or
        2
    )


@program()
def not_over_lines():
    return not (
        Noisy("x", None)
    )


@program()
def conditional_over_lines():
    return (
        1
        if
        Noisy("x", None)
        else 2
    )


@program()
def loop_over_a_number():
    for _ in (
        7
    ):
        pass


@program()
def comprehension_over_a_number():
    return [
        x
        for x in
        7
    ]


@program()
def comprehension_test():
    return [
        x
        for x in [Noisy("x", None)]
        if
        x
    ]


@program()
def while_test():
    x = Noisy("x", None)
    while (
        x
    ):
        pass


# --- calls ----------------------------------------------------------------------------------------
def signature(a, b=2, /, c=3, *args, d, e=5, **kwargs):
    return a, b, c, args, d, e, kwargs


@program()
def calls():
    result = [
        signature(1, d=2),
        signature(*note([1, 2]), *note((3, 4)), **note({"d": 5}), **note({"f": 6})),
        signature(note(1), d=note(2), c=note(3)),
        (lambda x, y=note(1): x + y)(2),
        max([3, 1], key=lambda x: -x),
        sorted({"b": 1, "a": 2}.items()),
        print("printed", end=""),
        f"{1} {2}",
        functools.partial(signature, 1, d=4)(2, c=3),
        functools.reduce(lambda a, b: a * b, [1, 2, 3]),
        os.path.join("a", "b"),
        Noisy("callable")(1, x=2),
    ]
    return result


@program(0)
@program(1)
@program(2)
@program(3)
@program(4)
@program(5)
@program(6)
@program(7)
def wrong_calls(which):
    if which == 0:
        return signature()
    if which == 1:
        return signature(1, d=2, **{"d": 3})
    if which == 2:
        return signature(*5)
    if which == 3:
        return signature(**5)
    if which == 4:
        return [5][0](1)
    if which == 5:
        return signature(1, *7, d=1)
    if which == 6:
        return Noisy("x")(1, **{"a": 1}, a=2)
    return len(1, 2)


@program(3)
def undefined(n):
    if n == 3:
        return missing_name  # noqa: F821
    return unbound  # noqa: F821


@program()
def unbound_local():
    if log is None:
        x = 1
    return x


class Base:
    kind = "base"

    def __init__(self, value):
        self.__value = value
        self.value = value

    def hidden(self):
        self.__value += 1
        return self.__value

    def describe(self, suffix=""):
        return f"{self.kind}:{self.value}{suffix}"

    @classmethod
    def make(cls, value):
        return cls(value)

    @staticmethod
    def static(x):
        return x * 2

    @property
    def double(self):
        return self.value * 2

    def __call__(self, x):
        return self.value + x

    def __enter__(self):
        log.append("enter")
        return self

    def __exit__(self, kind, *rest):
        log.append(f"exit {kind}")
        return kind is KeyError


class Derived(Base):
    kind = "derived"

    def describe(self, suffix="!"):
        return super().describe(suffix) + super().describe()

    def nested(self):
        def inner():
            return super(__class__, self).describe(), self.__class__.__name__

        return inner(), (lambda: super(Derived, self).describe())()

    @classmethod
    def make(cls, value):
        return super().make(value + 1)


@program()
def classes():
    x = Derived.make(3)
    return (
        x.hidden(),
        x.hidden(),
        x.describe(),
        x.nested(),
        x.static(4),
        x.double,
        x(5),
        Base.describe(x),
        Derived.describe(self=x, suffix="?"),
        [x.describe(s) for s in "ab"],
    )


@program()
def managers():
    with Base(1) as a, Base(2):
        log.append(a.value)
        raise KeyError("swallowed")
    return a.value


@contextlib.contextmanager
def managed(x):
    log.append("before")
    try:
        yield x + 1
    finally:
        log.append("after")


@program()
def generator_manager():
    with managed(1) as x:
        return sum(i for i in range(x))


# --- scopes ---------------------------------------------------------------------------------------
@made(3)
def closures():
    count = 10
    unset = 1
    del unset

    def outer(n):
        nonlocal count

        def bump(by=note(1)):
            nonlocal count
            count += by
            return count

        for _ in range(n):
            bump()
        try:
            return unset
        except NameError as error:
            log.append(str(error))
        return count, bump, [bump(k) for k in range(2)]

    return lambda n: outer(n)[::2]


@made(2)
def shared_cells():
    state = []

    def push(x):
        state.append(x)
        if x:
            push(x - 1)
        return list(state), len(state)

    return push


@made(1, 2, k=3)
def a_lambda():
    base = 100
    return lambda *args, **kwargs: (base + sum(args), kwargs, [base for _ in args])


@made()
def two_lambdas():
    first, second = (lambda: note(1) or 2), (lambda: note(1) and 2)
    return lambda: (first(), second())


def decorate(tag):
    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            log.append(tag)
            return function(*args, **kwargs)

        return wrapper

    return decorator


@program(4)
@decorate("outer")
@decorate(
    "inner",
)
def decorated(x):
    @decorate("local")
    def local(y: note("annotation") = note("default")) -> note("returns"):
        z: int = 3
        self = Noisy("self")
        self[note("key")]: int = z
        return y, z

    return local(), local(x)


@program(1)
def names(x, *rest, **more):
    y = [i for i in range(3)]
    (z := x + 1)
    collected = [w := i for i in y]
    before = sorted(locals())
    exec("hidden = 1")
    return before, w, z, collected, eval("x + y[1]"), "math" in globals(), sorted(vars()), dir()


@program()
def inner_locals():
    def inner(a):
        b = log is not None and a
        return locals()

    return inner(1), [sorted(locals()) for _ in range(1)]


@program()
def class_inside():
    base = 5

    class Local(Base):
        extra = base + 1 if log is not None else 0

        def get(self):
            return super().describe(), self.extra, base, __class__.__name__

        items = [base for _ in range(2)]

    return Local(1).get(), Local.items, Local.__qualname__


# --- the other constructs -------------------------------------------------------------------------
@program()
def assignments():
    n = Noisy("n")
    data = [1, [2, 3], {"k": 4}]
    data[note(0)] += note(5)
    data[1][note(-1)] *= 2
    n[note("a")] = n[note("b")] = note(1)
    del n[note("c")], data[0]
    a, (b, *c), d = note(1), (2, 3, 4), note({})
    d["x"], d["y"] = a, b
    [e, f] = map(note, (5, 6))
    data.append(n.attr)
    x = y = note([])
    x += [1]
    return data, a, b, c, d, e, f, x is y, data[0:2], data[::-1][note(0)]


@program("word", 3.14159)
def strings(word, number):
    return (
        f"{word!r:>{note(10)}} {number:.2f} {word and number} {note({'a': 1}['a'])}",
        f"{word=} {math.pi:.3}",
        "%s %d" % (word, number),
        word.upper().lower(),
    )


@program({"kind": "point", "x": 1, "extra": 2})
@program([1, 2, 3])
@program((1, "two"))
@program("text")
@program(7)
@program(Base(3))
@program(None)
def matching(value):
    match value:
        case {"kind": "point", "x": x, **rest} if note(x) and x > 0:
            return x, rest
        case [first, *others] if len(others) > 1:
            return first, others
        case (int() as n, str()):
            return n
        case "text" | "more":
            return "str"
        case Base(value=v):
            return v
        case math.pi:
            return "pi"
        case None:
            return "none"
        case _:
            return "other"


@program()
def comprehensions():
    rows = [[1, 2], [3, 4, 5], []]
    return (
        [x * 2 for row in rows for x in row if x % 2 if x > 1],
        {x: note(len(row)) for row in rows for x in row},
        {x and y for x in (0, 1) for y in (2, 3)},
        sum(x for x in rows[0]),
        list(x or "empty" for x in rows),
        [[y for y in row if y] for row in rows],
        any(x > 3 for row in rows for x in row),
    )


@program()
def lazy_generator():
    values = (note(x) for x in range(3) if x != 1)
    log.append("made")
    return next(values), list(values)


@program()
def local_generator():
    def generate(n):
        for i in range(n):
            received = yield i
            if received:
                log.append(received)

    g = generate(3)
    return next(g), g.send("hello"), list(g)


@program(30)
def deep_recursion(n):
    return 1 if n == 0 else n + deep_recursion(n - 1)


@program()
def recursion_error():
    def endless(n):
        return endless(n + 1)

    try:
        endless(0)
    except RecursionError as error:
        return str(error)


@program()
def iterators():
    it = iter([1, 2, 3])
    for x in it:
        log.append(x)
        if x == 2:
            break
    rest = list(it)
    pairs = [(a, b) for a, b in zip(range(3), "abc", strict=True)]
    for i, (a, b) in enumerate(pairs):
        log.append((i, a, b))
    else:
        log.append("done")
    shrinking = [1, 2, 3, 4]
    for x in shrinking:
        if x == 2:
            shrinking.remove(3)
        log.append(x)
    return rest, pairs


@program()
def changed_while_iterated():
    table = {1: 2}
    for key in table:
        table[key + 1] = 3


@program()
def imports():
    import json as j
    from os.path import join, split

    return j.dumps({"a": [1]}), join("a", "b"), split("a/b")


@program()
def exception_group():
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        log.append(repr(group.exceptions))
    except* KeyError:
        log.append("key")
    return "after"


@program(2)
def global_names(n):
    global written
    written = n
    written += 1
    return written, __name__, __debug__
