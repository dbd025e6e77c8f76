"""Obstacles to a derivative that are found before it is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...diagnostics.catalogue.gradient import NothingToDifferentiate
from ...ir.derived_types.differentiable import is_differentiable
from ...ir.expr import Function, Var, type_of
from ...ir.types import RefType, show, subtypes
from .deriver import plain_name

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ...diagnostics.source import Span


def obstacles_in(param: Var, function: Function, place: Span) -> Iterator[Problem]:
    """Return the obstacle to a derivative in a parameter."""
    ty = type_of(param)
    if is_differentiable(ty):
        return
    cells = any(isinstance(part, RefType) for part in subtypes(ty))
    what = "a cell, or a model" if cells else show(ty)
    yield NothingToDifferentiate(
        place, plain_name(function.name), param.name, param.span, what, cells
    )
