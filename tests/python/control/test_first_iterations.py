"""Loops in the graph whose first iteration finds something of another kind than later iterations: a sum that
begins as 0, a state that begins as None."""

import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn

LENGTHS = (4, 4, 5, 6, 3, 7, 8, 2, 9, 4, 5, 3)
EVEN_NONE = (4, 4, 5, 6, 3, 7, 0, 2, 1, 4, 0, 1, 5, 3)


def sequences(lengths=LENGTHS):
    return [(torch.randn(n, 5),) for n in lengths]


def loss_from_zero(layer):
    def step(x):
        layer.zero_grad()
        loss = 0
        hidden = torch.zeros(5)
        for row in x:
            hidden = torch.tanh(layer(hidden) + row)
            loss = loss + F.mse_loss(hidden, row)
        if isinstance(loss, int):
            return loss
        loss = loss / len(x)
        loss.backward()
        return loss

    return step


@differential(graphs=2)
def test_loss_that_begins_as_a_number():
    layer = nn.Linear(5, 5)
    return Program(loss_from_zero(layer), sequences(), watch=[layer])


@differential(hits=9)
def test_loss_of_no_iterations_in_some_calls():
    layer = nn.Linear(5, 5)
    return Program(loss_from_zero(layer), sequences(EVEN_NONE), watch=[layer])


@differential(graphs=2)
def test_int_that_becomes_a_float():
    def step(x):
        total = count = 0
        for row in x:
            total += row.sum().item()
            count += 1
        return total / count, count

    return Program(step, sequences())


@differential(hits=9)
def test_int_that_becomes_a_float_in_some_calls():
    def step(x):
        total = 0
        for row in x:
            total += row.sum().item()
        return total

    return Program(step, sequences(EVEN_NONE))


@differential(graphs=2)
def test_states_that_begin_as_none():
    layer = nn.Linear(5, 10)

    def step(x):
        hidden = cell = None
        outputs = []
        for row in x:
            if hidden is None:
                hidden, cell = torch.zeros(5), torch.zeros(5)
            change, gate = layer(hidden + row).chunk(2)
            cell = cell * gate.sigmoid() + change
            hidden = torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs)

    return Program(step, sequences(), watch=[layer])


@differential(graphs=2)
def test_best_of_all_iterations():
    def step(x):
        best, place = None, -1
        for i, row in enumerate(x):
            score = row.sum().item()
            if best is None or score > best:
                best, place = score, i
        return best, place

    return Program(step, sequences())


@differential(graphs=2)
def test_state_of_a_module_that_begins_as_none():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 5)

        def forward(self, x, state=None):
            hidden = self.layer(x)
            return torch.tanh(hidden if state is None else hidden + state)

    cell = Cell()

    def step(x):
        cell.zero_grad()
        state = None
        for row in x:
            state = cell(row, state)
        state.pow(2).sum().backward()
        return state

    return Program(step, sequences(), watch=[cell])


@differential(hits=3)
def test_loop_left_in_its_first_iteration():
    def step(x):
        last = None
        for row in x:
            if row[0] > 0.5:
                break
            last = row * 2 if last is None else last + row
        return last

    return Program(step, sequences())


@differential(hits=3)
def test_return_out_of_the_first_iteration():
    def step(x):
        total = 0
        for row in x:
            if row[0] > 0.8:
                return row.sum().item()
            if row[1] > 0.8:
                continue
            total = total + row
        return total

    return Program(step, sequences())


@differential()
def test_while_loop_whose_sum_begins_as_a_number():
    def step(x):
        ponder, iterations, state = 0, 0, x
        while state.abs().max() > 0.5:
            state = state * 0.6
            ponder = ponder + state.pow(2).mean()
            iterations += 1
        return ponder, iterations, state

    return Program(step, [(torch.randn(4) * 3 + 1,) for _ in range(12)])


@differential()
def test_nested_loops():
    layer = nn.Linear(5, 5)

    def step(x):
        layer.zero_grad()
        loss = 0
        for i in range(len(x)):
            inner = 0
            for j in range(i + 1):
                inner = inner + (layer(x[i]) * x[j]).sum()
            loss = loss + inner
        loss.backward()
        return loss

    return Program(step, sequences((3, 3, 4, 5, 2, 6, 3)), watch=[layer])


@differential(graphs=2)
def test_attribute_that_begins_as_none():
    class Meter:
        pass

    meter = Meter()

    def step(x):
        meter.last = None
        meter.sum = 0
        for row in x:
            meter.sum = meter.sum + row.sum().item()
            meter.last = row.max().item() if meter.last is None else meter.last * 0.5
        return meter.sum

    return Program(step, sequences(), watch=[meter])


@differential(graphs=2)
def test_viterbi():
    transitions = torch.randn(5, 5)

    def step(emissions):
        score, back = emissions[0], []
        for emission in emissions[1:]:
            score, best = (score.unsqueeze(1) + transitions).max(0)
            back.append(best)
            score = score + emission
        place = int(score.argmax())
        path = [place]
        for best in reversed(back):
            place = best[place].item()
            path.append(place)
        path.reverse()
        return path

    return Program(step, sequences())
