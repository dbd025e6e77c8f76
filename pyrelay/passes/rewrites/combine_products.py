"""Products of one operand with several weights as one product with the weights side by side.

A recurrent cell that computes its gates one by one multiplies its state with a weight for each.
One product has one call instead of several, and reads the operand once. Putting the weights side by
side copies them. The copy of a matrix costs as much as a product with few rows, so it must be made
once for many products: matrices are combined that no round of a loop changes, and `hoist` moves the
copy in front of the loop. Kernels of convolutions are small beside the work, so convolutions are
combined everywhere. Products that differ in anything else stay. Relay has the passes
CombineParallelDense and CombineParallelConv2D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.expr import Binding, Call, Expr, Flavour, Function, GlobalVar, LetBlock, TupleGet, Var
from ...ir.names import Names
from ...ir.op import Op
from ...ir.traverse import free_vars, post_order, rewrite
from ...ir.types import TensorType
from ...ir.verify import Stage
from ...operators.builder import Builder, Value
from ...operators.matrices.products import linear, matmul
from ...operators.primitive.conv import conv1d, conv2d
from ...operators.primitive.join import cat
from ...operators.primitive.parts import split
from ..base import Context, Opaque, Pass, nothing_opaque

if TYPE_CHECKING:
    from ...ir.module import Module

_WeightPath: TypeAlias = tuple[Var, tuple[int, ...]]
"""The place of a weight that is known before a loop: a variable, and the fields that lead to it."""

FEWEST: Final = 2
"""How many products are combined at least."""


@final
@dataclass(frozen=True, slots=True)
class _Form:
    """How a product is combined: the dim of the weights that is put side by side, the dim of the
    result in which the products are then, and for a convolution the rank of its operand."""

    weight: int
    result: int
    rank: int | None = None

    @property
    def is_convolution(self) -> bool:
        """Whether the weights are small beside the work, so that they may be copied each time."""
        return self.rank is not None


_FORMS: Final[Mapping[Op, _Form]] = {
    linear: _Form(0, -1),
    matmul: _Form(1, -1),
    conv1d: _Form(0, 1, 3),
    conv2d: _Form(0, 1, 4),
}


def combine_products(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form, with the products of rounds of loops, and convolutions
    everywhere, combined; calls of operators that are `opaque` stay."""
    if opaque(cat) or opaque(split):
        return module
    made = {name: _in_function(name, f, opaque) for name, f in module.functions.items()}
    is_same = all(made[name] is f for name, f in module.functions.items())
    return module if is_same else replace(module, functions=made)


@final
@dataclass(frozen=True, slots=True)
class CombineProducts(Pass):
    """Multiply one operand with several weights of a loop, or kernels, in one product."""

    name: ClassVar = "combine-products"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return combine_products(module, context.opaque)


def _in_function(name: str, function: Function, opaque: Opaque) -> Function:
    changed: dict[Expr, Expr] = {}
    for loop, fixed in _loops(name, function):
        body = _in_loop(loop, fixed, opaque)
        if body is not loop.body:
            changed[loop.body] = body
    made = rewrite(function, lambda node: changed.get(node, node)) if changed else function
    made = _in_blocks(made, {}, opaque)
    assert isinstance(made, Function)
    return made


def _loops(name: str, function: Function) -> Iterator[tuple[Function, frozenset[Var]]]:
    """Return the loops that hold no others, each with the variables that no round changes."""
    local = [
        binding.value
        for node in post_order(function.body)
        if isinstance(node, LetBlock) and node.flavour is Flavour.REC and len(node.bindings) == 1
        for binding in node.bindings
        if isinstance(binding.value, Function)
    ]
    for loop in local:
        if not any(isinstance(node, Function) for node in post_order(loop.body)):
            yield loop, frozenset(free_vars(loop))
    own = [
        node
        for node in post_order(function.body)
        if isinstance(node, Call)
        and isinstance(node.callee, GlobalVar)
        and node.callee.name == name
    ]
    if own and not local:
        places = enumerate(function.params)
        yield function, frozenset(p for i, p in places if all(c.args[i] is p for c in own))


def _in_loop(loop: Function, fixed: frozenset[Var], opaque: Opaque) -> Expr:
    sources: dict[Expr, _WeightPath] = {v: (v, ()) for v in fixed}
    for node in post_order(loop.body):
        if isinstance(node, LetBlock) and node.flavour is not Flavour.REC:
            _add_fields(node.bindings, sources)

    return _in_blocks(loop.body, sources, opaque)


