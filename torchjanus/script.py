"""Whole-script mode: rewrites a user's source so that training and evaluation loops can run as graphs.

The body of a loop or function that trains or evaluates becomes a region (`regions.py`). Everything
around it stays as it is.
"""

import ast
import contextlib
import gc
import types
import warnings
from collections.abc import Callable, Iterator, Sequence

from . import _core, messages
from .regions import (
    FUNCTIONS,
    LOOPS,
    RegionBuilder,
    can_be_parted,
    can_be_region,
    contains,
    copied,
    first_effective_statement,
    nested_bodies,
    walk,
)

_TRAINING_CALLS = {"backward"}
_BOOKKEEPING_FUNCTIONS = {
    "bool", "dict", "divmod", "enumerate", "float", "format", "int", "isinstance", "len", "list",
    "print", "range", "repr", "reversed", "round", "set", "sorted", "str", "tuple", "zip",
}  # fmt: skip
_BOOKKEEPING_METHODS = {
    "add", "append", "extend", "format", "get", "insert", "items", "join", "keys", "pop",
    "setdefault", "split", "strip", "update", "values",
}  # fmt: skip


def compile_script(source: str | bytes, file: str) -> types.CodeType:
    """The code of a module, with its regions. Raises SyntaxError as `compile` does."""

    def compiled(tree: ast.Module) -> types.CodeType:
        return compile(tree, file, "exec", dont_inherit=True)

    return compile_tree(ast.parse(source, file), file, compiled)


def compile_tree(
    tree: ast.Module, file: str, compiled: Callable[[ast.Module], types.CodeType]
) -> types.CodeType:
    """The code that `compiled` makes of the tree, with regions; without them if that fails for a reason of our own.

    Errors and warnings are those of the tree as it was written. It stays as it is: IPython compiles trees twice.
    """
    original = compiled(tree)
    try:
        with _collector_paused():
            return _with_regions(tree, file, compiled, original)
    except RecursionError:
        leave_alone(file)
        return original
    except Exception as error:
        messages.internal_error(f"{file} could not be rewritten", error, "It runs eagerly.")
        return original


def leave_alone(file: str) -> None:
    """A file stays as it is if its tree is deeper than Python's stack."""
    why = "an expression in it is nested too deeply"
    messages.leave_alone(file, why, "assign parts of the expression to variables")


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Syntax trees are many objects and no cycles: a full collection in between would find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _with_regions(
    tree: ast.Module,
    file: str,
    compiled: Callable[[ast.Module], types.CodeType],
    original: types.CodeType,
) -> types.CodeType:
    rewriter = _Rewriter(file)
    (rewritten,) = copied([tree])
    rewriter.rewrite_module(rewritten)
    if not (constants := rewriter.builder.constants):
        return original
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # "str object is not callable": placeholders
        code = compiled(rewritten)
    code = _patch_constants(code, constants)
    _note_originals(code, original)
    return code


def _note_originals(code: types.CodeType, original: types.CodeType) -> None:
    """Lets rewritten functions refer to the source that the user wrote."""
    written: dict[tuple[str, int], list[types.CodeType]] = {}
    for each in _definitions(original):
        written.setdefault(_place(each), []).append(each)
    for each in _definitions(code):
        found = written.get(_place(each), [])
        # Several lambdas in a line can't be told apart.
        if found and (len(found) == 1 or not _is_lambda(each)) and each != found[-1]:
            _core.note_copy(each, found[-1])


def _is_lambda(code: types.CodeType) -> bool:
    return code.co_name == "<lambda>"


