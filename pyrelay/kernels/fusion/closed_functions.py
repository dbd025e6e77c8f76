"""Code taken out of a body as a closed function, and the call that takes its place.

What the code reads become parameters, the sizes it mentions type parameters. Equal functions are
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from ...analysis.dim_availability import needed, shown, uncovered
from ...analysis.free_names import names_in
from ...analysis.retype import types_in
from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.dims import Dim, DimVar
from ...ir.equality import structural_hash
from ...ir.expr import (
    Assumption,
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    TensorData,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.traverse import children, rebuild
from ...ir.types import UNIT, FnType, SizeType, TupleType, Type
from ...operators.host.sizes import size
from .nodes import mentioned


@final
@dataclass(frozen=True, slots=True)
class Closed:
    """A closed function and how it is called where its code stood."""

    function: Function
    args: tuple[Expr, ...]
    results: tuple[Var, ...]
    """The variables that hold what it gives."""
    sizes: tuple[Binding, ...]
    """Sizes that it needs and that no argument shows; bound before the call."""
    copies: Mapping[Expr, Expr]
    """For each variable of its code, and each parameter's argument, the function's own one."""


@final
class Functions:
    """Functions that are added to a module, named by a prefix and a number."""

    def __init__(self, prefix: str, taken: Iterable[str]) -> None:
        self._prefix: Final = prefix
        self.functions: Final[dict[str, Function]] = {}
        self._taken: Final = frozenset(taken)
        self._known: Final[dict[str, str]] = {}
        self._count = 0

    def name(self, function: Function) -> str:
        """Return the name of a function, which is new unless an equal one is there."""
        digest = structural_hash(function)
        if digest not in self._known:
            self._known[digest] = self._fresh()
            self.functions[self._known[digest]] = function
        return self._known[digest]

    def take_out(
        self,
        bindings: Sequence[Binding],
        results: Sequence[Var],
        assumptions: Sequence[Assumption],
    ) -> tuple[Binding, ...]:
        """Return the call of a function of bindings, in their place; `results` are those of their
        variables that are used elsewhere, `assumptions` those of the function they stood in."""
        bound = {b.var for b in bindings}
        used = (v for b in bindings for v in mentioned(b.value))
        inputs = list(dict.fromkeys(v for v in used if v not in bound))
        closed = close(bindings, inputs, results, assumptions, bindings[0].value.span)
        return call_of(self.name(closed.function), closed)

    def _fresh(self) -> str:
        while True:
            self._count += 1
            name = f"{self._prefix}{self._count}"
            if name not in self._taken:
                return name


def call_of(name: str, closed: Closed) -> tuple[Binding, ...]:
    """Return the bindings that call a function by its name and take its results apart."""
    function = closed.function
    ty = function.result
    span = function.span
    dims = tuple(Dim.atom(p) for p in function.type_params if isinstance(p, DimVar))
    callee = GlobalVar(name, span=span)
    call = Call(callee, closed.args, type_args=dims, ty=ty, span=span)
    if len(closed.results) == 1:
        return (*closed.sizes, Binding(closed.results[0], call))
    whole = Var("_" if not closed.results else "r", ty, span=span)
    parts = (
        Binding(var, TupleGet(whole, number, var.ty, span=span))
        for number, var in enumerate(closed.results)
    )
    return (*closed.sizes, Binding(whole, call), *parts)


def close(
    bindings: Sequence[Binding],
    inputs: Sequence[Var],
    results: Sequence[Var],
    assumptions: Sequence[Assumption],
    span: Span,
) -> Closed:
    """Return bindings as a closed function of `inputs`, which are all that they read.

    `assumptions` are those of the function they stood in.
    """
    copies: dict[Expr, Expr] = {v: Var(v.name, v.ty, span=v.span) for v in inputs}
    args: list[Expr] = list(inputs)
    code: list[Binding] = []
    for binding in bindings:
        for operand in children(binding.value):
            if operand in copies:
                continue
            if isinstance(operand, Constant) and isinstance(operand.value, TensorData):
                copies[operand] = Var("c", operand.ty, span=operand.span)
                args.append(operand)
        value = _copied(binding.value, copies)
        var = copies[binding.var] = Var(binding.var.name, binding.var.ty, span=binding.var.span)
        assert isinstance(var, Var)
        code.append(Binding(var, value))
    params = [copies[a] for a in args]
    known = {d for a in args for d in shown(a.ty)}
    sizes: list[Binding] = []
    wanted = (d for b in code for n in needed(b.value) for d in uncovered(n, known))
    for dim in dict.fromkeys(wanted):
        ty = SizeType(dim)
        needed_size = Var("n", ty, span=span)
        sizes.append(Binding(needed_size, Call(size, (), {"dim": dim}, ty=ty, span=span)))
        args.append(needed_size)
        params.append(Var("n", ty, span=span))
    fields = tuple(copies[r] for r in results)
    taken = tuple(p for p in params if isinstance(p, Var))
    function = _function(taken, code, fields, assumptions, span)
    return Closed(function, tuple(args), tuple(results), tuple(sizes), copies)


def _function(
    params: tuple[Var, ...],
    code: list[Binding],
    fields: tuple[Expr, ...],
    assumptions: Sequence[Assumption],
    span: Span,
) -> Function:
    end: Expr
    if len(fields) == 1:
        (end,) = fields
    elif fields:
        ty: Type = TupleType(tuple(map(type_of, fields)))
        end = Var("r", ty, span=span)
        code.append(Binding(end, Tuple(fields, ty, span=span)))
    else:
        end = Tuple((), UNIT, span=span)
    body = end
    for flavour, block in reversed(_blocks(code)):
        body = LetBlock(tuple(block), body, flavour, ty=end.ty, span=span)
    types = [*(type_of(p) for p in params), *(t for b in code for t in types_in(b.value))]
    names = dict.fromkeys(names_in(types))
    type_params = tuple(map(DimVar, names))
    assumed = tuple(a for a in assumptions if a.left.names() | a.right.names() <= names.keys())
    result = type_of(end)
    ty = FnType(tuple(type_of(p) for p in params), result, type_params)
    return Function(params, body, result, type_params, assumptions=assumed, ty=ty, span=span)


def _copied(value: Expr, copies: Mapping[Expr, Expr]) -> Expr:
    if isinstance(value, Var):
        return copies.get(value, value)
    return rebuild(value, tuple(copies.get(c, c) for c in children(value)))


def _blocks(code: Sequence[Binding]) -> list[tuple[Flavour, list[Binding]]]:
    """Return bindings as runs of pure ones and of those without a value, which are for an
    effect."""
    blocks: list[tuple[Flavour, list[Binding]]] = []
    for binding in code:
        flavour = Flavour.IMPURE if binding.var.ty == UNIT else Flavour.PURE
        if not blocks or blocks[-1][0] is not flavour:
            blocks.append((flavour, []))
        blocks[-1][1].append(binding)
    return blocks
