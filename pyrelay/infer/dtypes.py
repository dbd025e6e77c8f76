"""Dtypes in inference: those of number literals are weak, and rise as values meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ..ir.op import Clash
from ..ir.types import (
    AnyDType,
    DType,
    DTypeHole,
    DTypeKind,
    TensorType,
    bool_,
    float64,
    int64,
    show,
)
from .carried import Carried, Origin, Way, is_above

Key: TypeAlias = tuple[str, int]


class DTypes:
    """The holes of dtypes of one group of functions, and what fills them."""

    def __init__(self, known: Mapping[Origin, DType], last: int) -> None:
        """`known` are dtypes of carried numbers that an earlier inference has found; `last` is the
        last hole that functions have already."""
        self.carried: Final = Carried(known)
        self.filled: Final[list[Key]] = []
        """Holes filled since the work-list last looked."""
        self.wide_numbers: Final[list[DTypeHole]] = []
        """The dtypes of numbers that meet float64."""
        self._dtypes: Final[dict[int, AnyDType]] = {}
        self._next = last

    @property
    def last(self) -> int:
        """The number of the last hole."""
        return self._next

    def fresh_dtype(self, weak: DTypeKind | None = None) -> DTypeHole:
        """Return a new unknown dtype; `weak` for that of a number."""
        self._next += 1
        return DTypeHole(self._next, weak)

    def meet(self, weak: AnyDType, dtype: AnyDType) -> None:
        """Note that a number of the program's own meets values of a dtype. Beside float64 it is
        computed in float64, even where it met float32 first: it then loses nothing."""
        weak, dtype = self.resolve_dtype(weak), self.resolve_dtype(dtype)
        if dtype == float64 and isinstance(weak, DTypeHole) and weak.weak is DTypeKind.FLOAT:
            self.wide_numbers.append(weak)

    def resolve_dtype(self, dtype: AnyDType) -> AnyDType:
        """Return the dtype, followed through holes."""
        while isinstance(dtype, DTypeHole):
            known = self._dtypes.get(dtype.number)
            if known is None:
                return dtype
            dtype = known
        return dtype

    def carry(self, origin: Origin, weak: DTypeKind) -> AnyDType:
        """Return the dtype of a carried number, free of the literal it starts from."""
        known = self.carried.known.get(origin)
        if known is not None and _widens(weak, known.kind):
            return known
        dtype = self.fresh_dtype(weak)
        if origin:
            self.carried.begin(origin, dtype)
        return dtype

    def follow(self, source: AnyDType, target: AnyDType, way: Way) -> None:
        """Make one of two dtypes, or each, at least as wide as the other that flows into it, now
        and when that rises."""
        self.carried.follow(source, target, way)
        if way is not Way.OUT:
            self._rise(target, source)
        if way is not Way.IN:
            self._rise(source, target)

    def _rise(self, dtype: AnyDType, above: AnyDType) -> None:
        dtype = self.resolve_dtype(dtype)
        if isinstance(dtype, DTypeHole) and isinstance(above, DType) and is_above(above, dtype):
            self._fill_dtype(dtype, above)

    def same_number(self, dtype: AnyDType) -> None:
        """Let a size and a number be one: no number with a fraction is. Raises Clash."""
        if self.kind_of(dtype) is DTypeKind.FLOAT:
            raise Clash(f"an integer is not {show(TensorType((), self.resolve_dtype(dtype)))}")
        self.number_meets(dtype)

    def number_meets(self, dtype: AnyDType) -> None:
        """Let a size be a number of a dtype. Raises Clash."""
        dtype = self.resolve_dtype(dtype)
        if dtype == bool_:
            raise Clash("an integer is not a Bool")
        if isinstance(dtype, DTypeHole) and dtype.weak is None:
            self.unify_dtypes(dtype, int64)

    def unify_dtypes(self, left: AnyDType, right: AnyDType) -> None:
        """Make two dtypes equal; a weak one takes the other, an int literal may become a float."""
        left, right = self.resolve_dtype(left), self.resolve_dtype(right)
        if left == right:
            return
        if isinstance(left, DType):
            left, right = right, left
        if isinstance(left, DType):
            raise Clash(f"{left} is not {right}")
        if isinstance(right, DType):
            if left.weak is not None and not _widens(left.weak, right.kind):
                raise Clash(f"{_NUMBERS[left.weak]} is not {right}")
        elif left.weak is not None and (right.weak is None or left.weak.value > right.weak.value):
            left, right = right, left
        self._fill_dtype(left, right)

    def _fill_dtype(self, hole: DTypeHole, dtype: AnyDType) -> None:
        """Note what a dtype is, and let those rise that follow it."""
        risen = [(hole, dtype)]
        while risen:
            hole, dtype = risen.pop()
            self._dtypes[hole.number] = dtype
            self.filled.append(("dtype", hole.number))
            for follower in self.carried.followers(hole):
                target = self.resolve_dtype(follower)
                if target != dtype:
                    self.carried.follow(dtype, follower)
                if isinstance(target, DTypeHole) and target != dtype and is_above(dtype, target):
                    risen.append((target, self._above(dtype)))

    def _above(self, dtype: AnyDType) -> AnyDType:
        """Return a dtype for what follows a dtype: this one, if it is known."""
        if isinstance(dtype, DType):
            return dtype
        free = self.fresh_dtype(dtype.weak)
        self.carried.follow(dtype, free)
        return free

    def kind_of(self, dtype: AnyDType) -> DTypeKind | None:
        """Return the family of a dtype, None if it is not known."""
        dtype = self.resolve_dtype(dtype)
        return dtype.weak if isinstance(dtype, DTypeHole) else dtype.kind

    def is_weaker(self, dtype: AnyDType, wanted: AnyDType) -> bool:
        """Return whether a number's dtype is weak and may become a known one."""
        dtype, wanted = self.resolve_dtype(dtype), self.resolve_dtype(wanted)
        if not isinstance(dtype, DTypeHole) or dtype.weak is None:
            return False
        return isinstance(wanted, DType) and _widens(dtype.weak, wanted.kind)


_NUMBERS: Final = {
    DTypeKind.BOOL: "a Bool",
    DTypeKind.INT: "an integer",
    DTypeKind.FLOAT: "a number with a fraction",
}


def _widens(weak: DTypeKind, kind: DTypeKind) -> bool:
    """Return whether a number literal of one family may become an element of another."""
    return weak is kind or (weak is DTypeKind.INT and kind is DTypeKind.FLOAT)
