"""Profiled runs do what plain runs do, and leave the facts that they should."""

import ast
import contextlib
import gc
import io
import linecache
import pathlib
import re
import signal
import textwrap
import threading
import time
import traceback
import types
import unittest
import weakref

import build_module
import profile_programs as programs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

support = build_module.load("_profile_support")


def frames_of(error):
    """Where a traceback goes through, without the frames of this module."""
    frames, step = [], error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename != __file__:
            place = list(code.co_positions())[step.tb_lasti // 2]
            frames.append((code.co_filename, code.co_qualname, step.tb_lineno, place))
        step = step.tb_next
    return frames


def plain_call(function, *arguments, **keywords):
    return function(*arguments, **keywords)


def outcome(call, function, arguments, keywords, log=()):
    """Everything that can be observed of a call, with addresses taken out."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = ("returned", repr(call(function, *arguments, **keywords)))
        except Exception as error:
            shown = traceback.format_exception(error, limit=-20)[-1]
            result = ("raised", type(error), str(error), shown, frames_of(error))
    observed = (result, [str(entry) for entry in log], printed.getvalue())
    return re.sub(r"0x[0-9a-f]+", "0x", repr(observed))


def both(make, log=()):
    outcomes = []
    for call in (plain_call, support.profiled_call, support.profiled_call, plain_call):
        if log != ():
            log.clear()
        outcomes.append(outcome(call, *make(), log))
    return outcomes


@pytest.mark.parametrize("make", [m for _, m in programs.PROGRAMS],
                         ids=[n for n, _ in programs.PROGRAMS])  # fmt: skip
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_profiled_run_is_the_plain_run(make):
    assert support.instrumented(make()[0]) is not None
    first, *others = both(make, programs.log)
    assert all(other == first for other in others)


# --- copies ---------------------------------------------------------------------------------------
def counter():
    count = 0

    def bump(by: int = 1, *, twice: bool = False) -> int:
        """Adds."""
        nonlocal count
        count += by * (2 if twice else 1)
        return count

    return bump


def test_copy_shares_everything_but_the_code():
    bump = counter()
    copy = support.instrumented(bump)
    for name in ("__globals__", "__defaults__", "__kwdefaults__", "__closure__", "__name__",
                 "__qualname__", "__module__", "__doc__", "__annotations__"):  # fmt: skip
        assert getattr(copy, name) == getattr(bump, name)
    assert copy.__closure__[0] is bump.__closure__[0]
    code, original = copy.__code__, bump.__code__
    for name in ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_varnames",
                 "co_freevars", "co_cellvars", "co_flags", "co_argcount"):  # fmt: skip
        assert getattr(code, name) == getattr(original, name)
    assert code != original
    assert support.profiled_call(bump) == 1
    assert bump(2, twice=True) == 5
    assert support.profiled_call(bump, 1) == 6
    assert support.instrumented(copy) is copy


def generator():
    yield 1


async def coroutine():
    return 1


def test_what_is_not_instrumented():
    assert support.instrumented(generator) is None
    assert support.instrumented(coroutine) is None
    assert support.instrumented(eval("lambda: 1")) is None
    assert list(support.profiled_call(generator)) == [1]
    assert support.profiled_call(len, [1, 2]) == 2
    with pytest.raises(TypeError, match="not callable"):
        support.profiled_call(3)


def makes_closures(n):
    def later(x):
        return [i for i in range(x) if i and n]

    return later


def test_closures_outlive_their_run():
    later = support.profiled_call(makes_closures, 2)
    _, before = support.facts(makes_closures)
    assert later(3) == [1, 2]
    assert support.profiled_call(later, 3) == [1, 2]
    after = support.facts(makes_closures)[1]
    assert before != after, "a profiled call of the closure counts"
    assert later(4) == [1, 2, 3]
    assert support.facts(makes_closures)[1] == after, "a plain one does not"


# --- facts ----------------------------------------------------------------------------------------
def facts_by_place(function):
    """{(kind, source text): facts}; the text of the node's first line from its column on."""
    lines = pathlib.Path(function.__code__.co_filename).read_text().splitlines()
    return {(kind, lines[line - 1][column:].strip()): facts
            for kind, line, column, facts in support.facts(function)[1]}  # fmt: skip


def square(x):
    return x * x


class Holder:
    factor = 2

    def times(self, x):
        return self.factor * x

    def __call__(self, x):
        return self.times(x) if x else None


HOLDER = Holder()
LIMIT = 3


def observed(n, data):
    total = 0
    for i in range(n):
        if i < LIMIT and data[0]:
            total += square(i)
        while total > 10:
            total -= 10
    HOLDER.times(total)
    HOLDER(n)
    sizes = [len(d) for d in data[1] if d]
    return total, sizes, not n


def test_facts_of_a_function():
    for n in (4, 6):
        support.profiled_call(observed, n, (1.5, ["ab", "", "c"]))
    facts = facts_by_place(observed)
    assert support.facts(observed)[0] == 2
    assert facts["For", "for i in range(n):"] == {"trips": (4, 6)}
    test = facts["If", "if i < LIMIT and data[0]:"]
    assert test == {"tests": (6, 4)}
    assert facts["Compare", "i < LIMIT and data[0]:"] == {"tests": (6, 4)}
    assert facts["Subscript", "data[0]:"] == {"tests": (6, 0), "value": "1.5"}
    assert facts["Name", "LIMIT and data[0]:"] == {"value": "3"}
    assert facts["While", "while total > 10:"]["trips"] == (0, 0)
    call = facts["Call", "square(i)"]
    assert call["value"] == "int" and "function square" in call["callee"]
    assert "function Holder.times" in facts["Call", "HOLDER.times(total)"]["callee"]
    assert facts["Name", "HOLDER(n)"]["value"].startswith(f"<{__name__}.Holder object")
    assert facts["Subscript", "data[1] if d]"] == {"trips": (3, 3), "value": "list"}
    assert facts["Name", "d]"] == {"tests": (4, 2)}
    assert facts["Call", "len(d) for d in data[1] if d]"]["callee"] == "<built-in function len>"
    assert facts["Name", "n"]["tests"] == (2, 0)
    # Callees are profiled as well: functions, methods and objects that are called.
    assert support.facts(square)[0] == 6
    assert facts_by_place(Holder.times)["Attribute", "self.factor * x"] == {"value": "2"}
    assert facts_by_place(Holder.__call__)["IfExp", "self.times(x) if x else None"] == {
        "tests": (2, 0)
    }


def loops(n):
    for i in range(n):
        if i == 2:
            break
    while n > 0:
        n -= 1
        if n == 1:
            try:
                loops(-1)
                loops(1 // 0)
            except ZeroDivisionError:
                continue
    while True:
        n += 1
        if n > 2:
            break
    return [k for k in range(3)]


def test_trip_counts():
    support.profiled_call(loops, 4)
    facts = facts_by_place(loops)
    assert facts["For", "for i in range(n):"]["trips"] == (0, 3)
    assert facts["While", "while n > 0:"]["trips"] == (0, 4)
    assert facts["While", "while True:"]["trips"] == (3, 4)


def test_a_run_counts_only_in_its_thread():
    results = []

    def spin(n):
        thread = threading.Thread(target=lambda: results.append(square(n)))
        thread.start()
        thread.join()
        return results

    before = support.facts(square)
    assert support.profiled_call(spin, 7) == [49]
    assert support.facts(square) == before


def test_facts_of_statements():
    module = ast.parse(
        "total = 0\nfor i in range(size):\n    if i % 2 == 0:\n        total += scale(i)\n"
        "def nested(): return total\nresult = nested()\n"
    )
    namespace = {"size": 3, "scale": lambda x: x * 10}
    _, facts = support.run_statements(module, namespace)
    assert namespace["total"] == namespace["result"] == 20
    kinds = {(kind, line): found for kind, line, _, found in facts}
    assert kinds["For", 2] == {"trips": (3, 3)}
    assert kinds["If", 3] == {"tests": (2, 1)}
    assert "lambda" in kinds["Call", 4]["callee"]
    assert not any(name.startswith(".") or "janus" in name for name in namespace)


# --- the lattice ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([], "nothing"),
        ([3, 3], "3"),
        ([3, 4], "int"),
        ([3, True], "anything"),
        ([0.0, -0.0], "float"),
        ([float("nan"), float("nan")], "nan"),
        (["a", "a"], "'a'"),
        ([None, None], "None"),
        ([None, 1], "anything"),
        ([None, 1, None], "anything"),
        ([(1, "a"), (1, "a")], "(1, 'a')"),
        ([(1, 2.0), (1, 2)], "tuple"),
        ([[1], [1]], "list"),
        ([len, len], "<built-in function len>"),
        ([len, print], "builtin_function_or_method"),
        ([str.upper, str.upper], "<method 'upper' of 'str' objects>"),
    ],
)
def test_joining(objects, text):
    assert support.joined(objects) == text


