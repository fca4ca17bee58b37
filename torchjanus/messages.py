"""What torchjanus writes to stderr, beside the program's own."""

import contextlib
import sys

_reported: set[str] = set()
left_alone: list[tuple[str, str]] = []  # files that run imperatively: why, and what to try


def tell(text: str) -> None:
    """A line to stderr, where the program has left one. It never raises: what can't be written is dropped.

    It must not wait in the interpreter's own stream: since Python 3.13 the exit code tells when that can't be flushed
    at the end.
    """
    with contextlib.suppress(Exception):  # the program may have put anything in its place
        stderr = sys.stderr
        if stderr is None:
            return
        is_own = stderr is sys.__stderr__
        if not is_own:
            print(text, file=stderr, flush=True)
            return
        stderr.flush()
        line = f"{text}\n".encode(stderr.encoding, stderr.errors or "strict")
        with open(stderr.fileno(), "wb", closefd=False) as own:
            own.write(line)


def leave_alone(file: str, why: str, remedy: str) -> None:
    """Says that code of the program runs imperatively. Reports without graphs repeat it."""
    sentence = f"{file} runs imperatively: {why}"
    left_alone.append((sentence, remedy))
    tell(f"torchjanus: {sentence}")


def internal_error(what: str, error: BaseException, instead: str = "") -> None:
    """Reports a failure of torchjanus itself, each failure once. `instead`: a sentence on what happens."""
    try:
        why = str(error)
    except Exception:  # an exception of the program's, whose text can't be made
        why = "?"
    text = f"torchjanus: internal error: {what}: {type(error).__name__}: {why}"
    if text not in _reported:
        _reported.add(text)
        tell(f"{text}\n  {f'{instead} ' * bool(instead)}Please report this.")
