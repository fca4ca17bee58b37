"""Makes docs/evaluation: each table beside the paper's figures, with what differs; plots; what it was measured on.

A part that was not measured has no section, and a page without sections is not written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cells, paper, plots, result_tables

Found = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by row and column


@dataclass(frozen=True)
class Section:
    title: str
    part: str
    differs: str  # from the paper
    table: Callable[[Found], str]
    pictures: Callable[[Found], Mapping[str, str]] = lambda found: {}  # SVG by name


HEAD = (
    "Made by `make evaluate` from `benchmarks/results/evaluation`. Everything was measured here, but for "
    "what is called the paper's ([`paper.py`](../../benchmarks/evaluation/paper.py)).\n"
)


def words(text: str) -> str:
    return " ".join(text.split())


PAGES: Mapping[str, tuple[str, tuple[Section, ...]]] = {
    "janus": ("JANUS's evaluation, again", (
        Section(
            "Throughput of training steps",
            "janus-throughput",
            words("""
                JANUS's paper compares with TensorFlow's eager mode on a GPU. Here it is PyTorch's on
                a CPU, with smaller batches and pictures. Of A3C and PPO the update is measured,
                without the game. Rounds of steps take turns with eager's; where steps differ, as
                lengths do, a round has all kinds. Figures are medians of rounds' means. Eager's are
                those beside torchjanus; factors are of each system's own turns. Before, what the
                first steps give was compared with eager's: systems that differ are wrong, and not
                measured. They may differ by 2 % of the greatest element, or by four times what
                eager's own steps differ by if its parameters differ in the last bit: the sampled
                softmax (LM) by Adagrad is chaotic. A system that does not get through these steps in 75 s is not ready;
                eager's steps beside it count. Programs that draw random numbers are compiled with
                eager's generator. JAX has four programs, written for it by hand; the other seven
                were not written. Batches are JAX's arrays before; only random noise is handed over
                in a step."""),
            result_tables.throughput,
            plots.throughput,
        ),
        Section(
            "What stays correct",
            "janus-correctness",
            words("""
                JANUS's paper asks of each system whether dynamic control flow, dynamic types and
                impure functions stay correct. Here each has small programs. Twelve calls have to
                give, print and leave what they do eagerly, with equal dtypes. A failure is seen by
                the user; what is wrong is not. Of torchjanus it is said how many of the twelve ran
                as graphs."""),
            result_tables.correctness,
        ),
        Section(
            "Convergence against wall time",
            "janus-convergence",
            words("""
                JANUS's paper trains ResNet-50, LM, TreeLSTM (to 82 % on the Stanford Sentiment
                Treebank), PPO and AN. These are smaller. The quality is the best that all systems
                reach. A cell has the seconds until then, and in brackets where the training ended.
                One system runs after the other. Looking at the quality is off the clock; compilation
                in the background goes on meanwhile. Adversarial networks (AN) and games are chaotic:
                rounding decides how good they are at the end. So these are medians over several
                seeds, look by look; the others are one run. Trees are expressions of Python's
                standard library, and the language model's text is Python's own documentation, unless
                the line below names other data. CartPole is gymnasium's if that line names it, else
                the same equations in Python."""),
            result_tables.convergence,
            plots.convergence,
        ),
        Section(
            "What each kind of speculation brings",
            "janus-ablation",
            words("""
                Speed against eager. Each column has what those before it have. JANUS's paper:
                graphs without speculation are up to 4.9 × as fast as eager, unrolling brings up to
                2.09 × (LSTM), specialisation up to 18.3 %, parallel execution up to 9.8 ×, and
                assertions cost next to nothing. Fused kernels and calls that are computed together
                are not in the paper. The last column is how much of a step passes before its graph
                begins: the check of all assumptions, and collecting inputs. Guards within a graph
                are not in it."""),
            result_tables.ablation,
            plots.ablation,
        ),
        Section(
            "Scale factors",
            "janus-scaling",
            words("""
                The throughput of two processes over twice that of one that runs alone. JANUS's
                paper has GPUs of several machines. Here two processes of one thread each share a
                machine's memory and caches."""),
            result_tables.scaling,
        ),
    )),
    "jittor": ("Jittor's evaluation, again", (
        Section(
            "Inference of ten backbones",
            "jittor-backbones",
            words("""
                Jittor's paper compares with PyTorch on a GPU, at batches up to 128, and gives
                means. Here it is a CPU, with pictures of 112×112, own definitions and random
                weights. A factor is against the eager run beside it in the same process; the
                table shows the eager time of torchjanus's cell."""),
            result_tables.inference,
            plots.inference,
        ),
        Section(
            "Training of four adversarial networks",
            "jittor-gans",
            words("""
                Jittor's paper compares with PyTorch on a GPU, on larger pictures. A factor is
                against the eager run beside it in the same process; the table shows the eager
                time of torchjanus's cell."""),
            result_tables.gans,
            plots.gans,
        ),
        Section(
            "A residual block, fused",
            "jittor-fusion",
            words("""
                Two convolutions with normalisations, an activation behind the first, a sum with what
                entered, and an activation: in inference."""),
            result_tables.fusion,
        ),
    )),
    "terra": ("Terra's evaluation, again", (
        Section(
            "Ten programs, co-executed and lazily",
            "terra",
            words(f"""
                Terra's paper has {paper.TERRA_FASTER[0]:.2f} to {paper.TERRA_FASTER[1]:.2f} × of
                TensorFlow's eager mode for its ten programs, on a GPU beside the CPU that runs
                Python. Executed lazily, three of them are at 1.13, 0.94 and 1.34 ×, where co-execution
                has 1.25, 1.23 and 1.56 ×. Here graphs have the same cores as Python, and models
                are small."""),
            result_tables.terra,
            plots.terra,
        ),
    )),
}  # fmt: skip


