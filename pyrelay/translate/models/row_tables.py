"""Tables: parameters of a model in which it only looks rows up.

Their gradient is zero in the rows that a batch does not look up. Optimisers step by rows there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from ...ir.expr import Call, Expr, Function, GlobalVar, LetBlock, TupleGet
from ...ir.op import Op
from ...ir.traverse import children, post_order
from ...operators.composite.model import param as param_op
from ...operators.primitive.embedding import embedding
from ...operators.primitive.gathering import gather, index_select
from ...operators.primitive.index import index


def row_tables(name: str, model: Function) -> frozenset[int]:
    """Return the places of the tables among the parameters of a model, the function `name`."""
    return _Tables(name, model).found()


@final
class _Tables:
    """The parameters that one function looks rows up in, and those that it uses otherwise."""

    def __init__(self, name: str, model: Function) -> None:
        self._name: Final = name
        self._model: Final = model
        self._record: Final = model.params[0]
        self._held: Final[dict[Expr, int]] = {}
        """Variables that are a parameter."""

    def found(self) -> frozenset[int]:
        """Return the places of those that are used for nothing else."""
        nodes = list(post_order(self._model.body))
        self._hold(reversed(nodes))
        read: set[int] = set()
        other: set[int] = set()
        for node in nodes:
            if not self._keeps_record(node):
                return frozenset()
            tables = {id(e) for e in _tables(node)}
            for child in children(node):
                place = self._place(child)
                if place is not None and not self._passes_on(node, child):
                    (read if id(child) in tables else other).add(place)
        return frozenset(read - other)

    def _hold(self, nodes: Iterable[Expr]) -> None:
        """Note the variables that are a parameter, given nodes with those around them first."""
        for block in nodes:
            for binding in block.bindings if isinstance(block, LetBlock) else ():
                place = self._place(binding.value)
                if place is not None:
                    self._held[binding.var] = place

    def _place(self, value: Expr) -> int | None:
        """Return which parameter a value is; None if it is none."""
        match value:
            case TupleGet(record, place):
                return place if record is self._record else None
            case Call(callee, (table, *_)) if callee is param_op:
                return self._place(table)
            case _:
                return self._held.get(value)

    def _passes_on(self, node: Expr, child: Expr) -> bool:
        """Return whether a node around a parameter is or binds the parameter, which is no use."""
        if isinstance(node, LetBlock):
            return child is not node.body
        return isinstance(node, Call) and node.callee is param_op and child is node.args[0]

    def _keeps_record(self, node: Expr) -> bool:
        """Return whether a node does nothing to the record but take a parameter from it, or pass it
        to the model itself."""
        match node:
            case TupleGet():
                return True
            case Call(GlobalVar(name), (_, *rest)) if name == self._name:
                return self._record not in rest
            case _:
                return self._record not in children(node)


def _tables(node: Expr) -> Iterator[Expr]:
    """Yield the operand from which a node gathers rows, if it does."""
    match node:
        case Call(Op() as op, args, attrs=attrs):
            if op is embedding:
                yield args[1]
            elif (op is index and _is_rows(attrs.get("spec"))) or (
                op in (index_select, gather) and attrs.get("dim") == 0
            ):
                yield args[0]
        case _:
            return


def _is_rows(spec: object) -> bool:
    return isinstance(spec, tuple) and [part[0] for part in spec] == ["int"]
