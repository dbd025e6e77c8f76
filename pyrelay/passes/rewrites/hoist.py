"""Layers of the rows that a loop runs over are computed ahead, for all rows at once.

`for x in xs: h = cell(linear(x, w, b), h)` multiplies a weight with one row a round. What depends
on the row alone, and on what no round changes, is the row of a product made before the loop. The
gain is the larger the fewer rows a row has: reading the weight is what a small product costs.

Looked for in functions that only call themselves and count: the loop runs while `i < n`, `n` is the
number of rows, and every round adds 1. So no row is computed for nothing, but where a loop is left
early. Before a gradient is taken loops are functions of functions, afterwards global ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, final

from ...ir.block_builder import BlockBuilder
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.op import Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, free_vars, post_order, rewrite, spine
from ...ir.types import UNIT, FnType, SizeType, TensorType
from ...ir.verify import Stage
from ...operators.builder import Builder, Value, bind_attrs
from ...operators.matrices.products import linear
from ...operators.primitive.arithmetic import add
from ...operators.primitive.compare import less
from ...operators.primitive.embedding import embedding
from ...operators.primitive.index import index
from ..base import Context, Opaque, Pass, nothing_opaque

if TYPE_CHECKING:
    from ...ir.dims import Dim

_ROW: Final = (("int", 0),)

LAYERS: Final = (linear, embedding)
"""Operators whose first operand may have further dims in front, which the result then has, too."""

MOST: Final = 16
"""How many layers of the loops of one function are computed ahead at most."""

Source: TypeAlias = tuple[Var, tuple[int, ...]]
"""Where an operand comes from: a variable that no round changes, and a path into it."""


def hoist_layers(module: Module, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form, with layers of rows in front of loops; calls of
    operators that are `opaque` stay."""
    layers = frozenset(op for op in LAYERS if not opaque(op))
    if opaque(index) or not layers:
        return module
    for name in list(module.functions):
        for _ in range(MOST):
            changed = _global_ahead(module, name, layers) or _local_ahead(module, name, layers)
            if changed is None:
                break
            module = changed
    return module


@final
@dataclass(frozen=True, slots=True)
class Hoist(Pass):
    """Compute layers of a loop's rows in front of the loop, for all rows at once."""

    name: ClassVar = "hoist"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return hoist_layers(module, context.opaque)


@final
@dataclass(frozen=True, slots=True)
class _Loop:
    """A function that may be a loop, and all that is done with it."""

    function: Function
    inside: list[Call]
    """Its calls of itself."""
    outside: list[Call]
    made: Mapping[Expr, Expr]
    """The values of the variables in it."""
    constant: frozenset[Var]
    """The variables that no round changes."""


@final
@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer in a loop: the binding, the loop's counter, and where its operands come from; a
    weight may be left out."""

    result: Var
    call: Call
    position: Tuple
    rows: Var
    weights: tuple[Source | None, ...]

    @property
    def type(self) -> TensorType:
        """The type of the layer of all rows."""
        rows, row = type_of(self.rows), type_of(self.result)
        assert isinstance(rows, TensorType)
        assert isinstance(row, TensorType)
        return TensorType((rows.shape[0], *row.shape), row.dtype)

    def whole(self, builder: Builder, value_of: Callable[[Var], Value]) -> Value:
        """Return the layer of all rows; `value_of` gives the value of a variable where it
        stands."""
        operands = [value_of(self.rows)]
        for source in self.weights:
            weight = builder.unit() if source is None else value_of(source[0])
            for field in () if source is None else source[1]:
                weight = weight[field]
            operands.append(weight)
        assert isinstance(self.call.callee, Op)
        return builder.call(self.call.callee, operands, self.call.attrs)

    def read(self, ahead: Var) -> list[Binding]:
        """Return the bindings that take the place of the layer's in the loop."""
        span = self.call.span
        at = Var("at", type_of(self.position), span=span)
        attrs = bind_attrs(index, {"spec": _ROW})
        row = Call(index, (ahead, at), attrs, ty=self.call.ty, span=span)
        return [Binding(at, self.position), Binding(self.result, row)]


# Whether there is a layer.


