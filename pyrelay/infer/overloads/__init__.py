"""Syntax that means one thing of tensors and another of lists, tuples or data."""
