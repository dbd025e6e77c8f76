"""Sums that recursive functions collect term by term, such as the gradients of weights."""

from .rewriting import Accumulate as Accumulate
from .rewriting import accumulate_sums as accumulate_sums
