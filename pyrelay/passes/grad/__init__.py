"""Reverse-mode differentiation: the functions that `grad`, `value_and_grad` and `vjp` stand for."""

from .expanded import ReverseMode as ReverseMode
