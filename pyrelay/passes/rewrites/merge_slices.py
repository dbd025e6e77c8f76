"""Slices that cut one tensor into pieces: few larger calls in the place of many small ones.

A recurrent cell computes its gates as one product and takes them apart by slices, with the same
function of most. Each call has a price, however small its operands, and the derivative of a slice
adds into zeros as large as the whole. So

* one function of neighbouring pieces becomes the function of both, taken apart afterwards:
  `f(x[:n]), f(x[n:2*n])` are pieces of `f(x[:2*n])`. Several operands may be cut alike;
* slices that leave nothing of a tensor over become one `split`, whose derivative is a `cat`.

This is for programs whose operators are called one by one, and runs before gradients are taken. It
looks at one block of bindings at a time: whatever is made, is made where the first of the pieces
was, when all operands are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, final

from ...analysis.bindings import definitions, uses
from ...dataclass import dataclass
from ...ir.dims import ZERO, Dim
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    LetBlock,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.op import Effect, Op, Pointwise
from ...ir.traverse import rewrite
from ...ir.types import UNIT, TensorType, TupleType, Type
from ...ir.verify import Stage
from ...operators.builder import bind_attrs
from ...operators.primitive.index import index
from ...operators.primitive.parts import split
from ..base import Context, Opaque, Pass, nothing_opaque

if TYPE_CHECKING:
    from ...diagnostics.source import Span

FEWEST: Final = 4
"""How many pieces are worth a call that takes them apart again, in the derivative, too; where they
are the whole tensor, that call is there anyway."""

MOST_ROUNDS: Final = 8
"""How many functions on top of one another are joined at most."""

_WHOLE: Final = ("slice", None, None, None)


def merge_slices(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form, with pieces of tensors computed together and taken apart
    at once; calls of operators that are `opaque` stay."""
    if opaque(index) or opaque(split):
        return module
    return module.map_bodies(lambda function: _body(function, opaque))


@final
@dataclass(frozen=True, slots=True)
class MergeSlices(Pass):
    """Compute slices of one tensor together, and split the result."""

    name: ClassVar = "merge-slices"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return merge_slices(module, context.opaque)


def _body(function: Function, opaque: Opaque) -> Expr:
    values = definitions(function).values()
    slices = sum(isinstance(value, Call) and value.callee is index for value in values)
    if slices < 2:
        return function.body
    counts = uses(function).copy()

    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock) or node.flavour is Flavour.REC:
            return node
        bindings = _Block(node.bindings, counts, opaque).joined()
        return node if bindings is node.bindings else replace(node, bindings=bindings)

    return rewrite(function.body, change)


@final
@dataclass(frozen=True, slots=True)
class _Piece:
    """A tensor that is `whole[start:stop]` along an axis."""

    whole: Var
    axis: int
    start: Dim
    stop: Dim

    @property
    def names(self) -> frozenset[str]:
        """The sizes that its bounds mention."""
        return self.start.names() | self.stop.names()


@final
@dataclass(frozen=True, slots=True)
class _Change:
    """Variables whose bindings go, and the bindings that take their place."""

    old: Sequence[Var]
    new: Sequence[Binding]


