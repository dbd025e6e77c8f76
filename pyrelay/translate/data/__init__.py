"""Dataclasses and unions as algebraic data types, and their values."""
