"""Whether two types of a checked program agree.

A size agrees with any 64-bit integer scalar. Two dims agree when they are equal, when the
assumptions of the function say so, or when one of them is known only to the running program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..calls.closed_solver import Settled
from ..dims import Dim
from ..expr import Assumption
from ..op import Clash
from ..types import (
    INT,
    AdtType,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    as_arguments,
    show,
    substitution,
)


@final
class TypeComparison(Settled):
    """Compares types; a type rule may use it as its solver."""

    def __init__(self, sizes: frozenset[str], assumptions: Sequence[Assumption]) -> None:
        self._sizes: Final = sizes
        self._equal: Final[dict[str, Dim]] = {}
        self._differences: Final[list[Dim]] = []
        for assumption in assumptions:
            self._assume(assumption.left, assumption.right)

    def _assume(self, left: Dim, right: Dim) -> None:
        left, right = left.rename(self._equal), right.rename(self._equal)
        for old, new in ((left, right), (right, left)):
            name = old.name
            if name is not None and name not in new.names():
                for key, dim in self._equal.items():
                    self._equal[key] = dim.rename({name: new})
                self._equal[name] = new
                return
        self._differences.append(left - right)

    def dims(self, left: Dim, right: Dim) -> bool:
        """Return whether two dims agree."""
        if left == right:
            return True
        difference = left.rename(self._equal) - right.rename(self._equal)
        if difference.constant is not None:
            return difference.constant == 0
        if not difference.names() <= self._sizes:
            return True
        known = (d.rename(self._equal) for d in self._differences)
        return any(difference in (d, -d) for d in known)

    def types(self, left: Type, right: Type) -> bool:
        """Return whether two types agree. Types nest as deep as a user writes, so this recurses."""
        if left == right:
            return True
        match left, right:
            case (SizeType(), TensorType()) | (TensorType(), SizeType()):
                return INT in (left, right)
            case SizeType(a), SizeType(b):
                return self.dims(a, b)
            case TensorType(a, p, m), TensorType(b, q, n):
                return p == q and m is n and len(a) == len(b) and all(map(self.dims, a, b))
            case TupleType(a), TupleType(b):
                return len(a) == len(b) and all(map(self.types, a, b))
            case FnType(), FnType():
                return self._functions(left, right)
            case RefType(a), RefType(b):
                return self.types(a, b)
            case AdtType(name, a), AdtType(other, b):
                return name == other and len(a) == len(b) and all(map(self._args, a, b))
            case _:
                return False

    def _args(self, left: Type | Dim, right: Type | Dim) -> bool:
        if isinstance(left, Dim) or isinstance(right, Dim):
            return isinstance(left, Dim) and isinstance(right, Dim) and self.dims(left, right)
        return self.types(left, right)

    def _functions(self, left: FnType, right: FnType) -> bool:
        kinds = [type(p) for p in left.type_params]
        if kinds != [type(p) for p in right.type_params] or len(left.params) != len(right.params):
            return False
        here = substitution(right.type_params, as_arguments(left.type_params))
        return all(
            self.types(a, here(b))
            for a, b in zip((*left.params, left.result), (*right.params, right.result), strict=True)
        )

    # The solver of a type rule whose operands are all known.

    def unify(self, left: Type, right: Type) -> None:
        """Check that two types agree. Raises Clash."""
        if not self.types(left, right):
            raise Clash(f"{show(left)} is not {show(right)}")

    def unify_dims(self, left: Dim, right: Dim) -> None:
        """Check that two dims agree. Raises Clash."""
        if not self.dims(left, right):
            raise Clash(f"{left} is not {right}")

    def fresh_dim(self, hint: str) -> Dim:
        """Return a size that agrees with any: only the running program knows it."""
        return Dim.of(f"{hint}?")