def test_facts_keep_nothing_alive():
    class Thing:
        pass

    def make():
        thing = Thing()
        things = [thing]
        return HOLDER, thing, things[0]

    made = support.profiled_call(make)
    dead = weakref.ref(made[1])
    del made
    gc.collect()
    assert dead() is None
    assert support.facts(make) is not None


# --- random programs ------------------------------------------------------------------------------
ATOMS = st.sampled_from(["a", "b", "n", "g", "0", "1", "2.5", "''", "'x'", "None", "[]", "n[0]",
                         "f(a)", "f(b, k=1)", "o.x", "o.m(a)", "xs[0]", "xs[5]",
                         "(a, b)"])  # fmt: skip


def expressions(inner):
    return st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} == {} != {})".format, inner, inner, inner),
        st.builds("({} < {})".format, inner, inner),
        st.builds("(w := {})".format, inner),
        st.builds("[{} for q in xs if {}]".format, inner, inner),
        st.builds("f({}, k={})".format, inner, inner),
        st.builds("f(*{}, **{{}})".format, inner),
        st.builds("(lambda v={}: v and {})()".format, inner, inner),
        st.builds("f'{{{}}}'".format, st.sampled_from(["a", "o.x", "f(1)", "b or a"])),
    )


EXPRESSIONS = st.recursive(ATOMS, expressions, max_leaves=8)


