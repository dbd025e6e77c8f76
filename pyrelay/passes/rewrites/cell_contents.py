"""Contents that a program writes to a cell, taken apart as far as they are tuples made for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias, final

from ...dataclass import dataclass
from ...ir.expr import Expr, RefRead, RefWrite, Tuple, TupleGet

Path: TypeAlias = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Contents:
    """The new contents of one write; `defined` and `uses` are those of its function."""

    write: RefWrite
    defined: Mapping[Expr, Expr]
    uses: Counter[Expr]

    def fields(self, atom: Expr) -> tuple[Expr, ...] | None:
        """Return the fields of a tuple that is made for the write alone."""
        made = self.defined.get(atom)
        return made.fields if isinstance(made, Tuple) and self.uses[atom] == 1 else None

    def parts(self) -> Iterator[tuple[Expr, Path]]:
        """Return the tuples in the contents and their parts, each with the path to it."""
        pending: list[tuple[Expr, Path]] = [(self.write.value, ())]
        while pending:
            atom, path = pending.pop()
            yield atom, path
            fields = () if self.stays(atom, path) else self.fields(atom) or ()
            pending += reversed([(f, (*path, i)) for i, f in enumerate(fields)])

    def stays(self, atom: Expr, path: Path) -> bool:
        """Return whether a part was read from the cell, at the path that it is written to."""
        for index in reversed(path):
            found = self.defined.get(atom)
            if not isinstance(found, TupleGet) or found.index != index:
                return False
            atom = found.value
        read = self.defined.get(atom)
        return isinstance(read, RefRead) and read.ref is self.write.ref
