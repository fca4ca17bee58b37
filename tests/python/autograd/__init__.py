"""Gradients, leaves, hooks and gradient modes."""
