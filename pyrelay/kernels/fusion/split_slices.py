"""Values that are computed as one and used in slices are computed as the slices.

The gates of a recurrent cell are one product of which each gate is a slice. As it stands, the
product is stored before the gates are read from it, since a kernel that makes one element of the
cell's state needs four of the product. Made of slices of the weights, the four products are over
the same places, and fusion makes one kernel of the whole cell. Slices of operands are views; no
more is computed.

This is done where all uses of a value are slices of one size along one dim, each of which something
elementwise uses, and where a product or a reduction is among what it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.bounds import at_most
from ...ir.declaration.lowering import Pointwise, inside
from ...ir.dims import ONE, Dim
from ...ir.expr import Binding, Call, Expr, Flavour, Function, Var, is_unit, type_of
from ...ir.module import Module
from ...ir.names import Names
from ...ir.op import Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, spine
from ...ir.types import TensorType, TupleType
from ...ir.verify import Stage
from ...operators.builder import Builder, Value
from ...operators.primitive import parts
from ...operators.primitive.index import index
from ...passes.base import Context, Pass
from ...passes.simplify.cse import share
from ...passes.simplify.dce import remove_dead
from ..contraction_axes import Product
from ..groups import Reduced
from ..reading import Reader, Unreadable, shape_of
from ..recording import Recording
from .found_sizes import takes_found_sizes_as_equal
from .fuse import needed_elsewhere
from .nodes import Role, item_of, mentioned, role_of

MOST_PARTS: Final = 8
"""A value is taken apart into so many slices at most."""


def take_apart(module: Module, entry: str) -> Module:
    """Return a module in A-normal form, with composites written out, in which values that are only
    used in slices are computed in slices."""
    names = Names()
    apart = module.map_functions(
        lambda f: f if takes_found_sizes_as_equal(module, f) else _Apart(module, f, names).walked(f)
    )
    return module if apart is module else remove_dead(share(apart), entry)


@final
@dataclass(frozen=True, slots=True)
class SplitSlices(Pass):
    """Compute slices of a value separately where kernels read them separately."""

    name: ClassVar = "split-slices"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return take_apart(module, context.entry)


@final
@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice of a variable: `length` elements from `start` on, along a dim."""

    source: Var
    axis: int
    start: Dim
    length: Dim


@final
@dataclass(frozen=True, slots=True)
class _Stack:
    """A value that is used in slices alone: these, and what is computed for nothing else."""

    slices: Mapping[Var, _Slice]
    inner: Mapping[Var, Call]


