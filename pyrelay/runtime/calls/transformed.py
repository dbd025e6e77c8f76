"""A transform over a call from a script, such as the gradient in the parameters of models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import final

from ...ir.expr import Rule
from .models_in_front import Passed


@final
@dataclass(frozen=True, slots=True, eq=False)
class Transformed:
    """A transform over a call: which, in which host parameters, and the form of the result.

    There is one object of each (`transformed`), so that a key with one in it hashes fast.
    """

    rule: Rule
    wrt: tuple[int, ...]
    single: bool
    has_aux: bool
    passed: Passed = ()
    """The models among the arguments."""

    @property
    def path(self) -> tuple[int, ...] | None:
        """What leads to the gradient of one model in the result; None where there are others, or
        values beside it that a program gives."""
        if self.has_aux or not self.single:
            return None
        return () if self.rule is Rule.GRAD else (1,)


@lru_cache(maxsize=256)
def transformed(
    rule: Rule, models: int, single: bool, has_aux: bool, passed: Passed = ()
) -> Transformed:
    """Return a transform in the parameters of all the models of a call."""
    return Transformed(rule, tuple(2 * i for i in range(models)), single, has_aux, passed)
