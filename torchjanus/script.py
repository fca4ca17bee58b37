"""Whole-script mode: rewrites a user's source so that its training and evaluation loops can run as graphs.

A run of statements S (the body of a loop, or of a function that trains) becomes

    if R.active() and R.enter():      # S ran as a graph
        a, b = R.values()             # the variables that S assigns
        if R.broke(): break
        if R.returned(): return R.returned_value()
    elif R.profiling():               # S is being watched
        try: <S, instrumented>
        finally: R.leave()
    else:
        <S>

where R is a `_core.Region`. Since the original statements stay in place, whatever is not converted runs
exactly as written: same scopes, same exceptions, same tracebacks. R is put into the code object's
constants after compilation, so no name is added to any of the user's scopes.
"""

import ast
import copy
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from . import _core

_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_TRAINING_CALLS = {"backward"}


def compile_script(source: str | bytes, file: str) -> types.CodeType:
    """The code of a module, with its regions. Raises SyntaxError as `compile` does."""
    tree = ast.parse(source, file)
    rewriter = _Rewriter(file)
    rewriter.rewrite_module(tree)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "str object is not callable": placeholders
        code = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
    return _patch_constants(code, rewriter.constants) if rewriter.constants else code


def _patch_constants(code: types.CodeType, constants: dict[str, object]) -> types.CodeType:
    """The same code with placeholder strings replaced by the objects that they stand for."""

    def patched(value: object) -> object:
        if isinstance(value, types.CodeType):
            return _patch_constants(value, constants)
        return constants.get(value, value) if isinstance(value, str) else value

    return code.replace(co_consts=tuple(patched(value) for value in code.co_consts))


class _Rewriter:
    """Rewrites one module in place; `constants` maps placeholders to objects."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.constants: dict[str, object] = {}

    def rewrite_module(self, module: ast.Module) -> None:
        self._rewrite_body(module.body, "<module>", at_module_level=True, class_name=None)

    def _rewrite_body(
        self, body: list[ast.stmt], name: str, *, at_module_level: bool, class_name: str | None
    ) -> bool:
        """Makes regions of what qualifies in these statements; returns whether any was made."""
        made = False
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                made |= self._rewrite_body(
                    statement.body, name, at_module_level=False, class_name=statement.name
                )
            elif isinstance(statement, _FUNCTIONS):
                made |= self._rewrite_function(statement, class_name)
            elif isinstance(statement, _LOOPS):
                made |= self._rewrite_loop(statement, name, at_module_level, class_name)
            else:
                for nested in _nested_bodies(statement):
                    made |= self._rewrite_body(
                        nested, name, at_module_level=at_module_level, class_name=class_name
                    )
        return made

    def _rewrite_loop(
        self, loop: ast.For | ast.While, name: str, at_module_level: bool, class_name: str | None
    ) -> bool:
        original = copy.deepcopy(loop.body)
        made = self._rewrite_body(
            loop.body, name, at_module_level=at_module_level, class_name=class_name
        )
        trains = _has_direct_mark(original)
        evaluates = not made and _calls_something(original)
        if (trains or evaluates) and _can_be_region(original):
            where = f"{name}, loop at line {loop.lineno}"
            loop.body = self._region(original, loop.body, where, at_module_level, class_name)
            made = True
        self._rewrite_body(
            loop.orelse, name, at_module_level=at_module_level, class_name=class_name
        )
        return made

    def _rewrite_function(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, class_name: str | None
    ) -> bool:
        if isinstance(function, ast.Lambda):
            return False
        start = _first_effective_statement(function.body)
        original = copy.deepcopy(function.body[start:])
        self._rewrite_body(
            function.body, function.name, at_module_level=False, class_name=class_name
        )
        if (
            isinstance(function, ast.FunctionDef)
            and _has_direct_mark(original)
            and _can_be_region(original)
        ):
            function.body[start:] = self._region(
                original, function.body[start:], function.name, False, class_name
            )
        return False  # a region inside a function does not keep the loop around its definition out

    def _region(
        self,
        original: list[ast.stmt],
        plain: list[ast.stmt],
        name: str,
        at_module_level: bool,
        class_name: str | None,
    ) -> list[ast.stmt]:
        """The statements that replace `plain`, which is `original` with nested regions."""
        module = ast.Module(body=original, type_ignores=[])
        region = _core.Region(module, self.file, name, at_module_level, class_name)
        instrumented, hooks = _core.instrument_statements(region)
        self.constants.update(hooks)
        placeholder = f"torchjanus region {id(region):x}"
        self.constants[placeholder] = region

        def call(method: str, *arguments: int) -> ast.Call:
            function = ast.Attribute(ast.Constant(placeholder), method, ast.Load())
            return ast.Call(function, [ast.Constant(value) for value in arguments], [])

        converted: list[ast.stmt] = []
        if not at_module_level and region.assigned:
            converted += _assign_variables(region.assigned, call)
        if _contains(original, ast.Break):
            converted.append(ast.If(call("broke"), [ast.Break()], []))
        if _contains(original, ast.Return, into_loops=True):
            converted.append(ast.If(call("returned"), [ast.Return(call("returned_value"))], []))
        profiled = ast.Try(
            body=list(instrumented.body),
            handlers=[],
            orelse=[],
            finalbody=[ast.Expr(call("leave"))],
        )
        entered = ast.BoolOp(ast.And(), [call("active"), call("enter")])
        choice = ast.If(
            entered, converted or [ast.Pass()], [ast.If(call("profiling"), [profiled], plain)]
        )
        for node in _new_nodes(choice):
            ast.copy_location(node, original[0])
        return [choice]


def _assign_variables(names: Sequence[str], call: Any) -> list[ast.stmt]:
    """`a, b = R.values()`, then `del` of those that have no value after S."""
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
    unbound: list[ast.stmt] = [
        ast.If(call("is_unbound", index), [ast.Delete([ast.Name(name, ast.Del())])], [])
        for index, name in enumerate(names)
    ]
    return [
        ast.Assign([ast.Tuple(targets, ast.Store())], call("values")),
        ast.If(call("is_unbound", -1), unbound, []),
    ]


def _new_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below `node` that have no location yet (those made here, not the user's)."""
    for descendant in ast.walk(node):
        if "lineno" in descendant._attributes and not hasattr(descendant, "lineno"):
            yield descendant


