"""Calls of functions, and mentions of them as values."""
