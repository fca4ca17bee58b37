"""Checks torchjanus against torch's own databases and prints what passes.

    python tests/oracles/run.py [--samples N] [--only NAME] [--stride K --offset J] [--json FILE]
                                [--way lazily] [--dtype int64]

Each sample runs eagerly and converted, from the same seed; results, gradients, changed arguments
must agree. With `--way lazily`, its calls run under torchjanus.lazy() instead. A sample counts as `graph`
(it ran as a graph and agrees), `imperative` (it did not, for a reason, and agrees), `strides` (only the
strides or sharing of gradients differ), or `differs`: nothing may differ.

`--dtype` is that of operators' samples; those of whole steps are float64.

Operators run in subprocesses, so that one that ends its process counts as one `crash`.
"""

import argparse
import collections
import contextlib
import copy
import faulthandler
import json
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python/harness"))

import databases
from apart import in_a_thread
from differential import TensorView, compare, snapshot
from steps import StepCase, step_cases
from ways import WAYS, Converted, Lazily

from torchjanus import _core

Way = type[Converted] | type[Lazily]

MORE_CALLS = 2  # of a step: with a plan and with gradients of the run before
SECONDS = 120  # for one sample of an operator


@dataclass(frozen=True)
class Sampling:
    """Which samples of operators are checked, and how."""

    samples: int | None = None  # of each operator; None: all
    way: str = "converted"
    dtype: str = "float32"


class Outcome(collections.Counter):
    """Counts of graph, imperative, differs; with the first lines of what differs, and what was refused why."""

    def __init__(self) -> None:
        super().__init__()
        self.differences: list[str] = []
        self.refused: dict[str, list[str]] = {}

    def merge(self, other: "Outcome") -> None:
        self.update(other)
        self.differences += other.differences
        self.refused.update(other.refused)

    def refusals(self) -> collections.Counter:
        return collections.Counter(
            reason for reasons in self.refused.values() for reason in reasons
        )


def fresh(value: Any) -> Any:
    """A deep copy in which tensors are leaves again, so that each run has arguments of its own."""
    if isinstance(value, torch.Tensor):
        copied = value.detach().clone(memory_format=torch.preserve_format)
        return copied.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(fresh(item) for item in value)
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    return value


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    if isinstance(value, dict):
        return tensors_in(list(value.values()))
    return []


def step_of(case: databases.Case, gradient: bool):
    """The function to convert: the call and, if asked, the gradients of its results."""
    call, in_place = case.call, case.form == "in place"

    def step(positional, keywords, inputs):
        if in_place:
            positional = (positional[0].clone(), *positional[1:])
        result = call(*positional, **keywords)
        if not gradient:
            return result
        outputs = [result] if isinstance(result, torch.Tensor) else list(result)
        outputs = [torch.view_as_real(o) if o.is_complex() else o for o in outputs]
        loss = sum(output.float().sum() * 0.5 for output in outputs if output.requires_grad)
        return result, torch.autograd.grad(loss, inputs, allow_unused=True)

    return step


def kind_of_difference(message: str) -> str:
    """In which memory order gradients lie, and whether two equal ones are one tensor, is seen by
    few programs: counted on its own."""
    is_gradient = "gradient[0][2][" in message
    is_layout = ": strides is" in message or ": ('seen tensor'" in message
    return "strides" if is_gradient and is_layout else "differs"


def same_gradients(step, other, make_arguments) -> bool:
    """Whether all results and gradients agree but for how they lie in memory."""
    gradients = []
    for function, scope in ((step, contextlib.nullcontext), (other, other.scope)):
        torch.manual_seed(3)
        with scope():
            gradients.append(function(*make_arguments()))
    try:
        torch.testing.assert_close(
            *gradients, rtol=1e-5, atol=1e-5, equal_nan=True, allow_subclasses=True
        )
    except AssertionError:
        return False
    return other.ran_in_graph()


