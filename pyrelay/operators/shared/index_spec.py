"""Indices, as in `x[...]`: the normal form, the shape of the result, the meaning in torch.

A `spec` is a tuple of `("int", k)` (the k-th of the run-time indices), `("slice", start, stop,
step)` (numbers, dims or None), `("new",)` and `("ellipsis",)`. As in torch, an index of rank 0
drops its dim before anything else; the remaining tensors index together: they broadcast, and
their dims stand where they stood if they were neighbours, else in front.

Lengths of slices. Python clamps every bound to the tensor, and so do the dims given here:
`x[1:]` of `n` elements has `max(n - 1, 0)`. A bound that is a size counts from the start; where it
could be negative, as `n - 5` could, the program assumes that it is not. One that is certainly not
positive, `-(n // 2)`, counts from the end, and is assumed not to be 0, which is the start. A slice
whose bound is an integer that only the running program knows has a size of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.wording import counted
from ...ir.bounds import is_nonnegative, minimum, positive_part
from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim, DimHole
from ...ir.op import Clash, RuleCall, Stuck
from ...ir.rules import broadcast_shapes
from ...ir.types import (
    INT,
    AdtType,
    AnyDType,
    DTypeHole,
    DTypeKind,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    bool_,
    is_float,
    show,
)

Spec: TypeAlias = tuple[tuple[Any, ...], ...]

MASKED: Final = Dim.atom(DimHole(-1))
"""In the shape of a place to write to: as many elements as a mask selects."""

_SPECS: Final = 'its parts are ("int", 0), ("slice", None, None, None), ("new",) and ("ellipsis",)'

_BOUND: Final = kinds.optional(kinds.size)

_WHOLE: Final = ("slice", None, None, None)


def normal_spec(spec: Any) -> Spec:
    """Return a spec in its normal form: constant dims as plain integers. Raises TypeError."""
    if not isinstance(spec, tuple | list):
        raise TypeError(_SPECS)
    return tuple(map(_normal_entry, spec))


def _normal_entry(entry: Any) -> tuple[Any, ...]:
    match entry:
        case ("int", place):
            return ("int", kinds.whole(place))
        case ("slice", *bounds) if len(bounds) == 3:
            return ("slice", *map(_BOUND, bounds))
        case ("new",) | ("ellipsis",):
            return tuple(entry)
        case _:
            raise TypeError(_SPECS)


def consumed(call: RuleCall, entry: tuple[Any, ...], indices: Sequence[Type]) -> int:
    """Return the number of dims of the tensor that one entry speaks of. Raises Clash or Stuck."""
    match entry:
        case ("int", k):
            if not 0 <= k < len(indices):
                call.clash(f"there is no index {k} among {len(indices)}")
            ty = indices[k]
            if isinstance(ty, TensorType) and ty.dtype == bool_:
                return ty.rank
            return 1
        case ("slice", *_):
            return 1
        case _:
            return 0


def aligned(call: RuleCall, rank: int, indices: Sequence[Type]) -> Spec:
    """Return the spec with the ellipsis, implied at the end, written out as whole slices."""
    spec: Spec = call.attrs["spec"]
    used = sum(consumed(call, entry, indices) for entry in spec)
    if used > rank:
        call.clash(f"too many indices: {used} for a tensor of {counted(rank, 'dimension')}", 0)
    places = [i for i, entry in enumerate(spec) if entry == ("ellipsis",)]
    if len(places) > 1:
        call.clash("an index has at most one `...`", 0)
    place = places[0] if places else len(spec)
    return (*spec[:place], *(_WHOLE,) * (rank - used), *spec[place + 1 :])


def index_types(call: RuleCall) -> tuple[Type, ...]:
    """Return the types of the run-time indices: sizes, or integer or bool tensors."""
    ty = call.type(1)
    assert isinstance(ty, TupleType)
    found = tuple(call.solver.resolve(f) for f in ty.fields)
    for part in found:
        if not isinstance(part, TensorType | SizeType | TypeHole):
            raise _no_index(part, found)
    call.tensors(1)
    for part in found:
        if isinstance(part, TensorType) and _is_fractional(call, part.dtype):
            raise _no_index(
                part, found, help="divide integers by `//`; cast others: relay.cast(i, relay.int64)"
            )
    return found


def _no_index(part: Type, indices: tuple[Type, ...], help: str | None = None) -> Clash:  # noqa: A002
    words = f"an index is an integer, a slice or a mask, not {show(part)}"
    if isinstance(part, AdtType):
        help = "a list of numbers is an index as a tensor: `x[relay.stack(i)]`"  # noqa: A001
    alone = len(indices) == 1
    return Clash(words, labels={1: f"this is {show(part)}" if alone else words}, help=help)


def _is_fractional(call: RuleCall, dtype: AnyDType) -> bool:
    """Return whether an index is of floats. A number that may still become one becomes an Int."""
    if isinstance(dtype, DTypeHole) and dtype.weak is DTypeKind.INT:
        call.solver.unify(TensorType((), dtype), INT)
        return False
    if isinstance(dtype, DTypeHole) and dtype.weak is DTypeKind.FLOAT:
        return True
    return is_float(call.known_dtype(dtype))


def result_shape(call: RuleCall, source: TensorType, *, masked: Dim | None) -> tuple[Dim, ...]:
    """Return the shape of the elements that the spec selects.

    `masked` stands for the number of elements under a mask; None makes a fresh size.
    """
    indices = index_types(call)
    shape: list[Dim | None] = []  # None where the dims of the index tensors go
    together: list[tuple[Dim, ...]] = []
    has_mask, place = False, 0
    for entry in aligned(call, source.rank, indices):
        sizes = source.shape[place : place + consumed(call, entry, indices)]
        place += len(sizes)
        match entry:
            case ("new",):
                shape.append(ONE)
            case ("slice", start, stop, step):
                shape.append(slice_length(call, sizes[0], start, stop, step))
            case (_, k):
                dims = _index_dims(call, indices[k], sizes)
                has_mask = has_mask or dims is None
                if dims != ():
                    shape.append(None)
                    together += () if dims is None else (dims,)
            case _:
                raise AssertionError(entry)
    block = broadcast_shapes(call, together) if together else ()
    if has_mask:
        block = _with_mask(call, block, masked)
    return _place(shape, block)


def _index_dims(call: RuleCall, ty: Type, sizes: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """Return the dims that one index brings, None for a mask; check what can be checked."""
    if isinstance(ty, SizeType):
        value, size = ty.dim.constant, sizes[0].constant
        if value is not None and size is not None and not -size <= value < size:
            call.clash(f"index {value} is out of range for a dim of size {size}", 0)
        return ()
    assert isinstance(ty, TensorType)
    if ty.dtype != bool_:
        return ty.shape
    if ty.rank == 0:
        call.clash("a single Bool is no index", 1, help="use `if` or relay.where")
    for have, want in zip(ty.shape, sizes, strict=True):
        call.unify_dims(
            have, want, 1, f"a mask has the shape of what it masks: {have} is not {want}"
        )
    return None


def _with_mask(call: RuleCall, block: tuple[Dim, ...], masked: Dim | None) -> tuple[Dim, ...]:
    """Return the joint dims of masks, which count as one index of one dim, and other indices."""
    if block and block[-1] != ONE:
        return block
    count = call.solver.fresh_dim("selected") if masked is None else masked
    return (*block[:-1], count)


def _place(shape: Sequence[Dim | None], block: tuple[Dim, ...]) -> tuple[Dim, ...]:
    places = [i for i, d in enumerate(shape) if d is None]
    rest = [d for d in shape if d is not None]
    if not places:
        return tuple(rest)
    neighbours = places[-1] - places[0] == len(places) - 1
    at = places[0] if neighbours else 0
    return (*rest[:at], *block, *rest[at:])


def slice_length(call: RuleCall, size: Dim, start: Any, stop: Any, step: Any) -> Dim:
    """Return the number of elements in a slice of a dim. Raises Stuck on an unknown size."""
    size = call.solver.resolve_dim(size)
    stride = 1 if step is None else step
    if stride == 0:
        call.clash("a slice takes no step of 0", 0)
    if isinstance(stride, Dim):
        call.clash("the step of a slice is a number", 0)
    if start is None and stop is None and abs(stride) == 1:
        return size
    start, stop = (
        kinds.static(call.solver.resolve_dim(b)) if isinstance(b, Dim) else b for b in (start, stop)
    )
    known = [kinds.static(b) for b in (size, start, stop)]
    if not any(isinstance(b, Dim) for b in known):
        return run_of(size, start, stop, stride).count
    if isinstance(size.single, DimHole):
        raise Stuck(size)
    sizes = [b for b in known[1:] if isinstance(b, Dim)]
    if any(map(call.solver.is_found_running, sizes)):
        return call.solver.fresh_dim("sliced")
    for bound in sizes:
        _assume_sign(call, bound)
    return run_of(size, start, stop, stride).count


@final
@dataclass(frozen=True, slots=True)
class Run:
    """A slice of a dim: its first element, the way from each to the next, and their number."""

    first: Dim
    step: int
    count: Dim


def run_of(size: Dim, start: Any, stop: Any, step: int | None) -> Run:
    """Return the run of elements in a slice of a dim of a known size, bounds clamped to it."""
    stride = 1 if step is None else step
    known = [kinds.static(b) for b in (size, start, stop)]
    if not any(isinstance(b, Dim) for b in known):
        places = range(*slice(known[1], known[2], stride).indices(known[0]))
        return Run(Dim.of(places.start), stride, Dim.of(len(places)))
    first, last = _forwards(known[1], known[2], stride)
    distance = _distance(size, first, last)
    enough = distance + (abs(stride) - 1)
    if not is_nonnegative(enough):
        enough = positive_part(distance) + (abs(stride) - 1)
    from_end, bound = first
    low = positive_part(size - bound) if from_end else minimum(bound, size)
    return Run(low if stride > 0 else size - 1 - low, stride, enough // abs(stride))


_Bound: TypeAlias = tuple[bool, Dim]
"""Whether a bound counts from the end, and how far; before it is clamped."""


def _forwards(start: Dim | int | None, stop: Dim | int | None, step: int) -> tuple[_Bound, _Bound]:
    """Return the bounds of a slice; of one that runs backwards, as they are from back to front."""
    first, last = _bound(start, is_stop=False), _bound(stop, is_stop=True)
    if step > 0:
        return first, last
    return (first if start is None else _mirrored(first), last if stop is None else _mirrored(last))


def _bound(bound: Dim | int | None, *, is_stop: bool) -> _Bound:
    if bound is None:
        return is_stop, Dim.of(0)
    dim = Dim.of(bound)
    return (True, -dim) if bound != 0 and is_nonnegative(-dim) else (False, dim)


def _assume_sign(call: RuleCall, bound: Dim) -> None:
    """Let the program assume that a bound is on the side of 0 where it nearly always is."""
    from_end = is_nonnegative(-bound)
    amount = -1 - bound if from_end else bound
    if not is_nonnegative(amount):
        message = f"the bound {bound} of the slice would {'not ' if from_end else ''}be negative"
        call.unify_dims(positive_part(amount), amount, 0, message)


def _mirrored(bound: _Bound) -> _Bound:
    from_end, count = bound
    return (False, count - 1) if from_end else (True, count + 1)


def _distance(size: Dim, first: _Bound, last: _Bound) -> Dim:
    """Return how far it is from one clamped bound to the other, negative where they cross."""
    match first, last:
        case (True, a), (True, b):
            return minimum(a, size) - b
        case (True, a), (False, b):
            return minimum(b, size) - positive_part(size - a)
        case (False, a), (True, b):
            return size - a - b
        case (_, a), (_, b):
            return minimum(b, size) - a


def write_type(call: RuleCall) -> Type:
    """Return the type of a tensor of which a part is written. Raises Stuck or Clash."""
    target, value = call.tensor(0), call.tensor(2)
    place = result_shape(call, target, masked=MASKED)
    lead = len(place) - value.rank
    fits = lead >= 0
    for have, want in zip(value.shape, place[max(lead, 0) :], strict=False):
        fits = fits and (want == MASKED or _fits(call, have, want))
    if not fits:
        shown = ", ".join("selected" if d == MASKED else str(d) for d in place)
        call.clash(f"{show(value)} does not fit the place it is written to, ({shown})", 0, 2)
    return target


def _fits(call: RuleCall, have: Dim, want: Dim) -> bool:
    try:
        found = broadcast_shapes(call, [(have,), (want,)])
        call.solver.unify_dims(found[0], want)
    except Clash:
        return False
    return True
