"""Hoisting: what rounds of a loop compute from fixed values or from one row, before the loop.

`for x in xs: h = cell(linear(x, w, b), h)` multiplies a weight with one row a round. What depends
on the row alone, and on what no round changes, is the row of a product made before the loop. The
gain is the larger the fewer rows a row has: reading the weight is what a small product costs.

Before a gradient is taken loops are functions of functions, which read what is hoisted from around
them; afterwards they are global functions, which take it as further parameters. `rows` has the
analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final, final

from ...analysis.bindings import definitions, used_as_values
from ...analysis.call_graph import call_graph, callees, mentions
from ...analysis.dim_availability import SizeNames, shown, sizes_in
from ...analysis.loops import Loop
from ...analysis.retype import Retyping
from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim, DimVar
from ...ir.effect import effects_of
from ...ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.names import Names
from ...ir.op import Effect
from ...ir.rewriter import Rewriter
from ...ir.traverse import (
    Steps,
    bound_vars,
    free_vars,
    let,
    post_order,
    pre_order,
    rewrite,
    spine,
    substitute,
)
from ...ir.types import INT, AdtType, FnType, Type, as_arguments, substitution
from ...ir.verify import Stage
from ...operators.builder import Builder
from ..base import Context, Opaque, Pass, nothing_opaque
from .rows import Hoisted, hoisted


def hoist(module: Module, entry: str | None = None, opaque: Opaque = nothing_opaque) -> Module:
    """Return the module, in A-normal form, with the values that rounds of loops share computed
    before the loops; calls of operators that are `opaque` stay, and `entry` keeps its type."""
    before = module
    module = module.map_functions(lambda function: _in_function(before, function, opaque))
    for group in call_graph(module).groups:
        if len(group) == 1 and group[0] != entry:
            module = _of_global(module, group[0], opaque)
    return module


@final
@dataclass(frozen=True, slots=True)
class Hoist(Pass):
    """Compute values that rounds of loops share, or that depend on rows alone, before the loops."""

    name: ClassVar = "hoist"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return hoist(module, context.entry, context.opaque)


def _body_of(
    loop: Loop, found: Hoisted, callee: Expr, type_args: tuple[Type | Dim, ...] | None = None
) -> Expr:
    """Return the body of a loop that reads the hoisted values; its calls of itself, of `callee`
    then, pass on its new arguments, the counter one higher."""
    builder = Builder(loop.function.span)
    more = found.params
    if found.counter is not None:
        more = (*more[:-1], (builder.value(found.counter) + 1).atom)
    again = frozenset(loop.inside)

    def change(node: Expr) -> Expr:
        match node:
            case Call(args=args) if node in again:
                own = node.type_args if type_args is None else type_args
                return replace(node, callee=callee, args=(*args, *more), type_args=own)
            case LetBlock(bindings) if any(b.var in found.reads for b in bindings):
                new = (x for b in bindings for x in found.reads.get(b.var, (b,)))
                return replace(node, bindings=tuple(new))
            case _:
                return node

    body = rewrite(loop.function.body, change)
    return let(builder.bindings, body)


def _calls(body: Expr, is_loop: Callable[[Expr], bool]) -> list[Call]:
    """Return the calls of a loop in a body."""
    return [
        node
        for node in post_order(body)
        if isinstance(node, Call) and isinstance(node.callee, Expr) and is_loop(node.callee)
    ]


def _zero(span: Span) -> Constant:
    return Constant(0, INT, span=span)


# Loops that are functions of a function.


@final
class _LocalLoops(Rewriter):
    """One walk over a function, inner loops first."""

    def __init__(self, module: Module, function: Function, opaque: Opaque) -> None:
        super().__init__(module)
        self._effects: Final = effects_of(module)
        self._function: Final = function
        self._opaque: Final = opaque
        self._escaping: Final = used_as_values(function)
        self._names: Final = Names()
        self._calls: Final[dict[Expr, list[Call]]] = {}
        self._order: Final[dict[Expr, int]] = dict.fromkeys(function.params, -1)
        """When variables are bound."""
        self._counted: Final[set[Expr]] = set()
        """The loops that count their rounds, under their new names."""
        for number, node in enumerate(pre_order(function.body)):
            self._order.update((v, number) for v in bound_vars(node))
            if isinstance(node, Call) and isinstance(node.callee, Var):
                self._calls.setdefault(node.callee, []).append(node)

    def recursive(self, block: LetBlock, code: BlockBuilder) -> Steps[None]:
        """Add a loop, behind the computations that it need not repeat."""
        (binding, *others) = block.bindings
        if others or binding.var in self._escaping:
            yield super().recursive(block, code)
            return
        var = binding.var
        value = yield self.node(binding.value, code)
        assert isinstance(binding.value, Function)
        loop = self._loop(block, binding.value, value)
        found = None
        if loop.inside and loop.outside and not value.type_params:
            found = hoisted(loop, self._available(), self._sizes(value), self._opaque)
        if found is None:
            code.bind_rec([Binding(var, value)])
            return
        first = (
            dict(zip(loop.params, loop.outside[0].args, strict=True)) if loop.knows_start else {}
        )
        outside, code.flavour = code.flavour, Flavour.PURE
        for made in found.code:
            code.bind(made.var, substitute(made.value, first))
        code.flavour = outside
        code.bind_rec([self._changed(var, loop, found)])

    def _loop(self, block: LetBlock, source: Function, function: Function) -> Loop:
        var = block.bindings[0].var
        own = frozenset(_calls(source.body, lambda node: node is var))
        outside = [call for call in self._calls.get(var, ()) if call not in own]
        blocks, end = spine(block.body)
        entered = (end, *(b.value for inner in blocks for b in inner.bindings))
        is_pure = self._effects.of_call(source) is Effect.NONE
        return Loop(
            function,
            _calls(function.body, lambda node: node is var),
            outside,
            frozenset(v for v in free_vars(function) if v is not var),
            may_fail=is_pure and any(call in entered for call in outside),
            knows_start=len(outside) == 1 and all(map(self._is_before(var), outside[0].args)),
        )

    def _is_before(self, loop: Var) -> Callable[[Expr], bool]:
        """Return a test of atoms: whether they are bound before a loop."""
        start = self._order[loop]
        return lambda atom: not isinstance(atom, Var) or self._order[atom] < start

    def _available(self) -> frozenset[Dim]:
        return frozenset(d for p in self._function.params for d in shown(p.ty))

    def _sizes(self, function: Function) -> Names:
        """Return names for sizes that are found, if any can be."""
        if any(isinstance(p.ty, AdtType) for p in function.params):
            self._names.take(sizes_in(self._function))
        return self._names

    def _changed(self, var: Var, loop: Loop, found: Hoisted) -> Binding:
        function = loop.function
        if found.counter is None:
            return Binding(
                var, replace(function, body=_body_of(loop, replace(found, params=()), var))
            )
        assert isinstance(function.ty, FnType)
        ty = replace(function.ty, params=(*function.ty.params, INT))
        new = replace(var, ty=ty)
        self.atoms[var] = new
        self._counted.add(var)
        body = _body_of(loop, replace(found, params=(found.counter,)), new)
        return Binding(
            new, replace(function, params=(*function.params, found.counter), body=body, ty=ty)
        )

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return a node; a call of a loop that counts its rounds starts with 0."""
        if isinstance(expr, Call) and expr.callee in self._counted:
            expr = replace(expr, args=(*expr.args, _zero(expr.span)))
        return (yield super().node(expr, code))