def check(step, make_arguments, outcome: Outcome, name: str, way: Way) -> None:
    """Runs a step eagerly and in the other way; counts how it went."""
    other = way(step)

    def observe(function, scope):
        torch.manual_seed(3)
        with scope():
            arguments = make_arguments()
            try:
                result = function(*arguments)
                after = torch.get_rng_state()
                return snapshot(result, {"fresh": True}), snapshot(arguments, {}), after
            except Exception as error:
                return None, None, (type(error), str(error))

    try:
        expected = observe(step, contextlib.nullcontext)
        for call in range(way.calls):
            actual = observe(other, way.scope)
            compare(list(expected), list(actual), name, 1e-5)
            if other.stays_imperative(call + 1):
                break
    except AssertionError as error:
        kind = kind_of_difference(str(error))
        if kind == "strides" and not same_gradients(step, other, make_arguments):
            kind = "differs"
        outcome[kind] += 1
        outcome.differences.append(str(error)[:300])
        return
    count(other, outcome, name)


def count(run: Converted | Lazily, outcome: Outcome, name: str) -> None:
    """How calls that agree have run."""
    reasons = run.reasons()
    if run.ran_in_graph():
        outcome["graph"] += 1
    else:
        outcome["imperative"] += 1
        outcome.refused[name] = sorted({f"{r['code']}: {r['sentence'][:80]}" for r in reasons})
    if any(reason["code"] == "internal_error" for reason in reasons):
        outcome["internal errors"] += 1
        outcome.differences.append(f"{name}: {reasons}"[:300])


def limit_time() -> None:
    """From now on. What takes longer ends the process, and counts as a crash."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)


def check_operator(op, samples: int | None, way: Way, dtype: torch.dtype) -> Outcome:
    outcome = Outcome()
    for case in databases.operator_cases(op, samples, dtype):
        differentiable = [t for t in tensors_in(case.arguments) if t.requires_grad]
        gradients = (False, True) if differentiable and op.supports_autograd else (False,)
        for gradient in gradients:

            def make_arguments(case=case):
                positional, keywords = fresh(case.arguments)
                inputs = [t for t in tensors_in((positional, keywords)) if t.requires_grad]
                return positional, keywords, inputs

            name = f"{case.name}[{case.index}] {case.form}{', gradient' if gradient else ''}"
            limit_time()
            check(step_of(case, gradient), make_arguments, outcome, name, way)
    return outcome


def without_trivial_strides(value: Any) -> Any:
    """A snapshot in which strides count only along dimensions where there is a next element. Who shares
    memory is told by what is written: eager's gradients are parts of larger tensors at times."""
    if isinstance(value, TensorView):
        sizes = value.values.shape
        steps = [(size, stride) for size, stride in zip(sizes, value.strides, strict=True)]
        strides = tuple(stride for size, stride in steps if size > 1 and 0 not in sizes)
        grad = without_trivial_strides(value.grad)
        return replace(value, strides=strides, storage=0, grad=grad)
    if isinstance(value, (list, tuple)):
        return type(value)(without_trivial_strides(item) for item in value)
    return value


def write_into(tensor: torch.Tensor) -> None:
    """As programs do with what a call gave them: who shares memory with it sees it."""
    is_plain = not tensor.requires_grad and not tensor._is_zerotensor()
    has_overlap = torch._debug_has_internal_overlap(tensor) != 0
    if tensor.dtype.is_floating_point and is_plain and not has_overlap:
        tensor.mul_(0.5)


def check_step(case: StepCase, outcome: Outcome, way: Way) -> None:
    """Makes the calls in both ways, each with tensors of its own that live on; what a call gave is
    written into now and then, and must be the same still after the last."""
    other = way(case.step)
    functions, scopes = (case.step, other), (contextlib.nullcontext, way.scope)
    arguments = [[make() for make in case.make_arguments] for _ in functions]
    given: list[list[Any]] = [[] for _ in functions]

    def observe(which: int, call: int):
        with scopes[which]():
            return observe_within(which, call)

    def observe_within(which: int, call: int):
        mine = arguments[which][call % len(case.make_arguments)]
        torch.manual_seed(3)
        result, error = None, None
        try:
            result = functions[which](*mine)
        except Exception as raised:
            error = (type(raised), str(raised))
        given[which].append(result)
        gradients = [tensor.grad for tensor in tensors_in(mine) if tensor.grad is not None]
        for tensor in [*tensors_in(given[which]), *gradients] if call % 2 else ():
            write_into(tensor)
        seen = [snapshot(result, {"fresh": True}), snapshot(mine, {})]
        return [error, without_trivial_strides(seen), torch.get_rng_state()]

    try:
        for call in range((way.calls + MORE_CALLS) * len(case.make_arguments)):
            expected = observe(0, call)
            compare(expected, observe(1, call), f"{case.name} call {call}", 1e-8)
            if call == 0 and expected[0] is not None:
                break  # the operator doesn't take this input
        held = [without_trivial_strides(snapshot(each, {"fresh": True})) for each in given]
        compare(*held, f"{case.name}, held results", 1e-8)
    except AssertionError as error:
        outcome["differs"] += 1
        outcome.differences.append(str(error)[:300])
        return
    count(other, outcome, case.name)


