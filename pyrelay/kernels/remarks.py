"""Remarks of fusion: why values that belong together are in several kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

from ..ir.expr import Var


@final
@dataclass(frozen=True, slots=True)
class Stored:
    """Why `var` is stored: what uses it, and why `user` is not computed together with it."""

    var: Var
    user: Var
    why: str


@final
@dataclass(frozen=True, slots=True)
class Separated:
    """Why two sums of products that read `shared` are in two kernels."""

    first: Var
    second: Var
    shared: Var
    why: str


Remark: TypeAlias = Stored | Separated
