"""Why values that belong together are in several kernels: what `explain` tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ...ir.expr import Var


@final
@dataclass(frozen=True, slots=True)
class Note:
    """Why a value is stored: what uses it, and why that is not computed together with it."""

    var: Var
    user: Var
    why: str


@final
@dataclass(frozen=True, slots=True)
class Apart:
    """Why two sums of products that read the same value are in two kernels."""

    first: Var
    second: Var
    shared: Var
    why: str
