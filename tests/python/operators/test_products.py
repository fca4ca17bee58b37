"""Matrix products that graphs do together (`sum_products`, `stack_products`), against eager."""

import pytest
from differential import Program, differential, resident_mib

import torch
import torchjanus
from torch import nn


class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.from_input = nn.Linear(inputs, 4 * hidden)
        self.from_hidden = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x, state):
        hidden, cell = state
        gates = self.from_input(x) + self.from_hidden(hidden)
        enter, forget, candidate, leave = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
        return torch.sigmoid(leave) * torch.tanh(cell), cell


def recurrent():
    cells = nn.ModuleList(Cell(32, 32) for _ in range(2))
    decoder = nn.Linear(32, 7)
    optimizer = torch.optim.SGD([*cells.parameters(), *decoder.parameters()], 0.1)

    def step(inputs):
        states = [(inputs.new_zeros(inputs.shape[1], 32),) * 2 for _ in cells]
        outputs = []
        for x in inputs:
            for layer, cell in enumerate(cells):
                states[layer] = cell(x, states[layer])
                x = states[layer][0]
            outputs.append(x)
        loss = decoder(torch.stack(outputs)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, states

    return step, [cells, decoder, optimizer]


@differential()
def test_layers_of_a_recurrent_network():
    step, watch = recurrent()
    return Program(step, [(torch.randn(12, 3, 32),) for _ in range(6)], watch=watch)


@differential(dtype=torch.float32, tolerance=1e-4)
def test_layers_of_a_recurrent_network_in_single_precision():
    step, watch = recurrent()
    return Program(step, [(torch.randn(12, 3, 32),) for _ in range(6)], watch=watch)


@differential()
def test_a_recurrent_network_on_batches_of_any_size():
    step, watch = recurrent()
    return Program(step, [(torch.randn(12, 2 + i % 5, 32),) for i in range(12)], watch=watch)


def products(f):
    return sum(f.graph().count(f" = {name} ") for name in ("linear", "mm", "addmm"))


def test_what_needs_no_result_of_another_product_is_done_at_once():
    iterations = 12

    def count(f):
        for _ in range(6):
            f(torch.randn(iterations, 3, 32))
        return products(f)

    step, _ = recurrent()
    # Forward and backward, the states' products need each other. For each layer, the inputs' are one, forward and
    # backward, and the weights' gradients are one each; the decoder has three. (The first input has no gradient.)
    dependent = 2 * iterations + 2 * (iterations - 1)
    assert count(torchjanus.function(step)) == dependent + 2 + 1 + 4 + 3
    with torchjanus.options.without("sum_products", "stack_products", "widen_products"):
        step, _ = recurrent()
        assert count(torchjanus.function(step)) == dependent + (2 + 1 + 4) * iterations + 3


@differential()
def test_both_directions():
    there, back = nn.RNNCell(8, 8), nn.RNNCell(8, 8)
    embedding = nn.Embedding(10, 8)

    def step(words):
        inputs = embedding(words)
        a = b = torch.zeros(2, 8)
        firsts, seconds = [], []
        for t in range(6):
            a = there(inputs[t], a)
            b = back(inputs[5 - t], b)
            firsts.append(a)
            seconds.insert(0, b)
        loss = (torch.stack(firsts) * torch.stack(seconds)).sum()
        for parameter in (*there.parameters(), *back.parameters(), *embedding.parameters()):
            parameter.grad = None
        loss.backward()
        return loss

    calls = [(torch.randint(0, 10, (6, 2)),) for _ in range(6)]
    return Program(step, calls, watch=[there, back, embedding])


@differential()
def test_vectors_and_bare_matrices():
    w, u = (nn.Parameter(torch.randn(9, 9) / 3) for _ in range(2))

    def step(inputs):
        state = torch.zeros(9)
        outputs = []
        for x in inputs:
            state = torch.tanh(w @ x + state @ u)
            outputs.append(state)
        torch.stack(outputs).sum().backward()  # into the gradients of the steps before
        return outputs

    return Program(step, [(torch.randn(7, 9),) for _ in range(6)], watch=[w, u])


@differential()
def test_results_are_tensors_of_their_own():
    layer = nn.Linear(6, 6)

    def step(inputs):
        with torch.no_grad():
            first, second, third = (layer(x) for x in inputs)
            second.mul_(2)
            views = first.t(), layer(inputs[0] + third)[0]
        return first, second, torch.relu(third), views

    return Program(step, [(torch.randn(3, 4, 6),) for _ in range(6)], watch=[layer])


@differential()
def test_gradients_of_the_inputs():
    layer = nn.Linear(6, 5)

    def step(inputs, single):
        total = sum(torch.tanh(layer(x)).sum() for x in inputs) + layer(single).sum()
        total = total + (inputs[1] * inputs[3]).sum()
        total.backward()
        return total

    calls = [
        (torch.randn(4, 3, 6).requires_grad_(), torch.randn(3, 6).requires_grad_())
        for _ in range(6)
    ]
    return Program(step, calls, watch=[layer])


@differential()
def test_gradients_of_some_inputs():
    table = nn.Parameter(torch.randn(6, 3, 4))
    layer = nn.Linear(4, 4)

    def step(skip):
        total = sum(torch.sin(layer(x)).sum() for x in table[2:5])
        total = total + layer(table[0]).sum() + layer(table[skip]).sum()
        table.grad = layer.weight.grad = layer.bias.grad = None
        total.backward()
        return total

    return Program(step, [(1 + i % 2,) for i in range(8)], watch=[table, layer])


@differential()
def test_gradients_of_gradients():
    layer = nn.Linear(5, 5)

    def step(inputs):
        total = sum(torch.sin(layer(x)).sum() for x in inputs)
        (first,) = torch.autograd.grad(total, layer.weight, create_graph=True)
        layer.weight.grad = layer.bias.grad = None
        (first.square().sum() + total).backward()
        return total

    return Program(step, [(torch.randn(9, 3, 5),) for _ in range(6)], watch=[layer])


@differential(hits=8)
def test_a_test_between_the_products():
    layer = nn.Linear(5, 5)

    def step(inputs):
        state = inputs[0]
        for x in inputs:
            state = state + torch.tanh(layer(x))
            if state.sum() > 100:
                return state * 0
            state = state + layer(x * 2)
        state.sum().backward()
        return state

    calls = [(torch.randn(4, 3, 5) + (50 if i == 8 else 0),) for i in range(12)]
    return Program(step, calls, watch=[layer])


@differential()
def test_infinities_and_nothing_stay_in_their_rows():
    layer = nn.Linear(4, 4)

    def step(inputs):
        with torch.no_grad():
            return [layer(x).exp() for x in inputs]

    special = torch.randn(5, 3, 4)
    special[1, 2, 0], special[3, 0, 1] = float("inf"), float("nan")
    return Program(step, [(torch.randn(5, 3, 4),) for _ in range(5)] + [(special,)], watch=[layer])


@differential()
def test_two_networks_that_meet():
    a, b = nn.Linear(64, 64), nn.Linear(64, 64)
    optimizer = torch.optim.Adam([*a.parameters(), *b.parameters()], 0.01)

    def step(x, y):
        loss = (torch.relu(b(torch.relu(a(x)))) * torch.relu(a(torch.relu(b(y))))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(torch.randn(2, 64), torch.randn(2, 64)) for _ in range(6)]
    return Program(step, calls, watch=[a, b, optimizer])


class Reader(nn.Module):
    """Reads texts of any length word by word; `look` says what else happens in an iteration."""

    def __init__(self, look):
        super().__init__()
        self.words = nn.Embedding(10, 8)
        self.from_input = nn.Linear(8, 8)
        self.from_state = nn.Linear(8, 8, bias=False)
        self.look = look

    def forward(self, text):
        state = torch.zeros(text.shape[1], 8)
        for x in self.words(text):
            state = self.look(self, x, state)
        return state


def adds(model, x, state):
    return torch.tanh(model.from_input(x) + model.from_state(state))


def skips_where_large(model, x, state):
    if state.sum() > 0:
        return state * 0.9 + x
    return torch.tanh(model.from_input(x.sin()) + model.from_state(state))


def multiplies_twice(model, x, state):
    return torch.tanh(model.from_state(torch.relu(model.from_input(x * 2))) * state + x)


def draws(model, x, state):
    return torch.tanh(model.from_input(nn.functional.dropout(x, 0.5)) + model.from_state(state))


@pytest.mark.parametrize("look", [adds, skips_where_large, multiplies_twice, draws])
@differential()
def test_texts_of_any_length(look):
    model = Reader(look)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(text):
        loss = model(text).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    lengths = [3, 5, 2, 7, 4, 9, 6, 3, 8, 5, 11, 2]
    calls = [(torch.randint(0, 10, (length, 3)),) for length in lengths]
    return Program(step, calls, watch=[model, optimizer])


@differential()
def test_a_loop_that_ends_early():
    layer = nn.Linear(4, 4)

    def step(inputs, enough):
        total = torch.zeros(3, 4)
        for x in inputs:
            total = total + layer(x).exp()
            if total.sum() > enough:
                break
        total.sum().backward()
        return total

    calls = [(torch.randn(3 + i % 4, 3, 4), 20.0 + 10 * (i % 3)) for i in range(16)]
    return Program(step, calls, watch=[layer])


def test_the_rows_of_a_loop_are_multiplied_in_front_of_it():
    model = Reader(adds)

    def step(text):
        loss = model(text).square().mean()
        loss.backward()
        return loss

    f = torchjanus.function(step)
    for length in (3, 5, 2, 7, 4, 9, 6, 3, 8, 5):
        f(torch.randint(0, 10, (length, 3)))
    text = f.graph()
    body = text[text.index("} do {") : text.index("list_push")]
    assert body.count(" = linear ") == 1 and body.count(" = row ") == 1


class Heads(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        parts = [nn.Linear(width, width // heads, bias=i % 2 == 0) for i in range(3 * heads)]
        self.parts = nn.ModuleList(parts)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        mixed = []
        for i in range(0, len(self.parts), 3):
            query, key, value = (part(x) for part in self.parts[i : i + 3])
            shares = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
            mixed.append(shares @ value)
        return x + self.out(torch.cat(mixed, dim=-1))


def attention():
    model = nn.Sequential(nn.LayerNorm(32), Heads(32, 8), nn.LayerNorm(32), Heads(32, 8))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step, [model, optimizer]


@differential()
def test_heads_of_an_attention():
    step, watch = attention()
    return Program(step, [(torch.randn(4, 25, 32),) for _ in range(6)], watch=watch)


@differential()
def test_heads_on_any_number_of_rows():
    step, watch = attention()
    return Program(step, [(torch.randn(4, 20 + i % 7, 32),) for i in range(12)], watch=watch)


@differential()
def test_wide_results_are_tensors_of_their_own():
    layers = nn.ModuleList(nn.Linear(40, 4) for _ in range(6))
    matrices = [nn.Parameter(torch.randn(40, 3)) for _ in range(6)]

    def step(x):
        inside = [layer(x).relu().sum(0) for layer in layers[:4]]
        inside += [(x @ matrix).relu().sum(0) for matrix in matrices[:4]]
        outside = [layers[4](x), x @ matrices[4]]
        shown = layers[5](x)
        with torch.no_grad():
            changed = x @ matrices[5]
            changed.mul_(2)
        (sum(each.sum() for each in inside) + shown.sum()).backward()
        return inside, outside, shown.detach()[:, 1], changed

    return Program(step, [(torch.randn(50, 40),) for _ in range(6)], watch=[layers, *matrices])


def test_what_meets_the_same_rows_is_one_product():
    step, _ = attention()
    f = torchjanus.function(step)
    for _ in range(6):
        f(torch.randn(4, 100, 32))
    # For both layers: the heads with a bias, those without, what mixes them; for the inputs of the heads, all heads.
    assert f.graph().count(" = linear ") == 2 * 3
    weights = 2 * 25
    assert f.graph().count(" = mm ") == weights + 2 * (1 + 1)


@differential(hits=4, graphs=2)
def test_rows_whose_sizes_are_written_in_other_ways():
    """That slices follow one another does not tell that their sizes add up in one form."""

    def step(x):
        return torch.cat([x[1:3], x[3:3], x[3:4]]) @ x.t()

    return Program(step, [(torch.randn(rows, 4),) for rows in (4, 4, 4, 4, 5, 6, 7, 8, 3)])


def test_small_products_of_ever_new_shapes_leave_nothing_behind():
    """oneDNN keeps half a MiB for each shape that it has seen."""
    weight = torch.randn(128, 128)
    converted = torchjanus.function(lambda x: (x @ weight).tanh().sum())
    batches = [torch.randn(rows, 128) for rows in range(40, 100)]

    def run(batches):
        for batch in 6 * batches:
            expected = (batch @ weight).tanh().sum()
            torch.testing.assert_close(converted(batch), expected, rtol=1e-4, atol=1e-2)

    run(batches[:10])
    before = resident_mib()
    run(batches[10:])
    assert torchjanus.stats(converted)["hits"] > len(batches)
    assert resident_mib() - before < 12


# Those that are measured, and smaller ones, for which a rule decides.
SIZES = [
    (32, 256, 256),
    (50, 333, 129),
    (101, 77, 90),
    (20, 4, 100),
    (20, 100, 2),
    (5, 7, 3),
    (1, 100, 90),
]


@pytest.fixture(params=[0, 1, 2], ids=["mkl", "own", "onednn"])
def way(request):
    torchjanus._core.testing.force_way(request.param)
    yield request.param
    torchjanus._core.testing.force_way(-1)


@pytest.mark.parametrize("rows, inner, columns", SIZES)
def test_products_in_every_way(way, rows, inner, columns):
    x, weight = torch.randn(rows, inner), torch.randn(columns, inner, requires_grad=True)
    bias = torch.randn(columns, requires_grad=True)
    batches = torch.randn(3, rows, inner), torch.randn(3, inner, columns)

    def step():
        y = nn.functional.linear(x, weight, bias)
        other = torch.addmm(y.detach(), x, weight.t())
        gradients = torch.autograd.grad((y * y).sum(), (weight, bias))
        back = y.detach() @ weight
        return y, other, back, torch.bmm(*batches), batches[0] @ batches[1][0], *gradients

    converted = torchjanus.function(step)
    for _ in range(6):
        results = converted()
    assert converted.stats()["state"] == "graph"
    torch.testing.assert_close(results, step(), rtol=1e-4, atol=1e-3)


def recurrent_over_any_length(sizes):
    cell, head = nn.LSTMCell(6, 32), nn.Linear(32, 2)
    parameters = [*cell.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, 0.05, momentum=0.9)

    def step(x):
        h = c = torch.zeros(x.shape[1], 32)
        for t in range(x.shape[0]):
            h, c = cell(x[t], (h, c))
        loss = head(h).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(
        step, [(torch.randn(*size, 6),) for size in sizes], watch=[cell, head, optimizer]
    )


@differential(hits=10)
def test_a_loop_in_the_graph_multiplies_the_rows_of_its_iterations_behind_it():
    return recurrent_over_any_length([(2 + i * 5 % 7, 2) for i in range(14)])


@differential(hits=8)
def test_a_loop_of_one_iteration_and_of_none():
    return recurrent_over_any_length([(4, 2), (2, 2), (5, 2), (3, 2), (1, 2), (0, 2)] * 4)


def test_iterations_add_no_product_to_the_weights_gradient():
    program = recurrent_over_any_length([(2 + i * 5 % 7, 2) for i in range(8)])

    def count():
        step = torchjanus.function(program.step)
        for call in program.calls:
            step(*call)
        return step.graph().count("addmm"), step.graph().count(" = list_stack ")

    in_loop, stacks = count()
    with torchjanus.options.without("stack_rounds"):
        assert count() == (in_loop + 1, 0)
    assert stacks == 2


def turns(f):
    """How many matrices the graph lays out anew."""
    return f.graph().count(" = contiguous ")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [1, 2, 7, 32])
@pytest.mark.parametrize("width", [16, 33, 70])
def test_a_weight_that_states_meet_is_turned_once(rows, width, dtype):
    cell = nn.GRUCell(5, width, dtype=dtype)

    def step(inputs):
        state = torch.zeros(rows, width, dtype=dtype)
        for x in inputs:
            state = cell(x, state)
        loss = state.square().mean()
        return loss, *torch.autograd.grad(loss, list(cell.parameters()))

    f = torchjanus.function(step)
    for _ in range(6):
        inputs = torch.randn(6, rows, 5, dtype=dtype)
        close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {}
        torch.testing.assert_close(f(inputs), step(inputs), **close)
    assert turns(f) == 1
    with torchjanus.options.without("turn_matrices"):
        g = torchjanus.function(step)
        for _ in range(6):
            g(inputs)
    assert turns(g) == 0


def test_few_iterations_do_not_pay_for_a_turned_weight():
    cell = nn.RNNCell(5, 32)

    def step(inputs):
        state = torch.zeros(2, 32)
        for x in inputs:
            state = cell(x, state)
        return state

    f = torchjanus.function(step)
    for _ in range(6):
        inputs = torch.randn(3, 2, 5)
        torch.testing.assert_close(f(inputs), step(inputs))
    assert turns(f) == 0


@differential()
def test_weights_that_are_written_between_iterations():
    weight = torch.randn(24, 24) / 5

    def step(x):
        state = x
        for _ in range(6):
            state = torch.tanh(nn.functional.linear(state, weight))
        weight.mul_(0.99)
        for _ in range(5):
            state = torch.tanh(state @ weight.t() + nn.functional.linear(state, weight))
        weight.add_(0.01)
        return state, weight.t().contiguous()

    return Program(step, [(torch.randn(3, 24),) for _ in range(6)], watch=[weight])


@differential(dtype=torch.float32, tolerance=1e-4)
def test_turned_weights_in_front_of_a_loop():
    layer, mixed = nn.Linear(20, 20), nn.Parameter(torch.randn(20, 20) / 5)
    optimizer = torch.optim.SGD([*layer.parameters(), mixed], 0.1, momentum=0.9)

    def step(inputs):
        state = torch.zeros(inputs.shape[1], 20)
        for x in inputs:
            state = torch.tanh(layer(state) + state @ mixed + x)
        optimizer.zero_grad()
        loss = state.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    lengths = [3, 5, 2, 7, 4, 9, 6, 3, 8, 5, 11, 2]
    calls = [(torch.randn(length, 3, 20),) for length in lengths]
    return Program(step, calls, watch=[layer, mixed, optimizer])


NEIGHBOURS = {
    "rows, the later one first": lambda w: w[1] + w[0],
    "the last rows": lambda w: w[3] + w[2],
    "columns": lambda w: w[:, 2] + w[:, 1],
    "through an ellipsis": lambda w: w[..., 1] + w[..., 0],
    "three": lambda w: w[2] + w[0] + w[1],
    "negative numbers": lambda w: w[-1] + w[-2],
    "different gradients": lambda w: w[1] * 2 + w[0],
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@differential()
def test_parts_that_get_the_same_gradient(name):
    w = torch.randn(4, 3, requires_grad=True)

    def step(x):
        w.grad = None
        NEIGHBOURS[name](w * x).sum().backward()
        return w.grad * 1

    return Program(step, [(torch.randn(4, 3),) for _ in range(6)])


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_parts_that_get_the_same_gradient_outside(name):
    w = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    f = torchjanus.function(lambda: NEIGHBOURS[name](w))
    for _ in range(6):
        (given,) = torch.autograd.grad(f().sum(), w)
        (expected,) = torch.autograd.grad(NEIGHBOURS[name](w).sum(), w)
        assert torch.equal(given, expected)
    assert f.stats()["hits"] >= 2
