"""Mistakes of the layouts of images, found before anything runs (RL238, RL239)."""

from __future__ import annotations

from ...dataclass import dataclass
from ..diagnostic import Diagnostic, Fix, Label
from ..source import Span


@dataclass(frozen=True, slots=True)
class Conversion:
    """A way out: an operand, as written, in another layout; `place` is where it stands, if
    known."""

    operand: str
    layout: str
    place: Span | None

    @property
    def text(self) -> str:
        """The conversion."""
        return f'relay.to_layout({self.operand}, "{self.layout}")'

    @property
    def help(self) -> str:
        """The suggested text."""
        return f"convert it: {self.text}"

    @property
    def fix(self) -> Fix | None:
        """The conversion in the place of the operand."""
        return None if self.place is None else Fix(self.place, self.text)


@dataclass(frozen=True, slots=True)
class LayoutMismatch:
    """An operator does not take images in the layout of an operand.

    Convolutions, pools and batch normalisation take images in any layout, and operators that work
    element by element take operands in one layout; their results stay in it. Everything else takes
    images in the order of their shape, `NCHW`. Nothing is converted silently: a conversion copies
    the images.
    """

    span: Span
    message: str
    operand: Label
    way: Conversion

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL238",
            title=self.message,
            primary=Label(self.span, ""),
            secondary=(self.operand,),
            help=self.way.help,
            fix=self.way.fix,
        )


@dataclass(frozen=True, slots=True)
class LayoutInData:
    """Images are put into data, such as a list, in another layout than that of their shape.

    Data may leave the program, and then its tensors are seen as their shape says.
    """

    span: Span
    layout: str
    way: Conversion

    def diagnostic(self) -> Diagnostic:
        """Return the mistake as data."""
        return Diagnostic(
            code="RL239",
            title=f"data hold images in the order of their shape, not in the layout {self.layout}",
            primary=Label(self.span, f"this is in the layout {self.layout}"),
            help=self.way.help,
            fix=self.way.fix,
        )
