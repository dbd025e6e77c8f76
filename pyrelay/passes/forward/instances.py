"""One function pushed forward for one choice of varied parameters."""

from __future__ import annotations

from typing import final

from ...dataclass import dataclass


@final
@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """The function that computes the value of another together with tangents of its result.

    Masks count the leaves of all parameters, or of the result, from bit 0. `function` takes the
    parameters of the source, the tangents of the leaves in `varied`, and, if it `works_on_cells`,
    the run that shadows belong to; it returns a tuple of the value and the tangents of the leaves
    in `moved`. Where nothing is moved and no cell is worked on, there is no such function.
    """

    source: str
    varied: int
    moved: int
    function: str
    works_on_cells: bool

    @property
    def is_constant(self) -> bool:
        """Whether the function is called as it is."""
        return not self.moved and not self.works_on_cells
