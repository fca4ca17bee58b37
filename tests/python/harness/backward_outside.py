"""Programs whose converted step gives results that require a gradient, and whose backward() comes later."""

from differential import Program

import torchjanus


def backward_outside(step, calls):
    """The step is converted; what its floating point results add up to is differentiated outside."""

    def with_backward(function):
        def call(*given):
            results = function(*given)
            each = results if isinstance(results, tuple) else (results,)
            sum(result.sum() for result in each if result.requires_grad).backward()
            return results

        return call

    def convert(_):
        converted = torchjanus.function(step)
        return with_backward(converted), converted

    return Program(with_backward(step), calls, convert=convert)


def used_outside(outputs, use, parameters, calls):
    """`use` gets what `outputs(x)` gives, which alone is converted; the parameters' gradients count as well."""

    def step_with(function):
        def step(x):
            for parameter in parameters:
                parameter.grad = None
            return use(function(x))

        return step

    def convert(_):
        converted = torchjanus.function(outputs)
        return step_with(converted), converted

    return Program(step_with(outputs), calls, watch=[parameters], convert=convert)
