"""Results that a function beside them needs, such as the value beside a pullback, in storage of
their own.

`let y = tanh(x); let f = fn (g) { tanh_grad(g, y) }; (y, f)` becomes `...; (copy of y, f)`. A
script may write to the tensors that it gets, and the gradient would have what it wrote. Fields of
data are copied where the result leaves the program, whether or not a function needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.calls.storage import makes_storage
from ...ir.expr import Atom, Binding, Call, Expr, Tuple, TupleGet, Var, type_of
from ...ir.module import Module
from ...ir.op import Op
from ...ir.traverse import free_vars, let, spine
from ...ir.types import UNIT, FnType, TensorType, TupleType, subtypes
from ...ir.verify import Stage
from ...operators.primitive.index import extract
from ..base import Context, Pass


@final
@dataclass(frozen=True, slots=True)
class OwnResults(Pass):
    """Copy the results of the entry that a function among them needs."""

    name: ClassVar = "own-results"
    needs: ClassVar = Stage.DERIVED

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return own_results(module, context.entry)


def own_results(module: Module, entry: str) -> Module:
    """Return the module, in A-normal form, with copies of results of `entry` whose storage a
    function among them may share."""
    function = module.functions[entry]
    blocks, end = spine(function.body)
    if not any(isinstance(t, FnType) for t in subtypes(type_of(end))):
        return module
    values = {b.var: b.value for block in blocks for b in block.bindings}
    made: list[Binding] = []
    if not isinstance(end, Atom):  # a call, or the end of a branch
        value, end = end, Var("result", end.ty, span=end.span)
        values[end] = value
        made.append(Binding(end, value))
    before = len(made)
    last = _Copies(values, function.params, made).of(end) if isinstance(end, Var) else end
    if len(made) == before:
        return module
    body = let(made, last)
    for block in reversed(blocks):
        body = replace(block, body=body)
    return module.with_functions({entry: replace(function, body=body)})


@final
class _Copies:
    """Copies of the results of a function, whose straight line binds `values`; what is bound for
    them is added to `made`."""

    def __init__(self, values: dict[Var, Expr], params: Iterable[Var], made: list[Binding]) -> None:
        self._values: Final = values
        self._params: Final = frozenset(params)
        self._made: Final = made
        self._needed: frozenset[Var] = frozenset()
        """The variables whose storage a function among the results may share."""

    def of(self, result: Var) -> Expr:
        """Return the result with copies in it."""
        fields = self._fields(result)
        functions = (f for f in fields if any(isinstance(t, FnType) for t in subtypes(type_of(f))))
        self._needed = self._sources(functions)
        return self._copied(result)

    def _fields(self, whole: Expr) -> Iterator[Expr]:
        """Yield the fields of nested tuples that the function makes."""
        pending = [whole]
        while pending:
            current = pending.pop()
            value = self._value(current)
            if isinstance(value, Tuple):
                pending += reversed(value.fields)
            else:
                yield current

    def _value(self, atom: Expr) -> Expr | None:
        return self._values.get(atom) if isinstance(atom, Var) else None

    def _sources(self, atoms: Iterable[Expr]) -> frozenset[Var]:
        """Return the variables whose storage values may share, but for parameters: what shares
        theirs is copied where it leaves the program."""
        found: set[Var] = set()
        pending = list(atoms)
        while pending:
            var = pending.pop()
            if not isinstance(var, Var) or var in found or var in self._params:
                continue
            found.add(var)
            value = self._values.get(var)
            is_own = isinstance(value, Call) and _makes_storage(value)
            pending += () if value is None or is_own else free_vars(value)
        return frozenset(found)

    def _copied(self, atom: Expr) -> Expr:
        """Return a result, or a field of one, with copies in it."""
        match atom.ty:
            case TupleType():
                fields = self._parts(atom)
                copied = tuple(map(self._copied, fields))
                if all(a is b for a, b in zip(fields, copied, strict=True)):
                    return atom
                return self._bound("result", Tuple(copied, atom.ty, span=atom.span))
            case TensorType() if self._is_needed(atom):
                operands = (atom, Tuple((), UNIT, span=atom.span))
                spec = {"spec": (("ellipsis",),)}
                copy = Call(extract, operands, spec, ty=atom.ty, span=atom.span)
                return self._bound("own", copy)
            case _:
                return atom

    def _parts(self, whole: Expr) -> tuple[Expr, ...]:
        """Return the fields of a tuple; none where a function needs none of them."""
        value = self._value(whole)
        if isinstance(value, Tuple):
            return value.fields
        if not isinstance(whole.ty, TupleType) or not self._is_needed(whole):
            return ()
        gets = (TupleGet(whole, i, ty, span=whole.span) for i, ty in enumerate(whole.ty.fields))
        return tuple(self._bound("part", get) for get in gets)

    def _is_needed(self, atom: Expr) -> bool:
        return not self._needed.isdisjoint(self._sources((atom,)))

    def _bound(self, name: str, value: Expr) -> Var:
        var = Var(name, value.ty, span=value.span)
        self._values[var] = value
        self._made.append(Binding(var, value))
        return var


def _makes_storage(call: Call) -> bool:
    return isinstance(call.callee, Op) and makes_storage(call.callee)
