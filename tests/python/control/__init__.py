"""Branches and loops whose way only the run knows."""
