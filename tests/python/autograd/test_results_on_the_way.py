"""Several results of a graph of which one lies on the way of another's gradient: the caller hooks it, keeps
its gradient, or asks for the gradient with respect to it."""

import random
import time

import pytest
from backward_outside import used_outside
from differential import Program, differential, rise_mib

import torch
import torchjanus
from torch import nn


def looked_at(outputs, use, parameters, sizes=(2, 3)):
    return used_outside(outputs, use, parameters, [(torch.randn(*sizes),) for _ in range(8)])


def last(results):
    results[-1].sum().backward()


def retained(results):
    for result in results:
        result.retain_grad()
    results[-1].square().sum().backward()
    return [result.grad for result in results]


def first_retained(results):
    results[0].retain_grad()
    results[-1].square().sum().backward()
    return results[0].grad


def hooked(results):
    results[1].register_hook(lambda gradient: gradient * 3)
    sum(result.sum() * (i + 1) for i, result in enumerate(results)).backward()


def unhooked(results):
    sum(result.sum() * (i + 1) for i, result in enumerate(results)).backward()


def gradients(results):
    return torch.autograd.grad(results[-1].square().sum(), results[:-1])


def hooked_in_between(results):
    results[-1].sum().backward(retain_graph=True)
    results[0].register_hook(lambda gradient: gradient * 2)
    results[1].sum().backward(retain_graph=True)
    results[-1].sum().backward()


def penalty(results):
    """The gradient with respect to a result is differentiated again, as in WGAN-GP."""
    (gradient,) = torch.autograd.grad(results[-1].square().sum(), results[0], create_graph=True)
    results[1].retain_grad()
    (gradient.square().sum() + results[1].sum()).backward()
    return gradient.detach(), results[1].grad


def penalty_of_the_last(results):
    (gradient,) = torch.autograd.grad(results[-1].square().sum(), results[0], create_graph=True)
    gradient.square().sum().backward()
    return gradient.detach()


