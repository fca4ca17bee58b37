"""Differential programs: optimizers, schedulers, clipping, accumulation, and their Python-visible state."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

STEPS = 8

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd dampening": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "sgd nesterov decay": lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-2
    ),
    "sgd maximize": lambda p: torch.optim.SGD(p, lr=0.01, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam decay": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=1e-2),
    "adam amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adam maximize": lambda p: torch.optim.Adam(p, lr=0.01, maximize=True, betas=(0.5, 0.9)),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True, eps=1e-6),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "rmsprop centered momentum": lambda p: torch.optim.RMSprop(
        p, lr=0.01, centered=True, momentum=0.5, weight_decay=1e-3
    ),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
    "adagrad decay": lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=1e-3),
}


def make_model():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def batches(count=STEPS):
    return [(torch.randn(5, 6), torch.randint(0, 3, (5,))) for _ in range(count)]


@pytest.mark.parametrize("name", OPTIMIZERS)
@differential(hits=4, graphs=1)
def test_optimizer(name):
    model = make_model()
    optimizer = OPTIMIZERS[name](model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, batches(), watch=[model, optimizer])


class ManyKinds(nn.Module):
    """Parameters of several dtypes and layouts: one transposed, one tied, one that has no gradient."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.layers[2].weight = self.layers[1].weight
        self.turned = nn.Parameter(torch.randn(3, 6).t())
        self.precise = nn.Parameter(torch.randn(3, dtype=torch.float64))
        self.unused = nn.Parameter(torch.randn(4))
        self.large = nn.Parameter(torch.randn(700, 600))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return (x @ self.turned) * self.precise + self.large.mean()


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("name", ["sgd momentum", "adam", "rmsprop", "adagrad"])
@differential(hits=4, graphs=1)
def test_updates_of_parameters_of_many_kinds(name, clips):
    model = ManyKinds()
    optimizer = OPTIMIZERS[name](model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return loss.item()

    return Program(step, batches(), watch=[model, optimizer])


def test_updates_of_all_parameters_are_one_step():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @torchjanus.function
    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    for batch in batches(12):
        step(*batch)
    program = step.snapshot()["cache"][0]["program"]
    (line,) = [
        each for each in program.splitlines() if "kernels" in each and each.count(" and ") == 3
    ]
    assert program.index("nothing after this can fail") < program.index(line)


@differential(hits=4, graphs=1)
def test_updates_by_hand_that_read_each_other():
    one, other = torch.randn(5, 3), torch.randn(5, 3)
    mean = torch.zeros(5, 3)

    def step(x):
        with torch.no_grad():
            mean.mul_(0.9).add_(one, alpha=0.1)
            one.add_(x * other.sum())
            other.sub_(mean)
        return one.sum()

    return Program(step, [(torch.randn(5, 3),) for _ in range(STEPS)], watch=[one, other, mean])


@pytest.mark.parametrize("name", ["sgd momentum", "adam", "rmsprop"])
@differential(hits=4, graphs=1)
def test_zero_grad_in_place(name):
    model = make_model()
    optimizer = OPTIMIZERS[name](model.parameters())

    def step(x, y):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, batches(), watch=[model, optimizer])


@differential(hits=4, graphs=1)
def test_parameter_groups():
    model = make_model()
    optimizer = torch.optim.Adam(
        [
            {"params": model[0].parameters(), "lr": 1e-3},
            {"params": model[2].parameters(), "weight_decay": 1e-2},
        ],
        lr=1e-2,
    )

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return Program(step, batches(), watch=[model, optimizer])


SCHEDULERS = {
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "exponential": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "one cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
}


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("kind", ["sgd momentum", "adam"])
@differential(hits=4, graphs=2)
def test_scheduler_between_steps(kind, name):
    model = make_model()
    optimizer = OPTIMIZERS[kind](model.parameters())
    scheduler = SCHEDULERS[name](optimizer)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    calls = []
    for batch in batches(12):
        calls += [batch, scheduler.step]
    return Program(step, calls, watch=[model, optimizer])


@differential(hits=4, graphs=2)
def test_learning_rate_set_by_hand_every_step():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def decay():
        for group in optimizer.param_groups:
            group["lr"] *= 0.9

    calls = []
    for batch in batches(10):
        calls += [batch, decay]
    return Program(step, calls, watch=[model, optimizer])


@pytest.mark.parametrize("norm", [1.0, 2.0, float("inf")])
@differential(hits=4, graphs=1)
def test_clip_grad_norm(norm):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        total = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=norm)
        optimizer.step()
        return total

    return Program(step, batches(), watch=[model, optimizer])