def _in_function(module: Module, function: Function, opaque: Opaque) -> Function:
    if not any(isinstance(v, Function) for v in definitions(function).values()):
        return function
    return _LocalLoops(module, function, opaque).walked(function)


# Loops that are global functions.


def _of_global(module: Module, name: str, opaque: Opaque) -> Module:
    """Return the module with a global loop, if it is one, behind the computations that it need not
    repeat."""
    function = module.functions[name]
    if name not in callees(function):
        return module
    callers = [n for n, f in module.functions.items() if n != name and name in callees(f)]
    found_in = [mentions(module.functions[n]) for n in (*callers, name)]
    if not callers or any(m.all[name] != m.calls[name] for m in found_in):
        return module
    outside = [c for n in callers for c in _calls_of(module.functions[n], name)]
    inside = _calls_of(function, name)
    own = as_arguments(function.type_params)
    if any(c.type_args not in ((), own) for c in inside):
        return module
    if any(len(c.type_args) != len(own) for c in outside):
        return module
    is_pure = effects_of(module).of_call(name) is Effect.NONE
    loop = Loop(function, inside, outside, frozenset(), may_fail=is_pure, knows_start=True)
    names = Names()
    if any(isinstance(p.ty, AdtType) for p in function.params):
        names.take(sizes_in(function))
    available = frozenset(d for p in function.params for d in shown(p.ty))
    found = hoisted(loop, available, names, opaque)
    if found is None:
        return module
    functions = {name: _with_params(name, loop, found)}
    for caller in callers:
        entrance = _Entrance(module, module.functions[caller], name, loop, found)
        functions[caller] = entrance.walked(module.functions[caller])
    return module.with_functions(functions)


