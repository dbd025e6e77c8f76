"""Operators that are dispatched, and those that scripts call."""
