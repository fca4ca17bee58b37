"""`torchjanus run`, the examples, and functions typed at a prompt."""
