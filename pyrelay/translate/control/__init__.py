"""Statements: assignments, branches and loops."""