def _layer(loop: _Loop, layers: frozenset[Op]) -> _Layer | None:
    """Return a layer of a loop over rows that can be computed ahead."""
    blocks, end = spine(loop.function.body)
    if not isinstance(end, If) or not isinstance(end.condition, Var):
        return None
    counter = _counter(loop, loop.made.get(end.condition))
    if counter is None:
        return None
    bindings = (b for block in (*blocks, *spine(end.then)[0]) for b in block.bindings)
    calls = ((b.var, b.value) for b in bindings if isinstance(b.value, Call))
    found = (_found(v, c, counter, loop) for v, c in calls if c.callee in layers)
    return next((layer for layer in found if layer is not None), None)


def _counter(loop: _Loop, condition: Expr | None) -> tuple[Var, Dim] | None:
    """Return the counter of a loop, and what it counts to."""
    match condition:
        case Call(callee, (Var() as counter, Var(ty=SizeType(dim)))) if callee is less:
            pass
        case _:
            return None
    if counter not in loop.function.params:
        return None
    place = loop.function.params.index(counter)
    steps = (loop.made.get(call.args[place]) for call in loop.inside)
    counts = all(
        isinstance(s, Call) and s.callee is add and s.args[0] is counter and _is(s.args[1], 1)
        for s in steps
    )
    starts = all(_is(call.args[place], 0) for call in loop.outside)
    return (counter, dim) if counts and starts else None


def _is(atom: Expr, number: int) -> bool:
    return isinstance(atom, Constant) and type(atom.value) is int and atom.value == number


def _found(result: Var, call: Call, counter: tuple[Var, Dim], loop: _Loop) -> _Layer | None:
    row, *rest = call.args
    read = loop.made.get(row) if isinstance(row, Var) else None
    if not isinstance(read, Call) or read.callee is not index or read.attrs["spec"] != _ROW:
        return None
    rows, position = read.args
    at = loop.made.get(position) if isinstance(position, Var) else None
    if not isinstance(at, Tuple) or at.fields != (counter[0],):
        return None
    if not isinstance(rows, Var) or rows not in loop.constant:
        return None
    if not isinstance(rows.ty, TensorType) or rows.ty.shape[0] != counter[1]:
        return None
    weights = [_source(weight, loop) for weight in rest]
    if any(w is None and type_of(a) != UNIT for w, a in zip(weights, rest, strict=True)):
        return None
    return _Layer(result, call, at, rows, tuple(weights))


def _source(atom: Expr, loop: _Loop) -> Source | None:
    path: tuple[int, ...] = ()
    while not isinstance(atom, Var) or atom not in loop.constant:
        field = loop.made.get(atom)
        if not isinstance(field, TupleGet):
            return None
        atom, path = field.value, (field.index, *path)
    return atom, path


def _definitions(body: Expr) -> dict[Expr, Expr]:
    return {
        b.var: b.value
        for node in post_order(body)
        if isinstance(node, LetBlock)
        for b in node.bindings
    }


def _calls(body: Expr, is_loop: Callable[[Expr], bool]) -> list[Call] | None:
    """Return the calls of a function in a body; None if it is a value there, too."""
    mentions = 0
    found: list[Call] = []
    for node in post_order(body):
        mentions += is_loop(node)
        if isinstance(node, Call) and isinstance(node.callee, Expr) and is_loop(node.callee):
            found.append(node)
    return found if len(found) == mentions else None


