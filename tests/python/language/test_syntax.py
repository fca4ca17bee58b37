"""The mirror of Python's syntax, its scopes and the search for functions' sources, with Python's
own `ast` and `symtable` as oracles."""

import ast
import importlib
import importlib.util
import linecache
import pathlib
import random
import symtable
import sys
import sysconfig
import textwrap
import types

import build_module
import pytest
import syntax_programs as programs
from hypothesis import given, settings
from hypothesis import strategies as st

support = build_module.load("_syntax_support")

STDLIB = pathlib.Path(sysconfig.get_path("stdlib"))


def all_stdlib_files():
    return sorted(path for path in STDLIB.rglob("*.py") if "site-packages" not in path.parts)


def stdlib_files(count):
    """A sample of the standard library, always the same; its tests have the strangest syntax."""
    files = all_stdlib_files()
    favourites = [
        STDLIB / "test" / f"test_{n}.py" for n in ("grammar", "patma", "scope", "fstring")
    ]
    favourites = [path for path in favourites if path.exists()]
    return favourites + random.Random(7).sample(files, count)


def parsed(path):
    try:
        text = path.read_text("utf-8")
        return text, ast.parse(text)
    except (SyntaxError, UnicodeDecodeError):
        return None, None


def without_notes(tree):
    """Drops what the mirror does not keep: prefixes of strings and type comments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.kind = None
        if isinstance(node, ast.Module):
            node.type_ignores = []
    return tree


def assert_mirrored(tree):
    expected = ast.dump(without_notes(tree), include_attributes=True)
    assert ast.dump(support.mirror(tree), include_attributes=True) == expected


@pytest.mark.parametrize("path", stdlib_files(30), ids=lambda path: path.stem)
def test_mirror_of_the_standard_library(path):
    _, tree = parsed(path)
    if tree is not None:
        assert_mirrored(tree)


def symtable_scopes(table, found):
    """Every scope below: (kind, line, names, bound names); cells are not told from locals."""
    for child in table.get_children():
        kind = child.get_type()
        if child.get_name() == "lambda":
            kind = "lambda"
        elif child.get_name() in ("listcomp", "setcomp", "dictcomp", "genexpr"):
            kind = "comprehension"
        names, bound = {}, []
        for symbol in child.get_symbols():
            if symbol.get_name() == ".0":
                continue
            names[symbol.get_name()] = (
                "global" if symbol.is_global() else "free" if symbol.is_free() else "local"
            )
            if symbol.is_assigned() or symbol.is_parameter() or symbol.is_imported():
                bound.append(symbol.get_name())
        found.append((kind, child.get_lineno(), names))
        symtable_scopes(child, found)
    return found


def our_scopes(tree):
    return [
        (kind, line, {name: "local" if what == "cell" else what for name, what in names.items()})
        for kind, line, names, *_ in support.scopes(tree, True, ())[1:]
    ]


def ordered(scopes):
    return sorted(scopes, key=lambda scope: (scope[0], scope[1], sorted(scope[2].items())))


def has_confusing_names(tree):
    """symtable takes a function named `top` for the module and one named `lambda` for a lambda."""
    confusing = {"top", "listcomp", "setcomp", "dictcomp", "genexpr"}
    return any(getattr(node, "name", None) in confusing for node in ast.walk(tree))


before_3_12 = pytest.mark.skipif(
    sys.version_info >= (3, 12),
    reason="symtable shows comprehensions merged into the functions around them",
)


@before_3_12
@pytest.mark.parametrize("path", stdlib_files(30), ids=lambda path: path.stem)
def test_scopes_of_the_standard_library(path):
    text, tree = parsed(path)
    if tree is None or "import annotations" in text or has_confusing_names(tree):
        return
    expected = symtable_scopes(symtable.symtable(text, "file", "exec"), [])
    assert ordered(our_scopes(tree)) == ordered(expected)


@before_3_12
@pytest.mark.slow
def test_all_of_the_standard_library():
    for path in all_stdlib_files():
        text, tree = parsed(path)
        if tree is None:
            continue
        assert_mirrored(tree)
        if "import annotations" in text or has_confusing_names(tree):
            continue
        expected = symtable_scopes(symtable.symtable(text, "file", "exec"), [])
        assert ordered(our_scopes(tree)) == ordered(expected), path


# Random nestings of functions, classes and comprehensions over a few names.
NAMES = st.sampled_from(["a", "b", "__c"])


def block(indent):
    def indented(lines):
        return textwrap.indent("\n".join(lines), "    ")

    statements = st.one_of(
        st.builds("{} = {}".format, NAMES, NAMES),
        st.builds("del {}".format, NAMES),
        st.builds("print({}, [{} for {} in {}])".format, NAMES, NAMES, NAMES, NAMES),
        st.builds("print([({} := {}) for q in {}])".format, NAMES, NAMES, NAMES),
        st.builds("lambda {}={}: ({}, {})".format, NAMES, NAMES, NAMES, NAMES),
        st.builds("global {}".format, NAMES),
        st.builds("nonlocal {}".format, NAMES),
        st.just("super"),
    )
    if indent > 0:
        inner = st.lists(block(indent - 1), min_size=1, max_size=4).map(indented)
        statements = st.one_of(
            statements,
            st.builds("def f({}):\n{}".format, NAMES, inner),
            st.builds("class C({}):\n{}".format, NAMES, inner),
            st.builds("for {} in {}:\n{}".format, NAMES, NAMES, inner),
        )
    return statements


@before_3_12
@settings(max_examples=100, deadline=None)
@given(st.lists(block(3), max_size=5))
def test_scopes_of_random_programs(lines):
    text = "\n".join(lines)
    try:
        expected = symtable_scopes(symtable.symtable(text, "file", "exec"), [])
    except SyntaxError:
        return
    assert ordered(our_scopes(ast.parse(text))) == ordered(expected)


def test_statements_of_a_function_see_its_variables():
    tree = ast.parse("total += x * scale\nlast = [x for _ in y]\ndel gone")
    names = support.scopes(tree, False, ("x", "total"))[0][2]
    assert names == {
        "total": "local", "x": "cell", "scale": "global", "last": "local", "y": "global",
        "gone": "local",
    }  # fmt: skip
    assert support.scopes(tree, False, ("x", "total"))[0][3] == ["gone", "last", "total"]
    assert support.scopes(tree, True, ())[0][2]["x"] == "global"


# --- sources --------------------------------------------------------------------------------------
def functions_of(namespace):
    """All plain functions that can be reached in a namespace and its classes."""
    for value in namespace.values():
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        while isinstance(value, types.FunctionType) and hasattr(value, "__wrapped__"):
            yield value
            value = value.__wrapped__
        value = getattr(value, "__wrapped__", value)
        if isinstance(value, types.FunctionType):
            yield value
        elif isinstance(value, type) and value.__module__ == programs.__name__:
            yield from functions_of(vars(value))


FUNCTIONS = [
    *(f for f in functions_of(vars(programs)) if f.__module__ == programs.__name__),
    *programs.same_line,
    programs.same_line[2](),
    programs.spread(1)[1],
    programs.with_default.__defaults__[0],
    *programs.outer(0),
    *programs.outer(1),
    programs.Thing.of_class(),
    programs.local_class(programs.Thing).method,
    programs.umlaut(1)[2],
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__qualname__)
def test_source_is_found(function):
    node, name, class_name, scopes = support.source_of(function)
    code = function.__code__
    assert node is not None, name
    assert name == code.co_qualname
    own = next(scope for scope in scopes if scope[0] in ("function", "lambda"))
    _, _, names, _, parameters, has_yield, has_await = own
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)
    assert tuple(parameters) == code.co_varnames[:count]
    assert {n for n, kind in names.items() if kind == "free"} == set(code.co_freevars)
    cells = {n for n, kind in names.items() if kind == "cell"}
    assert set(code.co_cellvars) <= cells
    # Since 3.12, what only comprehensions share with the function around them is no cell.
    assert sys.version_info >= (3, 12) or set(code.co_cellvars) == cells
    assert has_yield == bool(code.co_flags & 0x20)
    assert has_await == bool(code.co_flags & 0x80)
    parts = code.co_qualname.split(".")
    if parts[0] == "Thing":
        assert class_name == ("Inner" if "Inner" in parts else "Thing")


def test_lambdas_on_one_line_are_told_apart():
    columns = [support.source_of(f)[0].col_offset for f in (programs.first, programs.second)]
    assert columns[0] < columns[1]
    assert [ast.unparse(support.source_of(f)[0].body) for f in programs.same_line] == [
        "1", "2", "lambda: 3"
    ]  # fmt: skip
    assert ast.unparse(support.source_of(programs.same_line[2]())[0].body) == "3"


def test_methods_are_found_by_their_function():
    thing = programs.Thing()
    assert support.source_of(thing.method)[1] == "Thing.method"
    assert support.source_of(programs.Thing.of_class)[1] == "Thing.of_class"


def compiled(text, filename):
    namespace = {"__name__": "made"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"]


def why_not(function):
    node, reason = support.source_of(function)
    assert node is None
    return reason


def test_what_has_no_source():
    assert why_not(len) == "it is not a function written in Python"
    assert why_not(int) == "it is not a function written in Python"
    assert why_not(compiled("def f(): return 1", "<nowhere>")) == "there is no text of <nowhere>"


def test_another_text_is_not_believed():
    function = compiled("def f(x):\n    return x - 1\n", programs.__file__)
    assert "is not what it was compiled from" in why_not(function)


def test_notebook_cells():
    text = "import math\ndef f(x):\n    return math.sqrt(x), (lambda: x)\n"
    name = "<ipython-input-1-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    try:
        whole = compiled(text, name)
        # A notebook compiles each statement by itself: the import is not in the same compilation.
        namespace = {}
        for node in ast.parse(text).body:
            exec(compile(ast.Module([node], []), name, "exec"), namespace)
        for function in (whole, namespace["f"]):
            assert support.source_of(function)[1] == "f"
            assert support.source_of(function(1)[1])[1] == "f.<locals>.<lambda>"
    finally:
        del linecache.cache[name]


def load_from(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_that_change(tmp_path):
    path = tmp_path / "changing.py"
    path.write_text("def f(x):\n    return x + 1\n\ndef g(x):\n    return x\n")
    before = load_from(path)
    linecache.getlines(str(path))
    path.write_text("def f(x):\n    return x + 2\n\ndef g(x):\n    return x\n# longer\n")
    after = load_from(path)
    # linecache still has the old text: the old function is found, then the new one in the new text.
    assert ast.unparse(support.source_of(before.f)[0].body[0]) == "return x + 1"
    assert ast.unparse(support.source_of(after.f)[0].body[0]) == "return x + 2"
    path.write_text("def f(x):\n    return x + 3\n\n\ndef g(x):\n    return x\n# longer still\n")
    linecache.checkcache(str(path))
    assert "is not what it was compiled from" in why_not(before.g)


def test_future_annotations(tmp_path):
    path = tmp_path / "future.py"
    path.write_text(
        "from __future__ import annotations\nclass C:\n    def f(self, x: C) -> D:\n"
        "        y: E = x\n        return y\n"
    )
    assert support.source_of(load_from(path).C.f)[1] == "C.f"


def test_warnings_are_not_shown_again(tmp_path, recwarn):
    path = tmp_path / "warned.py"
    path.write_text("def f(x):\n    return x is 5\n")
    with pytest.warns(SyntaxWarning):
        module = load_from(path)
    recwarn.clear()
    assert support.source_of(module.f)[1] == "f"
    assert not recwarn.list


def test_functions_of_installed_libraries():
    names = ("argparse", "dataclasses", "json.decoder", "torch.nn.functional", "torch._tensor")
    for module in map(importlib.import_module, names):
        for function in vars(module).values():
            if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
                node, *rest = support.source_of(function)
                assert node is not None or "there is no text" in rest[0], rest


def test_the_current_exception_stays():
    try:
        raise ValueError("mine")
    except ValueError:
        support.source_of(compiled("def f(): pass", "<missing>"))
        with pytest.raises(RuntimeError, match="mine"):
            raise RuntimeError("mine") from None
