"""Statements: sequences, branches, loops and matches."""