def _with_row(function: Function, layer: _Layer, ahead: Var) -> Function:
    """Return a loop that reads the row of what is computed ahead."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock) or all(b.var is not layer.result for b in node.bindings):
            return node
        bindings = [
            new
            for b in node.bindings
            for new in (layer.read(ahead) if b.var is layer.result else (b,))
        ]
        return replace(node, bindings=tuple(bindings))

    return replace(function, body=rewrite(function.body, change))


# Loops that are functions of a function.


def _local_ahead(module: Module, name: str, layers: frozenset[Op]) -> Module | None:
    """Return the module with a layer of a local loop computed ahead; None if there is none."""
    function = module.functions[name]
    for node in post_order(function.body):
        if not isinstance(node, LetBlock) or node.flavour is not Flavour.REC:
            continue
        (binding, *others) = node.bindings
        found = None if others else _local_layer(function, binding, layers)
        if found is not None:
            body = rewrite(function.body, _in_front(binding.var, found))
            return module.with_functions({name: replace(function, body=body)})
    return None


def _local_layer(function: Function, binding: Binding, layers: frozenset[Op]) -> _Layer | None:
    loop, var = binding.value, binding.var
    assert isinstance(loop, Function)
    everywhere = _calls(function.body, lambda node: node is var)
    inside = _calls(loop.body, lambda node: node is var)
    if not everywhere or not inside:
        return None
    outside = [call for call in everywhere if call not in inside]
    constant = frozenset(v for v in free_vars(loop) if v is not var)
    return _layer(_Loop(loop, inside, outside, _definitions(loop.body), constant), layers)


def _in_front(loop: Var, layer: _Layer) -> Callable[[Expr], Expr]:
    def change(node: Expr) -> Expr:
        if not isinstance(node, LetBlock) or node.bindings[0].var is not loop:
            return node
        builder = Builder(layer.call.span)
        whole = layer.whole(builder, builder.value).atom
        ahead = Var(layer.result.name, layer.type, span=layer.result.span)
        bindings = (*builder.bindings[:-1], Binding(ahead, builder.bindings[-1].value))
        assert whole is builder.bindings[-1].var
        function = node.bindings[0].value
        assert isinstance(function, Function)
        changed = Binding(loop, _with_row(function, layer, ahead))
        rest = replace(node, bindings=(changed,))
        return LetBlock(bindings, rest, Flavour.PURE, ty=node.ty, span=node.span)

    return change


# Loops that are global functions.


def _global_ahead(module: Module, name: str, layers: frozenset[Op]) -> Module | None:
    """Return the module with a layer of a global loop computed ahead; None if there is none."""
    function = module.functions[name]
    if not isinstance(spine(function.body)[1], If):
        return None

    def is_loop(node: Expr) -> bool:
        return isinstance(node, GlobalVar) and node.name == name

    calls = {n: _calls(f.body, is_loop) for n, f in module.functions.items()}
    inside = calls.pop(name)
    if not inside or None in calls.values():
        return None
    outside = [call for found in calls.values() for call in found or ()]
    constant = frozenset(
        p for i, p in enumerate(function.params) if all(call.args[i] is p for call in inside)
    )
    loop = _Loop(function, inside, outside, _definitions(function.body), constant)
    layer = _layer(loop, layers)
    if layer is None:
        return None
    ahead = Var(layer.result.name, layer.type, span=layer.result.span)

    def change(node: Expr) -> Expr:
        match node:
            case Call(GlobalVar(called), args) if called == name:
                return replace(node, args=(*args, ahead))
            case _:
                return node

    assert isinstance(function.ty, FnType)
    changed = replace(
        _with_row(function, layer, ahead),
        params=(*function.params, ahead),
        ty=replace(function.ty, params=(*function.ty.params, layer.type)),
    )
    functions = {name: replace(changed, body=rewrite(changed.body, change))}
    for caller, found in calls.items():
        if found:
            entrance = _Entrance(module, function, name, layer)
            functions[caller] = entrance.walked(module.functions[caller])
    return module.with_functions(functions)


@final
class _Entrance(Rewriter):
    """A function that enters the loop: it computes the layer first."""

    def __init__(self, module: Module, loop: Function, name: str, layer: _Layer) -> None:
        super().__init__(module)
        self._loop: Final = loop
        self._name: Final = name
        self._layer: Final = layer

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return a call of the loop with the layer of all rows as a further argument."""
        match expr:
            case Call(GlobalVar(name), args) if name == self._name:
                builder = Builder(self._layer.call.span)
                given = dict(zip(self._loop.params, map(self.atom, args), strict=True))
                ahead = self._layer.whole(builder, lambda var: builder.value(given[var]))
                for binding in builder.bindings:
                    code.bind(binding.var, binding.value)
                return replace(expr, args=(*given.values(), ahead.atom))
            case _:
                return (yield from super().node(expr, code))
