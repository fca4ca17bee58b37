"""Functions that call themselves, over objects that the run meets."""
