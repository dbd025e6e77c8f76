"""How large an inferred type may be: as deep as a text may nest it, and of so many parts.

Passes walk types part by part, and programs can build types that nobody would annotate: by
`x = (x, 1.0)` a thousand times, or `x = (x, x)` forty times. They are refused where they arise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, final

from ..diagnostics.catalogue.undetermined import TypeTooLarge
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.source import Span
from ..ir.types import AdtType, FnType, RefType, TupleType, Type, TypeHole, parts

DEEPEST: Final = 100
LARGEST: Final = 100_000


class _Extent(NamedTuple):
    depth: int
    size: int
    is_open: bool
    """Whether a part is not known yet."""


@final
class Extents:
    """The depths and numbers of parts of types."""

    def __init__(self, shallow: Callable[[Type], Type]) -> None:
        """`shallow` fills in the hole at the head of a type."""
        self._shallow: Final = shallow
        self._known: Final[dict[int, tuple[Type, _Extent]]] = {}
        """The extents of types without open parts, by identity."""

    def check(self, ty: Type, span: Span) -> None:
        """Check that a type is not too large. Raises CheckError."""
        if not isinstance(ty, _COMPOSITE):
            return
        found: dict[int, _Extent] = {}
        pending = [(ty, False)]
        while pending:
            current, is_left = pending.pop()
            key = id(current)
            if key in found or key in self._known:
                continue
            direct = [self._shallow(part) for part in parts(current)]
            if not is_left:
                pending.append((current, True))
                pending += ((part, False) for part in direct if isinstance(part, _COMPOSITE))
                continue
            inside = [self._extent(part, found) for part in direct]
            made = _joined(inside)
            if made.depth > DEEPEST or made.size > LARGEST:
                raise CheckError(TypeTooLarge(span, DEEPEST, LARGEST, made.depth > DEEPEST))
            found[key] = made
            if not made.is_open:
                self._known[key] = current, made

    def _extent(self, part: Type, found: Mapping[int, _Extent]) -> _Extent:
        if not isinstance(part, _COMPOSITE):
            return _Extent(0, 1, isinstance(part, TypeHole))
        key = id(part)
        return found[key] if key in found else self._known[key][1]


def _joined(parts: Sequence[_Extent]) -> _Extent:
    depth = 1 + max((p.depth for p in parts), default=0)
    return _Extent(depth, 1 + sum(p.size for p in parts), any(p.is_open for p in parts))


_COMPOSITE: Final = (TupleType, FnType, RefType, AdtType)
