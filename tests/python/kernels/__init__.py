"""Fused kernels: what they compute, where they are kept, how threads share them."""