@final
class _Block:
    """The bindings of one block, and which of the variables are pieces of others."""

    def __init__(self, bindings: tuple[Binding, ...], uses: Counter[Expr], opaque: Opaque) -> None:
        self._bindings: tuple[Binding, ...] = bindings
        self._uses: Final = uses
        self._opaque: Final = opaque
        self._pieces: Final = {b.var: p for b in bindings if (p := _piece(b.value)) is not None}
        self._position: dict[Var, int] = {}

    def joined(self) -> tuple[Binding, ...]:
        """Return the bindings after both changes; the same tuple if there is nothing to change."""
        if len(self._pieces) < 2:
            return self._bindings
        for _ in range(MOST_ROUNDS):
            if not self._change(self._joined_calls):
                break
        self._change(self._splits)
        return self._bindings

    def _change(self, find: Callable[[], list[_Change]]) -> bool:
        """Make the changes that are found; return whether there are any."""
        self._position = {b.var: i for i, b in enumerate(self._bindings)}
        new: dict[int, list[Binding]] = {}
        gone: set[Var] = set()
        for change in find():
            new.setdefault(self._position[self._first(change.old)], []).extend(change.new)
            gone.update(change.old)
        if not gone:
            return False
        found: list[Binding] = []
        for i, binding in enumerate(self._bindings):
            found += new.get(i, ())
            is_unused = binding.var in self._pieces and not self._uses[binding.var]
            if binding.var not in gone and not is_unused:
                found.append(binding)
        self._bindings = tuple(found)
        return True

    def _first(self, run: Sequence[Var]) -> Var:
        return min(run, key=self._position.__getitem__)

    def _is_determined(self, run: Sequence[Var], pieces: Mapping[Var, _Piece]) -> bool:
        """Return whether the sizes of a run are known where the first of it is made."""
        known = pieces[self._first(run)].names
        return all(pieces[v].names <= known for v in run)

    # One function of neighbouring pieces.

    def _joined_calls(self) -> list[_Change]:
        """Return the replacements of the pointwise calls that differ only in which pieces they
        take."""
        groups: dict[tuple[object, ...], dict[Var, Call]] = {}
        for binding in self._bindings:
            if isinstance(binding.value, Call) and (key := self._key(binding.value)) is not None:
                groups.setdefault(key, {})[binding.var] = binding.value
        changes: list[_Change] = []
        for calls in groups.values():
            cuts = {var: self._cut(call) for var, call in calls.items()}
            for run in _runs(cuts):
                if self._is_worth(run, cuts) and self._is_determined(run, cuts):
                    new = self._joined_call([calls[v] for v in run], run)
                    changes.append(_Change(run, new))
        return changes

    def _is_worth(self, run: Sequence[Var], cuts: Mapping[Var, _Piece]) -> bool:
        return len(run) >= FEWEST or (len(run) > 1 and _is_all(run, cuts))

    def _key(self, call: Call) -> tuple[object, ...] | None:
        """Return the key that calls share if they may be joined; None if it is no pointwise
        function of pieces that are cut alike."""
        op = call.callee
        if not isinstance(op, Op) or not isinstance(op.lowering, Pointwise):
            return None
        if op.effect is not Effect.NONE or self._opaque(op):
            return None
        found: list[object] = [op, repr(call.attrs)]
        cuts: set[tuple[int, Dim, Dim]] = set()
        for arg in call.args:
            piece = self._pieces.get(arg) if isinstance(arg, Var) else None
            if piece is not None and _shape(type_of(arg)) == _shape(type_of(call)):
                found += (piece.whole, piece.axis)
                cuts.add((piece.axis, piece.start, piece.stop))
            elif isinstance(arg, Constant) and not _shape(type_of(arg)):
                found += (repr(arg.value), arg.ty)
            else:
                return None
        return tuple(found) if len(cuts) == 1 else None

    def _cut(self, call: Call) -> _Piece:
        """Return the piece that all operands of a call are."""
        return next(self._pieces[a] for a in call.args if isinstance(a, Var))

    def _joined_call(self, calls: Sequence[Call], run: Sequence[Var]) -> list[Binding]:
        """Return the bindings that take the place of calls on pieces that follow on one another."""
        first = self._cut(calls[0])
        stop = self._cut(calls[-1]).stop
        bound: list[Binding] = []
        args = [self._whole(arg, replace(first, stop=stop), bound) for arg in calls[0].args]
        ty = _resized(type_of(calls[0]), first.axis, stop - first.start)
        call = replace(calls[0], args=tuple(args), ty=ty)
        joined = Var(_name(call), ty, span=call.span)
        bound.append(Binding(joined, call))
        for var, old in zip(run, calls, strict=True):
            piece = self._cut(old)
            start, end = piece.start - first.start, piece.stop - first.start
            self._pieces[var] = _Piece(joined, piece.axis, start, end)
            bound.append(Binding(var, _slice(self._pieces[var], old.span)))
        for arg in (a for old in calls for a in old.args if isinstance(a, Var)):
            self._uses[arg] -= 1
        return bound

    def _whole(self, arg: Expr, cut: _Piece, bound: list[Binding]) -> Expr:
        """Return an operand of a joined call for one of a call that is joined."""
        if not isinstance(arg, Var):
            return arg
        cut = replace(cut, whole=self._pieces[arg].whole)
        if cut.start == ZERO and cut.stop == _size(cut):
            self._uses[cut.whole] += 1
            return cut.whole
        value = _slice(cut, arg.span)
        var = Var(arg.name, value.ty, span=arg.span)
        bound.append(Binding(var, value))
        self._pieces[var] = cut
        self._uses[var] += 1
        return var

    # All pieces of a tensor at once.

    def _splits(self) -> list[_Change]:
        """Return the replacements of slices that leave nothing of a tensor over."""
        cut: dict[tuple[Var, int], dict[Var, _Piece]] = {}
        for binding in self._bindings:
            piece = self._pieces.get(binding.var)
            if piece is not None:
                cut.setdefault((piece.whole, piece.axis), {})[binding.var] = piece
        return [
            _Change(run, _split(run, pieces[run[0]]))
            for pieces in cut.values()
            for run in _runs(pieces)
            if len(run) > 1 and _is_all(run, pieces) and self._is_determined(run, pieces)
        ]