def statements(depth):
    simple = st.one_of(
        st.builds("a = {}".format, EXPRESSIONS),
        st.builds("xs[0] = {}".format, EXPRESSIONS),
        st.builds("o.x = {}".format, EXPRESSIONS),
        st.builds("f({})".format, EXPRESSIONS),
        st.builds("assert {}".format, EXPRESSIONS),
        st.builds("return {}".format, EXPRESSIONS),
        st.just("xs.append(0)"),
        st.just("del xs[0]"),
        st.just("raise KeyError(a)"),
        st.just("b = sorted(locals())"),
    )
    if depth == 0:
        return simple
    inner = st.lists(statements(depth - 1), min_size=1, max_size=3).map(
        lambda lines: textwrap.indent("\n".join(lines), "    ")
    )
    return st.one_of(
        simple,
        st.builds("if {}:\n{}\nelse:\n{}".format, EXPRESSIONS, inner, inner),
        st.builds("for b in {}:\n{}\n    if {}: break".format, EXPRESSIONS, inner, EXPRESSIONS),
        st.builds("k = 0\nwhile (k := k + 1) < 4 and {}:\n{}".format, EXPRESSIONS, inner),
        st.builds("try:\n{}\nexcept (TypeError, KeyError) as e:\n{}\nfinally:\n    f('f')".format,
                  inner, inner),
        st.builds("with o:\n{}".format, inner),
        st.builds("def f2(a, b={}):\n{}\na = f2(a)".format, EXPRESSIONS, inner),
        st.builds("match {}:\n    case [q, *_] if {}: f(q)\n    case None:\n{}".format,
                  EXPRESSIONS, EXPRESSIONS, textwrap_twice(inner)),
    )  # fmt: skip


def textwrap_twice(block):
    return block.map(lambda text: textwrap.indent(text, "    "))