def check_steps(op, samples: int | None, way: Way) -> Outcome:
    outcome = Outcome()
    for case in step_cases(op, samples, fresh):
        print(json.dumps({"begins": case.name}), flush=True)
        limit_time()
        check_step(case, outcome, way)
    return outcome


def worker(names: list[str], sampling: Sampling, steps: bool) -> None:
    """Checks operators, lazily each in a session of its own; prints one line of JSON before and one after
    each."""
    way, dtype = WAYS[sampling.way], getattr(torch, sampling.dtype)
    run = in_a_thread if way is Lazily else (lambda check: check())
    check_one = check_steps if steps else partial(check_operator, dtype=dtype)
    chosen = {databases.full_name(op): op for op in databases.operators(dtype)}
    for name in names:
        print(json.dumps({"begins": name}), flush=True)
        limit_time()
        try:
            outcome = run(lambda op=chosen[name]: check_one(op, sampling.samples, way))
        except Exception as error:  # the database itself fails
            outcome = Outcome()
            outcome["without samples"] += 1
            outcome.differences.append(f"{name}: no samples: {error!r}"[:200])
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps([outcome, outcome.differences, outcome.refused]), flush=True)


def check_operators(names: list[str], sampling: Sampling, steps: bool = False) -> Outcome:
    """In a subprocess; one that dies is replaced by one for the operators that are left."""
    total = Outcome()
    while names:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(names, file)
            file.flush()
            command = [sys.executable, __file__, "--worker", file.name, "--way", sampling.way]
            command += ["--dtype", sampling.dtype]
            if sampling.samples is not None:
                command += ["--samples", str(sampling.samples)]
            if steps:
                command += ["--steps"]
            running, finished = None, 0
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                for line in process.stdout:
                    try:
                        record = json.loads(line)
                    except ValueError:
                        continue  # an operator printed it
                    if isinstance(record, dict):
                        running = record["begins"]
                        continue
                    one = Outcome()
                    one.update(record[0])
                    one.differences = record[1]
                    one.refused = record[2]
                    if one.differences:
                        print("\n".join(one.differences), file=sys.stderr, flush=True)
                    total.merge(one)
                    total["operators"] += 1
                    total["operators without a difference"] += not one["differs"]
                    running, finished = None, finished + 1
        if running is None and finished < len(names):
            raise SystemExit(f"the subprocess ended with {process.returncode}")
        if running is not None:
            total["crash"] += 1
            total.differences.append(f"{running}: the process ended ({process.returncode})")
            print(total.differences[-1], file=sys.stderr, flush=True)
            finished += 1
        names = names[finished:]
    return total


def check_modules(samples: int | None, only: str | None, way: Way = Converted) -> Outcome:
    outcome = Outcome()
    for name, index, make, arguments in databases.module_cases(samples, way.dtype):
        if only and only not in name:
            continue
        torch.manual_seed(5)
        try:
            module = make()
        except Exception:
            continue
        if any(torch.nn.parameter.is_lazy(t) for t in module.state_dict().values()):
            continue  # its first call makes parameters
        initial = copy.deepcopy(module.state_dict())

        def step(positional, keywords, module=module):
            result = module(*positional, **keywords)
            losses = [t.float().sum() for t in tensors_in(result) if t.requires_grad]
            parameters = [p for p in module.parameters() if p.requires_grad]
            if not losses or not parameters:
                return result
            return result, torch.autograd.grad(sum(losses), parameters, allow_unused=True)

        def make_arguments(module=module, initial=initial, arguments=arguments):
            module.load_state_dict(initial)
            return fresh(arguments)

        check(step, make_arguments, outcome, f"{name}[{index}] gradient", way)
    return outcome


