"""The command line where no compiled library fits: Python runs the script, as if torchjanus were not there."""

import os
import sys
from collections.abc import Sequence

from . import command_line, imperative


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command, as command.main; a script takes the place of this process.

    Returns:
        Of `run` nothing, but 2 if the script is to be trained by several processes: it would not be. Else the exit code
        of `explain`.
    """
    options = command_line.parser().parse_args(arguments)
    if options.command == "explain":
        return command_line.explain(options.code)
    if options.data_parallel:
        print(f"{imperative.SENTENCE}: --data-parallel needs one", file=sys.stderr)
        return 2
    module = ["-m"] if options.module else []
    line = [*_interpreter(arguments), *module, options.script, *options.arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, line)


def _interpreter(arguments: Sequence[str] | None) -> list[str]:
    """Python with the options that it was started with."""
    if arguments is not None:
        return [sys.executable]
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv)]
    if options and options[-1].startswith("-") and options[-1].endswith("m"):
        options[-1:] = [options[-1][:-1]] if len(options[-1]) > 2 else []  # "-m", or "-Im"
    return [sys.executable, *options]