SUPPORT = """
g = 3
log = []
class O:
    x = 1
    def m(self, v): return f(v) or self.x
    def __enter__(self): log.append("in"); return self
    def __exit__(self, *_): log.append("out")
    def __repr__(self): return "O"
o = O()
n = [None, 2]
def f(*args, **kwargs):
    log.append((args, kwargs))
    return args[0] if args else kwargs
"""


class Endless(BaseException):
    pass


def ends(function, *arguments):
    """Whether the call ends at all: a loop may feed what it goes over."""

    def stop(*_):
        raise Endless

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 2, 0.2)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            function(*arguments)
    except Exception:
        return True
    except Endless:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return True


@settings(max_examples=120, deadline=None)
@given(st.lists(statements(2), min_size=1, max_size=4), st.sampled_from([0, 1, "s", None]))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_programs(tmp_path_factory, lines, argument):
    body = textwrap.indent("\n".join(lines), "    ")
    text = f"{SUPPORT}\ndef main(a, xs, b=2):\n{body}\n    return a, b, xs\n"
    name = f"<random {hash(text)}>"
    try:
        code = compile(text, name, "exec")
    except SyntaxError:
        return
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    module = types.ModuleType("random_program")
    exec(code, module.__dict__)
    assume(ends(module.main, argument, [1, 2]))
    outcomes = []
    for call in (plain_call, support.profiled_call):
        module = types.ModuleType("random_program")
        exec(code, module.__dict__)
        outcomes.append(outcome(call, module.main, (argument, [1, 2]), {}, module.log))
    assert support.instrumented(module.main) is not None
    assert outcomes[0] == outcomes[1], text
    del linecache.cache[name]


# --- Python's own tests ------------------------------------------------------------------------
def run_tests(name):
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")
    result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
    return result.testsRun, sorted(str(test) for test, _ in result.failures + result.errors)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["test_argparse", "test_call", "test_collections", "test_contextlib", "test_dataclasses",
     "test_descr", "test_enum", "test_except_star", "test_exceptions", "test_fstring",
     "test_functools", "test_generators", "test_grammar", "test_iter", "test_json",
     "test_named_expressions", "test_patma", "test_scope", "test_super", "test_traceback",
     "test_with"],
)  # fmt: skip
def test_tests_of_python_pass_in_a_profile_run(name):
    """The test runner, the tests and the library under test are all instrumented."""
    pytest.importorskip(f"test.{name}")
    assert support.profiled_call(run_tests, name) == run_tests(name)


# --- torch ----------------------------------------------------------------------------------------
def test_copies_start_no_garbage_collections():
    """Each would walk the objects of the program, and run its finalizers earlier than eagerly."""
    begun = []
    before = gc.get_threshold()
    gc.collect()
    gc.callbacks.append(lambda phase, info: begun.append(phase))
    gc.set_threshold(20, 5, 5)
    try:
        copy = support.instrumented(textwrap.dedent)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.pop()
    assert copy is not None
    assert begun.count("start") <= 2  # what stands around the call here may start them
    assert gc.isenabled()


def test_a_training_step():
    torch = pytest.importorskip("torch")

    def train(call):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(8, 2)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        losses = []
        for _ in range(4):
            x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
            losses.append(call(programs_step, model, optimizer, x, y))
        return losses, [p.detach().clone() for p in model.parameters()], torch.get_rng_state()

    plain, profiled = train(plain_call), train(support.profiled_call)
    assert plain[0] == profiled[0]
    assert all(torch.equal(a, b) for a, b in zip(plain[1], profiled[1], strict=True))
    assert torch.equal(plain[2], profiled[2])
    callees = {f["callee"] for *_, f in support.facts(programs_step)[1] if "callee" in f}
    assert any("Optimizer.zero_grad" in callee for callee in callees)


def programs_step(model, optimizer, x, y):
    import torch

    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def test_overhead_is_moderate():
    """Far above what it is (some hundred nanoseconds a hook), far below what would hurt."""

    def work(n):
        total = 0
        for i in range(n):
            total += abs(i)
        return total

    support.profiled_call(work, 10)
    start = time.process_time()
    support.profiled_call(work, 20_000)
    assert (time.process_time() - start) / 20_000 < 20e-6