@differential(hits=4, graphs=1)
def test_clip_by_norm_where_gradients_are_zero_infinite_or_not_a_number():
    weights = [nn.Parameter(torch.randn(3)) for _ in range(20)]

    def step(x):
        for weight in weights:
            weight.grad = None
        sum((weight * x).sum() for weight in weights).backward()
        return nn.utils.clip_grad_norm_(weights, 1.0)

    values = [1.0, 0.0, float("inf"), float("nan"), 1e30, 1e-30]
    return Program(step, [(torch.tensor([1.0, value, 2.0]),) for value in values + values])


@differential(hits=4, graphs=1)
def test_norms_along_dimensions():
    def step(x):
        lengths = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        total = torch.linalg.vector_norm(torch.stack([lengths.sum(), x.sum()]))
        return x / lengths, total, x[:0].norm(), x.double().norm(dim=0)

    return Program(step, [(torch.randn(5, 6),) for _ in range(STEPS)])


def test_clipping_by_norm_is_kernels():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torchjanus.function
    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    for batch in batches(12):
        step(*batch)
    optimised = step.snapshot()["cache"][0]["optimised"]
    assert "vector_norm" not in optimised and "stack" not in optimised


@differential(hits=4, graphs=1)
def test_clip_grad_value():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
        optimizer.step()

    return Program(step, batches(), watch=[model, optimizer])


@differential(hits=4, graphs=1)
def test_gradient_accumulation_inside_one_step():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        for part, target in zip(x.chunk(5), y.chunk(5), strict=True):
            (F.cross_entropy(model(part), target) / 5).backward()
        optimizer.step()

    return Program(step, batches(), watch=[model, optimizer])


@differential(hits=5)
def test_gradient_accumulation_over_calls():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y, update):
        loss = F.cross_entropy(model(x), y) / 3
        loss.backward()
        if update:
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()

    calls = [(*batch, index % 3 == 2) for index, batch in enumerate(batches(18))]
    return Program(step, calls, watch=[model, optimizer])


@differential(hits=4, graphs=1)
def test_two_optimizers_in_one_step():
    model = make_model()
    first = torch.optim.SGD(model[0].parameters(), lr=0.1)
    second = torch.optim.Adam(model[2].parameters(), lr=0.1)

    def step(x, y):
        first.zero_grad()
        second.zero_grad()
        F.cross_entropy(model(x), y).backward()
        first.step()
        second.step()

    return Program(step, batches(), watch=[model, first, second])


@differential(hits=4, graphs=1)
def test_update_by_hand_with_data():
    model = make_model()

    def step(x, y):
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)
        return loss.detach()

    return Program(step, batches(), watch=[model])


@differential(hits=4, graphs=1)
def test_exponential_moving_average_of_weights():
    model, average = make_model(), make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)

    return Program(step, batches(), watch=[model, average, optimizer])


@differential(hits=4, graphs=1)
def test_parameters_without_gradient_are_left_alone():
    model, unused = make_model(), nn.Linear(3, 3)
    optimizer = torch.optim.Adam([*model.parameters(), *unused.parameters()], lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return Program(step, batches(), watch=[model, unused, optimizer])


@differential(hits=4, graphs=1)
def test_frozen_layers():
    model = make_model()
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return Program(step, batches(), watch=[model, optimizer])


@differential(hits=4, graphs=2)
def test_load_state_dict_in_the_middle():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    saved = {}

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def save():
        saved["model"] = {k: v.clone() for k, v in model.state_dict().items()}

    calls = [
        *batches(5),
        save,
        *batches(2),
        lambda: model.load_state_dict(saved["model"]),
        *batches(4),
    ]
    return Program(step, calls, watch=[model, optimizer])


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
@differential(tolerance=1e-6, hits=1)
def test_lbfgs(line_search):
    """A graph is for one length of its history, which grows until it is full."""
    model = make_model()
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=0.1, max_iter=2, history_size=3, line_search_fn=line_search
    )

    def step(x, y):
        def loss():
            optimizer.zero_grad()
            found = F.cross_entropy(model(x), y)
            found.backward()
            return found

        return optimizer.step(loss).item()

    return Program(step, batches()[:1] * STEPS, watch=[model])


@differential(reasons=["shape_mismatch"])
def test_sparse_adam():
    table = nn.Embedding(10, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(list(table.parameters()))

    def step(rows):
        optimizer.zero_grad()
        loss = table(rows).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, [(torch.randint(0, 10, (4,)),) for _ in range(STEPS)], watch=[table])