def _calls_of(function: Function, name: str) -> list[Call]:
    return _calls(function.body, lambda node: isinstance(node, GlobalVar) and node.name == name)


def _with_params(name: str, loop: Loop, found: Hoisted) -> Function:
    """Return a loop that takes the hoisted values, and its counter, as parameters."""
    function = loop.function
    ahead = {v: replace(v) for v in found.ahead}
    counter = () if found.counter is None else (found.counter,)
    more = (*ahead.values(), *counter)
    type_params = (*function.type_params, *(DimVar(n) for n in found.found))
    callee = GlobalVar(name, span=function.span)
    body = _body_of(loop, replace(found, params=more), callee, as_arguments(type_params))
    assert isinstance(function.ty, FnType)
    types = (*function.ty.params, *map(type_of, more))
    return replace(
        function,
        params=(*function.params, *more),
        body=substitute(body, ahead),
        type_params=type_params,
        ty=replace(function.ty, params=types, type_params=type_params),
    )


@final
class _Entrance(Rewriter):
    """A function that enters a loop: it computes the hoisted values first."""

    def __init__(
        self, module: Module, function: Function, name: str, loop: Loop, found: Hoisted
    ) -> None:
        super().__init__(module)
        self._name: Final = name
        self._loop: Final = loop
        self._found: Final = found
        self._sizes: Final = SizeNames((function,))

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return a call of the loop with its new arguments."""
        match expr:
            case Call(GlobalVar(name), args) if name == self._name:
                return self._entered(expr, tuple(map(self.atom, args)), code)
            case _:
                return (yield from super().node(expr, code))

    def _entered(self, call: Call, args: tuple[Expr, ...], code: BlockBuilder) -> Call:
        found = self._found
        change = substitution(self._loop.function.type_params, call.type_args)
        sizes = [Dim.of(self._sizes.fresh(name)) for name in found.found]
        change.dims.update(zip(found.found, sizes, strict=True))
        copy = Retyping(change)
        given = dict(zip(self._loop.params, args, strict=True))
        outside, code.flavour = code.flavour, Flavour.PURE
        for binding in found.code:
            code.bind(copy.bind(binding.var), substitute(copy.copy(binding.value), given))
        code.flavour = outside
        counter = () if found.counter is None else (_zero(call.span),)
        more = (*(copy.vars[v] for v in found.ahead), *counter)
        return replace(call, args=(*args, *more), type_args=(*call.type_args, *sizes))
