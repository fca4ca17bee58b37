"""Torch's operators one by one: values, strides, aliasing, gradients."""
