"""One function differentiated for one choice of parameters and results, and calls of it."""

from __future__ import annotations

from dataclasses import field
from typing import final

from ...dataclass import dataclass
from ...ir.dims import DimVar
from ...ir.types import AdtType, Type


@final
@dataclass(slots=True, eq=False)
class Instance:
    """The forward and backward function made of one function.

    Masks count the leaves of all parameters, or of the result, from bit 0. `backward` takes the
    residual (where there is one), the values of the parameters in `values`, the cotangents of the
    leaves in `useful`, then the cotangents so far of the `threaded` leaves of `active`, and, if it
    `works_on_cells`, the run that shadows belong to; it gives the cotangents of `active`, added to
    those so far where the leaf is threaded.
    """

    source: str
    varied: int
    useful: int
    forward: str
    backward: str
    residual: Type | None = None
    """Over the type parameters of the function; None where nothing is saved: then the forward
    function is the original."""
    values: tuple[int, ...] = ()
    candidates: tuple[int, ...] = ()
    """While `open`: the parameters that may turn out to be in `values`."""
    active: int = 0
    threaded: int = 0
    trace: AdtType | None = None
    """For a loop: the type of the list of iterations, which the forward function takes last."""
    start: str = ""
    """The constructor of the empty trace."""
    extra: tuple[DimVar, ...] = ()
    """Sizes that only the result shows: the running program passes them to the backward function,
    by the cotangent that it is given."""
    works_on_cells: bool = False
    """Whether the backward function must run for what it does to shadows."""
    open: bool = field(default=False)
    """True while the group of recursive functions that it belongs to is being derived."""