def check_optimizers(only: str | None, way: Way = Converted) -> Outcome:
    outcome = Outcome()
    for name, index, kind, keywords in databases.optimizer_cases():
        if only and only not in name:
            continue
        if any(keywords.get(key) for key in ("fused", "capturable", "foreach")):
            continue

        def build(kind=kind, keywords=keywords):
            torch.manual_seed(1)
            model = torch.nn.Linear(4, 3)
            optimizer = kind(model.parameters(), **{"lr": 0.01, **copy.deepcopy(keywords)})

            def step(x):
                optimizer.zero_grad()
                loss = model(x).pow(2).sum()
                loss.backward()
                optimizer.step()
                return loss.detach()

            return model, optimizer, step

        try:
            (eager_model, eager, eager_step), (model, optimizer, step) = build(), build()
        except Exception:
            continue
        other = way(step)
        runs = (
            (eager_step, contextlib.nullcontext, [eager_model, eager]),
            (other, way.scope, [model, optimizer]),
        )
        x = torch.randn(5, 4)
        try:
            for call in range(way.calls + MORE_CALLS):
                results = []
                for function, scope, state in runs:
                    with scope():
                        try:
                            result = snapshot(function(x), {})
                        except Exception as error:
                            result = (type(error), str(error))
                        results.append([result, snapshot(state, {})])
                compare(*results, f"{name}[{index}] call {call}", 1e-5)
        except AssertionError as error:
            outcome["differs"] += 1
            outcome.differences.append(str(error)[:300])
            continue
        count(other, outcome, f"{name}[{index}]")
    return outcome


def summary(title: str, outcome: Outcome) -> str:
    total = sum(outcome[kind] for kind in ("graph", "imperative", "strides", "differs"))
    checked = f" of {outcome['operators']} operators" if outcome["operators"] else ""
    return (
        f"{title}: {total} samples{checked}, {outcome['graph']} ran as graphs, "
        f"{outcome['imperative']} stayed imperative, {outcome['strides']} differ in the strides "
        f"or sharing of gradients only, {outcome['differs']} differ, {outcome['internal errors']} internal "
        f"errors, {outcome['crash']} crashes"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, help="at most so many samples of each operator")
    parser.add_argument("--only", help="only what has this in its name")
    parser.add_argument("--stride", type=int, default=1, help="every K-th operator")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steps", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=WAYS, default="converted")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--parts", default="operators,steps,modules,optimizers")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    way = WAYS[options.way]
    sampling = Sampling(options.samples, options.way, options.dtype)
    if way is Lazily:
        _core.testing.let_times_decide(False)  # graphs run at once
    if options.worker:
        worker(json.loads(options.worker.read_text()), sampling, options.steps)
        return
    outcomes = {}
    names = [databases.full_name(op) for op in databases.operators(getattr(torch, options.dtype))]
    names = [n for n in names[options.offset :: options.stride] if (options.only or "") in n]
    if "operators" in options.parts:
        outcomes["operators"] = check_operators(names, sampling)
    if "steps" in options.parts:
        outcomes["steps"] = check_operators(names, sampling, steps=True)
    if "modules" in options.parts:
        outcomes["modules"] = check_modules(options.samples, options.only, way)
    if "optimizers" in options.parts:
        outcomes["optimizers"] = check_optimizers(options.only, way)
    for title, outcome in outcomes.items():
        print(summary(title, outcome))
        for line in outcome.differences[:40]:
            print("  differs:", line.replace("\n", " "))
        for reason, count in outcome.refusals().most_common(15):
            print(f"  refused {count} times: {reason}")
    if options.json:
        found = {k: {**v, "refused": v.refused} for k, v in outcomes.items()}
        options.json.write_text(json.dumps(found, indent=1))
    wrong = ("differs", "internal errors", "crash")
    raise SystemExit(any(outcome[kind] for outcome in outcomes.values() for kind in wrong))


if __name__ == "__main__":
    main()
