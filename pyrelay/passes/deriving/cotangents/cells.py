"""Cells under differentiation: which of them a gradient flows through, and their shadows.

A cell is *active* if something varied is put into it and a useful value is read from it. Cells are
distinguished by the types of their contents, sizes aside. While a backward function runs, an active
cell has a shadow, a cell that holds the cotangent of its content: the reverse of a read adds to it;
the reverse of a write takes its content, for the value that was written, and leaves zero, since the
earlier content does not matter. The cell itself is left alone. Each run has shadows of its own, so
the content of a cell before the function was called is a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ....ir.dims import ZERO
from ....ir.expr import Expr, GlobalVar, RefCreate, RefRead, RefWrite, type_of
from ....ir.module import AdtDef, ConstructorDef
from ....ir.traverse import post_order
from ....ir.types import INT, AdtType, RefType, SizeType, Type, TypeVar, map_type
from ....operators.host.shadow import shadow
from ..bodies import Body, FunctionBody, Step, callee_name

if TYPE_CHECKING:
    from ....diagnostics.source import Span
    from ....operators.builder import Builder, Value
    from ..leaves import Leaves
    from ..store import Store

Cells: TypeAlias = frozenset[Type]
"""The types of references, with all sizes erased."""
NO_CELLS: Final[Cells] = frozenset()


@final
class CellUse:
    """Which cells the functions of the store work on."""

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._of: Final[dict[str, Cells]] = {}
        self._touching: Final[dict[tuple[str, Cells], frozenset[Step]]] = {}
        self._plain: Final[dict[int, tuple[Type, Type]]] = {}

    def of(self, name: str) -> Cells:
        """Return the cells that a function, or one that it calls, makes, reads or writes."""
        if name not in self._of:
            self._find(name)
        return self._of[name]

    def touched(self, expr: Expr) -> Type | None:
        """Return the cells that an expression itself works on."""
        match expr:
            case RefCreate():
                return self._without_sizes(type_of(expr))
            case RefRead(ref) | RefWrite(ref):
                return self._without_sizes(type_of(ref))
            case _:
                return None

    def touching(self, source: FunctionBody, cells: Cells) -> frozenset[Step]:
        """Return the steps of a function that work on some of `cells`, in their branches too."""
        if not cells or cells.isdisjoint(self.of(source.name)):
            return frozenset()
        key = (source.name, cells)
        if key not in self._touching:
            self._touching[key] = frozenset(self._steps(source.body, cells))
        return self._touching[key]

    def _steps(self, body: Body, cells: Cells) -> Iterator[Step]:
        around: list[tuple[Step | None, Step]] = []
        pending: list[tuple[Step | None, Body]] = [(None, body)]
        while pending:
            owner, body = pending.pop()
            for step in body.steps:
                around.append((owner, step))
                pending += ((step, arm.body) for arm in step.arms)
        found: set[Step] = set()
        for owner, step in reversed(around):
            if step not in found and self._works_on(step.value, cells):
                found.add(step)
            if step in found and owner is not None:
                found.add(owner)
        yield from found

    def _works_on(self, expr: Expr, cells: Cells) -> bool:
        callee = callee_name(expr)
        if callee is not None:
            return not cells.isdisjoint(self.of(callee))
        return self.touched(expr) in cells

    def _find(self, root: str) -> None:
        graph = self._store.graph(root)
        for group in graph.groups:
            inside = (self._own(n) | self._known(graph.callees[n]) for n in group)
            cells = NO_CELLS.union(*inside)
            self._of.update(dict.fromkeys(group, cells))

    def _known(self, names: tuple[str, ...]) -> Cells:
        return NO_CELLS.union(*(self._of.get(n, NO_CELLS) for n in names))

    def _own(self, name: str) -> Cells:
        nodes = post_order(self._store.functions[name])
        found = (self.touched(n) for n in nodes if not isinstance(n, GlobalVar))
        return frozenset(ty for ty in found if ty is not None)

    def _without_sizes(self, ty: Type) -> Type:
        # A cell's type object is met again and again, and may be as large as a model.
        known = self._plain.get(id(ty))
        if known is None or known[0] is not ty:
            known = self._plain[id(ty)] = (ty, without_sizes(ty))
        return known[1]


def without_sizes(ty: Type) -> Type:
    """Return a type with all sizes erased. References may alias if their erased types are equal."""
    return map_type(ty, lambda t: INT if isinstance(t, SizeType) else None, lambda _: ZERO)


@final
class Shadows:
    """Makes the code that works on shadows.

    A shadow holds the cotangent that a data type with the one constructor `Cell(content)` has, so
    that a zero costs nothing.
    """

    def __init__(self, store: Store, leaves: Leaves) -> None:
        self._store: Final = store
        self._leaves: Final = leaves
        self._box: AdtDef | None = None

    def boxed(self, content: Type, span: Span) -> tuple[AdtType, str]:
        """Return the data type that stands for cells with a content, and its constructor."""
        if self._box is None:
            name = self._store.data_name("Cell")
            item = TypeVar("T")
            constructor = ConstructorDef(self._store.data_name("Cell"), (item,))
            self._box = AdtDef(name, (item,), (constructor,), span)
            self._store.adts[name] = self._box
        return AdtType(self._box.name, (content,)), self._box.constructors[0].name

    def of(self, builder: Builder, run: Expr, cell: Expr) -> tuple[Value, AdtType]:
        """Return the shadow of a cell in a run, and the type of its content."""
        ty = type_of(cell)
        assert isinstance(ty, RefType)
        box, _ = self.boxed(ty.value, builder.span)
        (held,) = self._leaves.of(box)
        assert isinstance(held, AdtType)
        zero = builder.construct(held.name, self._leaves.data(held).zero, (), held)
        return builder.call(shadow, (builder.value(run), builder.value(cell), zero)), held

    def forget(self) -> None:
        """Drop the data type that stands for cells, which no code mentions."""
        if self._box is not None:
            del self._store.adts[self._box.name]
