"""Convolutions, and their gradients, as C."""

from .calls import has_code as has_code
from .calls import lower_call as lower_call
