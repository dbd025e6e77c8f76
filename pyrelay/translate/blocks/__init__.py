"""Blocks of code: bindings in sequence, conditions, patterns, items and targets of assignments."""
