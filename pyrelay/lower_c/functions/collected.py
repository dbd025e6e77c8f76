"""The C of `collect`: the tensors in the terms of lists, side by side in a new first dim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, final

from ...dataclass import dataclass
from ...ir.types import AdtType, TensorType, TupleType, Type
from .c_types import Shape, declared
from .rooms import RoomWriter
from .sizes import tensor_bytes


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
    """Tensors side by side: the list, the member, the type and bytes of a row, the name of the
    result and its type. `same` says whether they are those of `other`, and `beside` whether they
    lie side by side already, where C computes that."""

    terms: _Terms
    member: str
    row: TensorType
    bytes: str
    name: str
    result: TensorType
    other: str | None
    same: str | None
    beside: str | None


def collected(
    writer: RoomWriter,
    lists: Sequence[tuple[str, Type]],
    results: Sequence[Type],
    wish: str,
    *,
    sweeps: bool,
) -> list[str]:
    """Write what puts the fields of the terms of each list side by side; return the names of the
    results. Their first dim, the length of the list, is
    known from now on. A column of the same tensors as one before is that one, and one whose rows
    lie side by side stays where it is. If it `sweeps`, nothing else on the heap is needed."""
    columns = _columns(writer, lists, results, wish)
    if sweeps:
        _sweep(writer, columns)
    for column in columns:
        c_type = writer.c_type(column.result)
        make = f"{writer.room}(s, {tensor_bytes(column.result, writer.size)})"
        if column.beside is not None:
            first = f"({c_type})({column.terms.first})->{column.member}"
            make = f"{column.beside} ? {first} : {make}"
        if column.same is not None:
            make = f"{column.same} ? {column.other} : {make}"
        writer.line(f"{declared(c_type, column.name)} = {make};")
        _copy(writer, column)
    return [column.name for column in columns]


def _columns(
    writer: RoomWriter,
    lists: Sequence[tuple[str, Type]],
    results: Sequence[Type],
    wish: str,
) -> list[_Column]:
    """Write how long each list is, and how the rows of its columns lie."""
    left = iter(results)
    found: list[_Column] = []
    known: dict[tuple[str, str], _Column] = {}
    for first, ty in lists:
        assert isinstance(ty, AdtType)
        terms = _Terms(first, writer.fresh("count"), writer.program.types.shape(ty, "addend"))
        writer.line(f"int64_t {terms.count} = 0;")
        writer.line(f"{terms.walk(writer.fresh('term'))}) {terms.count}++;")
        for member, row in terms.fields():
            result = next(left)
            assert isinstance(result, TensorType)
            assert isinstance(row, TensorType)
            writer.name_size(result.shape[0], terms.count)
            size = tensor_bytes(row, writer.size)
            other = known.get((writer.c_type(row), size)) if row.shape else None
            column = _Column(
                terms,
                member,
                row,
                size,
                writer.fresh(wish),
                result,
                None if other is None else other.name,
                None if other is None else _same(writer, terms, member, other),
                _beside(writer, terms, member, size) if row.shape else None,
            )
            known.setdefault((writer.c_type(row), size), column)
            found.append(column)
    return found


def _same(writer: RoomWriter, terms: _Terms, member: str, other: _Column) -> str:
    """Write the comparison of the addresses in two columns; return the name of its result."""
    same, term, first = writer.fresh("same"), writer.fresh("term"), writer.fresh("term")
    rest, _ = other.terms.shape.fields[1]
    writer.line(f"bool {same} = {terms.count} == {other.terms.count};")
    writer.line(f"{other.terms.shape.struct} *{first} = {other.terms.first};")
    writer.line(f"{terms.walk(term)}) {{")
    writer.line(f"    if (!{same}) break;")
    writer.line(f"    {same} = {term}->{member} == {first}->{other.member};")
    writer.line(f"    {first} = {first}->{rest};")
    writer.line("}")
    return same


def _beside(writer: RoomWriter, terms: _Terms, member: str, size: str) -> str:
    """Write the test whether each row begins where the one before ends; return the name of its
    result."""
    beside, term, place = writer.fresh("beside"), writer.fresh("term"), writer.fresh("place")
    writer.line(f"bool {beside} = {terms.count} > 0;")
    writer.line(f"char *{place} = {beside} ? (char *)({terms.first})->{member} : 0;")
    writer.line(f"{terms.walk(term)}, {place} += {size}) {{")
    writer.line(f"    {beside} = {beside} && (char *){term}->{member} == {place};")
    writer.line("}")
    return beside


def _sweep(writer: RoomWriter, columns: Sequence[_Column]) -> None:
    """Write what lends the memory of the heap that no column needs."""
    tensors = [column for column in columns if column.row.shape]
    kept, is_sure = writer.fresh("kept"), writer.fresh("is_sure")
    writer.line(f"relay_kept {kept}[{max(1, len(tensors))}] = {{0}};")
    writer.line(f"bool {is_sure} = true;")
    for number, column in enumerate(tensors):
        term = writer.fresh("term")
        row = f"{term}->{column.member}, {column.bytes}"
        writer.line(f"{column.terms.walk(term)}) {{")
        writer.line(f"    {is_sure} &= relay_keep(s, &{kept}[{number}], {row});")
        writer.line("}")
    writer.line(f"if ({is_sure}) relay_sweep(s, {kept}, {len(tensors)});")


def _copy(writer: RoomWriter, column: _Column) -> None:
    """Write the copies of the rows of a column, unless it is one before, or lies there."""
    at, term = writer.fresh("row"), writer.fresh("term")
    value = f"{term}->{column.member}"
    copy = f"{column.name}[{at}] = {value};"
    if column.row.shape:
        copy = f"memcpy((char *){column.name} + {at} * {column.bytes}, {value}, {column.bytes});"
    writer.line(f"int64_t {at} = 0;")
    skips = [test for test in (column.same, column.beside) if test is not None]
    guard = f"if (!({' || '.join(skips)})) " if skips else ""
    writer.line(f"{guard}{column.terms.walk(term)}, {at}++) {{")
    writer.line(f"    {copy}")
    writer.line("}")


SWEEPING: Final = """
typedef struct { relay_chunk *block; char *begin, *end; } relay_kept;

