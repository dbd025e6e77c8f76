"""Expressions, and calls of anything that Python can call."""
