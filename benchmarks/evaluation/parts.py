"""What there is to measure: parts by name, each with its cells and the function of measures.py that measures one.

What matters most is measured first, in all parts alike (`Cell.urgency`): our own figures beside eager, one after the
other; then convergence; then what other systems do; then all that is large.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import paper
from .cells import Cell

COMPILED = ("torch.compile (step)", "torch.compile (model)")
#: JANUS's programs that are written for JAX as well (jax_programs.py).
WITH_JAX = ("lenet", "gan", "a3c", "ppo")
BATCHES = (1, 4, 16)
KINDS = ("dynamic control flow", "dynamic types", "impure functions")
KINDS_SYSTEMS = ("torchjanus", "torch.compile", "torch.jit.trace", "jax.jit")
TRAININGS = {
    "lenet": "LeNet on Fashion-MNIST: share of test images that are named rightly",
    "tree_lstm": "TreeLSTM: share of held-out roots that are named rightly",
    "lstm": "LM: perplexity of text that is held out",
    "ppo": "PPO on CartPole: mean length of the last 8 episodes",
    "tree_rnn": "TreeRNN: share of held-out roots that are named rightly",
    "gan": "AN on Fashion-MNIST: sliced Wasserstein distance to pictures",
    "a3c": "A3C on CartPole: mean length of the last 20 episodes",
}
TRAINED_BY = ("eager", "torchjanus", "torch.compile")
#: Of these less is better.
FALLING = ("lstm", "gan")
CONFIGURATIONS = ("base", "+unroll", "+specialise", "+parallel", "+fuse", "+batch")
TERRA = (
    "bert_classification", "bert_question_answering", "dcgan", "dropblock", "faster_rcnn", "gpt2",
    "music_transformer", "resnet50", "sdpoint", "yolo_v3",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    cells: Callable[[], Iterable[Cell]]
    measure: str  # of measures.py


def throughput() -> Iterable[Cell]:
    for row in paper.JANUS:
        yield Cell("janus-throughput", row, "torchjanus", 1)
        yield Cell("janus-throughput", row, COMPILED[0], 5)
        yield Cell("janus-throughput", row, COMPILED[1], 6)
        if row in WITH_JAX:
            yield Cell("janus-throughput", row, "JAX", 4)


def correctness() -> Iterable[Cell]:
    for row in KINDS:
        for system in KINDS_SYSTEMS:
            yield Cell("janus-correctness", row, system, 2, 240)


def convergence() -> Iterable[Cell]:
    for row in TRAININGS:
        for system in TRAINED_BY:
            urgency = 7 if system == "torch.compile" else 3
            yield Cell("janus-convergence", row, system, urgency, 400, reads_data=True)


def ablation() -> Iterable[Cell]:
    for row in paper.JANUS:
        for configuration in (*CONFIGURATIONS, "assertions"):
            yield Cell("janus-ablation", row, configuration, 6)


def scaling() -> Iterable[Cell]:
    for row in paper.JANUS_SCALE_FACTORS:
        for system in ("eager", "torchjanus"):
            yield Cell("janus-scaling", row, system, 8, 420)


def backbones() -> Iterable[Cell]:
    for batch in BATCHES:
        for row in paper.JITTOR_BACKBONES:
            yield Cell("jittor-backbones", row, f"torchjanus, {batch}", 2 if batch == 1 else 4)
            yield Cell("jittor-backbones", row, f"{COMPILED[1]}, {batch}", 9)


def gans() -> Iterable[Cell]:
    for row in paper.JITTOR_GANS:
        yield Cell("jittor-gans", row, "torchjanus", 1)
        yield Cell("jittor-gans", row, COMPILED[0], 6)
        yield Cell("jittor-gans", row, COMPILED[1], 7)


def fusion() -> Iterable[Cell]:
    yield Cell("jittor-fusion", "residual block", "torchjanus", 2)


def terra() -> Iterable[Cell]:
    for row in TERRA:
        for mode in ("co-executed", "lazy"):
            yield Cell("terra", row, mode, 10, 400)


PARTS: dict[str, Part] = {
    "janus-throughput": Part(throughput, "throughput"),
    "janus-correctness": Part(correctness, "kinds"),
    "janus-convergence": Part(convergence, "convergences"),
    "janus-ablation": Part(ablation, "ablations"),
    "janus-scaling": Part(scaling, "scale_factor"),
    "jittor-backbones": Part(backbones, "inference"),
    "jittor-gans": Part(gans, "gans"),
    "jittor-fusion": Part(fusion, "fusion"),
    "terra": Part(terra, "terra"),
}
