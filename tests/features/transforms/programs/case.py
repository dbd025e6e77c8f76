"""A program whose derivatives and batches are compared with those of torch.func and JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch

Meaning: TypeAlias = Callable[[Any, Any], Any]
"""What a program computes of a tensor, in a namespace: torch, or `jax.numpy` where the functions
have the same names there. Loops, recursion, data and cells are written out."""


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A relay function of a float64 tensor of a shape to a number, and what it computes."""

    function: Any
    shape: tuple[int, ...]
    meaning: Meaning
    is_in_jax: bool = True

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__


def in_torch(function: Any, shape: tuple[int, ...], meaning: Callable[[torch.Tensor], Any]) -> Case:
    """Return a program that is compared with torch alone."""
    return Case(function, shape, lambda _, x: meaning(x), is_in_jax=False)
