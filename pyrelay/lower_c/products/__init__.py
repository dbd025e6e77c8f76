"""Operators with C of their own: convolutions, their gradients, and the first of equal numbers."""

from .calls import has_code as has_code
from .calls import lower_call as lower_call