static inline bool relay_is_in(relay_chunk *block, char *at) {
    char *begin = (char *)block + RELAY_LINE;
    return begin <= at && at < begin + block->size;
}

/* Keeps a row of a column; returns false if the column lies in several blocks of the heap. */
static bool relay_keep(relay_state *s, relay_kept *kept, void *row, int64_t bytes) {
    char *at = row;
    relay_chunk *block = s->heap;
    if (kept->block && relay_is_in(kept->block, at)) block = kept->block;
    while (block && !(block->is_block && relay_is_in(block, at))) block = block->next;
    if (!block) return true; /* it lies outside, where nothing is swept */
    if (kept->block && kept->block != block) return false;
    if (!kept->block) *kept = (relay_kept){block, at, at + bytes};
    if (at < kept->begin) kept->begin = at;
    if (at + bytes > kept->end) kept->end = at + bytes;
    return true;
}

/* Lends what lies in the blocks of the heap between the columns that are kept. */
static void relay_sweep(relay_state *s, const relay_kept *kept, int count) {
    for (relay_chunk *block = s->heap; block; block = block->next) {
        if (!block->is_block) continue;
        char *from = (char *)block + RELAY_LINE, *last = from + block->size;
        while (from < last) {
            char *to = last, *after = last;
            for (int i = 0; i < count; i++) {
                if (kept[i].block != block || kept[i].end <= from || kept[i].begin >= to) continue;
                to = kept[i].begin < from ? from : kept[i].begin;
                after = kept[i].end;
            }
            char *begin = (char *)(((uintptr_t)from + RELAY_LINE - 1) / RELAY_LINE * RELAY_LINE);
            if (to - begin >= RELAY_CHUNK) {
                relay_chunk *lent = (relay_chunk *)begin;
                size_t size = (size_t)(to - begin) / RELAY_LINE * RELAY_LINE - RELAY_LINE;
                *lent = (relay_chunk){.size = size, .is_lent = true};
                relay_lend(s, lent);
            }
            from = after;
        }
    }
}
"""
