"""The solver of inference: holes, what fills them, and equations between dims.

Types unify; dims unify as polynomials (a hole with coefficient 1 is solved, an equation between
known dims that is neither true nor false becomes an assumption checked at entry); dtypes of number
literals are weak holes that widen until they meet a tensor. Constraints that know too little wait
on a hole and are woken when it is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Final, final

from ..dataclass import dataclass
from ..diagnostics.source import NOWHERE, Span
from ..ir.dims import Dim, DimHole, DimVar
from ..ir.expr import Assumption, Expr, Function
from ..ir.op import Clash, Stuck
from ..ir.own_sizes import has_own_sizes, tensor_in
from ..ir.types import (
    UNIT,
    UNKNOWN,
    AdtType,
    DType,
    DTypeHole,
    DTypeKind,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeParam,
    dims,
    map_type,
    show,
    subtypes,
)
from ..prelude.library import inner_of
from .carried import Origin, Way
from .coercions.listed import flowing_parts
from .dtypes import DTypes, Key
from .extent import Extents
from .quotients import is_never_zero, quotient_in, refuse_remainder


@final
@dataclass(frozen=True, slots=True)
class CheckSite:
    """Where the running program can compare sizes: when an expression has its value, or, of a call,
    when it has its operands."""

    expr: Expr
    is_after: bool


@final
@dataclass(frozen=True, slots=True)
class RunningSize:
    """A size that only the running program knows: the local function that finds it, another each
    time that it runs, and where."""

    owner: Function | None
    span: Span | None


@final
class Endless(Clash):
    """A type would have to contain itself."""


@final
class Solver(DTypes):
    """Everything known about the holes of one group of functions."""

    def __init__(
        self,
        *,
        strict_dtypes: bool = False,
        mention: Callable[[str], object] | None = None,
        known: Mapping[Origin, DType] | None = None,
        last: int = 1,
        stretches: bool = False,
    ) -> None:
        """`strict_dtypes` makes operands of two dtypes a mistake instead of converting them;
        `mention` gets the data types of the prelude that the program itself may not name;
        `known` are dtypes of carried numbers that an earlier inference has found, whose last hole
        was `last`. With `stretches` sizes broadcast that are 1 when the program runs."""
        super().__init__(known or {}, last)
        self.extents: Final = Extents(self.shallow)
        self.strict_dtypes: Final = strict_dtypes
        self.stretches: Final = stretches
        self.mention: Final = mention
        self._types: Final[dict[int, Type]] = {}
        self._dims: Final[dict[int, Dim]] = {}
        self._wide: Final[dict[int, Origin]] = {}
        self.running: Final[dict[str, RunningSize]] = {}
        """The sizes that only the running program knows."""
        self.owner: Function | None = None
        """The local function around the constraint that is being solved."""
        self.equations: list[tuple[Dim, Dim, Span, CheckSite | None]] = []
        """The equations that wait for holes, with their places."""
        self.assumptions: Final[list[Assumption]] = []
        self.settling = False
        self.guessing = False
        """Whether, settling, no rule had a reason to choose."""
        self.span: Span | None = None
        """The place that a new assumption is blamed on."""
        self.place: CheckSite | None = None
        """Where sizes are compared that only the running program knows; nowhere, if they may not
        differ at all."""
        self.recursive_at_other_sizes = False
        """Whether the functions call themselves, each call at sizes of its own."""
        self.in_branches: Final[set[Expr]] = set()
        """The calls that stand in a branch, where the functions call themselves."""
        self.checks: Final[dict[CheckSite, list[tuple[Dim, Dim]]]] = {}
        """The sizes to compare while running."""

    # Holes.

    def fresh(self) -> TypeHole:
        """Return a new unknown type."""
        self._next += 1
        return TypeHole(self._next)

    def fresh_wide(self, *origin: object) -> TypeHole:
        """Return a new unknown type that is never a size: a size that flows in becomes an Int.
        `origin` identifies the value of the type, the same in each inference of a function."""
        hole = self.fresh()
        self._wide[hole.number] = origin
        return hole

    def fresh_args(self, of: object, params: tuple[TypeParam, ...]) -> tuple[Type | Dim, ...]:
        """Return unknown types and dims that instantiate type parameters at one use, `of`. None of
        the types is a size, since the elements of a list differ."""
        return tuple(
            self.fresh_dim_hole() if isinstance(param, DimVar) else self.fresh_wide(of, place)
            for place, param in enumerate(params)
        )

    def fresh_dim_hole(self) -> Dim:
        """Return a new unknown dim."""
        self._next += 1
        return Dim.atom(DimHole(self._next))

    def fresh_dim(self, hint: str) -> Dim:
        """Return a size that only the running program knows."""
        self._next += 1
        name = f"{hint}_{self._next}"
        self.running[name] = RunningSize(self.owner, self.span)
        return Dim.of(name)

    def is_existential(self, name: str) -> bool:
        """Return whether a dim's name stands for a size found while running."""
        return name in self.running

    def is_found_running(self, dim: Dim) -> bool:
        """Return whether only the running program knows the dim."""
        return not dim.names().isdisjoint(self.running)

    def fill_unknown(self, ty: Type) -> Type:
        """Return the type with a hole of its own for every `UNKNOWN` part. What a data type is
        applied to is no size."""

        def part(inner: Type) -> Type | None:
            if isinstance(inner, AdtType) and UNKNOWN in inner.args:
                wide = (self.fresh_wide() if a == UNKNOWN else a for a in inner.args)
                return self.fill_unknown(AdtType(inner.name, tuple(wide)))
            return self.fresh() if isinstance(inner, TypeHole) and inner.number == 0 else None

        def size(atom: DimVar | DimHole) -> Dim | None:
            unknown = isinstance(atom, DimHole) and atom.number == 0
            return self.fresh_dim_hole() if unknown else None

        return map_type(ty, part, lambda d: d.substitute(size) if d.has_holes() else d)

    # Resolution.

    def shallow(self, ty: Type) -> Type:
        """Return the type with the hole at its head filled in."""
        while isinstance(ty, TypeHole):
            known = self._types.get(ty.number)
            if known is None:
                return ty
            ty = known
        return ty

    def known(self, ty: Type) -> Type:
        """Return the type with the hole at its head filled in. Raises Stuck where nothing is known
        of it."""
        ty = self.shallow(ty)
        if isinstance(ty, TypeHole):
            raise Stuck(ty)
        return ty

    def awaited(self, ty: Type) -> Type:
        """Return the type with the hole at its head filled in. Raises Stuck where nothing is known
        of it, until inference settles: then it stays a hole."""
        return self.shallow(ty) if self.settling else self.known(ty)

    def last_hole(self, ty: Type) -> TypeHole | None:
        """Return the hole that was filled with the head of a type; None if there was none."""
        hole = None
        while isinstance(ty, TypeHole):
            hole, ty = ty, self._types.get(ty.number, UNIT)
        return hole

    def resolve(self, ty: Type) -> Type:
        """Return the type with everything known filled in, at every depth."""
        ty = self.shallow(ty)
        if is_closed(ty):
            return ty
        match ty:
            case TensorType(shape, dtype, layout):
                return TensorType(
                    tuple(self.resolve_dim(d) for d in shape), self.resolve_dtype(dtype), layout
                )
            case SizeType(dim):
                return SizeType(self.resolve_dim(dim))
            case TypeHole():
                return ty
            case _:
                return map_type(ty, self._known_part, self.resolve_dim)

    def _known_part(self, ty: Type) -> Type | None:
        if isinstance(ty, TypeHole):
            head = self.shallow(ty)
            return head if isinstance(head, TypeHole) else self.resolve(head)
        if isinstance(ty, TensorType):
            return self.resolve(ty)
        return None

    def resolve_dim(self, dim: Dim) -> Dim:
        """Return the dim with everything known filled in."""
        while dim.has_holes():
            new = dim.substitute(self._known_dim)
            if new is dim:
                return dim
            dim = new
        return dim

    def _known_dim(self, atom: DimVar | DimHole) -> Dim | None:
        return self._dims.get(atom.number) if isinstance(atom, DimHole) else None

    # Filling in.

    def _fill(self, hole: TypeHole, ty: Type, way: Way = Way.BOTH) -> None:
        self.extents.check(ty, self.span or NOWHERE)
        if isinstance(ty, TypeHole):
            if hole.number in self._wide:
                self._wide.setdefault(ty.number, self._wide[hole.number])
        elif any(part == hole for part in subtypes(self.resolve(ty))):
            raise Endless(f"the type would contain itself: {show(self.resolve(ty))}")
        elif hole.number in self._wide:
            ty = self.widen(ty, self._wide[hole.number], way)
        self._types[hole.number] = ty
        self.filled.append(("type", hole.number))

    def widen(self, ty: Type, origin: Origin = (), way: Way = Way.IN) -> Type:
        """Return the type with sizes replaced by integers whose dtype is still weak. `origin`
        identifies the value of the type, if it has a name; values go from the old type into the new
        one, unless `way` differs."""
        places = count()

        def part(inner: Type) -> Type | None:
            inner = self.shallow(inner)
            place = (*origin, next(places)) if origin else ()
            match inner:
                case SizeType():
                    return TensorType((), self.carry(place, DTypeKind.INT))
                case TypeHole():
                    self._wide.setdefault(inner.number, place)
                    return inner
                case FnType() | RefType() | AdtType():
                    return inner
                case TensorType((), DTypeHole() as dtype):
                    known = self.resolve_dtype(dtype)
                    weak = known.weak if isinstance(known, DTypeHole) else None
                    if weak is None:
                        return TensorType((), known)
                    free = self.carry(place, weak)
                    self.follow(known, free, way)
                    return TensorType((), free)
                case _:
                    return None

        return map_type(ty, part, lambda d: d)

    def unify(self, left: Type, right: Type) -> None:
        """Make two types equal. Raises Clash with both types."""
        left, right = self.shallow(left), self.shallow(right)
        if left == right:
            return
        if isinstance(left, TypeHole):
            self._fill(left, right)
        elif isinstance(right, TypeHole):
            self._fill(right, left)
        else:
            self._unify_parts(left, right)

    def _unify_parts(self, left: Type, right: Type) -> None:
        match left, right:
            case TensorType(a, p, m), TensorType(b, q, n) if len(a) == len(b) and m is n:
                for x, y in zip(a, b, strict=True):
                    self.unify_dims(x, y)
                self.unify_dtypes(p, q)
            case SizeType(a), SizeType(b):
                self.unify_dims(a, b)
            case (SizeType(), TensorType((), dtype)) | (TensorType((), dtype), SizeType()):
                self.same_number(dtype)
            case TupleType(a), TupleType(b) if len(a) == len(b):
                self._unify_all(zip(a, b, strict=True))
            case FnType(a, r), FnType(b, s) if len(a) == len(b):
                self._unify_all(zip((*a, r), (*b, s), strict=True))
            case RefType(a), RefType(b):
                self.unify(a, b)
            case AdtType(name, a), AdtType(other, b) if name == other and len(a) == len(b):
                for x, y in zip(a, b, strict=True):
                    self._unify_arg(x, y)
            case _:
                raise Clash(f"{show(self.resolve(left))} is not {show(self.resolve(right))}")

    def _unify_all(self, pairs: Iterable[tuple[Type, Type]]) -> None:
        for left, right in pairs:
            self.unify(left, right)

    def _unify_arg(self, left: Type | Dim, right: Type | Dim) -> None:
        if isinstance(left, Dim):
            assert isinstance(right, Dim)
            self.unify_dims(left, right)
        else:
            assert not isinstance(right, Dim)
            self.unify(left, right)

    def unify_dims(self, left: Dim, right: Dim) -> None:
        """Make two dims equal: now, or when a hole is filled, or by an assumption. Raises Clash."""
        left, right = self.resolve_dim(left), self.resolve_dim(right)
        difference = left - right
        if not difference.terms:
            return
        if self._solve_hole(difference):
            return
        if difference.has_holes():
            refuse_remainder(difference)
            assert self.span is not None
            self.equations.append((left, right, self.span, self.place))
            return
        if difference.constant is not None or is_never_zero(difference):
            raise Clash(f"{left} is not {right}")
        if self.is_found_running(difference):
            self._check(left, right)
            return
        is_inside = self._is_met_later()
        if is_inside:
            self._check(left, right)
        self._assume(left, right, is_inside=is_inside)

    def _assume(self, left: Dim, right: Dim, *, is_inside: bool) -> None:
        """Record an assumption of the program. One that the entry checks is not checked inside
        again."""
        assert self.span is not None
        found = Assumption(left, right, self.span, is_inside)
        known = [a for a in self.assumptions if {a.left, a.right} == {left, right}]
        if not known:
            self.assumptions.append(found)
        elif not is_inside and known[0].is_inside:
            self.assumptions[self.assumptions.index(known[0])] = found

    def _is_met_later(self) -> bool:
        """Return whether an equation belongs where the program needs it and not to the entry: in a
        function that calls itself, in a branch, or where each call has sizes of its own."""
        if self.place is None:
            return False
        return self.recursive_at_other_sizes or self.place.expr in self.in_branches

    def _check(self, left: Dim, right: Dim) -> None:
        """Leave it to the running program to compare two sizes. Raises Clash where it cannot."""
        if self.place is None:
            raise Clash(f"{left} is not {right}")
        known = self.checks.setdefault(self.place, [])
        if (left, right) not in known:
            known.append((left, right))

    def _solve_hole(self, difference: Dim) -> bool:
        for monomial, coefficient in difference.terms:
            if len(monomial) != 1 or coefficient not in (1, -1):
                continue
            atom = monomial[0]
            if not isinstance(atom, DimHole):
                continue
            rest = difference - Dim.atom(atom) * coefficient
            if atom in rest.atoms():
                continue
            self.fill_dim(atom, rest * -coefficient)
            return True
        quotient = quotient_in(difference)
        if quotient is None:
            return False
        found = quotient.exact()
        if found is None:
            return False
        self.fill_dim(quotient.hole, found)
        return True

    def fill_dim(self, hole: DimHole, dim: Dim) -> None:
        """Solve a hole."""
        self._dims[hole.number] = dim
        self.filled.append(("dim", hole.number))

    def retry_equations(self) -> None:
        """Look again at the equations that waited for holes. Raises Clash."""
        waiting, self.equations = self.equations, []
        for left, right, span, place in waiting:
            self.span, self.place = span, place
            self.unify_dims(left, right)

    # Direction: a value of one type arrives where another is expected.

    def flow(self, actual: Type, expected: Type) -> None:
        """Let a value of type `actual` arrive where `expected` is wanted: like `unify`, but a size
        may become a number, an integer a size, and a tuple a list. Raises Clash."""
        actual, expected = self.shallow(actual), self.shallow(expected)
        inner = inner_of(expected)
        if inner is not None and inner_of(actual) is None:
            self._flow_into_optional(actual, expected, inner)
            return
        if has_own_sizes(expected) and not has_own_sizes(actual):
            self._flow_into_own_sizes(actual, expected)
            return
        match actual, expected:
            case SizeType(), TensorType((), dtype):
                self.number_meets(dtype)
            case TensorType((), dtype), SizeType(dim) if self.kind_of(dtype) is DTypeKind.INT:
                if isinstance(self.resolve_dim(dim).single, DimHole):
                    self.unify_dims(dim, self.fresh_dim("size"))
            case TensorType((), dtype), SizeType() if self.kind_of(dtype) is not None:
                raise Clash(f"{show(self.resolve(actual))} is no size")
            case TensorType((), dtype), TensorType((), wanted) if self.is_weaker(dtype, wanted):
                self.meet(dtype, wanted)
            case _:
                parts = flowing_parts(actual, expected, lists=not self.strict_dtypes)
                for part, wanted in parts or ():
                    self.flow(part, wanted)
                if parts is None:
                    self._flow_to_equal(actual, expected)

    def _flow_to_equal(self, actual: Type, expected: Type) -> None:
        if actual != expected and isinstance(actual, TypeHole):
            self._fill(actual, expected, Way.OUT)
        elif actual != expected and isinstance(expected, TypeHole):
            self._fill(expected, actual, Way.IN)
        else:
            self.unify(actual, expected)

    def _flow_into_own_sizes(self, actual: Type, expected: Type) -> None:
        """Let a tensor arrive where its sizes are to be its own."""
        if not (self.settling and self.guessing):
            actual = self.known(actual)
        is_open = isinstance(actual, TypeHole)
        self.unify(actual, expected if is_open else tensor_in(expected, self.fresh_dim_hole))

    def opened(self, ty: Type) -> TensorType:
        """Return the type of a tensor that is taken out of a value with sizes of its own, which
        only the running program knows."""
        return tensor_in(ty, lambda: self.fresh_dim("size"))

    def _flow_into_optional(self, actual: Type, expected: Type, inner: Type) -> None:
        if isinstance(actual, TypeHole):
            # What becomes an optional here is one elsewhere only if nothing else decides its type.
            if not (self.settling and self.guessing):
                raise Stuck(actual)
            self.unify(actual, expected)
        elif actual != UNIT:
            self.flow(actual, inner)


def is_closed(ty: Type) -> bool:
    """Return whether a type is seen to have no holes: one of a tensor or size, where it matters."""
    match ty:
        case TensorType(shape, DType()):
            return not any(dim.has_holes() for dim in shape)
        case SizeType(dim):
            return not dim.has_holes()
        case _:
            return False


def holes_of(ty: Type) -> list[Key]:
    """Return the keys of the holes a resolved type still has."""
    found: list[Key] = []
    for part in subtypes(ty):
        if isinstance(part, TypeHole):
            found.append(("type", part.number))
        elif isinstance(part, TensorType) and isinstance(part.dtype, DTypeHole):
            found.append(("dtype", part.dtype.number))
    for dim in dims(ty):
        found += (("dim", a.number) for a in dim.atoms() if isinstance(a, DimHole))
    return found