def _piece(value: Expr) -> _Piece | None:
    """Return the piece of a tensor that an expression is: a slice along one axis, none of it
    clamped."""
    if not isinstance(value, Call) or value.callee is not index:
        return None
    whole, indices = value.args
    if not isinstance(whole, Var) or type_of(indices) != UNIT:
        return None
    shape, spec = _shape(type_of(whole)), value.attrs["spec"]
    if ("ellipsis",) in spec:
        place = spec.index(("ellipsis",))
        spec = (*spec[:place], *(_WHOLE,) * (len(shape) - len(spec) + 1), *spec[place + 1 :])
    cut = [axis for axis, entry in enumerate(spec) if entry != _WHOLE]
    if len(cut) != 1 or spec[cut[0]][0] != "slice":
        return None
    _, start, stop, step = spec[cut[0]]
    first = ZERO if start is None else Dim.of(start)
    last = shape[cut[0]] if stop is None else Dim.of(stop)
    size = _shape(type_of(value))[cut[0]]
    if step not in (None, 1) or size != last - first or (first.constant or 0) < 0:
        return None
    return _Piece(whole, cut[0], first, last)


def _runs(pieces: Mapping[Var, _Piece]) -> Iterator[list[Var]]:
    """Return the longest runs of pieces of one tensor that follow on one another, in order."""
    at: dict[Dim, Var] = {}
    for var, piece in pieces.items():
        if piece.start != piece.stop:
            at.setdefault(piece.start, var)
    ends = {pieces[var].stop for var in at.values()}
    for start, var in at.items():
        if start in ends:
            continue
        run = {var: None}
        following = at.get(pieces[var].stop)
        while following is not None and following not in run:
            run[following] = None
            following = at.get(pieces[following].stop)
        yield list(run)


def _is_all(run: Sequence[Var], pieces: Mapping[Var, _Piece]) -> bool:
    """Return whether pieces that follow on one another are all of a tensor."""
    last = pieces[run[-1]]
    return pieces[run[0]].start == ZERO and last.stop == _size(last)


def _shape(ty: Type) -> tuple[Dim, ...]:
    return ty.shape if isinstance(ty, TensorType) else ()


def _size(piece: _Piece) -> Dim:
    return _shape(type_of(piece.whole))[piece.axis]


def _resized(ty: Type, axis: int, size: Dim) -> TensorType:
    assert isinstance(ty, TensorType)
    return replace(ty, shape=(*ty.shape[:axis], size, *ty.shape[axis + 1 :]))


def _slice(piece: _Piece, span: Span) -> Call:
    ty = _resized(type_of(piece.whole), piece.axis, piece.stop - piece.start)
    spec = (*(_WHOLE,) * piece.axis, ("slice", piece.start, piece.stop, None))
    args = (piece.whole, Tuple((), UNIT, span=span))
    return Call(index, args, bind_attrs(index, {"spec": spec}), ty=ty, span=span)


def _split(run: Sequence[Var], piece: _Piece) -> list[Binding]:
    """Return the bindings that cut a tensor, of which `piece` is one, into all of its pieces."""
    axis, types = piece.axis, TupleType(tuple(map(type_of, run)))
    sizes = tuple(_shape(t)[axis] for t in types.fields)
    attrs = bind_attrs(split, {"split_size_or_sections": sizes, "dim": axis})
    span = run[0].span
    parts = Var("parts", types, span=span)
    bound = [Binding(parts, Call(split, (piece.whole,), attrs, ty=types, span=span))]
    for place, var in enumerate(run):
        bound.append(Binding(var, TupleGet(parts, place, var.ty, span=var.span)))
    return bound


def _name(call: Call) -> str:
    assert isinstance(call.callee, Op)
    return call.callee.name
