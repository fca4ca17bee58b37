"""The debug switches, as one object; at start they come from the environment."""

from . import _core


class Options:
    """`torchjanus.options`: switches that may be changed while the program runs.

    The environment sets their first values: TORCHJANUS_STRICT, TORCHJANUS_DUMP, TORCHJANUS_LOG.
    """

    @property
    def strict(self) -> bool:
        """Whether a call that can't run as a graph for good, or an internal error, raises RuntimeError
        instead of running imperatively. What holds no tensor work is none of that."""
        return _core.strict()

    @strict.setter
    def strict(self, value: bool) -> None:
        _core.set_strict(value)

    @property
    def dump_folder(self) -> str:
        """Where every stage that changes a graph is written; empty: nowhere."""
        return _core.dump_folder()

    @dump_folder.setter
    def dump_folder(self, value: str) -> None:
        _core.set_dump_folder(value)

    def log_level(self, channel: str) -> int:
        """How much the channel ("speculate", "pass", ...) prints to stderr; 0: nothing."""
        return _core.log_level(channel)

    def set_log_level(self, channel: str, level: int = 1) -> None:
        """Switches a channel on (1, 2: more) or off (0)."""
        _core.set_log_level(channel, level)


options = Options()
