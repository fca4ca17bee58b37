"""Runs the textual form of a graph with torch's own operators: an oracle for shape rules, gradient
rules and decompositions. The graph has to be flat (no control flow, no state).

`TORCHJANUS_BUILD` names the build folder that has the tools (else build/dev or build/core).
"""

import os
import pathlib
import re
import subprocess

import pytest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "b1": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def tool(name):
    """The path of a built tool; skips the test if there is none."""
    folders = [os.environ.get("TORCHJANUS_BUILD"), ROOT / "build" / "dev", ROOT / "build" / "core"]
    for folder in folders:
        if folder and (path := pathlib.Path(folder) / "tools" / name).exists():
            return path
    pytest.skip(f"{name} is not built", allow_module_level=True)


def run_tool(name, *arguments, text=None):
    """Standard output of a tool; ValueError with its message if it fails."""
    result = subprocess.run([tool(name), *arguments], input=text, capture_output=True, text=True)
    if result.returncode != 0:
        raise ValueError(result.stderr.strip())
    return result.stdout


def operators():
    """Name -> (ATen overload, schema, Python callables, traits)."""
    table = {}
    for line in run_tool("list-ops").splitlines():
        name, aten, schema, python, traits = line.split("\t")
        table[name] = (aten, schema, python.split(), traits.split())
    return table


def overload(aten):
    """The ATen overload "name" or "name.overload"."""
    name, _, which = aten.partition(".")
    return getattr(getattr(torch.ops.aten, name), which or "default")


def type_text(tensor):
    """A tensor's type as the text of a graph."""
    return f"{NAMES[tensor.dtype]}[{','.join(map(str, tensor.shape))}]"


def _attribute(text):
    """An attribute's value from its text."""
    if text in DTYPES:
        return DTYPES[text]
    if text in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text]
    if text.startswith('"'):
        return text[1:-1]
    if text.startswith("b["):
        return [flag == "1" for flag in text[2:-1].split(",") if flag]
    if text.startswith("["):
        return [int(entry) for entry in text[1:-1].split(",") if entry]
    return float(text) if re.search(r"[.en]", text) else int(text)


def _attributes(text):
    """The attributes in {k=v, ...}."""
    found = re.findall(r'(\w+)=("[^"]*"|b?\[[^\]]*\]|[^,{}]+)', text)
    return {name: _attribute(value.strip()) for name, value in found}


_LINE = re.compile(
    r"^(?:(?P<results>%[\w.%, ]+?) = )?(?P<op>[\w.]+)(?P<operands>(?: %[\w.]+,?)*)"
    r"(?: \{(?P<attributes>.*)\})?(?: : (?P<types>.*))?$"
)

_NUMBERS = {
    "scalar_add": lambda a, b: a + b,
    "scalar_sub": lambda a, b: a - b,
    "scalar_mul": lambda a, b: a * b,
    "scalar_truediv": lambda a, b: a / b,
    "scalar_neg": lambda a: -a,
}


def _pick(x, index, dim):
    return x.gather(dim, index.clamp(0, x.shape[dim] - 1))


def _position(x, dim):
    along = [-1 if d == dim % x.dim() else 1 for d in range(x.dim())]
    return torch.arange(x.shape[dim]).view(along).expand(x.shape)


def _class_loss(scores, target, dim):
    largest = scores.amax(dim, keepdim=True)
    powers = (scores - largest).exp().sum(dim, keepdim=True)
    return _pick(scores, target, dim) - largest, largest, powers


# Operators that torch does not have.
_OWN = {
    "class_loss": _class_loss,
    "count_classes": lambda target, classes, ignore_index: (target != ignore_index).sum(),
    "pick": _pick,
    "position": _position,
}

_LISTS = ("List[Tensor]", "List[Optional[Tensor]]")
_OPERANDS = (
    *("Tensor", "Optional[Tensor]"),
    *("number", "Optional[number]", "float", "Optional[float]"),
)


def _as_tensor(number, others):
    """A number where an operator wants a tensor. It must not decide the dtype."""
    if isinstance(number, float):
        double = any(other.dtype == torch.float64 for other in others)
        return torch.tensor(number, dtype=torch.float64 if double else torch.float32)
    return torch.tensor(number)


class Evaluator:
    """Runs graphs line by line. Checks every result's dtype and shape against the text."""

    def __init__(self, table):
        self.table = table

    def run(self, text, inputs):
        """What the graph returns for these inputs."""
        values, results = {}, None
        for line in text.splitlines():
            line = line.strip()
            if line.startswith("graph "):
                names = re.findall(r"(%[\w.]+):", line)
                values = dict(zip(names, inputs, strict=True))
            elif line.startswith("return"):
                results = [values[name] for name in re.findall(r"%[\w.]+", line)]
            elif line and line != "}":
                self._node(line, values)
        return results

    def _node(self, line, values):
        match = _LINE.match(line)
        assert match, line
        operands = [values[name] for name in re.findall(r"%[\w.]+", match["operands"] or "")]
        attributes = _attributes(match["attributes"] or "")
        names = re.findall(r"%[\w.]+", match["results"] or "")
        outputs = self._compute(match["op"], operands, attributes)
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        types = re.findall(r"\w+(?:\[[^\]]*\])?", match["types"] or "")
        for name, value, expected in zip(names, outputs, types, strict=True):
            if isinstance(value, torch.Tensor) and expected != "none":
                assert type_text(value) == expected, f"{line}: torch gives {type_text(value)}"
            values[name] = None if expected == "none" else value

    def _compute(self, name, operands, attributes):
        if name == "constant":
            return attributes["value"]
        if name == "detach":
            return operands[0].detach()
        if name in _NUMBERS:
            return _NUMBERS[name](*operands)
        if name in _OWN:
            return _OWN[name](*operands, **attributes)
        function = overload(self.table[name][0])
        arguments = self._bind(function._schema, operands, attributes)
        positional = [value for value, keyword in arguments.values() if not keyword]
        named = {key: value for key, (value, keyword) in arguments.items() if keyword}
        return function(*positional, **named)

    @staticmethod
    def _bind(schema, operands, attributes):
        """Arguments by name, as (value, keyword only). Operands come in the order of the schema; a
        list takes what the others leave."""
        operands = list(operands)
        others = [value for value in operands if isinstance(value, torch.Tensor)]
        is_list = [str(a.type) in _LISTS for a in schema.arguments]
        is_operand = [str(a.type) in _OPERANDS + _LISTS for a in schema.arguments]
        list_length = len(operands) - sum(is_operand) + 1
        bound = {}
        for argument, listed, operand in zip(schema.arguments, is_list, is_operand, strict=True):
            if listed:
                value = [operands.pop(0) for _ in range(list_length)]
            elif operand:
                value = operands.pop(0)
                if str(argument.type) == "Tensor" and not isinstance(value, torch.Tensor):
                    value = _as_tensor(value, others)
            elif argument.name in attributes:
                value = attributes[argument.name]
            else:
                value = argument.default_value
            bound[argument.name] = (value, argument.kwarg_only)
        assert not operands
        return bound
