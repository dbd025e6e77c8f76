"""The C of `collect`: the tensors in the terms of lists, side by side in a new first dim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, final

from ...ir.dims import Dim
from ...ir.types import AdtType, TensorType, TupleType, Type
from .c_types import CTypes, Shape, declared
from .kernel_calls import tensor_bytes


class Lines(Protocol):
    """Where lines and names of a C function are made."""

    def line(self, text: str) -> None:
        """Add a line."""
        ...

    def fresh(self, wish: str) -> str:
        """Return a name that nothing has."""
        ...

    def size(self, dim: Dim) -> str:
        """Return the expression of a size."""
        ...

    def name_size(self, dim: Dim, text: str) -> None:
        """Let a size be known by an expression."""
        ...


@final
@dataclass(frozen=True, slots=True)
class _Terms:
    """A list in C: its first term, its length, and the struct of a term with its fields."""

    first: str
    count: str
    shape: Shape

    def walk(self, term: str) -> str:
        """Return the head of a loop over the terms, but for its last bracket."""
        rest, _ = self.shape.fields[1]
        struct = self.shape.struct
        return (
            f"for ({struct} *{term} = {self.first}; {term}->tag == {self.shape.tag}; "
            f"{term} = {term}->{rest}"
        )

    def fields(self) -> Iterator[tuple[str, Type]]:
        """Yield the member of each tensor in a term, and its type."""
        member, ty = self.shape.fields[0]
        if not isinstance(ty, TupleType):
            yield member, ty
            return
        for index, field in enumerate(ty.fields):
            if isinstance(field, TensorType):
                yield f"{member}.f{index}", field


@final
@dataclass(frozen=True, slots=True)
class _Column:
    """Tensors side by side: the list, the member, and the name of the result."""

    terms: _Terms
    member: str
    name: str


def collected(
    lines: Lines,
    types: CTypes,
    room: str,
    lists: Sequence[tuple[str, Type]],
    results: Sequence[Type],
    wish: str,
) -> list[str]:
    """Write what puts the fields of the terms of each list side by side; return the names of the
    results, for which the function `room` makes room. Their first dim, the length of the list, is
    known from now on. A column of the same tensors as one before is that one."""
    left = iter(results)
    names: list[str] = []
    known: dict[tuple[str, str], _Column] = {}
    for first, ty in lists:
        assert isinstance(ty, AdtType)
        terms = _Terms(first, lines.fresh("count"), types.shape(ty, "addend"))
        lines.line(f"int64_t {terms.count} = 0;")
        lines.line(f"{terms.walk(lines.fresh('term'))}) {terms.count}++;")
        for member, field in terms.fields():
            result = next(left)
            assert isinstance(result, TensorType)
            assert isinstance(field, TensorType)
            lines.name_size(result.shape[0], terms.count)
            column = _Column(terms, member, lines.fresh(wish))
            names.append(column.name)
            kind = (types.name(field), tensor_bytes(field, lines.size))
            same = _same(lines, column, known[kind]) if field.shape and kind in known else None
            known.setdefault(kind, column)
            make = f"{room}(s, {tensor_bytes(result, lines.size)})"
            if same is not None:
                make = f"{same} ? {known[kind].name} : {make}"
            lines.line(f"{declared(types.name(result), column.name)} = {make};")
            _copy(lines, column, field, kind[1], same)
    return names


def _same(lines: Lines, column: _Column, other: _Column) -> str:
    """Write the comparison of the addresses in two columns; return the name of its result."""
    same, term, first = lines.fresh("same"), lines.fresh("term"), lines.fresh("term")
    rest, _ = other.terms.shape.fields[1]
    lines.line(f"bool {same} = {column.terms.count} == {other.terms.count};")
    lines.line(f"{other.terms.shape.struct} *{first} = {other.terms.first};")
    lines.line(f"{column.terms.walk(term)}) {{")
    lines.line(f"    if (!{same}) break;")
    lines.line(f"    {same} = {term}->{column.member} == {first}->{other.member};")
    lines.line(f"    {first} = {first}->{rest};")
    lines.line("}")
    return same


def _copy(lines: Lines, column: _Column, row: TensorType, size: str, same: str | None) -> None:
    """Write the copies of the rows of a column, unless it is one before."""
    at, term = lines.fresh("row"), lines.fresh("term")
    value = f"{term}->{column.member}"
    copy = f"{column.name}[{at}] = {value};"
    if row.shape:
        copy = f"memcpy((char *){column.name} + {at} * {size}, {value}, {size});"
    lines.line(f"int64_t {at} = 0;")
    guard = "" if same is None else f"if (!{same}) "
    lines.line(f"{guard}{column.terms.walk(term)}, {at}++) {{")
    lines.line(f"    {copy}")
    lines.line("}")
