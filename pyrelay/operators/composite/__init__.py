"""Operators whose meaning is a body in other operators."""