def _nested_bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists of a compound statement that is neither a loop nor a definition."""
    for field in ("body", "orelse", "finalbody"):
        nested = getattr(statement, field, None)
        if nested:
            yield nested
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _walk(nodes: Sequence[ast.AST], into_loops: bool) -> Iterator[ast.AST]:
    """All nodes below, without entering definitions of functions and classes, or (optionally) loops."""
    for node in nodes:
        yield node
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, _LOOPS) and not into_loops:
            continue
        yield from _walk(list(ast.iter_child_nodes(node)), into_loops)


def _contains(body: Sequence[ast.stmt], *kinds: type[ast.AST], into_loops: bool = False) -> bool:
    return any(isinstance(node, kinds) for node in _walk(body, into_loops))


def _has_direct_mark(body: Sequence[ast.stmt]) -> bool:
    """Whether these statements train: call `.backward()` or `torch.autograd.grad` outside inner loops."""
    for node in _walk(body, into_loops=False):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            if called.attr in _TRAINING_CALLS:
                return True
            if called.attr == "grad" and ast.unparse(called.value) in (
                "torch.autograd",
                "autograd",
            ):
                return True
    return False


def _calls_something(body: Sequence[ast.stmt]) -> bool:
    return _contains(body, ast.Call)


def _can_be_region(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements may be run from outside their frame: no yield, await, scope declaration."""
    never = (
        ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal,
        ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef,
    )  # fmt: skip
    return not _contains(body, *never, into_loops=True)


def _first_effective_statement(body: Sequence[ast.stmt]) -> int:
    """The index after the docstring and the `global`/`nonlocal` declarations."""
    index = 0
    if (
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        index = 1
    while index < len(body) - 1 and isinstance(body[index], (ast.Global, ast.Nonlocal)):
        index += 1
    return index
