"""Makes docs/benchmarks.md, and the table in the README, of the results in benchmarks/results.

    python benchmarks/page.py [--check]

Each table holds one file, which is one run on one machine at one commit: no figure comes from elsewhere.
`--check` changes nothing and fails if a page is not what this command makes.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import line_chart
import record
import scaling
import tables

PAGE = record.ROOT / "docs" / "benchmarks.md"
PICTURES = record.ROOT / "docs" / "pictures"
README = record.ROOT / "README.md"
BEGIN, END = "<!-- made by make bench-page: begin -->\n", "<!-- made by make bench-page: end -->\n"
MOST_ROWS_OF_README = 15
README_PROGRAMS = (
    "lenet", "gan", "residual_mlp", "small_cnn", "a3c", "ppo", "adaptive", "stochastic_depth", "lengths",
    "stateful", "tree_rnn_25", "tree_lstm_25", "sequences", "lstm", "gpt",
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    title: str
    name: str  # of the file
    command: str
    method: str
    table: Callable[[Any], str]
    rounds: str = "rounds"  # what they are here
    picture: Callable[[Any], str] | None = None  # an SVG in docs/pictures, by the section's name


def of_programs(table: Callable[[Any], str]) -> Callable[[Mapping[str, Any]], str]:
    return lambda rows: table(rows.values())


def scale_factors(rows: Sequence[Mapping[str, Any]]) -> str:
    """Simulated scale factors of 8 to 4,096 ranks, a panel for each program."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        lines = panels.setdefault(row["title"].split(",")[0], {})
        for system, found in row["systems"].items():
            for overlap in ("on", "off"):
                if "problem" not in found["one"] and "problem" not in found[overlap]:
                    points = scaling.scale_factors(found["one"]["ms"], found[overlap]["timeline"])
                    lines[f"{system}, overlap {overlap}"] = [*points]
    return line_chart.line_charts(panels, "ranks", "scale factor")


SECTIONS = (
    Section(
        "Speed of training steps",
        "programs",
        "make bench",
        "Milliseconds of a step, medians; every system takes the same steps by turns. torch.compile is the better of "
        "the compiled model and the compiled step. The floor is what the step's convolutions and matrix products take "
        "by themselves, each by the faster of MKL and oneDNN. Products that torchjanus does as one may lie below it. "
        "Where a step's memory just exceeds the cache, each process has its own luck with pages. The GAN's step takes "
        "13.5 ms in most and 19.5 in some; eager's takes 21.5 there, or 27.5.",
        of_programs(tables.speed_in_full),
    ),
    Section(
        "From the first step to graphs",
        "programs",
        "make bench",
        "Seconds from the first step to the end of the first one that ran as a graph: with nothing on disk, and in a "
        "second process. *Made in* is the processor's time for all graphs. *Caught up* is the time, warm-up included, "
        "after which as many steps are done as by eager. The last columns are about the steps after all that.",
        of_programs(tables.start),
    ),
    Section(
        "Memory",
        "programs",
        "make bench",
        "How far resident memory rises in a step, at its highest, when all that was free has gone back to the system "
        "before; and the process's peak above what was resident before the first step.",
        of_programs(tables.memory),
    ),
    Section(
        "What each part brings",
        "ablation",
        "make bench-ablation",
        "The least median of a step's milliseconds over the turns. Each column has what those before it have.",
        tables.ablation,
        "turns",
    ),
    Section(
        "The programs of Terra's evaluation",
        "coexecution",
        "make bench-coexecution",
        "Small versions of the ten programs, each in processes of its own, side by side in slices of four seconds: "
        "the mean of a step in the second half of a run, the least of the turns. A mode is wrong where the first "
        "steps do not print what they print eagerly.",
        tables.coexecution,
        "turns",
    ),
    Section(
        "The same programs later in a run",
        "coexecution_later",
        "make bench-coexecution_later",
        "As above, of the second half of 960 steps: what is tried in the first hundreds is decided then.",
        tables.coexecution,
        "turns",
    ),
    Section(
        "What each part of lazy execution brings",
        "lazy_ablation",
        "make bench-lazy_ablation",
        "The mean of a step's milliseconds, the least of the turns; nothing is converted. From the third column of "
        "times on, one part is left out.",
        tables.ablation,
        "turns",
    ),
    Section(
        "Two processes, and more",
        "distributed",
        "make bench-distributed",
        "DistributedDataParallel, two processes of one thread each beside one of one thread: medians of a step. "
        "Overlap: gradients are exchanged while others are computed. Delayed: collectives end as late as in a network "
        "that takes half of one process's eager step for all gradients. Exposed is what that adds to a step, of what "
        "the network takes; simulated is the step that the timeline without delay foretells. The scale factor is the "
        "throughput of two processes over twice that of one. JANUS's paper has 0.77 for ResNet-50, 0.81 for "
        "Inception-v3 and 0.18 for a language model. The picture is simulated from the same timelines: links of "
        "10 Gbit/s and 20 µs, all-reduce by a ring or a tree, whichever is faster.",
        tables.distributed,
        picture=scale_factors,
    ),
    Section(
        "Growth with the program's size",
        "growth",
        "make bench-growth",
        "Milliseconds until the first graph is there, microseconds of a call beyond its graph's instructions, and "
        "milliseconds of a step.",
        tables.growth,
    ),
    Section(
        "Entry, profiling and the first graph",
        "overheads",
        "make bench-overheads",
        "What comes on top of the graphs: medians, each program in two processes.",
        tables.overheads,
    ),
    Section(
        "Threads",
        "threads",
        "make bench-threads",
        "Steps as graphs on one thread and on several, by turns.",
        tables.threads,
    ),
    Section(
        "Recurrent layers",
        "recurrent",
        "make bench-recurrent",
        "Training steps of one layer with a linear head and Adam; where the length is a range, it is drawn from that.",
        tables.recurrent,
    ),
    Section(
        "Kernels beyond the cache",
        "kernels",
        "make bench-kernels",
        "Bytes that a kernel reads and writes over its best time, beside a copy of the same arrays.",
        tables.kernels,
    ),
    Section(
        "Numbers of Python's that change",
        "state",
        "make bench-state",
        "Each call multiplies a float by 0.9 and a tensor by the float; only where the float is kept differs.",
        tables.state,
        "calls",
    ),
    Section(
        "torch's own databases",
        "oracles",
        "make bench-oracles",
        "Samples that run eagerly and converted, as functions, methods and in place, with gradients.",
        tables.oracles,
        "samples of each operator and form",
    ),
)


