"""Data-parallel training, run by each rank (ranks.py): eagerly and then converted, compared after each step.

A training makes its modules, optimizers and step anew for each run. `parallel` wraps a module.
"""

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from single_collectives import all_gather_single, reduce_scatter_single
from torch.distributed import (
    all_gather,
    all_reduce,
    get_rank,
    get_world_size,
)
from torch.nn.parallel import DistributedDataParallel
from tree_programs import TreeRNN, tree

import torch
import torchjanus
from torch import nn

STEPS = 14
WRAPPER_OPTIONS: dict[str, Any] = {}

TRAININGS: dict[str, Callable[[Callable[[nn.Module], nn.Module]], "Training"]] = {}


@dataclass
class Training:
    step: Callable[..., Any]
    modules: Sequence[nn.Module]
    batch: Callable[
        [int], tuple[Any, ...]
    ]  # of the step with that number, from the rank's own random numbers


def training(make: Any) -> Any:
    TRAININGS[make.__name__] = make
    return make


def plain_step(net: nn.Module, optimizer: Any, loss_of: Callable[..., torch.Tensor]) -> Callable:
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def on_pictures(net: nn.Module) -> Training:
    """It learns five kinds of small pictures."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    step = plain_step(net, optimizer, F.cross_entropy)
    return Training(step, [net], lambda _: (torch.randn(6, 1, 8, 8), torch.randint(5, (6,))))


@training
def lenet(parallel):
    net = parallel(
        nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.Tanh(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(36, 12),
            nn.ReLU(),
            nn.Linear(12, 5),
        )
    )
    return on_pictures(net)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.one = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.norm(self.one(x)))


@training
def residual(parallel):
    net = parallel(
        nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            Residual(4),
            Residual(4),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 5),
        )
    )
    optimizer = torch.optim.SGD(
        net.parameters(), lr=0.1, weight_decay=1e-3, nesterov=True, momentum=0.9
    )
    step = plain_step(net, optimizer, F.cross_entropy)
    return Training(step, [net], lambda _: (torch.randn(4, 3, 6, 6), torch.randint(5, (4,))))


@training
def pooled(parallel):
    """Buffers are broadcast, then random numbers are drawn; pools stand in kernels."""
    net = parallel(
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Flatten(),
            nn.Linear(24, 30),
            nn.ReLU(),
            nn.Linear(30, 5),
        )
    )
    return on_pictures(net)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.attend(self.before(x)).split(width, dim=2)
        q, k, v = [
            each.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
            for each in (q, k, v)
        ]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(y.transpose(1, 2).reshape(rows, length, width))
        return x + self.narrow(F.gelu(self.wide(self.between(x))))


class Gpt(nn.Module):
    def __init__(self, words=11, length=7, width=8):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, 2) for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, words):
        x = self.word(words) + self.place(torch.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@training
def gpt(parallel):
    net = parallel(Gpt())
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)

    def step(words):
        optimizer.zero_grad()
        scores = net(words[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        return loss.detach()

    return Training(step, [net], lambda _: (torch.randint(11, (3, 8)),))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.lstm, self.out = nn.Embedding(9, 6), nn.LSTM(6, 8), nn.Linear(8, 9)

    def forward(self, words):
        return self.out(self.lstm(self.word(words))[0])


@training
def lstm(parallel):
    net = parallel(Words())
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
    step = plain_step(net, optimizer, lambda scores, y: F.cross_entropy(scores.flatten(0, 1), y))
    return Training(step, [net], lambda _: (torch.randint(9, (5, 3)), torch.randint(9, (15,))))


@training
def trees(parallel):
    """Each rank has other trees in each step."""
    net = parallel(TreeRNN())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def step(node):
        optimizer.zero_grad()
        _, loss = net(node)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, [net], lambda _: (tree(random.randrange(2, 7)),))


@training
def leaves_alone(parallel):
    """Trees that are one leaf use no weight that combines; in some steps those of all ranks are."""
    net = parallel(TreeRNN(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)

    def step(node):
        optimizer.zero_grad()
        _, loss = net(node)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(
        step, [net], lambda number: (tree(1 if number % 3 == 1 else random.randrange(1, 4)),)
    )


class Sides(nn.Module):
    """Another part of it is used on each side of a branch that the data decides."""

    def __init__(self):
        super().__init__()
        self.one, self.other, self.last = nn.Linear(5, 4), nn.Linear(5, 4), nn.Linear(4, 2)

    def forward(self, x):
        x = torch.tanh(self.one(x) if x[0, 0] > 0 else self.other(x))
        return self.last(x)


@training
def sides(parallel):
    net = parallel(Sides(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)
    step = plain_step(net, optimizer, F.mse_loss)
    return Training(step, [net], lambda _: (torch.randn(3, 5), torch.randn(3, 2)))


def layers(*widths):
    made = []
    for one, other in zip(widths, widths[1:], strict=False):
        made += [nn.Linear(one, other), nn.LeakyReLU(0.1)]
    return nn.Sequential(*made[:-1])


@training
def gan(parallel):
    make, judge = parallel(layers(4, 8, 6)), parallel(layers(6, 8, 1))
    of_make = torch.optim.Adam(make.parameters(), lr=0.01, betas=(0.5, 0.9))
    of_judge = torch.optim.Adam(judge.parameters(), lr=0.01, betas=(0.5, 0.9))

    def step(real, noise):
        of_judge.zero_grad()
        fake = make(noise)
        wrong = F.softplus(judge(torch.cat([fake.detach(), -real]))).mean()
        wrong.backward()
        of_judge.step()
        of_make.zero_grad()
        fooled = F.softplus(-judge(fake)).mean()
        fooled.backward()
        of_make.step()
        return wrong.detach() + fooled.detach()

    return Training(step, [make, judge], lambda _: (torch.randn(5, 6), torch.randn(5, 4)))


@training
def gan_frozen(parallel):
    """What judges gets no gradients while the other one is trained, though it is called through its wrapper."""
    make, judge = parallel(layers(4, 8, 6)), parallel(layers(6, 8, 1))
    of_make = torch.optim.SGD(make.parameters(), lr=0.1, momentum=0.5)
    of_judge = torch.optim.SGD(judge.parameters(), lr=0.1, momentum=0.5)

    def step(real, noise):
        fake = make(noise)
        for each in judge.parameters():
            each.requires_grad_(False)
        of_make.zero_grad()
        fooled = F.softplus(-judge(fake)).mean()
        fooled.backward()
        of_make.step()
        for each in judge.parameters():
            each.requires_grad_(True)
        of_judge.zero_grad()
        wrong = F.softplus(judge(torch.cat([fake.detach(), -real]))).mean()
        wrong.backward()
        of_judge.step()
        return wrong.detach() + fooled.detach()

    return Training(step, [make, judge], lambda _: (torch.randn(5, 6), torch.randn(5, 4)))


@training
def chained(parallel):
    """One backward() has gradients of two wrappers, of which one stands around the other one's call."""
    inner, outer = parallel(layers(5, 7, 6)), parallel(Residual(3))
    parameters = [*outer.parameters(), *inner.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        z = inner(x).view(4, 3, 2, 1)
        loss = F.mse_loss(outer(z).flatten(1), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, [inner, outer], lambda _: (torch.randn(4, 5), torch.randn(4, 6)))


@training
def accumulated(parallel):
    """The gradients of three steps are added up before the ranks share them."""
    net = parallel(layers(5, 7, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(number, x, y):
        is_last = number % 3 == 2
        with contextlib.nullcontext() if is_last else net.no_sync():
            loss = F.mse_loss(net(x), y) / 3
            loss.backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return Training(step, [net], lambda number: (number, torch.randn(4, 5), torch.randn(4, 3)))


@training
def accumulated_whole(parallel):
    """The same in one step, with buffers that are broadcast."""
    net = parallel(nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Linear(7, 3)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(xs, ys):
        optimizer.zero_grad()
        total = 0
        for i in range(3):
            with net.no_sync() if i < 2 else contextlib.nullcontext():
                loss = F.mse_loss(net(xs[i]), ys[i]) / 3
                loss.backward()
                total += loss.detach()
        optimizer.step()
        return total

    return Training(step, [net], lambda _: (torch.randn(3, 4, 5), torch.randn(3, 4, 3)))


@training
def twice(parallel):
    """backward() is called twice for one loss; the ranks share the gradients once."""
    net = parallel(layers(5, 7, 6, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        with net.no_sync():
            net(x).square().mean().backward()
        loss.backward(retain_graph=True)
        loss.backward()
        for each in net.parameters():  # the second one is not shared
            all_reduce(each.grad)
        optimizer.step()
        return loss.detach()

    return Training(step, [net], lambda _: (torch.randn(4, 5), torch.randn(4, 3)))


@training
def second_order(parallel):
    """A penalty on the gradients of some parameters, which no wrapper shares."""
    net = layers(5, 7, 6, 3)
    whole = parallel(net)
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        with whole.no_sync():
            loss = F.mse_loss(whole(x), y)
            some = list(net.parameters())[1:3]
            first = torch.autograd.grad(loss, some, create_graph=True)
            (loss + sum(each.square().sum() for each in first)).backward()
        for each in net.parameters():
            all_reduce(each.grad)
        optimizer.step()
        return loss.detach()

    return Training(step, [whole], lambda _: (torch.randn(4, 5), torch.randn(4, 3)))


@training
def by_hand(parallel):
    """No wrapper: the program averages its gradients itself."""
    net = layers(6, 9, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        for each in net.parameters():
            all_reduce(each.grad)
            each.grad /= get_world_size()
        nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()
        return loss.detach()

    return Training(step, [net], lambda _: (torch.randn(4, 6), torch.randn(4, 3)))


@training
def by_hand_later(parallel):
    """All collectives are begun before the first is waited for; the loss is averaged as well."""
    net = layers(6, 9, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        works = [all_reduce(each.grad, async_op=True) for each in net.parameters()]
        shown = loss.detach().clone()
        works.append(all_reduce(shown, async_op=True))
        for work in works:
            work.wait()
        for each in net.parameters():
            each.grad.div_(get_world_size())
        optimizer.step()
        return shown / get_world_size()

    return Training(step, [net], lambda _: (torch.randn(4, 6), torch.randn(4, 3)))


@training
def by_hand_sharded(parallel):
    """Each rank updates a part of the weights, by its part of the gradients."""
    weight = torch.randn(4, 6, requires_grad=True)
    holder = nn.ParameterList([weight])

    def step(x, y):
        loss = F.mse_loss(x @ weight.t(), y)
        (gradient,) = torch.autograd.grad(loss, [weight])
        part = torch.empty(weight.numel() // get_world_size())
        reduce_scatter_single(part, torch.zeros(weight.numel()).add_(gradient.flatten()))
        with torch.no_grad():
            begin = get_rank() * part.numel()
            mine = weight.view(-1)[begin : begin + part.numel()] - 0.1 * part
            whole = torch.empty(weight.numel())
            all_gather_single(whole, mine)
            weight.copy_(whole.view_as(weight))
        return loss.detach()

    return Training(step, [holder], lambda _: (torch.randn(4, 6), torch.randn(4, 4)))


@training
def gan_by_hand(parallel):
    """What updates one net by shared gradients also computes gradients of the other one."""
    make, judge = layers(4, 8, 6), layers(6, 8, 1)
    of_make = torch.optim.SGD(make.parameters(), lr=0.1, momentum=0.5)
    of_judge = torch.optim.SGD(judge.parameters(), lr=0.1, momentum=0.5)

    def share(module):
        for each in module.parameters():
            all_reduce(each.grad)
            each.grad /= get_world_size()

    def step(real, noise):
        of_judge.zero_grad()
        fake = make(noise)
        wrong = F.softplus(judge(torch.cat([fake.detach(), -real]))).mean()
        wrong.backward()
        share(judge)
        nn.utils.clip_grad_norm_(judge.parameters(), 0.05)
        of_judge.step()
        of_make.zero_grad()
        fooled = F.softplus(-judge(make(noise))).mean()
        fooled.backward()
        share(make)
        nn.utils.clip_grad_norm_(make.parameters(), 0.05)
        of_make.step()
        return wrong.detach() + fooled.detach()

    return Training(step, [make, judge], lambda _: (torch.randn(5, 6), torch.randn(5, 4)))


@training
def gradients_as_arguments(parallel):
    """Nothing tells that it is an update but what it writes."""
    net = layers(6, 40, 3)

    def update(gradients):
        with torch.no_grad():
            for each, gradient in zip(net.parameters(), gradients, strict=True):
                each -= 0.1 * gradient / (gradient.norm() + each.norm())

    update = parallel.__self__.convert(update) if parallel.__self__.way == "step" else update

    def step(x, y):
        gradients = torch.autograd.grad(F.mse_loss(net(x), y), list(net.parameters()))
        for each in gradients:
            all_reduce(each)
        update(gradients)
        return x.sum()

    return Training(step, [net], lambda _: (torch.randn(4, 6), torch.randn(4, 3)))


# --- running them --------------------------------------------------------------------------------------------------


class Run:
    """A training, the converted objects in it, and its state after each step."""

    def __init__(self, name: str, way: str) -> None:
        torch.manual_seed(0)
        self.wrapped: list[nn.Module] = []
        self.asked: list[Any] = []
        self.way = way
        self.training = TRAININGS[name](self.parallel)
        self.step = self.convert(self.training.step) if way == "step" else self.training.step
        self.states: list[list[torch.Tensor]] = []
        torch.manual_seed(1 + get_rank())
        random.seed(1 + get_rank())

    def convert(self, what: Any) -> Any:
        """The ranks begin to run graphs in different steps."""
        found = torchjanus.function(what, profile_runs=2 + get_rank())
        self.asked.append(found)
        return found

    def parallel(self, module: nn.Module, **options: Any) -> nn.Module:
        options = WRAPPER_OPTIONS | options
        self.wrapped.append(module)
        if self.way == "inside":
            return DistributedDataParallel(self.convert(module), **options)
        made = DistributedDataParallel(module, **options)
        return self.convert(made) if self.way == "around" else made

    def take_step(self, number: int) -> None:
        with torchjanus.lazy() if self.way == "lazy" else contextlib.nullcontext():
            loss = self.step(*self.training.batch(number))
        tensors = [loss]
        for module in self.training.modules:
            tensors += [*module.parameters(), *module.buffers()]
        self.states.append([each.detach().clone() for each in tensors])

    def parameters(self) -> torch.Tensor:
        of_all = [each for module in self.training.modules for each in module.parameters()]
        return nn.utils.parameters_to_vector(of_all).detach()

    def told(self) -> dict[str, Any]:
        """Of what was asked for, and of modules that were converted because of that."""
        modules = [each for each in self.wrapped if each._compiled_call_impl is not None]
        return {
            "asked": [_brief(torchjanus.stats(each)) for each in self.asked],
            "report": [
                line for each in self.asked for line in torchjanus.explain(each).splitlines()
            ],
            "modules": [_brief(torchjanus.stats(each)) for each in modules],
            "graphs": [torchjanus.graph(each).splitlines() for each in self.asked],
        }


def _brief(stats: dict[str, Any]) -> dict[str, Any]:
    return {
        "state": stats["state"],
        "hits": stats["hits"] + sum(each["hits"] for each in stats.get("parts", ())),
        "backward_parts": stats["backward_parts"],
        "exchanged_buckets": max(
            each["exchanged_buckets"] for each in (stats, *stats.get("parts", ()))
        ),
        "communication": stats["communication"],
        "reasons": [(each["code"], each["sentence"]) for each in stats["reasons"]],
    }


def differs_between_ranks(tensor: torch.Tensor) -> bool:
    """To the last bit."""
    all_of_them = [torch.empty_like(tensor) for _ in range(get_world_size())]
    all_gather(all_of_them, tensor)
    return any(
        not torch.equal(each.view(torch.int64), tensor.view(torch.int64)) for each in all_of_them
    )


def train(
    name: str,
    way: str,
    steps: int = STEPS,
    part_bytes: int = 0,
    options: dict[str, Any] | None = None,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """`part_bytes`: of a part of the backward run; 0: as the product divides it. `options`: of the wrappers.
    `without`: what is switched off."""
    torchjanus._core.testing.force_backward_parts(part_bytes)
    WRAPPER_OPTIONS.clear()
    WRAPPER_OPTIONS.update(options or {})
    with torchjanus.options.without(*without):
        return compared(name, way, steps)


def compared(name: str, way: str, steps: int) -> dict[str, Any]:
    eager, ours = Run(name, "eager"), None
    for number in range(steps):
        eager.take_step(number)
    ours = Run(name, way)
    apart = []
    for number in range(steps):
        ours.take_step(number)
        apart.append(differs_between_ranks(ours.parameters()))
    for number, (one, other) in enumerate(zip(eager.states, ours.states, strict=True)):
        for expected, found in zip(one, other, strict=True):
            torch.testing.assert_close(
                found, expected, rtol=1e-10, atol=1e-12, msg=lambda m: f"step {number}: {m}"
            )
    return {"apart": apart} | ours.told()
