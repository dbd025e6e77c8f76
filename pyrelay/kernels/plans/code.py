"""The code of one kernel in the making, in any language: names, and where each term is computed.

A loop is a block inside another. A term is computed in the outermost block that has all the axes
it moves along, once, and has a line of its own if it is used twice, is loaded, or has a name in the
program. Each line that begins the work of a line of the user's shows that line before. A backend
derives from `CodeBlock` what writes the expression of a term.
"""

from __future__ import annotations

import keyword
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePath
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...diagnostics.source import BUILTIN, Span
from ...ir.expr import Function, Var
from ...ir.traverse import dependencies_first
from ..calling import Argument
from ..reading import results_of
from .terms import Access, Term, Terms
from .text import Text

_LONGEST: Final = 60
"""A part of an expression that is longer gets a line of its own."""

_KEPT: Final = "in "
"""Begins what stands beside the axes of a term for the block in which it is kept."""

_NAMED: Final = 2
"""So many of its results give a kernel its name."""


class KernelCode:
    """The names in the code of one kernel: its arguments, and the values that it computes."""

    comment_sign: ClassVar[str] = "#"
    """How a comment begins in the language of the code."""

    def __init__(
        self, function: Function, terms: Terms, reserved: Collection[str], suffix: str = ""
    ) -> None:
        """`reserved` are the names of functions that the code may call, `suffix` distinguishes
        the kernels of one group."""
        self.terms: Final = terms
        self._reserved: Final = reserved
        self.name: Final = kernel_name(function, reserved, suffix)
        self.operands: Final = tuple(p.name for p in function.params)
        self.arguments: Final[dict[Argument, str]] = {}
        self._taken: Final[set[str]] = {self.name}
        self._shown: tuple[str, int] | None = None
        self.uses: Final[Counter[Term]] = Counter()

    def argument(self, argument: Argument, wish: str) -> str:
        """Return the name of an argument of the function, a new one if need be."""
        if argument not in self.arguments:
            self.arguments[argument] = self.fresh(wish)
        return self.arguments[argument]

    def operand_name(self, position: int) -> str:
        """Return the name that a parameter of the kernel function has in the program."""
        return self.operands[position]

    def take(self, *names: str) -> None:
        """Keep names that the kernel's own code uses from values."""
        self._taken.update(names)

    def fresh(self, wish: str) -> str:
        """Return a name that nothing has, like the one wished for."""
        base = _ascii(wish).strip("_") or "value"
        base = f"_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
        name, number = base, 1
        while name in self._taken or name in self._reserved:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def count(self, roots: Iterable[Term]) -> None:
        """Count how often each term is used, by what the roots need and by the roots."""
        pending = list(roots)
        self.uses.update(pending)
        seen: set[Term] = set()
        while pending:
            term = pending.pop()
            if term in seen:
                continue
            seen.add(term)
            before = self.terms.before(term)
            self.uses.update(before)
            pending += before

    def comment(self, span: Span) -> str | None:
        """Return the line of the user's that a span lies on, if it is not the one shown last."""
        place = (span.file.name, span.line)
        if span.file is BUILTIN or place == self._shown:
            return None
        self._shown = place
        why = f"  ({span.because})" if span.because else ""
        where = f"{PurePath(span.file.name).name}:{span.line}"
        return f"{self.comment_sign} {where}  {span.file.line(span.line).strip()}{why}"


def kernel_name(function: Function, reserved: Collection[str], suffix: str = "") -> str:
    """Return the name of a kernel in profilers: its function's own name, or those of its
    results."""
    given = [r.name for r in results_of(function.body) if isinstance(r, Var)]
    name = _ascii(function.name or "_".join(["kernel", *given[:_NAMED]])) + suffix
    return f"{name}_kernel" if name in reserved else name


def _ascii(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII)


@final
@dataclass(frozen=True, slots=True)
class Axis:
    """A direction of blocks: the name of its coordinate, how that is written where the blocks are
    used, such as `m[:, None]`, and what holds where it is inside, if blocks may reach beyond. With
    `is_one` there is one place of it in a program, as a number."""

    coordinate: str
    text: str
    inside: str | None
    is_one: bool = False


