"""Operators of the host: sizes, strings, effects, and what inference has yet to resolve."""
