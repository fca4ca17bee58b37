"""Rewrites a run of statements so that it can run as a graph or, cut, as several graphs.

`src/bind/region.cpp` shows the resulting code. It keeps the original statements, so code that is not
converted runs exactly as written: same scopes, same exceptions, same tracebacks. The Region becomes a
constant of the code object after compilation, so no scope of the user gets a new name.
"""

import ast
import copy
import functools
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from . import _core, installed

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.While)
_PLAIN, _RAN, _PROFILE, _CUT = range(4)  # results of Region.enter() and Region.ran()
_NOWHERE: dict[str, Any] = {"lineno": -1, "end_lineno": -1, "col_offset": -1, "end_col_offset": -1}
_OWN_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_DECLARATIONS = (ast.Global, ast.Nonlocal)
_NEVER = (
    *_DECLARATIONS, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith,
    ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip


def walk(nodes: Sequence[ast.AST], *, into_loops: bool) -> Iterator[ast.AST]:
    """All nodes below, except those in definitions of functions and classes and, optionally, in loops."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, LOOPS) and not into_loops:
            continue
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def contains(body: Sequence[ast.stmt], *kinds: type[ast.AST], into_loops: bool = False) -> bool:
    """Whether a statement is, or has in it, a node of one of the kinds, as `walk` goes through them.

    For statements that nobody changes: each region around them asks, so the answers are kept.
    """
    return any(not _kinds(each, into_loops).isdisjoint(kinds) for each in body)


_Kinds = frozenset[type[ast.AST]]
_known_kinds: weakref.WeakKeyDictionary[ast.stmt, dict[bool, _Kinds]] = weakref.WeakKeyDictionary()


def _kinds(statement: ast.stmt, into_loops: bool) -> _Kinds:
    known = _known_kinds.setdefault(statement, {})
    if into_loops not in known:
        known[into_loops] = frozenset(map(type, walk([statement], into_loops=into_loops)))
    return known[into_loops]


_Tree = TypeVar("_Tree", bound=ast.AST)


def copied(nodes: list[_Tree]) -> list[_Tree]:
    """Copies of the trees, down to their names and constants. Not recursive: expressions may be deep."""
    waiting: list[tuple[Any, Any, list[Any] | dict[str, Any]]] = []

    def copy_of(value: Any) -> Any:
        made: Any
        if isinstance(value, list):
            made = list(value)
            waiting.extend((index, each, made) for index, each in enumerate(value))
        elif isinstance(value, ast.AST):
            made, known = type(value).__new__(type(value)), vars(value)
            inner = vars(made)
            for name in value._attributes:
                if name in known:
                    inner[name] = known[name]
            waiting.extend((name, known[name], inner) for name in value._fields if name in known)
        else:
            return value
        return made

    result = copy_of(nodes)
    while waiting:
        place, value, inner = waiting.pop()
        inner[place] = copy_of(value)
    return result  # type: ignore[no-any-return]


def can_be_region(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements may run outside of their frame: no yield, await, scope declaration."""
    return not contains(body, *_NEVER, into_loops=True)


def can_be_parted(body: Sequence[ast.stmt]) -> bool:
    """Whether runs of the statements may be regions: a scope declaration affects the others too."""
    return not contains(body, *_DECLARATIONS, into_loops=True)


def stays_in_frame(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing else of the thread runs before the statements end: no yield, no await."""
    return not contains(
        body, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, into_loops=True
    )


class Unconverted:
    """In the place of a region or scope, where code was pickled by value: its statements run as they stand."""

    enter = int  # gives _PLAIN, without a frame that a debugger would stop in

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


class RegionBuilder:
    """Makes the regions of one file. `constants` maps placeholders to the objects that replace them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.constants: dict[str, object] = {}
        self.regions: list[_core.Region] = []  # without nested ones
        self.varying: frozenset[str] = frozenset()  # variables of loops around, in the same scope

    def region(
        self,
        original: list[ast.stmt],
        plain: list[ast.stmt],
        name: str,
        *,
        at_module_level: bool,
        class_name: str | None,
        whole: _core.Region | None = None,
        ends_function: bool = False,
    ) -> list[ast.stmt]:
        """The statements that replace `plain`, which is `original` with regions of its own.

        `ends_function`: they end a function, so that nobody reads its variables afterwards.
        """
        module = ast.Module(body=original, type_ignores=[])
        region = _core.Region(
            module, self.file, name, at_module_level, class_name, whole, ends_function
        )
        for variable in sorted(self.varying):
            region.expect_to_vary(variable)
        if whole is None:
            self.regions.append(region)
        made = _RegionCode(self, region, name, original, at_module_level, class_name)
        return [_located(made.choice(plain), original[0])]

    def scope(
        self, body: list[ast.stmt], regions: list[_core.Region], *, is_loop: bool
    ) -> list[ast.stmt]:
        """The statements in a scope of co-execution: a loop with these regions in its body, or just the regions."""
        if not regions or not stays_in_frame(body):
            return body
        scope = _core.CoExecutionScope(regions, is_loop)
        placeholder = f"torchjanus scope {id(scope):x}"
        self.constants[placeholder] = scope
        return [_with(placeholder, body)]

    def regions_in(
        self,
        body: list[ast.stmt],
        name: str,
        *,
        at_module_level: bool,
        class_name: str | None,
        whole: _core.Region | None = None,
        plain: list[ast.stmt] | None = None,
    ) -> list[ast.stmt]:
        """The statements of a cut body, with regions where possible, as parts of `whole`.

        `plain`: the same statements with regions of their own, if they have any.
        """
        result: list[ast.stmt] = []
        run: list[ast.stmt] = []
        plain_run: list[ast.stmt] = []

        def finish_run() -> None:
            if contains(run, ast.Call, ast.BinOp, into_loops=True):
                where = f"{name}, line {run[0].lineno}"
                result.extend(
                    self.region(
                        run.copy(), plain_run.copy(), where,
                        at_module_level=at_module_level, class_name=class_name, whole=whole,
                    )
                )  # fmt: skip
            else:
                result.extend(plain_run)
            run.clear()
            plain_run.clear()

        for statement, as_is in zip(body, plain or body, strict=True):
            if can_be_region([statement]):
                run.append(statement)
                plain_run.append(as_is)
            else:
                finish_run()
                result.append(as_is)
        finish_run()
        return result


@functools.cache
def is_users(file: str) -> bool:
    """Whether the file belongs to the program: not to Python's library or an installed package."""
    return not file.startswith(("<", *installed.ALL))


def is_shown(file: str) -> bool:
    """Whether reports on co-execution show lines of the file: the program's, and those of code without source."""
    if file.startswith("<"):
        return not file.startswith("<frozen")
    return is_users(file) and not file.startswith(_OWN_FOLDER)


@functools.cache
def may_be_entry_point(file: str) -> bool:
    """Whether functions of the file may get regions when others call them in loops: not those of Python's library, and
    not those of torch and torchjanus, which everything in a program shares."""
    if file.startswith((os.path.join(os.path.dirname(torch.__file__), ""), _OWN_FOLDER)):
        return False
    return is_users(file) or file.startswith(installed.PACKAGES)


def cut_definition(
    definition: ast.FunctionDef, file: str, name: str, class_name: str, may_be_whole: bool
) -> tuple[ast.FunctionDef, dict[str, object], list[_core.Region]] | None:
    """The definition of a function with regions in its body, the constants to patch in, and the regions.

    None if no part of the body may be a region, or if the body is one that can't be cut and is not wanted:
    `may_be_whole` is false.
    """
    result = copy.copy(definition)
    builder = RegionBuilder(file)
    start = first_effective_statement(definition.body)
    declared, body = definition.body[:start], definition.body[start:]
    if may_be_whole and can_be_region(body):
        shares = contains(definition.body, *_DECLARATIONS, into_loops=True)
        result.body = declared + builder.region(
            body, body, name, at_module_level=False,
            class_name=class_name or None, ends_function=not shares,
        )  # fmt: skip
    else:
        result.body = declared + builder.regions_in(
            body, name, at_module_level=False, class_name=class_name or None
        )
        is_whole = len(result.body) == start + 1 and len(builder.regions) == 1
        if not builder.regions or (is_whole and not builder.regions[0].can_be_cut()):
            return None
    if may_be_whole:  # else its calls are co-executed as a whole, if at all
        result.body[start:] = builder.scope(result.body[start:], builder.regions, is_loop=False)
    return result, builder.constants, builder.regions


def first_effective_statement(body: Sequence[ast.stmt]) -> int:
    """The index after the docstring and the `global`/`nonlocal` declarations."""
    index = 0
    if (
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        index = 1
    while index < len(body) - 1 and isinstance(body[index], _DECLARATIONS):
        index += 1
    return index


class _RegionCode:
    """The code around one region."""

    def __init__(
        self,
        builder: RegionBuilder,
        region: _core.Region,
        name: str,
        original: list[ast.stmt],
        at_module_level: bool,
        class_name: str | None,
    ) -> None:
        self.builder, self.region, self.name, self.original = builder, region, name, original
        self.at_module_level, self.class_name = at_module_level, class_name
        self.instrumented, hooks = _core.instrument_statements(region)
        self.placeholder = f"torchjanus region {id(region):x}"
        builder.constants.update(hooks)
        builder.constants[self.placeholder] = region
        self.deletable = _deletable_names(original)

    def choice(self, plain: list[ast.stmt]) -> ast.stmt:
        profiled = [statement for part in self.instrumented for statement in part]
        cases = {
            _PLAIN: plain,
            _RAN: self._after_graph(-1, self.original),
            _PROFILE: [self._ended_by_region(profiled)],
        }
        if self.region.can_be_cut():
            cases[_CUT] = [self._ended_by_region(self._cut())]
        return _match(self._call("enter"), cases)

    def _cut(self) -> list[ast.stmt]:
        result = []
        for index, statement in enumerate(self.original):
            cases = {
                _PLAIN: [self._cut_statement(statement)],
                _RAN: self._after_graph(index, self.original[: index + 1]),
                _PROFILE: self.instrumented[index],
            }
            result.append(_located(_match(self._call("ran", index), cases), statement))
        return result

    def _cut_statement(self, statement: ast.stmt) -> ast.stmt:
        """The statement for Python to run, with regions in its bodies if it has any."""

        def cut(body: list[ast.stmt]) -> list[ast.stmt]:
            return self.builder.regions_in(
                body, self.name, at_module_level=self.at_module_level,
                class_name=self.class_name, whole=self.region,
            )  # fmt: skip

        return _with_bodies(statement, cut)

    def _after_graph(self, index: int, before: list[ast.stmt]) -> list[ast.stmt]:
        """The statements that follow when a graph has run statement `index` (-1: all of them)."""
        result = [] if self.at_module_level else self._assign(index)
        if contains(before, ast.Break):
            result.append(ast.If(self._call("broke", index), [ast.Break()], []))
        if contains(before, ast.Continue):
            result.append(ast.If(self._call("continued", index), [ast.Continue()], []))
        if contains(before, ast.Return, into_loops=True):
            back = ast.Return(self._call("returned_value"))
            result.append(ast.If(self._call("returned", index), [back], []))
        return result or [ast.Pass()]

    def _assign(self, index: int) -> list[ast.stmt]:
        """Sets the variables that the statement binds."""
        numbers = self.region.bound_by(index)
        if not numbers:
            return []
        names = [self.region.assigned[number] for number in numbers]
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        together = ast.Assign([ast.Tuple(targets, ast.Store())], self._call("values", index))
        one_by_one: list[ast.stmt] = []
        for number, name in zip(numbers, names, strict=True):
            assign = ast.Assign([ast.Name(name, ast.Store())], self._call("value", number))
            delete: list[ast.stmt] = []
            if _is_among(name, self.deletable):
                statement = ast.Delete([ast.Name(name, ast.Del())])
                delete = [ast.If(self._call("deletes", number), [statement], [])]
            one_by_one.append(ast.If(self._call("gives", number), [assign], delete))
        return [ast.If(self._call("gives_all", index), [together], one_by_one)]

    def _ended_by_region(self, body: list[ast.stmt]) -> ast.stmt:
        return _with(self.placeholder, body)

    def _call(self, method: str, *arguments: int) -> ast.Call:
        function = ast.Attribute(ast.Constant(self.placeholder), method, ast.Load())
        return ast.Call(function, [ast.Constant(value) for value in arguments], [])


def _with(placeholder: str, body: list[ast.stmt]) -> ast.stmt:
    """`with placeholder: body`, at no line, so that a debugger which steps does not stop there."""
    manager = ast.Constant(placeholder, **_NOWHERE)
    return ast.With([ast.withitem(manager)], body, **_NOWHERE)


def _match(subject: ast.expr, cases: dict[int, list[ast.stmt]]) -> ast.stmt:
    """`match subject: case 0: ...`, which keeps the subject on the stack, without a name."""
    return ast.Match(
        subject,
        [
            ast.match_case(ast.MatchValue(ast.Constant(number)), None, body)
            for number, body in cases.items()
        ],
    )


def nested_bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists of a compound statement that is no definition."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return
    for field in ("body", "orelse", "finalbody"):
        nested = getattr(statement, field, None)
        if nested:
            yield nested
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _with_bodies(
    statement: ast.stmt, change: Callable[[list[ast.stmt]], list[ast.stmt]]
) -> ast.stmt:
    """The statement with other `nested_bodies`. Shares all other nodes with it."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return statement
    result = copy.copy(statement)
    for field in ("body", "orelse", "finalbody"):
        if nested := getattr(statement, field, None):
            setattr(result, field, change(nested))
    for field in ("handlers", "cases"):
        if parts := getattr(statement, field, None):
            copies = [copy.copy(part) for part in parts]
            for part in copies:
                part.body = change(part.body)
            setattr(result, field, copies)
    return result


def _deletable_names(body: Sequence[ast.stmt]) -> set[str]:
    """Names in `del` statements and after `except ... as`."""
    names = set()
    for node in walk(body, into_loops=True):
        if isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        if isinstance(node, ast.Delete):
            names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names


def _is_among(name: str, names: set[str]) -> bool:
    """Whether a name, which the compiler may have mangled, is among the names of the source."""
    return name in names or any(each.startswith("__") and name.endswith(each) for each in names)


def _located(made: ast.stmt, statement: ast.stmt) -> ast.stmt:
    """`made`, where nodes without a place (not the user's) get the place where `statement` begins."""
    line, column = statement.lineno, statement.col_offset
    place = {"lineno": line, "end_lineno": line, "col_offset": column, "end_col_offset": column}
    waiting: list[ast.AST] = [made]
    while waiting:
        node = waiting.pop()
        if "lineno" in node._attributes:
            if hasattr(node, "lineno"):
                continue  # and so have all nodes in it
            for name, value in place.items():
                setattr(node, name, value)
        waiting.extend(ast.iter_child_nodes(node))
    return made
