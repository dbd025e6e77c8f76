"""Where code of a batch stands: what its variables are, and for which elements it computes."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias, final

from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import Expr, Tuple, Var, type_of
from ...operators.builder import Builder, Value
from ...operators.primitive.gathering import index_select
from .masks import Mask, is_any

if TYPE_CHECKING:
    from .mixtures import Mixtures

Found: TypeAlias = tuple[Value, Mask]
"""A value, and which of its tensors are batched."""


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """A place in the code of a function for `count` elements.

    `lanes` are the positions of these elements among those of the frame around, of which it takes
    what it uses; None where it computes for the same ones.
    """

    builder: Builder
    count: Dim
    batches: Mixtures
    outer: Frame | None = None
    lanes: Value | None = None
    known: dict[Var, tuple[Expr, Mask]] = field(default_factory=dict[Var, tuple[Expr, Mask]])

    def inside(self, count: Dim | None = None, lanes: Value | None = None) -> Frame:
        """Return the frame of an arm, for the same elements or for those at some positions."""
        builder = Builder(self.builder.span, self.builder.names, self.builder.solver)
        return Frame(builder, count or self.count, self.batches, self, lanes)

    def bind(self, var: Var, found: Found) -> None:
        """Let a value stand for a variable."""
        self.known[var] = (found[0].atom, found[1])

    def is_around_lanes(self, atom: Expr) -> bool:
        """Return whether a variable is bound where more elements compute than here."""
        frame: Frame | None = self
        while frame is not None and isinstance(atom, Var):
            if atom in frame.known:
                return False
            if frame.lanes is not None:
                return True
            frame = frame.outer
        return False

    def places_in(self, around: Frame) -> Value | None:
        """Return the positions of the elements of this frame among those of one around it; None if
        they are the same ones."""
        places: Value | None = None
        frame: Frame | None = self
        while frame is not around:
            assert frame is not None
            if frame.lanes is not None:
                lanes = self.builder.value(frame.lanes.atom)
                places = lanes if places is None else index_select(lanes, places, dim=0)
            frame = frame.outer
        return places

    def find(self, atom: Expr) -> Found:
        """Return the value of an atom for the elements of this frame."""
        if isinstance(atom, Tuple) or not isinstance(atom, Var):
            return self.builder.value(atom), self.batches.forms.none(type_of(atom))
        if atom not in self.known:
            assert self.outer is not None, f"{atom.name} is not in scope"
            value, mask = self.outer.find(atom)
            value = self.builder.value(value.atom)
            if self.lanes is not None and is_any(mask):
                lanes = self.builder.value(self.lanes.atom)
                value = self.batches.taken(value, type_of(atom), mask, lanes, self.outer.count)
            self.known[atom] = (value.atom, mask)
        found, mask = self.known[atom]
        return self.builder.value(found), mask
