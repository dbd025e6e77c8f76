"""Operators on many rows at once."""

from .rules import batched as batched
from .rules import is_heavy as is_heavy
from .rules import is_total as is_total
