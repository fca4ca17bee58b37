"""Data-parallel training: two processes of one thread each, beside one process of one thread.

    python benchmarks/distributed.py [PROGRAM …] [--systems SYSTEM …] [--rounds N] [--steps N] [--share S]
                                     [--limit SECONDS] [--output FOLDER]

Each system trains with DistributedDataParallel, so that gradients are exchanged while others are computed, and so that
they are not. The processes exchange within memory; a group of ours (delayed_group.py) finishes collectives as late as
a network would that takes `share` of one process's eager step for all gradients. Blocks of steps with and without that
take turns. What the delay adds to a step is the communication that is exposed. Every process checks its loss against
eager's. Writes distributed.json into the output folder, anew after each program; each has the timeline of a step
too, of which scaling.py makes steps on more ranks.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import delayed_group
import record
import scaling
import tables
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed, nn

sys.path.extend(str(record.ROOT / "examples" / folder) for folder in ("", "terra"))
import common
import gpt2
import inception_v3
import lenet
import lstm_language_model
import resnet50

LATENCY_US = 50.0
BUCKETS = 8  # at most, of a model's gradients, where they are exchanged while others are computed
ONE_BUCKET_MIB = 1 << 20
CHECKED_STEPS = 4
TOLERANCE = 1e-2  # of their losses: relative, or absolute below 1
PARTS = "bucketed_backward"  # what lets a converted module's gradients overlap
COLLECTIVES = "collectives"  # what lets the step be one graph


@dataclass(frozen=True)
class Program:
    title: str
    build: Callable[[], tuple[nn.Module, torch.optim.Optimizer]]
    batch: Callable[[], tuple[torch.Tensor, torch.Tensor]]


def build_lenet() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = lenet.LeNet()
    return net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)


def build_resnet50() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = resnet50.ResNet()
    return net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


def build_gpt() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = gpt2.GPT2(len(gpt2.LETTERS), 256, 4, 4, 64, dropout=0.0)
    net.apply(common.start_weights)
    return net, torch.optim.AdamW(net.parameters(), lr=1e-3)


def text() -> tuple[torch.Tensor, torch.Tensor]:
    letters = torch.randint(0, len(gpt2.LETTERS), (8, 65))
    return letters[:, :-1], letters[:, 1:].flatten()


def pictures(rows: int, *shape: int) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    return lambda: (torch.randn(rows, *shape), torch.randint(0, 10, (rows,)))


class Both(nn.Module):
    """What a net and its auxiliary classifier say, one below the other."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(self.net(x))


def build_inception() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = Both(inception_v3.Inception(10))
    return net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)


def pictures_twice() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = pictures(2, 3, 107, 107)()
    return x, y.repeat(2)


