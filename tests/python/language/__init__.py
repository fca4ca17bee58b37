"""Python's statements, expressions, calls and standard library."""