def _in_blocks(body: Expr, sources: Mapping[Expr, _WeightPath], opaque: Opaque) -> Expr:
    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock) or node.flavour is Flavour.REC:
            return node
        return _Block(node, sources, opaque).combined()

    return rewrite(body, change)


def _add_fields(bindings: Sequence[Binding], sources: dict[Expr, _WeightPath]) -> None:
    """Add the fields of what no round changes."""
    for binding in bindings:
        if isinstance(binding.value, TupleGet) and binding.value.value in sources:
            root, path = sources[binding.value.value]
            sources[binding.var] = (root, (*path, binding.value.index))


@final
class _Block:
    """One block of bindings."""

    def __init__(
        self, block: LetBlock, sources: Mapping[Expr, _WeightPath], opaque: Opaque
    ) -> None:
        self._block: Final = block
        self._sources: Final = sources
        self._opaque: Final = opaque
        self._places: Final = {b.var: place for place, b in enumerate(block.bindings)}

    def combined(self) -> LetBlock:
        """Return the block with products combined where the first of them stood."""
        groups: dict[object, list[Binding]] = {}
        for binding in self._block.bindings:
            key = self._key(binding.value)
            if key is None:
                continue
            group = groups.setdefault(key, [])
            if not group or self._is_known_at(self._places[group[0].var], binding.value):
                group.append(binding)
        new: dict[Var, list[Binding]] = {}
        for group in groups.values():
            if len(group) >= FEWEST:
                first, *rest = group
                new[first.var] = self._made(group)
                new |= {b.var: [] for b in rest}
        if not new:
            return self._block
        bindings = [x for b in self._block.bindings for x in new.get(b.var, (b,))]
        return replace(self._block, bindings=tuple(bindings))

    def _key(self, value: Expr) -> object | None:
        """Return the key that products share if they may be combined; None for anything else."""
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return None
        form = _FORMS.get(value.callee)
        if form is None or self._opaque(value.callee) or value.attrs.get("groups", 1) != 1:
            return None
        x, weight, *bias = value.args
        given = [b for b in bias if isinstance(b, Var)]
        ty = weight.ty
        if not isinstance(ty, TensorType) or not isinstance(x.ty, TensorType):
            return None
        is_fixed = all(w in self._sources for w in (weight, *given))
        if (
            not (is_fixed or form.is_convolution)
            or ty.rank < 2
            or x.ty.rank < 2
            or form.rank not in (None, x.ty.rank)
        ):
            return None
        if value.callee is matmul and ty.rank != 2:
            return None
        shape = (*ty.shape[: form.weight], *ty.shape[form.weight + 1 :])
        return value.callee, x, repr(value.attrs), ty.dtype, shape, len(given)

    def _is_known_at(self, place: int, value: Expr) -> bool:
        """Return whether the weights of a product are known at a place before it."""
        assert isinstance(value, Call)
        weights = (w for w in value.args[1:] if isinstance(w, Var) and w not in self._sources)
        return all(self._places.get(w, -1) < place for w in weights)

    def _made(self, group: Sequence[Binding]) -> list[Binding]:
        """Return the bindings of one product and of the variables that it stands for."""
        calls = [b.value for b in group if isinstance(b.value, Call)]
        first = calls[0]
        assert isinstance(first.callee, Op)
        form, builder = _FORMS[first.callee], Builder(first.span, Names())
        columns = zip(*(call.args[1:] for call in calls), strict=True)
        side_by_side: list[Value | None] = []
        for place, column in enumerate(columns):
            parts = [self._source(builder, atom) for atom in column]
            dim = 0 if place else form.weight
            is_given = all(isinstance(atom, Var) for atom in column)
            joined = builder.call(cat, (builder.tuple(parts),), {"dim": dim}) if is_given else None
            side_by_side.append(joined)
        x = builder.value(first.args[0])
        whole = builder.call(first.callee, (x, *side_by_side), first.attrs)
        sizes = tuple(self._width(call, form) for call in calls)
        attrs = {"split_size_or_sections": sizes, "dim": form.result}
        parts_ = builder.call(split, (whole,), attrs)
        found = list(builder.bindings)
        for place, binding in enumerate(group):
            ty = binding.var.ty
            found.append(Binding(binding.var, TupleGet(parts_.atom, place, ty, span=first.span)))
        return found

    def _source(self, builder: Builder, atom: Expr) -> Value:
        """Return a weight that is known before the loop."""
        if atom not in self._sources:
            return builder.value(atom)
        root, path = self._sources[atom]
        return builder.value(root).at(path)

    @staticmethod
    def _width(call: Call, form: _Form) -> object:
        ty = call.args[1].ty
        assert isinstance(ty, TensorType)
        return ty.shape[form.weight]