class FromTheStart(nn.Module):
    """Scores of the next words, of a text that begins here."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores, _ = self.net(tokens, self.net.start(tokens.shape[1]))
        return scores


def build_language_model() -> tuple[nn.Module, torch.optim.Optimizer]:
    net = FromTheStart(lstm_language_model.LanguageModel(10_000, 200, 2, 0.0))
    return net, torch.optim.SGD(net.parameters(), lr=1.0)


def words() -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.randint(0, 10_000, (21, 20))
    return numbers[:-1], numbers[1:].flatten()


PROGRAMS = {
    "lenet": Program("LeNet, batch 50", build_lenet, pictures(50, 1, 28, 28)),
    "resnet50": Program(
        "ResNet-50 on 64 × 64 pictures, batch 8", build_resnet50, pictures(8, 3, 64, 64)
    ),
    "gpt": Program("GPT of 4 layers of 256, 64 letters, batch 8", build_gpt, text),
    "inception_v3": Program(
        "Inception-v3 on 107 × 107 pictures, batch 2", build_inception, pictures_twice
    ),
    "language_model": Program(
        "language model, 2 LSTM layers of 200, 20 words, batch 20", build_language_model, words
    ),
}
#: The others are measured by `make evaluate`.
USUAL = ("lenet", "resnet50", "gpt")


# --- systems: what becomes of the model and of the step -------------------------------------------------------------


def make_step(net: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[..., torch.Tensor]:
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        scores = net(x)
        loss = F.cross_entropy(scores.view(len(y), -1), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def eager(net: nn.Module, optimizer: Any, overlap: bool) -> Callable:
    return make_step(net, optimizer)


def compiled(net: nn.Module, optimizer: Any, overlap: bool) -> Callable:
    import torch._dynamo.config

    torch._dynamo.config.optimize_ddp = overlap
    return make_step(torch.compile(net), optimizer)  # type: ignore[arg-type]


def converted_model(net: nn.Module, optimizer: Any, overlap: bool) -> Callable:
    torchjanus.options.disabled = {"background", COLLECTIVES, *(() if overlap else (PARTS,))}
    return torchjanus.function(make_step(net, optimizer))


def converted(net: nn.Module, optimizer: Any, overlap: bool) -> Callable:
    torchjanus.options.disabled = {"background"}
    return torchjanus.function(make_step(net, optimizer))


#: Another system is another line here.
SYSTEMS = {
    "eager": eager,
    "torch.compile": compiled,
    "torchjanus, the model": converted_model,
    "torchjanus": converted,
}


def parallel(net: nn.Module, overlap: bool, system: str) -> nn.Module:
    """Eager and a step in one graph overlap nothing if there is one bucket; the others have switches."""
    mebibytes = max(1.0, gradient_bytes(net) / 2**20 / BUCKETS)  # torch.compile refuses less
    if system in ("eager", "torchjanus") and not overlap:
        mebibytes = ONE_BUCKET_MIB
    return DistributedDataParallel(net, bucket_cap_mb=mebibytes)  # type: ignore[arg-type]


def gradient_bytes(net: nn.Module) -> int:
    return sum(each.nbytes for each in net.parameters())


# --- one process ----------------------------------------------------------------------------------------------------


def be_rank(asked: dict[str, Any]) -> None:
    """Takes the steps that were asked for, and writes what they took. The first rank's times are given."""
    torch.set_num_threads(1)
    rank, size, overlap = asked["rank"], asked["size"], asked["overlap"]
    if size > 1:
        delayed_group.start(rank, size, asked["folder"])
    torch.manual_seed(0)
    program = PROGRAMS[asked["program"]]
    net, optimizer = program.build()
    told: dict[str, Any] = {"bytes": gradient_bytes(net)}
    inner = parallel(net, overlap, asked["system"]) if size > 1 else net
    step = SYSTEMS[asked["system"]](inner, optimizer, overlap)
    batches = [
        program.batch() for _ in range(8)
    ]  # the same ones on all ranks: losses are comparable

    def take(count: int) -> list[float]:
        return [seconds_of(step, batches[index % len(batches)]) for index in range(count)]

    told["losses"] = [step(*batch).item() for batch in batches[:CHECKED_STEPS]]
    take(asked["warm_up"])
    if size > 1:
        told |= measured(take, asked)
    else:
        told["ms"] = 1e3 * statistics.median(take(asked["steps"]))
    if rank == 0:
        Path(asked["folder"], "told.json").write_text(json.dumps(told))
    if size > 1:
        distributed.barrier()
        distributed.destroy_process_group()


def seconds_of(step: Callable, batch: tuple) -> float:
    start = time.perf_counter()
    step(*batch)
    return time.perf_counter() - start


