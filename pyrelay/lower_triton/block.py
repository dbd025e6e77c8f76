"""Code under one indentation: which term is computed where, and under which name.

A loop is a block inside another. A term is computed in the outermost block that has all the axes
it moves along, once, and has a line of its own if it is used twice, is loaded, or has a name in the
program. Each line that begins the work of a line of the user's shows that line before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from ..kernels.plans.supplier import Store
from ..kernels.plans.terms import Access, Term
from .emit import KernelText
from .expressions import Writer, type_text
from .indexing import Axis
from .text import Text, behind, call

_LONGEST: Final = 60
"""A part of an expression that is longer gets a line of its own."""

_KEPT: Final = "in "
"""Begins what stands beside the axes of a term for the block in which it is kept."""


@final
class Block:
    """Code under one indentation, for blocks of elements along some axes."""

    def __init__(
        self,
        kernel: KernelText,
        axes: Sequence[Axis],
        shape: Sequence[str],
        outer: Block | None = None,
        loop: str | None = None,
    ) -> None:
        """`shape` are the sizes of the blocks, as text. In a loop, `loop` is the coordinate that
        moves in it, and `outer` the code around it."""
        self.kernel: Final = kernel
        self.lines: Final[list[str]] = []
        self.shape: Final = tuple(shape)
        self.axes: Final = tuple(axes)
        self._axes: Final = {a.coordinate: a for a in axes}
        self._moving: Final = frozenset(a.coordinate for a in axes if not a.is_one)
        self.outer: Final = outer
        self.loop: Final = loop
        self.texts: Final[dict[Term, Text]] = {}
        self.moving: Final[dict[Term, frozenset[str]]] = {} if outer is None else outer.moving

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(text)

    def put(self, term: Term, text: Text) -> None:
        """Say how a term is written here, such as the result of a loop."""
        self.texts[term] = text

    def axes_of(self, term: Term) -> frozenset[str]:
        """Return the coordinates of axes that a term moves along."""
        return frozenset(name for name in self._bound_to(term) if not name.startswith(_KEPT))

    def keep(self, term: Term) -> None:
        """Have a term computed in this block, and all that is computed from it."""
        self.moving[term] = frozenset((f"{_KEPT}{self.loop}",))

    def _bound_to(self, term: Term) -> frozenset[str]:
        """Return the axes that a term moves along, and the blocks in which it is kept."""
        pending = [term]
        while pending:
            current = pending[-1]
            before = self.kernel.terms.before(current)
            missing = [t for t in before if t not in self.moving]
            if current in self.moving or not missing:
                pending.pop()
                own = {n for d in self.kernel.terms.dims(current) for n in d.names()}
                inner = frozenset[str]().union(*(self.moving[t] for t in before))
                if current.op != "result":
                    self.moving.setdefault(current, inner | (own & self._moving))
                continue
            pending += missing
        return self.moving[term]

    def set_axes(self, term: Term, axes: Iterable[str]) -> None:
        """Say which axes the result of a loop moves along."""
        self.moving[term] = frozenset(axes)

    def text(self, term: Term) -> Text:
        """Return the text of a term, computing before it what it needs."""
        pending = [term]
        while pending:
            current = pending[-1]
            home = self._home(current)
            if home.known(current) is not None:
                pending.pop()
                continue
            missing = [
                t for t in self.kernel.terms.before(current) if self._home(t).known(t) is None
            ]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            home.compute(current)
        found = self._home(term).known(term)
        assert found is not None
        return found

    def _home(self, term: Term) -> Block:
        """Return the outermost block that a term can be computed in."""
        block = self
        bound = self._bound_to(term)
        while block.outer is not None and not bound & {block.loop, f"{_KEPT}{block.loop}"}:
            block = block.outer
        return block

    def known(self, term: Term) -> Text | None:
        """Return how a term is written here, if it has been computed."""
        block: Block | None = self
        while block is not None:
            if term in block.texts:
                return block.texts[term]
            block = block.outer
        return None

    def compute(self, term: Term) -> None:
        """Compute a term here; what it needs has been."""
        text = Writer(self).expression(term)
        named = self.kernel.terms.named(term)
        if term.op == "const":
            self.texts[term] = text
            return
        is_place = self.kernel.terms.is_place(term)
        is_alone = term.op in ("load", "value") or is_place or len(text.text) > _LONGEST
        if named is not None and (comment := self.kernel.comment(named[1])):
            self.line(comment)
        if named is None and not is_alone and self.kernel.uses[term] < 2:
            self.texts[term] = text
            return
        name = self.kernel.fresh(self._wish(term) if named is None else named[0])
        self.line(f"{name} = {text}")
        self.texts[term] = Text(name)

    def _wish(self, term: Term) -> str:
        match term.detail:
            case Access(operand=int() as operand):
                return self.kernel.operand_name(operand)
            case Access(operand=str() as pointer):
                return pointer.removesuffix("_ptr")
            case int() as operand if term.op == "value":
                return self.kernel.operand_name(operand)
            case _ if self.kernel.terms.is_place(term):
                return "place"
            case _:
                return f"{term.op}_" if term.op.isidentifier() else "value"

    def store(self, store: Store, also: str | None = None) -> None:
        """Write a store, done if `also` holds, which is one bool."""
        pointer = self.kernel.argument(store.target, store.name)
        value = store.term
        text = self.text(value)
        if value.op == "const":
            assert value.dtype is not None
            text = call("tl.full", "[]", text, type_text(value.dtype))
        address = behind(pointer, self.kernel.dims.whole(store.at, self.coordinate))
        mask = " & ".join(self.inside(store.at.names()))
        if also is not None:  # as in `expressions.Writer.mask`
            mask = f"tl.where({also}, {mask}, False)" if mask else also
        masks = [f"mask={mask}"] if mask else []
        self.line(str(call("tl.store", address, text, *masks)))

    def add(self, store: Store) -> None:
        """Write an addition to what is stored at a place, whoever else adds to it."""
        pointer = self.kernel.argument(store.target, store.name)
        for name in self.kernel.terms.found(store.at):
            self.text(self.kernel.terms.coordinates[name][0])
        text, writer = self.text(store.term), Writer(self)
        axes = [a.coordinate for a in self.axes if not a.is_one]
        mask = writer.mask(axes, store.at)
        if mask is not None and not self.axes_of(store.term):
            text = call("tl.where", mask, text, "0")  # so that it is a block like the mask
        address = writer.address(pointer, store.at, mask)
        masks = [] if mask is None else [f"mask={mask}"]
        self.line(str(call("tl.atomic_add", address, text, *masks, 'sem="relaxed"')))

    def coordinate(self, name: str) -> Text | None:
        """Return the text of a coordinate; None for what is none."""
        if name in self._axes:
            return Text(self._axes[name].text)
        bound = self.kernel.terms.coordinates.get(name)
        return None if bound is None else self._home(bound[0]).known(bound[0])

    def is_axis(self, name: str) -> bool:
        """Return whether a name in a dim is the coordinate of an axis."""
        return name in self._moving

    def inside(self, axes: Iterable[str]) -> list[str]:
        """Return what must hold for elements along axes to exist, where blocks may reach beyond."""
        found = (a.inside for c, a in self._axes.items() if c in axes)
        return [text for text in found if text is not None]