FIRST_ORDER = [last, retained, first_retained, hooked, unhooked, gradients, hooked_in_between]
USES = [*FIRST_ORDER, penalty]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
@differential(hits=4, graphs=1)
def test_chain(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def outputs(x):
        a = layers[0](x).tanh()
        b = layers[1](a).tanh() + a
        return a, b, layers[2](b).tanh() + a * b

    return looked_at(outputs, use, list(layers.parameters()))


@pytest.mark.parametrize("use", [last, retained, hooked, hooked_in_between])
@differential(hits=4, graphs=1)
def test_states_of_a_recurrent_cell(use):
    cell = nn.LSTMCell(3, 4)

    def outputs(x):
        hidden = memory = torch.zeros(2, 4)
        steps = []
        for row in x:
            hidden, memory = cell(row, (hidden, memory))
            steps.append(hidden)
        return memory, hidden, torch.stack(steps)

    return looked_at(outputs, use, list(cell.parameters()), (5, 2, 3))


@pytest.mark.parametrize("use", [last, retained, gradients])
@differential(hits=3, graphs=2)
def test_branch_behind_a_result(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def outputs(x):
        a = layers[0](x)
        if a.sum() > 0:
            return a, layers[1](a).tanh()
        return a, a * 2

    return looked_at(outputs, use, list(layers.parameters()))


@pytest.mark.parametrize("use", [last, hooked_in_between, first_retained])
@differential(hits=4, graphs=1)
def test_the_program_detaches_the_result_itself(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def outputs(x):
        a = layers[0](x)
        b = a * a.detach()
        return a, b, layers[1](b) * a.detach() + a

    return looked_at(outputs, use, list(layers.parameters()))


@differential(hits=4, graphs=1)
def test_dropout_in_front_of_a_result():
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def outputs(x):
        a = nn.functional.dropout(layers[0](x), 0.5)
        return a, a.exp(), nn.functional.dropout(layers[1](a), 0.5)

    return looked_at(outputs, penalty_of_the_last, list(layers.parameters()))


def first_hooked(results):
    results[0].register_hook(lambda gradient: gradient * 2)
    results[-1].square().sum().backward()


@pytest.mark.parametrize("use", [first_hooked, retained], ids=lambda use: use.__name__)
@differential(hits=4, graphs=1)
def test_results_beside_each_other(use):
    """A hook on a result that backward() does not come to is not called."""
    layer = nn.Linear(3, 3)

    def outputs(x):
        return layer(x).tanh(), (layer(x) * 2).tanh()

    return looked_at(outputs, use, list(layer.parameters()))


@pytest.mark.parametrize("use", [last, first_hooked], ids=lambda use: use.__name__)
@differential(hits=6)
def test_result_with_a_gradient_on_one_side_of_a_branch(use):
    """The weight surely has a gradient of both results together, but not of the last alone."""
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def outputs(x):
        a = layers[0](x)
        b = layers[1](x)
        if x.sum() > 0:
            b = layers[0](b)
        return a, b * 2

    program = looked_at(outputs, use, list(layers.parameters()))
    program.calls = [(torch.randn(2, 3),) for _ in range(16)]
    return program


@differential(hits=4)
def test_hook_behind_a_cut():
    """The segments of a cut step hand their variables on in the same way."""
    weight = torch.randn(3, 3, requires_grad=True)

    def step(x):
        weight.grad = None
        hidden = x @ weight
        loss = (hidden * 2).tanh().sum()
        loss.backward(retain_graph=True)
        hidden.register_hook(lambda gradient: gradient * 10)
        loss.backward()
        return loss.detach()

    return Program(step, [(torch.randn(2, 3),) for _ in range(24)], watch=[weight])


def tree(form):
    """Of ever other forms, so that the recursion over it is a function of the graph."""
    value = torch.randn(2, 3)
    if form <= 1:
        return {"value": value, "children": []}
    return {"value": value, "children": [tree(form // 2), tree((form - 1) // 2), tree(form // 3)]}


def looked_at_in_trees(outputs, use, parameters):
    program = looked_at(outputs, use, parameters)
    return Program(
        program.step,
        [(tree(2 + 3 * i % 11),) for i in range(14)],
        watch=program.watch,
        convert=program.convert,
    )


@pytest.mark.parametrize("use", FIRST_ORDER, ids=lambda use: use.__name__)
@differential(hits=6, graphs=3)
def test_results_behind_a_recursion(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def encode(node):
        state = layers[0](node["value"])
        for child in node["children"]:
            state = state + layers[1](encode(child))
        return state.tanh()

    def outputs(node):
        a = encode(node)
        b = layers[2](a).tanh() + a
        return a, b, b * a

    return looked_at_in_trees(outputs, use, [layers[0].weight, layers[0].bias, layers[2].weight])


@pytest.mark.parametrize("use", [last, retained, hooked], ids=lambda use: use.__name__)
@differential(hits=6, graphs=3)
def test_results_of_two_recursions(use):
    """Of which the second one's gradients go through the first, within loops and branches."""
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def encode(node, x):
        state = x * 0.1
        for child in node["children"]:
            state = state + layers[0](encode(child, x.sin())).tanh()
        if len(node["children"]) > 2:
            state = layers[1](state)
        return layers[1](layers[0](state))

    def outputs(node):
        a = layers[0](node["value"])
        b = encode(node, a)
        return a, b, encode(node, b), layers[1](b)

    return looked_at_in_trees(outputs, use, list(layers.parameters()))


@pytest.mark.parametrize("use", FIRST_ORDER, ids=lambda use: use.__name__)
@differential(hits=6, graphs=3)
def test_results_in_front_of_a_recursion(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def encode(node, state):
        state = state * layers[0](node["value"]).tanh()
        for child in node["children"]:
            state = state + encode(child, state)
        return state.sin()

    def outputs(node):
        a = layers[2](node["value"]) * 2
        b = encode(node, a) * 3
        return a, b, encode(node, b * a)

    return looked_at_in_trees(outputs, use, list(layers.parameters()))


# --- within a branch, loop or function ----------------------------------------------------------------


@pytest.mark.parametrize("use", FIRST_ORDER, ids=lambda use: use.__name__)
@differential(hits=4)
def test_results_of_one_side_of_a_branch(use):
    """The test is followed."""
    w = torch.randn(3, requires_grad=True)

    def outputs(x):
        if x.sum() > 0:
            a = torch.tanh(x * w)
            b = a * w
        else:
            a = torch.sin(x * w)
            b = a + w
        return a, b, b * 2

    return looked_at(outputs, use, [w])


@pytest.mark.parametrize("use", FIRST_ORDER, ids=lambda use: use.__name__)
@differential(reasons=["autograd"])
def test_results_of_one_call_of_a_recursion(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def encode(node, state):
        cell = layers[0](node["value"]) * state
        for child in node["children"]:
            cell = cell + encode(child, state * 0.5)[1]
        return cell, torch.tanh(cell) * node["value"]

    def outputs(node):
        a, b = encode(node, node["value"])
        _, d = encode(node, b)
        return a, *encode(node, d)

    return looked_at_in_trees(outputs, use, list(layers.parameters()))


@differential(hits=4)
def test_results_that_share_nothing():
    """Each has a backward() of its own."""
    w, v = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)

    def outputs(x):
        a = torch.tanh(w * x)
        return a, torch.sin(v * x), a * w, torch.cos(v)

    def each_alone(results):
        for result in results[1:]:
            result.sum().backward()

    return looked_at(outputs, each_alone, [w, v])


@differential(hits=4)
def test_results_that_share_what_is_freed():
    w = torch.randn(3, requires_grad=True)

    def outputs(x):
        a = torch.tanh(w * x)
        return a * x, a * w

    def each_alone(results):
        results[0].sum().backward()
        try:
            results[1].sum().backward()
        except RuntimeError as error:
            return str(error)

    return looked_at(outputs, each_alone, [w])


SAVED = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "square root": lambda y: (y.abs() + 1).sqrt(),
    "reciprocal": lambda y: 1 / (y.abs() + 1),
    "softmax": lambda y: y.softmax(1),
    "tangent": lambda y: (y * 0.1).tan(),
}


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("alone", [True, False])
@differential(hits=4, graphs=1)
def test_a_gradient_needs_the_result_itself(name, alone):
    """Its own gradient comes to the result by what was saved, also where that is looked at."""
    w = torch.randn(2, 3, requires_grad=True)

    def outputs(x):
        result = SAVED[name](x * w)
        return (result,) if alone else (result, (result * result * w).sum())

    def use(results):
        results[0].retain_grad()
        results[0].register_hook(lambda gradient: gradient * 2)
        (first,) = torch.autograd.grad(results[-1].sum(), w, create_graph=True)
        (saved,) = torch.autograd.grad(first.sum(), results[0], create_graph=True)
        (saved.sum() + first.square().sum()).backward()
        return first.detach(), saved.detach(), results[0].grad

    return looked_at(outputs, use, [w])


@differential(hits=4, graphs=1)
def test_a_gradient_that_needs_the_result_after_its_backward():
    w = torch.randn(2, 3, requires_grad=True)

    def outputs(x):
        return ((x * w).tanh(),)

    def use(results):
        (first,) = torch.autograd.grad(results[0].sum(), w, create_graph=True)
        results[0].sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            first.sum().backward()
        return first.detach()

    return looked_at(outputs, use, [w])


def infinite_slopes(step, chosen):
    """Of zeros, the slope of the square root is infinite: 0 times that is NaN."""

    def use(function):
        def call(w):
            results = function(w)
            sum(results[i].sum() for i in chosen).backward()
            return results

        return call

    def convert(_):
        converted = torchjanus.function(step)
        return use(converted), converted

    calls = [(torch.tensor([0.0, 0, 1, 2 + i]).requires_grad_(),) for i in range(6)]
    return Program(use(step), calls, convert=convert)


def sorted_part(w):
    z = w.sqrt()
    return z, z.sort()[0][2:]


def largest(w):
    z = w.sqrt()
    return z, z.amax(0)


def three(w):
    z = w.sqrt()
    u = z[1:]
    return z, z * 2, (u * u)[1:], z.prod()


def quotients(w):
    z = (w + 1) / w
    return z, z.amax(0), z.amin(0)


def logarithm(w):
    z = w * 1
    return z.log(), z * 2


def chosen_of(count):
    return [[i for i in range(count) if mask >> i & 1] for mask in range(1, 2**count)]


@pytest.mark.parametrize("chosen", chosen_of(2))
@pytest.mark.parametrize("step", [sorted_part, largest, logarithm])
@differential(graphs=1)
def test_infinite_slope_behind_two_results(step, chosen):
    """Eager adds what comes to a result before it goes on, and computes nothing where no gradient comes."""
    return infinite_slopes(step, chosen)


@pytest.mark.parametrize("chosen", chosen_of(3))
@differential(graphs=1)
def test_infinite_slope_behind_three_results(chosen):
    return infinite_slopes(quotients, chosen)


@pytest.mark.parametrize("chosen", chosen_of(4))
@differential(graphs=1)
def test_infinite_slope_behind_a_chain_of_results(chosen):
    return infinite_slopes(three, chosen)


def many(w):
    z = w.sqrt()
    return z, z[1:], (z * z)[1:], z.prod(), z.log().sum(), z.reciprocal()


def chosen_in_turn(function, count):
    """Another set of results in each call."""
    number = 0

    def step(w):
        nonlocal number
        number += 7
        results = function(w)
        loss = sum(results[i].sum() for i in range(count) if number >> i & 1)
        loss.backward()
        return loss

    return step


@differential(graphs=1)
def test_infinite_slopes_behind_many_choices_of_results():
    """Not every set of gradients that come gets a backward run of its own."""

    def convert(_):
        converted = torchjanus.function(many)
        return chosen_in_turn(converted, 6), converted

    calls = [(torch.tensor([0.0, 0, 1, 2 + i]).requires_grad_(),) for i in range(63)]
    return Program(chosen_in_turn(many, 6), calls, convert=convert)


def test_choices_of_results_are_not_compiled_for_ever():
    """Also in memory: every run has code of its own."""
    w = torch.randn(8, requires_grad=True)

    @torchjanus.function
    def losses(x):
        return [(x * w).tanh().pow(2).sum() * i for i in range(1, 13)]

    def work(steps):
        for _ in range(steps):
            results = losses(torch.ones(8))
            sum(random.sample(results, 6)).backward()

    work(40)
    assert rise_mib(lambda: work(150)) < 8


def seconds_of_backward(step, length):
    """The shortest of three."""
    seconds = []
    for _ in range(3):
        h, results = torch.zeros(2, 3), []
        for _ in range(length):
            h, doubled = step(torch.ones(2, 3), h)
            results.append(doubled)
        loss = torch.stack(results).sum()
        begin = time.perf_counter()
        loss.backward()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def test_a_long_chain_of_calls_takes_time_in_proportion():
    cell = torch.nn.RNNCell(3, 3)

    @torchjanus.function
    def step(x, h):
        h = cell(x, h)
        return h, h * 2

    few = seconds_of_backward(step, 250)
    many = seconds_of_backward(step, 2500)
    assert torchjanus.stats(step)["hits"] > 2500
    assert many < 35 * few + 0.02


def chunks(x):
    mean, log_variance = x.chunk(2, 1)
    return mean, log_variance, (mean + log_variance.exp()).tanh()


def head_of(view):
    def outputs(x):
        part = view(x)
        return part, part.square() * 2

    return outputs


def part_of_a_product(x):
    """The last result is a view, too, of something else."""
    part = x[:, 1:]
    return part, (part * 2).tanh()[:, 0]


def written_before(x):
    hidden = x * 1
    hidden[:, 0] = 0
    part = hidden[:, :2]
    return part, part.exp()


VIEWS = {
    "chunks": chunks,
    "columns": head_of(lambda x: x[:, 1:]),
    "every other": head_of(lambda x: x[:, ::2]),
    "last": head_of(lambda x: x[:, -1]),
    "transposed": head_of(lambda x: x.t()),
    "mT": head_of(lambda x: x.mT),
    "split": head_of(lambda x: x.split([1, 3], 1)[1]),
    "of a view": head_of(lambda x: x.view(-1, 2).t()[:, 1:3]),
    "flattened image": head_of(lambda x: nn.functional.avg_pool2d(x[None, None], 1).flatten(1)),
    "of a product": part_of_a_product,
    "written before": written_before,
}


@pytest.mark.parametrize(
    "use",
    [retained, hooked, first_retained, gradients],
    ids=lambda use: use.__name__,
)
@pytest.mark.parametrize("view", VIEWS)
@differential(hits=4, graphs=1)
def test_views(view, use):
    layer = nn.Linear(3, 4)
    return looked_at(lambda x: VIEWS[view](layer(x).exp()), use, list(layer.parameters()))


@differential(hits=4, graphs=1)
def test_a_view_of_varying_rows():
    layer = nn.Linear(3, 4)
    calls = [(torch.randn(2 + i % 3, 3),) for i in range(12)]
    return used_outside(lambda x: chunks(layer(x)), retained, list(layer.parameters()), calls)


class Kept:
    pass


def kept_with_what_it_is_of(w, x):
    kept = Kept()
    kept.hidden = w * x
    kept.part = kept.hidden[:, 1:]
    return kept.part, (kept.part * 2).exp(), kept.hidden


IN_SHARED_MEMORY = {
    "beside what it is of": kept_with_what_it_is_of,
    "diagonal": lambda w, x: head_of(lambda part: part.diagonal())(w * x),
    "expanded": lambda w, x: head_of(lambda part: part[:1].expand(4, 3))(w * x),
}


@pytest.mark.parametrize("name", IN_SHARED_MEMORY)
@differential(reasons=["autograd"])
def test_views_in_memory_that_others_show(name):
    w = torch.randn(4, 3, requires_grad=True)

    def outputs(x):
        return IN_SHARED_MEMORY[name](w, x)

    return looked_at(outputs, hooked, [w], (4, 3))


@differential(hits=4, graphs=1)
def test_views_beside_the_way_share_their_memory():
    layer = nn.Linear(3, 4)

    def outputs(x):
        hidden = layer(x)
        return hidden, hidden[:, 1:], hidden.t(), (hidden * 2).exp()

    return looked_at(outputs, retained, list(layer.parameters()))