def _place(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _definitions(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects of all functions and lambdas in this code, nested ones too."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if not constant.co_name.startswith("<") or _is_lambda(constant):
                yield constant
            yield from _definitions(constant)


def _patch_constants(code: types.CodeType, constants: dict[str, object]) -> types.CodeType:
    """The code with placeholder strings replaced by their objects."""

    def patched(value: object) -> object:
        if isinstance(value, types.CodeType):
            return _patch_constants(value, constants)
        return constants.get(value, value) if isinstance(value, str) else value

    return code.replace(co_consts=tuple(patched(value) for value in code.co_consts))


class _Rewriter:
    """Rewrites one module in place."""

    def __init__(self, file: str) -> None:
        self.builder = RegionBuilder(file)

    def rewrite_module(self, module: ast.Module) -> None:
        self._rewrite_body(module.body, "<module>", at_module_level=True, class_name=None)

    def _rewrite_body(
        self, body: list[ast.stmt], name: str, *, at_module_level: bool, class_name: str | None
    ) -> bool:
        """Makes regions of statements that qualify; returns whether there are any."""
        made = False
        for index, statement in enumerate(body):
            if isinstance(statement, ast.ClassDef):
                made |= self._rewrite_body(
                    statement.body, name, at_module_level=False, class_name=statement.name
                )
            elif isinstance(statement, FUNCTIONS):
                made |= self._rewrite_function(statement, class_name)
            elif isinstance(statement, LOOPS):
                is_made, regions = self._rewrite_loop(statement, name, at_module_level, class_name)
                body[index : index + 1] = self.builder.scope([statement], regions, is_loop=True)
                made |= is_made
            else:
                for nested in nested_bodies(statement):
                    made |= self._rewrite_body(
                        nested, name, at_module_level=at_module_level, class_name=class_name
                    )
        return made

    def _rewrite_loop(
        self, loop: ast.For | ast.While, name: str, at_module_level: bool, class_name: str | None
    ) -> tuple[bool, list[_core.Region]]:
        """Whether it has regions in it now, and those of its own body."""
        original, own = copied(loop.body), list[_core.Region]()
        with self._varying(self.builder.varying | _targets(loop)):
            made = self._rewrite_body(
                loop.body, name, at_module_level=at_module_level, class_name=class_name
            )
            trains = _has_direct_mark(original)
            evaluates = not made and _may_evaluate(original)
            if trains or evaluates:
                count = len(self.builder.regions)
                loop.body = self._converted(
                    loop.body, original, f"{name}, loop at line {loop.lineno}",
                    at_module_level=at_module_level, class_name=class_name,
                )  # fmt: skip
                own = self.builder.regions[count:]
                made |= bool(own)
        self._rewrite_body(
            loop.orelse, name, at_module_level=at_module_level, class_name=class_name
        )
        return made, own

    @contextlib.contextmanager
    def _varying(self, variables: frozenset[str]) -> Iterator[None]:
        """Regions that are made meanwhile see other numbers in these variables sooner or later."""
        before, self.builder.varying = self.builder.varying, variables
        try:
            yield
        finally:
            self.builder.varying = before

    def _rewrite_function(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, class_name: str | None
    ) -> bool:
        if isinstance(function, ast.Lambda) or _is_converted(function):
            return False
        start = first_effective_statement(function.body)
        original = copied(function.body[start:])
        with self._varying(frozenset()):  # another scope
            self._rewrite_body(
                function.body, function.name, at_module_level=False, class_name=class_name
            )
            if isinstance(function, ast.FunctionDef) and _has_direct_mark(original):
                shares = contains(
                    [*function.body[:start], *original], ast.Global, ast.Nonlocal, into_loops=True
                )
                count = len(self.builder.regions)
                body = self._converted(
                    function.body[start:], original, function.name,
                    at_module_level=False, class_name=class_name, ends_function=not shares,
                )  # fmt: skip
                own = self.builder.regions[count:]
                function.body[start:] = self.builder.scope(body, own, is_loop=False)
        return False  # a region in a nested function does not exclude the loop around it

    def _converted(
        self,
        body: list[ast.stmt],
        original: list[ast.stmt],
        where: str,
        *,
        at_module_level: bool,
        class_name: str | None,
        ends_function: bool = False,
    ) -> list[ast.stmt]:
        """The body as a region, or with regions around an import, a definition or a `yield` in it."""
        if can_be_region(original):
            return self.builder.region(
                original, body, where, at_module_level=at_module_level, class_name=class_name,
                ends_function=ends_function,
            )  # fmt: skip
        if can_be_parted(original):
            return self.builder.regions_in(
                original, where, at_module_level=at_module_level, class_name=class_name, plain=body
            )
        return body


def _targets(loop: ast.For | ast.While) -> frozenset[str]:
    """The variables that the loop itself sets."""
    if isinstance(loop, ast.While):
        return frozenset()
    return frozenset(node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name))


def _is_converted(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the function is decorated with `@torchjanus.function`, so that it is converted anyway."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called).split(".")[0] == "torchjanus":
            return True
    return False


def _has_direct_mark(body: Sequence[ast.stmt]) -> bool:
    """Whether these statements train: call `.backward()` or `torch.autograd.grad` outside inner loops."""
    for node in walk(body, into_loops=False):
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


def _may_evaluate(body: Sequence[ast.stmt]) -> bool:
    """Whether these statements call anything but functions on numbers and containers."""
    return any(
        isinstance(node, ast.Call) and not _is_bookkeeping(node.func)
        for node in walk(body, into_loops=False)
    )


def _is_bookkeeping(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id in _BOOKKEEPING_FUNCTIONS
    return isinstance(called, ast.Attribute) and called.attr in _BOOKKEEPING_METHODS
