"""Sums that recursive functions collect term by term, such as the gradients of weights."""

from .rewriting import defer_sums as defer_sums