def said(result: Mapping[str, Any]) -> str:
    """A result in a few words, for who waits."""
    if "problem" in result:
        return str(result["problem"])
    if "faster" in result:
        return f"{result['ms']:.2f} ms, eager {result['eager_ms']:.2f} ms: {result['faster']:.2f} ×"
    if "verdicts" in result:
        return "; ".join(f"{name}: {verdict}" for name, verdict in result["verdicts"].items())
    if "points" in result:
        seconds, quality = result["points"][-1]
        return f"{quality:.4g} after {seconds:.1f} s"
    return (
        ", ".join(f"{name} {value:.4g}" for name, value in result.items() if is_number(value))
        or "done"
    )


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def caption(found: Found) -> str:
    """What it was measured on."""
    every = [cell for row in found.values() for cell in row.values()]
    abouts = [cell["about"] for cell in every]
    dates = sorted(about["date"][:10] for about in abouts)
    last = abouts[0]  # all are of the same machine
    commits = {about["commit"]: None for about in sorted(abouts, key=lambda about: about["date"])}
    machine = f"{last['machine']} ({last['instructions']}), {last['cores']} cores"
    load = max(about["load"] for about in abouts)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    quick = sum(cell["quick"] for cell in every)
    told = f"; {quick} of {len(every)} figures by --quick, of few steps" if quick else ""
    with_ = ", ".join(f"{name} {number}" for name, number in last["packages"].items() if number)
    data = f"; data given by --sst or --text: {', '.join(last['data'])}" if last["data"] else ""
    return f"{machine}, load at most {load}; {with_}{data}; torchjanus at {', '.join(commits)}; {when}{told}."


def files(folder: Path) -> dict[str, str]:
    """By name what the results make."""
    made: dict[str, str] = {}
    for name, (title, sections) in PAGES.items():
        texts = []
        for section in sections:
            found = cells.newest(cells.read(folder, section.part))
            if not found:
                continue
            pictures = section.pictures(found)
            made |= pictures
            shown = [f"![{section.title}]({picture})\n" for picture in pictures]
            command = f'`make evaluate PARTS="{section.part}"`: {caption(found)}\n'
            texts += [
                f"## {section.title}\n",
                f"{section.differs}\n",
                section.table(found),
                *shown,
                command,
            ]
        if texts:
            made[f"{name}.md"] = "\n".join([f"# {title}\n", HEAD, *texts])
    return made


def made(folder: Path) -> list[str]:
    return [name for name in files(folder) if name.endswith(".md")]


def write(folder: Path, pages: Path) -> None:
    for name, text in files(folder).items():
        pages.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(text)


def outdated(folder: Path, pages: Path) -> list[str]:
    """What is there and should not be, should be there and is not, or differs."""
    wanted = files(folder)
    there = {path.name: path.read_text() for path in pages.glob("*") if path.is_file()}
    return sorted(
        name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name)
    )
