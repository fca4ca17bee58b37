"""The command line where no compiled library fits: Python runs the script, as if torchjanus were not there."""

import os
import sys
from collections.abc import Sequence

from . import command_line, imperative, outputs
from .program import Program


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command, as command.main; a script takes the place of this process.

    Returns:
        Of `run` nothing, but 2 if the script is to be trained by several processes, which it would not be, or if a file
        that is asked for can't be written. Else the exit code of `explain`.
    """
    options = command_line.parser().parse_args(arguments)
    if options.command == "explain":
        return command_line.explain(options.code)
    if options.data_parallel:
        print(f"{imperative.SENTENCE}: --data-parallel needs one", file=sys.stderr)
        return 2
    program = Program(
        options.script,
        options.arguments,
        is_module=options.module,
        is_own_process=arguments is None,
    )
    if problems := list(outputs.problems(options, program.file)):
        print("\n".join(problems), file=sys.stderr)
        return 2
    if unserved := outputs.reports_asked_for(options):
        why = "no compiled library fits this Python and torch"  # the import's warning says more
        print(f"torchjanus: {why}, so nothing is written for {unserved}", file=sys.stderr)
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
