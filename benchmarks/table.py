"""Times the benchmark programs: eager, torch.compile and torchjanus, the same step, interleaved in one run.

    python benchmarks/table.py [PROGRAM …] [--rounds N] [--no-compile] [--limit S] [--last N] [--output FOLDER]

For each program: the median of a step in milliseconds for each system; the floor (the bare convolutions and
matrix products of that step, floor.py); seconds until each compiled version has caught up with
eager, warm-up included; seconds to the first graph, with nothing on disk and in a second process
(first_graph.py); how many graphs torchjanus made, and how many of them in the last steps (1,000),
and how long that took; the share of these that ran as a graph; the most memory that a step of eager
and of torchjanus takes, and that the process holds in one (memory.py). torch.compile gets so many seconds
for its warm-up, and where it fails or needs longer the table says so. Writes programs.json into the output
folder, anew after each program.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import first_graph
import memory
import record
import tables
from floor import measure_floor
from programs import BENCHMARKS, Benchmark, chosen
from variants import SYSTEMS, Variant, warm_up_fully

import torchjanus


def variants(benchmark: Benchmark, with_compile: bool) -> list[Variant]:
    names = [name for name in SYSTEMS if with_compile or not name.startswith("torch.compile")]
    return [Variant(name, benchmark, SYSTEMS[name]) for name in names]


def floor_of(benchmark: Benchmark, rounds: int) -> float:
    """Median seconds of the step's convolutions and matrix products alone."""
    eager = Variant("floor", benchmark, lambda models, make: make(*models))
    eager.warm(2)
    return measure_floor(eager.run, rounds)


def last_steps(variant: Variant, most: int) -> dict[str, int]:
    """So many steps, or as many as five minutes have room for, after a look at all batches: how many, how
    often a graph ran and how often one did not that might have, how many graphs were made meanwhile."""
    for _ in range(variant.batch_count):
        variant.run()
    before = torchjanus.stats(variant.step)
    start, steps = time.perf_counter(), 0
    while steps < most and time.perf_counter() < start + 300:
        variant.run()
        steps += 1
    after = torchjanus.stats(variant.step)
    counted = ("hits", "misses", "bypassed", "generated")
    return {"steps": steps, **{key: after[key] - before[key] for key in counted}}


def seconds_until_caught_up(variant: Variant, eager: Variant) -> float | None:
    """Seconds after which the variant, warm-up included, has done as many steps as eager; None: never."""
    spent = sum(variant.warm_up)
    behind = spent - len(variant.warm_up) * eager.median
    if behind <= 0:
        return spent
    if variant.median >= eager.median:
        return None
    steps = behind / (eager.median - variant.median)
    return spent + steps * variant.median


def measure(benchmark: Benchmark, options: argparse.Namespace) -> dict:
    built = variants(benchmark, not options.no_compile)
    steps = min(100, 12 + 2 * built[0].batch_count)  # all lengths, trees and branches
    for variant in built[:2]:
        variant.warm(steps)
    warm_up_fully(built[1])
    steps = len(built[1].warm_up)  # training may change what a step does: all have done as many
    built[0].warm_up += [built[0].run() for _ in range(steps - len(built[0].warm_up))]
    for variant in built[2:]:
        variant.try_to_warm(steps, options.limit)
    systems = [variant for variant in built if not variant.is_out]
    for _ in range(options.rounds):
        for variant in systems:
            variant.run()  # brings its own data back into the caches
            variant.times += [variant.run() for _ in range(3)]
    eager = systems[0]
    row = {
        "title": benchmark.title,
        "floor_ms": floor_of(benchmark, options.rounds) * 1e3,
        "systems": {
            variant.name: {
                "median_ms": variant.median * 1e3,
                "fastest_ms": min(variant.times) * 1e3,
                "against_eager": eager.median / variant.median,
                "caught_up_s": seconds_until_caught_up(variant, eager),
                "note": variant.note,
            }
            for variant in systems
        },
        "out": {variant.name: variant.note for variant in built if variant.is_out},
    }
    row["last"] = last_steps(systems[1], options.last)
    return row | graphs_of(systems[1])


def graphs_of(variant: Variant) -> dict:
    """How many there are, and the processor's seconds from the end of profiling until they were there."""
    stats = torchjanus.stats(variant.step)
    spent = stats["milliseconds"]
    return {
        "graphs": stats["generated"],
        "made_in_s": (spent["generating"] + spent["optimising"] + spent["compiling"]) / 1e3,
        "is_cut": stats["state"] == "cut",
    }


def measured_apart(name: str, options: argparse.Namespace) -> dict:
    """A process each: what one program left in caches and pools does not touch the next."""
    with tempfile.TemporaryDirectory() as folder:  # nobody finds what was compiled before
        row = Path(folder) / "row.json"
        command = [sys.executable, __file__, "--one", name, str(row)]
        command += ["--rounds", str(options.rounds), "--limit", str(options.limit)]
        command += ["--last", str(options.last)]
        command += ["--no-compile"] * options.no_compile
        caches = {"TORCHJANUS_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        subprocess.run(command, check=True, env={**os.environ, **caches})
        return json.loads(row.read_text()) | {
            "first_graph_s": first_graph.starts(name),
            "peak_mib": memory.peaks(name, steps=20),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--limit", type=int, default=60, help="seconds for torch.compile to warm up"
    )
    parser.add_argument("--last", type=int, default=1000, help="steps looked at in the end")
    record.add_output(parser)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, path = options.one
        row = measure(BENCHMARKS[name], options)
        Path(path).write_text(json.dumps(row, default=str))
        return
    about, rows = record.about(options.rounds), {}
    for name in chosen(parser, options.programs):
        rows[name] = measured_apart(name, options)
        record.write(options.output, "programs", about, rows)
        print(tables.speed_in_full([rows[name]]), flush=True)
    for made in (tables.speed_in_full, tables.start, tables.memory):
        print(made(rows.values()))


if __name__ == "__main__":
    main()
