"""Dataclasses and unions as algebraic data types."""
