"""Operators written inline in C++: `torchjanus.code`."""

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .compiler import load

NAMESPACE = "torchjanus_code"
ELEMENTS = {
    torch.float32: "float",
    torch.float64: "double",
    torch.int8: "int8_t",
    torch.uint8: "uint8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
    torch.bool: "bool",
}
NUMBERS = {"float": ("double", ctypes.c_double), "int": ("int64_t", ctypes.c_int64)}
WORDS_OF_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local
throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
xor xor_eq
"""
NAMES_OF_FUNCTION = ("Tensor", "data_", "sizes_", "ranks_", "counts_", "float_", "int_")
PRELUDE = """\
#include <algorithm>
#include <cmath>
#include <cstdint>

/// A dense tensor, row after row.
template <class Element>
struct Tensor {
  Element* data;
  const int64_t* sizes;
  int64_t rank;
  int64_t count;  ///< of elements

  int64_t size(int64_t dim) const { return sizes[dim < 0 ? dim + rank : dim]; }
  Element& operator[](int64_t index) const { return data[index]; }
  template <class... Index>
  Element& operator()(Index... index) const {
    int64_t place = 0, dim = 0;
    ((place = place * sizes[dim++] + int64_t(index)), ...);
    return data[place];
  }
};
"""

_numbers = itertools.count()

Sizes = Callable[..., Any]
Result = torch.Tensor | tuple[torch.Tensor, ...]


def code(
    signature: str,
    source: str,
    *,
    sizes: Sizes | None = None,
    dtypes: Sequence[torch.dtype] | None = None,
    gradient: str | None = None,
    header: str = "",
    flags: Sequence[str] = (),
) -> Callable[..., Result]:
    """Makes an operator of C++ statements, which programs call and graphs contain.

    Example:

        cube = torchjanus.code(
            "cube(Tensor x) -> Tensor y",
            "for (int64_t i = 0; i < x.count; ++i) y[i] = x[i] * x[i] * x[i];",
            gradient="for (int64_t i = 0; i < x.count; ++i) d_x[i] = d_y[i] * 3 * x[i] * x[i];",
        )
        y = cube(torch.randn(3, 4))

    Args:
        signature: A name; parameters, each `Tensor`, `float` or `int`; one result, or several in brackets, all
            tensors.
        source: The statements. They see parameters and results by their names. A tensor has `x[i]` (its elements row
            after row), `x(i, j)`, `x.count`, `x.size(dim)`, `x.rank` and `x.data`; results begin as zeros.
        sizes: A function of the arguments that gives the shape of the result, or a list of the shapes of each of
            several. By default every result has the first tensor's shape.
        dtypes: Of each result; by default the first tensor's.
        gradient: Statements that see parameters, results and, for each result `y`, its gradient `d_y`. They make the
            gradient of each tensor parameter `x` in `d_x`, which has the shape of `x` and begins as zeros.
        header: What stands before the function: includes, helpers.
        flags: Are added to the compiler's.

    Returns:
        The operator: a function of tensors (float32, float64, integers, bool; any shape, on the CPU) and numbers. A
        version for each combination of dtypes is compiled at its first use, by the compiler that CXX names, else c++,
        g++ or clang++, and kept on disk (`torchjanus.compiler`).

    Raises:
        ValueError: The signature is none of these, has names that C++ can't have, or there are not as many `dtypes`
            as results.
        RuntimeError: By the operator: the C++ is wrong (with the compiler's message), there is no compiler, or
            `backward()` goes through an operator without a `gradient`.
        TypeError: By the operator: a tensor of another dtype.

    Source:
        Operators inline in C++ beside meta-operators: Hu et al., "Jittor: a novel deep learning framework with
        meta-operators and unified graph execution", Science China Information Sciences 63, 2020.
    """
    parsed = Signature.parse(signature)
    operator = Operator(
        parsed, source, parsed.spread(sizes), parsed.given(dtypes), header, tuple(flags)
    )
    return register(operator, None if gradient is None else operator.gradient(gradient))


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str  # Tensor, float or int
    default: Any = None


@dataclass(frozen=True)
class Signature:
    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    text: str  # the part behind the name, in torch's notation

    @classmethod
    def parse(cls, text: str) -> "Signature":
        try:
            schema = torch._C.parse_schema(text)
        except RuntimeError as error:
            raise ValueError(f"torchjanus.code: {text!r} is no signature: {error}") from None
        refuse_what_is_torchs(text, schema)
        parameters = tuple(
            Parameter(each.name, str(each.type), each.default_value) for each in schema.arguments
        )
        unknown = {each.kind for each in parameters} - {"Tensor", *NUMBERS}
        if unknown := unknown | {str(each.type) for each in schema.returns} - {"Tensor"}:
            raise ValueError(
                f"torchjanus.code: {text!r} has a {', '.join(sorted(unknown))}; parameters are "
                "Tensor, float or int, results Tensor"
            )
        if not any(each.kind == "Tensor" for each in parameters):
            raise ValueError(f"torchjanus.code: {text!r} takes no Tensor")
        results = tuple(each.name for each in schema.returns)
        if not results or not all(results):
            raise ValueError(f"torchjanus.code: {text!r} does not name its results: -> Tensor y")
        refuse_names(text, [*(each.name for each in parameters), *results])
        return cls(schema.name, parameters, results, text[text.index("(") :])

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.parameters if each.kind == "Tensor")

    def completed(self, arguments: Sequence[Any]) -> list[Any]:
        """All arguments: torch omits those that equal their defaults."""
        return [*arguments, *(each.default for each in self.parameters[len(arguments) :])]

    def tensors_of(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        pairs = zip(self.parameters, arguments, strict=True)
        return [value for parameter, value in pairs if parameter.kind == "Tensor"]

    def spread(self, sizes: Sizes | None) -> Sizes:
        """A function that returns the sizes of each result as a list, by the user's function."""

        def of_each(*arguments: Any) -> Any:
            if sizes is None:
                return [self.tensors_of(arguments)[0].shape] * len(self.results)
            given = sizes(*arguments)
            return given if len(self.results) > 1 else [given]

        return of_each

    def given(self, dtypes: Sequence[torch.dtype] | None) -> Callable[..., Any]:
        if dtypes is not None and len(dtypes) != len(self.results):
            raise ValueError(
                f"torchjanus.code: {len(dtypes)} dtypes for {len(self.results)} results"
            )

        def of_each(*arguments: Any) -> Any:
            return dtypes or [self.tensors_of(arguments)[0].dtype] * len(self.results)

        return of_each

    def of_gradient(self) -> "Signature":
        """The signature of the gradient: from the gradients of the results, the parameters and the
        results, it computes the gradients of all tensor parameters."""
        given = [f"Tensor d_{each}" for each in self.results]
        given += [f"{each.kind} {each.name}" for each in self.parameters]
        given += [f"Tensor {each}" for each in self.results]
        made = ", ".join(f"Tensor d_{each}" for each in self.tensors)
        return Signature.parse(f"{self.name}_gradient({', '.join(given)}) -> ({made})")


def refuse_what_is_torchs(text: str, schema: Any) -> None:
    """Raises ValueError for features of torch's signatures that are not supported here."""
    if "::" in schema.name or schema.overload_name:
        wrong = f"is named {text[: text.index('(')]!r}; the name is one word"
    elif "..." in text or any(each.kwarg_only for each in schema.arguments):
        wrong = "has a `*` or `...`; each parameter is one by position"
    elif any(each.alias_info for each in [*schema.arguments, *schema.returns]):
        wrong = "writes to a tensor, or shares one; results are new tensors"
    else:
        return
    raise ValueError(f"torchjanus.code: {text!r} {wrong}")


def refuse_names(text: str, names: Sequence[str]) -> None:
    """Raises ValueError unless all names can be variables of one C++ function."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"torchjanus.code: {text!r} has two tensors or numbers named {name}")
        if name in WORDS_OF_CPP.split() or name in NAMES_OF_FUNCTION:
            raise ValueError(
                f"torchjanus.code: {text!r}: C++ can have no variable named {name} here"
            )


@dataclass
class Operator:
    signature: Signature
    source: str
    sizes: Sizes
    dtypes: Callable[..., Any]
    header: str
    flags: tuple[str, ...]
    versions: dict[tuple[torch.dtype, ...], Any] = field(default_factory=dict)

    def gradient(self, source: str) -> "Operator":
        def parameters(*arguments: Any) -> list[torch.Tensor]:
            first = len(self.signature.results)
            return self.signature.tensors_of(
                arguments[first : first + len(self.signature.parameters)]
            )

        return Operator(
            self.signature.of_gradient(),
            source,
            lambda *arguments: [each.shape for each in parameters(*arguments)],
            lambda *arguments: [each.dtype for each in parameters(*arguments)],
            self.header,
            self.flags,
        )

    def empty(self, *arguments: Any) -> Result:
        """The results of `run` without data."""
        arguments = tuple(self.signature.completed(arguments))
        first = self.signature.tensors_of(arguments)[0]
        return self.pack(
            [
                first.new_empty(sizes, dtype=dtype)
                for sizes, dtype in zip(
                    self.sizes(*arguments), self.dtypes(*arguments), strict=True
                )
            ]
        )

    def run(self, *arguments: Any) -> Result:
        arguments = tuple(self.signature.completed(arguments))
        made = self.empty(*arguments)
        results = [made] if isinstance(made, torch.Tensor) else list(made)
        for each in results:
            each.zero_()
        tensors = [each.contiguous() for each in self.signature.tensors_of(arguments)] + results
        numbers: dict[str, list[Any]] = {kind: [] for kind in NUMBERS}
        for parameter, value in zip(self.signature.parameters, arguments, strict=True):
            if parameter.kind in numbers:
                numbers[parameter.kind].append(value)
        sizes = [array(ctypes.c_int64, list(each.shape)) for each in tensors]
        self.version(tuple(each.dtype for each in tensors))(
            array(ctypes.c_void_p, [each.data_ptr() for each in tensors]),
            array(ctypes.c_void_p, [ctypes.addressof(each) for each in sizes]),
            array(ctypes.c_int64, [each.dim() for each in tensors]),
            array(ctypes.c_int64, [each.numel() for each in tensors]),
            *(array(NUMBERS[kind][1], values) for kind, values in numbers.items()),
        )
        return made

    def pack(self, results: list[torch.Tensor]) -> Result:
        return results[0] if len(results) == 1 else tuple(results)

    def version(self, dtypes: tuple[torch.dtype, ...]) -> Any:
        found = self.versions.get(dtypes)
        if found is None:
            if unknown := [str(each) for each in dtypes if each not in ELEMENTS]:
                raise TypeError(
                    f"{self.signature.name}: torchjanus.code has no tensors of {unknown[0]}; "
                    f"there are {', '.join(str(each) for each in ELEMENTS)}"
                )
            library = load(self.text(dtypes), self.flags, self.signature.name)
            found = self.versions[dtypes] = library.torchjanus_code
        return found

    def text(self, dtypes: tuple[torch.dtype, ...]) -> str:
        """The C++ for tensors of these dtypes: parameters, then results."""
        names = [*self.signature.tensors, *self.signature.results]
        lines = []
        for place, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
            element = ELEMENTS[dtype]
            if place < len(self.signature.tensors):
                element = f"const {element}"
            lines.append(
                f"const Tensor<{element}> {name}{{static_cast<{element}*>(data_[{place}]), "
                f"sizes_[{place}], ranks_[{place}], counts_[{place}]}};"
            )
        for kind, (number, _) in NUMBERS.items():
            own = [each.name for each in self.signature.parameters if each.kind == kind]
            lines += [f"const {number} {name} = {kind}_[{i}];" for i, name in enumerate(own)]
        declarations = "\n  ".join(lines)
        return (
            f'{PRELUDE}\n#line 1 "header of {self.signature.name}"\n{self.header}\n\n'
            'extern "C" void torchjanus_code(void* const* data_, const int64_t* const* sizes_,\n'
            "    const int64_t* ranks_, const int64_t* counts_, const double* float_,\n"
            "    const int64_t* int_) {\n"
            f'  {declarations}\n#line 1 "{self.signature.name}"\n{self.source}\n}}\n'
        )


def array(kind: Any, values: Sequence[Any]) -> Any:
    return (kind * max(1, len(values)))(*values)


def register(operator: Operator, gradient: Operator | None) -> Callable[..., Result]:
    short = f"{operator.signature.name}_{next(_numbers)}"
    name = f"{NAMESPACE}::{short}"
    torch.library.define(name, operator.signature.text)
    torch.library.impl(name, "cpu", operator.run)
    torch.library.register_fake(name, operator.empty)
    backward = no_gradient(operator) if gradient is None else backward_by(operator, gradient)
    torch.library.register_autograd(
        name, backward, setup_context=functools.partial(save, operator.signature)
    )
    registered: Callable[..., Result] = getattr(getattr(torch.ops, NAMESPACE), short).default
    return registered


def save(signature: Signature, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    results = (output,) if isinstance(output, torch.Tensor) else output
    inputs = tuple(signature.completed(inputs))
    ctx.numbers = [None if isinstance(each, torch.Tensor) else each for each in inputs]
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    ctx.save_for_backward(*tensors, *results)


def no_gradient(operator: Operator) -> Callable[..., Any]:
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(
            f"{operator.signature.name} has no gradient: give torchjanus.code the argument gradient"
        )

    return backward


def backward_by(operator: Operator, gradient: Operator) -> Callable[..., Any]:
    call = register(gradient, None)
    parameters = operator.signature.parameters

    def backward(ctx: Any, *gradients: Any) -> Any:
        count = len(operator.signature.tensors)
        tensors, results = iter(ctx.saved_tensors[:count]), ctx.saved_tensors[count:]
        given = [
            next(tensors) if parameter.kind == "Tensor" else number
            for parameter, number in zip(parameters, ctx.numbers, strict=True)
        ]
        made = call(*gradients, *given, *results)
        each = iter((made,) if isinstance(made, torch.Tensor) else made)
        return tuple(next(each) if parameter.kind == "Tensor" else None for parameter in parameters)

    return backward