class CodeBlock(ABC):
    """Code under one indentation, for blocks of elements along some axes."""

    def __init__(
        self,
        kernel: KernelCode,
        axes: Sequence[Axis],
        outer: CodeBlock | None = None,
        loop: str | None = None,
    ) -> None:
        """In a loop, `loop` is the coordinate that moves in it, and `outer` the code around it."""
        self._code: Final = kernel
        self.lines: Final[list[str]] = []
        self.axes: Final = tuple(axes)
        self._axes: Final = {a.coordinate: a for a in axes}
        self._moving: Final = frozenset(a.coordinate for a in axes if not a.is_one)
        self.outer: Final = outer
        self.loop: Final = loop
        self.texts: Final[dict[Term, Text]] = {}
        self.moving: Final[dict[Term, frozenset[str]]] = {} if outer is None else outer.moving

    @abstractmethod
    def expression(self, term: Term) -> Text:
        """Return the text of a term; what it needs has been computed."""

    @abstractmethod
    def assigned(self, name: str, text: Text, term: Term) -> str:
        """Return the line that names the value of a term."""

    def reference(self, name: str) -> Text:
        """Return how a value is written that a line here has named."""
        return Text(name)

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(text)

    def put(self, term: Term, text: Text) -> None:
        """Set the text of a term here, such as the result of a loop."""
        self.texts[term] = text

    def axes_of(self, term: Term) -> frozenset[str]:
        """Return the coordinates of axes that a term moves along."""
        return frozenset(name for name in self._bound_to(term) if not name.startswith(_KEPT))

    def keep(self, term: Term) -> None:
        """Have a term computed in this block, and all that is computed from it."""
        self.moving[term] = frozenset((f"{_KEPT}{self.loop}",))

    def _bound_to(self, term: Term) -> frozenset[str]:
        """Return the axes that a term moves along, and the blocks in which it is kept."""
        terms = self._code.terms
        for current in dependencies_first(term, terms.before, self.moving.__contains__):
            assert current.op != "result"  # `set_axes` comes first
            own = {n for d in terms.dims(current) for n in d.names()}
            inner = frozenset[str]().union(*(self.moving[t] for t in terms.before(current)))
            self.moving[current] = inner | (own & self._moving)
        return self.moving[term]

    def set_axes(self, term: Term, axes: Iterable[str]) -> None:
        """Set the axes that the result of a loop moves along."""
        self.moving[term] = frozenset(axes)

    def text(self, term: Term) -> Text:
        """Return the text of a term, computing before it what it needs."""
        for current in dependencies_first(term, self._code.terms.before, self._is_known):
            self._home(current).compute(current)
        found = self._home(term).known(term)
        assert found is not None
        return found

    def _is_known(self, term: Term) -> bool:
        return self._home(term).known(term) is not None

    def _home(self, term: Term) -> CodeBlock:
        """Return the outermost block that a term can be computed in."""
        block: CodeBlock = self
        bound = self._bound_to(term)
        while block.outer is not None and not bound & {block.loop, f"{_KEPT}{block.loop}"}:
            block = block.outer
        return block

    def known(self, term: Term) -> Text | None:
        """Return how a term is written here, if it has been computed."""
        block: CodeBlock | None = self
        while block is not None:
            if term in block.texts:
                return block.texts[term]
            block = block.outer
        return None

    def compute(self, term: Term) -> None:
        """Compute a term here; what it needs has been."""
        text = self.expression(term)
        named = self._code.terms.named(term)
        if term.op == "const":
            self.texts[term] = text
            return
        is_place = self._code.terms.is_place(term)
        is_alone = term.op in ("load", "value") or is_place or len(text.text) > _LONGEST
        if named is not None and (comment := self._code.comment(named[1])):
            self.line(comment)
        if named is None and not is_alone and self._code.uses[term] < 2:
            self.texts[term] = text
            return
        name = self._code.fresh(self._wish(term) if named is None else named[0])
        self.line(self.assigned(name, text, term))
        self.texts[term] = self.reference(name)

    def _wish(self, term: Term) -> str:
        match term.detail:
            case Access(operand=int() as operand):
                return self._code.operand_name(operand)
            case Access(operand=str() as pointer):
                return pointer.removesuffix("_ptr")
            case int() as operand if term.op == "value":
                return self._code.operand_name(operand)
            case _ if self._code.terms.is_place(term):
                return "place"
            case _:
                return f"{term.op}_" if term.op.isidentifier() else "value"

    def coordinate(self, name: str) -> Text | None:
        """Return the text of a coordinate; None for what is none."""
        if name in self._axes:
            return Text(self._axes[name].text)
        bound = self._code.terms.coordinates.get(name)
        return None if bound is None else self._home(bound[0]).known(bound[0])

    def is_axis(self, name: str) -> bool:
        """Return whether a name in a dim is the coordinate of an axis."""
        return name in self._moving

    def inside(self, axes: Iterable[str]) -> list[str]:
        """Return the condition under which elements along axes exist, where blocks may reach
        beyond."""
        found = (a.inside for c, a in self._axes.items() if c in axes)
        return [text for text in found if text is not None]