@final
class _Apart(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, function: Function, names: Names) -> None:
        super().__init__(module)
        self._names: Final = names
        self._needed: Final = needed_elsewhere(function)
        self._stacks: Final[dict[Var, _Stack]] = {}
        self._slices: Final[dict[Var, Expr]] = {}

    def splice(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Add the bindings of a body to `code`, with slices in place of what they are slices of."""
        blocks = spine(expr)[0]
        bindings = [b for k in blocks if k.flavour is not Flavour.REC for b in k.bindings]
        self._stacks.update(_stacks(bindings, self._needed))
        return (yield from super().splice(expr, code))

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, or what its slices are."""
        if binding.var in self._slices:
            self.let(binding.var, self._slices[binding.var], code)
            return
        value = yield self.node(binding.value, code)
        code.bind(binding.var, value)
        stack = self._stacks.get(binding.var)
        if stack is None:
            return
        builder = Builder(binding.value.span, self._names)
        pushed: dict[tuple[Var, Dim], Value] = {}
        for var, part in stack.slices.items():
            found = yield self._pushed(part, stack, builder, pushed)
            self._slices[var] = found.atom
        for inner in builder.bindings:
            code.bind(inner.var, inner.value)

    def _pushed(
        self, part: _Slice, stack: _Stack, builder: Builder, known: dict[tuple[Var, Dim], Value]
    ) -> Steps[Value]:
        """Return a slice of a value as it is computed of slices."""
        key = (part.source, part.start)
        if key in known:
            return known[key]
        call = stack.inner.get(part.source)
        if call is None:
            source = builder.value(self.atom(part.source))
            attrs = {"dim": part.axis, "start": part.start, "length": part.length}
            known[key] = builder.call(parts.narrow, (source,), attrs)
            return known[key]
        operands: list[Value] = []
        for atom, axis in zip(call.args, _axes(part.source, call, part.axis), strict=True):
            if axis is None:
                operands.append(builder.value(self.atom(atom)))
                continue
            assert isinstance(atom, Var)
            inner = _Slice(atom, axis, part.start, part.length)
            operands.append((yield self._pushed(inner, stack, builder, known)))
        assert isinstance(call.callee, Op)
        builder.span = call.span
        known[key] = builder.call(call.callee, operands, call.attrs)
        return known[key]


def _stacks(bindings: Sequence[Binding], needed: frozenset[Var]) -> dict[Var, _Stack]:
    """Return the values of a body that are taken apart."""
    slices: dict[Var, dict[Var, _Slice]] = {}
    for binding in bindings:
        found = _slice(binding)
        if found is not None:
            slices.setdefault(found.source, {})[binding.var] = found
    if not slices:
        return {}
    body = _BodyUsers(bindings, needed)
    stacks = {v: body.stack(v, found) for v, found in slices.items()}
    return {v: stack for v, stack in stacks.items() if stack is not None}


def _slice(binding: Binding) -> _Slice | None:
    """Return the slice that a binding is, if it is one."""
    value = binding.value
    if not isinstance(value, Call) or value.callee not in (index, parts.narrow):
        return None
    source, ty = value.args[0], type_of(binding.var)
    if not isinstance(source, Var) or not isinstance(ty, TensorType):
        return None
    record = Recording()
    at = record.places.index("i", ty.shape)
    try:
        Reader({binding.var: value}, record).element(binding.var, at)
    except Unreadable:
        return None
    reads = [(leaf, dims) for leaf, dims in record.reads]
    if len(reads) != 1 or reads[0][0] is not source or len(reads[0][1]) != len(at):
        return None
    moved = [i for i, (to, here) in enumerate(zip(reads[0][1], at, strict=True)) if to != here]
    shrunk = [
        i
        for i, (a, b) in enumerate(zip(ty.shape, shape_of(type_of(source)), strict=True))
        if a != b
    ]
    axes = sorted({*moved, *shrunk})
    if len(axes) != 1:
        return None
    (axis,) = axes
    start = reads[0][1][axis] - at[axis]
    is_still = not any(record.places.size(name) is not None for name in start.names())
    return _Slice(source, axis, start, ty.shape[axis]) if is_still else None


@final
class _BodyUsers:
    """The bindings of a body, and their users."""

    def __init__(self, bindings: Sequence[Binding], needed: frozenset[Var]) -> None:
        self._needed: Final = needed
        self._values: Final = {b.var: b.value for b in bindings}
        self._position: Final = {b.var: i for i, b in enumerate(bindings)}
        self._users: Final[dict[Var, list[Var]]] = {}
        for binding in bindings:
            for var in mentioned(binding.value):
                self._users.setdefault(var, []).append(binding.var)

    def stack(self, var: Var, slices: Mapping[Var, _Slice]) -> _Stack | None:
        """Return a value as one that is used in slices alone, if it is one worth taking apart."""
        if var in self._needed or not set(self._users[var]) <= slices.keys():
            return None
        first = next(iter(slices.values()))
        starts = {s.start for s in slices.values()}
        if not 2 <= len(starts) <= MOST_PARTS:
            return None
        if any((s.axis, s.length) != (first.axis, first.length) for s in slices.values()):
            return None
        if not at_most(first.length * len(starts), shape_of(type_of(var))[first.axis]):
            return None
        if not all(map(self._is_used_alone, slices)):
            return None
        inner = self._inner(var, first.axis)
        roles = {role_of(v, call) for v, call in inner.items()}
        if not roles & {Role.PRODUCT, Role.REDUCTION}:
            return None
        return _Stack(slices, inner)

    def _is_used_alone(self, part: Var) -> bool:
        """Return whether something elementwise uses a slice, and no view or product does."""
        users = [u for u in self._users.get(part, ()) if u in self._values]
        roles = [role_of(u, self._values[u]) for u in users]
        return Role.ELEMENT in roles and {Role.ELEMENT, Role.OPAQUE, Role.PART}.issuperset(roles)

    def _inner(self, var: Var, axis: int) -> dict[Var, Call]:
        """Return the values that a value alone is made of along a dim, itself included."""
        along = {var: axis}
        inner: dict[Var, Call] = {}
        pending = [(-self._position[var], 0, var)]
        count = 0
        while pending:
            _, _, current = heappop(pending)
            call = self._values.get(current)
            if current in inner or not isinstance(call, Call) or current in self._needed:
                continue
            if current is not var and not all(u in inner for u in self._users[current]):
                continue
            axes = _axes(current, call, along[current])
            if not axes:
                continue
            inner[current] = call
            for atom, place in zip(call.args, axes, strict=True):
                if place is None or not isinstance(atom, Var) or atom not in self._position:
                    continue
                if along.setdefault(atom, place) != place:
                    continue
                count += 1
                heappush(pending, (-self._position[atom], count, atom))
        return inner


def _axes(var: Var, call: Call, axis: int) -> tuple[int | None, ...]:
    """Return for each operand of a call the dim that becomes dim `axis` of its result, or None for
    one that all of the result shares; nothing where slices cannot be taken of operands."""
    rank = len(shape_of(type_of(var))) if not isinstance(var.ty, TupleType) else 0
    item = item_of(var, call)
    match item.special:
        case Product() as found:
            letter = found.result[axis]
            pairs = zip(found.subscripts, call.args, strict=True)
            return tuple(_own(letters.find(letter), arg) for letters, arg in pairs)
        case Reduced() as reduced if rank:
            count = len(shape_of(type_of(reduced.operand)))
            kept = [i for i in range(count) if i not in reduced.axes]
            place = axis if count == rank else kept[axis]
            return (place, *(None for _ in call.args[1:]))
        case None if item.role is Role.ELEMENT and isinstance(call.callee, Op):
            if not isinstance(inside(call.callee.lowering), Pointwise):
                return ()
            ranks = (len(shape_of(type_of(arg))) if not is_unit(arg) else 0 for arg in call.args)
            return tuple(_own(axis - rank + n, a) for n, a in zip(ranks, call.args, strict=True))
        case _:
            return ()


def _own(axis: int, operand: Expr) -> int | None:
    """Return a dim of an operand that is not broadcast."""
    ty = type_of(operand)
    if axis < 0 or not isinstance(ty, TensorType):
        return None
    return None if ty.shape[axis] == ONE else axis