def caption(about: Mapping[str, Any], section: Section) -> str:
    rounds = about["rounds"]
    return (
        f"`{section.command}`: {about['machine']} ({about['instructions']}), {about['cores']} cores, "
        f"{about['threads']} threads, load {about['load']} at the start; torch {about['torch']}, "
        f"Python {about['python']}, torchjanus {about['torchjanus']} at {about['commit']}; {about['date']}; "
        f"{section.rounds}: {rounds}."
    )


def page(folder: Path) -> str:
    parts = [
        "# Measurements\n",
        "Made by `make bench-page` from `benchmarks/results/*.json`. Each table is one run of one command, on the "
        "machine and at the commit below it. A plus behind a commit: with changes.\n",
    ]
    if evaluations := sorted(PAGE.parent.glob("evaluation/*.md")):
        links = [f"[{path.stem.capitalize()}](evaluation/{path.name})" for path in evaluations]
        parts.append(f"The evaluations of papers are on pages of their own: {', '.join(links)}.\n")
    for section in SECTIONS:
        if found := record.read(folder, section.name):
            parts += [f"## {section.title}\n", f"{section.method}\n", section.table(found["rows"])]
            if section.picture:
                parts.append(f"![{section.title}]({PICTURES.name}/{section.name}.svg)\n")
            parts.append(f"{caption(found['about'], section)}\n")
    return "\n".join(parts)


def readme_table(folder: Path) -> str:
    """At most fifteen programs of the one run; nothing if there is none."""
    found = record.read(folder, "programs")
    if found is None:
        return ""
    rows = [found["rows"][name] for name in README_PROGRAMS if name in found["rows"]]
    text = caption(found["about"], SECTIONS[0])
    return f"{tables.speed(rows[:MOST_ROWS_OF_README])}\nOne run of {text}\n"


def readme(text: str, folder: Path) -> str:
    """The README with its table made anew."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{readme_table(folder)}\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether they are up to date")
    options = parser.parse_args()
    made = {PAGE: page(record.KEPT), README: readme(README.read_text(), record.KEPT)}
    for section in SECTIONS:
        if section.picture and (found := record.read(record.KEPT, section.name)):
            made[PICTURES / f"{section.name}.svg"] = section.picture(found["rows"])
    for path, text in made.items():
        if path.exists() and path.read_text() == text:
            continue
        if options.check:
            sys.exit(f"{path.name} is not what make bench-page makes: run it")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
