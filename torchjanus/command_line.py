"""What the command line may hold, and `torchjanus explain`, which needs no compiled library."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

from . import __version__, reasons


def parser() -> argparse.ArgumentParser:
    """The parsed command line."""
    whole = argparse.ArgumentParser(
        prog="torchjanus", description="Runs imperative PyTorch programs as speculative graphs."
    )
    whole.add_argument("--version", action="version", version=f"torchjanus {__version__}")
    commands = whole.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a script, unchanged")
    _add_reports(run)
    run.add_argument(
        "--live",
        action="store_true",
        help="meanwhile, show in the last rows of the terminal how it runs: steps a second, how much of the time as "
        "graphs, what just happened; on stderr, and only if that is a terminal; of several ranks the first one's",
    )
    _add_data_parallel(run)
    run.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    run.add_argument(
        "script",
        metavar="SCRIPT",
        nargs=argparse.PARSER,
        action=_StoreProgram,
        help="the script (or, with -m, the module), and behind it its arguments",
    )
    explain = commands.add_parser("explain", help="say what the code of a reason means")
    explain.add_argument(
        "code",
        metavar="CODE",
        nargs="?",
        help="as in reports, heap_write; without it all are listed",
    )
    return whole


class _StoreProgram(argparse.Action):
    """Takes SCRIPT and all that follows: argparse would keep a `--` among the script's arguments to itself."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        words = values[1:] if values[0] == "--" else values
        if not words:
            parser.error("the following arguments are required: SCRIPT")
        namespace.script, namespace.arguments = words[0], words[1:]


def _add_reports(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--explain",
        action="store_true",
        help="at the end, print to stderr how much ran as graphs, what was converted and what was not",
    )
    run.add_argument(
        "--stats",
        type=Path,
        metavar="FILE",
        help="at the end, write counters as JSON; a process that the program starts writes FILE.<its number>, and "
        "of several ranks each writes its own: s.rank1.json for s.json",
    )
    run.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="at the end, write a page (HTML) with the source, line by line, and all graphs; of several ranks each "
        "writes its own: r.rank1.html for r.html",
    )
    run.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="at the end, write what happened when as JSON, for chrome://tracing and ui.perfetto.dev; of several ranks "
        "each writes its own",
    )
    run.add_argument(
        "--tensorboard",
        type=Path,
        metavar="DIR",
        help="at the end, write graphs and how calls went, for TensorBoard (the package tensorboard); of several ranks "
        "each writes its own",
    )


def _add_data_parallel(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group(
        "training by several processes",
        "torchrun --nproc-per-node=2 -m torchjanus run --data-parallel SCRIPT",
    )
    group.add_argument(
        "--data-parallel",
        action="store_true",
        help="for a script that knows nothing of processes: parameters from rank 0, gradients averaged, loaders that "
        "shuffle divided among the ranks, files by torch.save from rank 0",
    )
    group.add_argument(
        "--split-batches",
        action="store_true",
        help="divide the batches of such loaders too, so that the ranks together take the script's steps",
    )
    group.add_argument(
        "--shard-sequential", action="store_true", help="divide loaders that don't shuffle too"
    )
    group.add_argument(
        "--print-from", choices=("0", "all"), default="0", help="which ranks print; 0 if not given"
    )


def explain(code: str | None) -> int:
    """Prints what is known of a code, or of all; 2 if there is no such code."""
    text = reasons.overview() if code is None else reasons.explained(code)
    if text is not None:
        return _print(text)
    near = reasons.near(code or "")
    hint = f"near: {', '.join(near)}" if near else "`torchjanus explain` lists all"
    print(f"torchjanus: there is no reason {code!r}; {hint}", file=sys.stderr)
    return 2


def _print(text: str) -> int:
    """To stdout. A reader that wants no more, `head`, ends the process without a word, as it ends other tools."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again
        return 128 + signal.SIGPIPE
    return 0