def measured(take: Callable[[int], list[float]], asked: dict[str, Any]) -> dict[str, Any]:
    """Blocks of steps with and without the network's delay, by turns; the first step of each is not counted."""
    network = scaling.Network(**asked["network"])
    latency, bandwidth = network.latency_us / 1e6, network.gigabits * 1e9 / 8
    plain: list[float] = []
    late: list[float] = []
    timelines = []
    for _ in range(asked["rounds"]):
        delayed_group.NETWORK.set(0, float("inf"))
        take(1)
        for _ in range(asked["block"]):
            start = time.perf_counter()
            with delayed_group.NETWORK.noted() as transfers:
                plain += take(1)
            timelines.append((plain[-1], [relative(each, start) for each in transfers]))
        delayed_group.NETWORK.set(latency, bandwidth)
        late += take(1 + asked["block"])[1:]
    timelines.sort(key=lambda each: each[0])
    step, transfers = timelines[len(timelines) // 2]
    return {
        "ms": 1e3 * statistics.median(plain),
        "delayed_ms": 1e3 * statistics.median(late),
        "timeline": {"step_ms": 1e3 * step, "transfers": transfers},
    }


def relative(transfer: delayed_group.Transfer, start: float) -> tuple[float, int, float | None]:
    waited = 1e3 * (transfer.waited - start) if transfer.waited else None
    return 1e3 * (transfer.start - start), transfer.bytes, waited


# --- all of them ----------------------------------------------------------------------------------------------------


def run(asked: dict[str, Any], limit: int) -> dict[str, Any]:
    """What the first rank tells; `problem` if a rank fails, or takes longer than `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        running = [start(asked | {"rank": rank, "folder": folder}) for rank in range(asked["size"])]
        try:
            end = time.monotonic() + limit
            errors = [
                each.communicate(timeout=max(1.0, end - time.monotonic()))[1] for each in running
            ]
        except subprocess.TimeoutExpired:
            return {"problem": f"not ready after {limit} s"}
        finally:
            for each in running:
                each.kill()
                each.wait()
        if any(each.returncode for each in running):
            sys.stderr.write(errors[0][-2000:])
            return {"problem": "fails"}
        found: dict[str, Any] = json.loads(Path(folder, "told.json").read_text())
        return found


def start(asked: dict[str, Any]) -> subprocess.Popen:
    variables = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, __file__, "--rank", json.dumps(asked)]
    return subprocess.Popen(command, env=os.environ | variables, stderr=subprocess.PIPE, text=True)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """A program's row."""
    asked = {"program": name, "warm_up": options.warm_up, "overlap": True}
    alone = asked | {"size": 1, "steps": options.rounds * options.steps}
    first = run(alone | {"system": "eager"}, options.limit)
    if "problem" in first:
        sys.exit(f"{name} {first['problem']}")
    mebibits = 8 * first["bytes"] / 1e6
    network = {"latency_us": LATENCY_US, "gigabits": mebibits / (options.share * first["ms"])}
    row: dict[str, Any] = {"title": PROGRAMS[name].title, "mebibytes": first["bytes"] / 2**20}
    row |= {"network": network, "systems": {}}
    together = asked | {
        "size": 2, "rounds": options.rounds, "block": options.steps, "network": network
    }  # fmt: skip
    for system in ("eager", *options.systems):
        one = first if system == "eager" else run(alone | {"system": system}, options.limit)
        of_system = {"one": checked(one, first)}
        for overlap in ("on", "off"):
            how = together | {"system": system, "overlap": overlap == "on"}
            of_system[overlap] = checked(run(how, options.limit), first)
        row["systems"][system] = of_system
    return row


def checked(found: dict[str, Any], eager: dict[str, Any]) -> dict[str, Any]:
    """All processes have the same batches, so all systems have eager's losses."""
    if "problem" in found:
        return found
    pairs = zip(found["losses"], eager["losses"], strict=True)
    right = all(abs(one - other) <= TOLERANCE * max(1.0, abs(other)) for one, other in pairs)
    return found if right else {"problem": "wrong"}


def main() -> None:
    if sys.argv[1:2] == ["--rank"]:
        return be_rank(json.loads(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    others = [name for name in SYSTEMS if name != "eager"]
    parser.add_argument("--systems", nargs="+", choices=others, default=others, metavar="SYSTEM")
    parser.add_argument("--rounds", type=int, default=10, help="blocks with the delay, and without")
    parser.add_argument("--steps", type=int, default=5, help="that are counted of each block")
    parser.add_argument("--warm-up", type=int, default=20, help="steps before the blocks")
    parser.add_argument(
        "--share", type=float, default=0.5, help="of an eager step, for all gradients"
    )
    parser.add_argument("--limit", type=int, default=900, help="seconds that a process may take")
    record.add_output(parser)
    options = parser.parse_args()
    if unknown := set(options.programs) - set(PROGRAMS):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    about, rows = record.about(options.rounds) | {"threads": 1}, []
    for name in options.programs or USUAL:
        rows.append(measure(name, options))
        record.write(options.output, "distributed", about, rows)
        print(tables.distributed(rows[-1:]), flush=True)


if __name__ == "__main__":
    main()
