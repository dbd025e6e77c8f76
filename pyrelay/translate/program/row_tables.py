"""Tables: parameters of a model in which it, and the functions it calls, only look rows up.

Their gradient is zero in the rows that a batch does not look up. Optimisers step by rows there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.expr import Call, Expr, Function, GlobalVar, LetBlock, TupleGet, Var
from ...ir.op import Op
from ...ir.traverse import children, post_order
from ...operators.composite.model import param as param_op
from ...operators.primitive.embedding import embedding
from ...operators.primitive.gathering import gather, index_select, take
from ...operators.primitive.index import index

Path: TypeAlias = tuple[int, ...]
"""A part of an argument: the place of the parameter, and those of the fields within it."""

FunctionOf: TypeAlias = Callable[[str], Function | None]
"""Returns a function of the program by its name, if it is translated."""


def row_tables(name: str, count: int, function_of: FunctionOf) -> frozenset[int]:
    """Return the places of the tables among the `count` parameters of a model, the function
    `name`."""
    uses: dict[str, _Uses | None] = {}

    def uses_in(function: str) -> _Uses | None:
        if function not in uses:
            made = function_of(function)
            uses[function] = None if made is None else _uses(made)
        return uses[function]

    return frozenset(i for i in range(count) if _is_table(name, (0, i), uses_in))


def _is_table(name: str, path: Path, uses_in: Callable[[str], _Uses | None]) -> bool:
    """Return whether rows of a part of a function's argument are looked up, and nothing else is
    done with it."""
    pending, seen, is_read = [(name, path)], {(name, path)}, False
    while pending:
        function, part = pending.pop()
        uses = uses_in(function)
        prefixes = [part[:n] for n in range(1, len(part) + 1)]
        if uses is None or not uses.other.isdisjoint(prefixes):
            return False
        if not uses.read.isdisjoint(prefixes[:-1]):
            return False
        is_read |= part in uses.read
        for prefix in prefixes:
            for callee, place in uses.passed.get(prefix, ()):
                state = callee, (place, *part[len(prefix) :])
                if state not in seen:
                    seen.add(state)
                    pending.append(state)
    return is_read


@final
@dataclass(frozen=True, slots=True)
class _Uses:
    """The parts of a function's arguments of which it reads rows, those that it passes to functions
    of the program, by the callee's parameters, and those that it uses otherwise."""

    read: set[Path] = field(default_factory=set[Path])
    passed: dict[Path, list[tuple[str, int]]] = field(
        default_factory=dict[Path, list[tuple[str, int]]]
    )
    other: set[Path] = field(default_factory=set[Path])


def _uses(function: Function) -> _Uses:
    """Return the uses that a function makes of its arguments."""
    nodes = list(post_order(function.body))
    parts = _Parts(function, reversed(nodes))
    uses = _Uses()
    for node in nodes:
        match node:
            case Call(GlobalVar(name), args):
                for place, arg in enumerate(args):
                    path = parts.path(arg)
                    if path is not None:
                        uses.passed.setdefault(path, []).append((name, place))
            case _:
                tables = {id(e) for e in _tables(node)}
                for child in children(node):
                    path = parts.path(child)
                    if path is not None and not parts.passes_on(node, child):
                        (uses.read if id(child) in tables else uses.other).add(path)
    result = parts.path(function.body)
    uses.other.update(() if result is None else (result,))
    return uses


@final
class _Parts:
    """The expressions of a function that are a part of an argument."""

    def __init__(self, function: Function, nodes: Iterable[Expr]) -> None:
        """`nodes` are all of the body, with those around them first."""
        self._held: Final[dict[Expr, Path]] = {v: (i,) for i, v in enumerate(function.params)}
        for block in nodes:
            for binding in block.bindings if isinstance(block, LetBlock) else ():
                path = self.path(binding.value)
                if path is not None:
                    self._held[binding.var] = path

    def path(self, value: Expr) -> Path | None:
        """Return which part a value is; None if it is none."""
        fields: list[int] = []
        while True:
            match value:
                case TupleGet(inside, place):
                    fields.append(place)
                    value = inside
                case Call(callee, (table, *_)) if callee is param_op:
                    value = table
                case Var() if value in self._held:
                    return (*self._held[value], *reversed(fields))
                case _:
                    return None

    def passes_on(self, node: Expr, child: Expr) -> bool:
        """Return whether a node around a part is or binds a part, which is no use."""
        if isinstance(node, LetBlock):
            return child is not node.body
        is_given = isinstance(node, Call) and node.callee is param_op and child is node.args[0]
        return is_given or isinstance(node, TupleGet)


def _tables(node: Expr) -> Iterator[Expr]:
    """Yield the operand from which a node gathers rows, or elements of rows, if it does."""
    match node:
        case Call(Op() as op, args, attrs=attrs):
            if op is embedding:
                yield args[1]
            elif (
                op is take
                or (op is index and _is_rows(attrs.get("spec")))
                or (op in (index_select, gather) and attrs.get("dim") == 0)
            ):
                yield args[0]
        case _:
            return


def _is_rows(spec: object) -> bool:
    if not isinstance(spec, tuple) or not spec:
        return False
    return spec[0][0] == "int" and all(part[0] in ("int", "slice") for part in spec)
