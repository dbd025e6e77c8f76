"""Whether to compute a value again wherever it is used, or once, and store it.

Stored, a value costs a write and a read for each user; computed again, each user reads what it is
made of, and repeats its operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...ir.expr import Var, type_of
from ...ir.types import TupleType
from .access_analysis import Look
from .nodes import Item, Role, Uses, elements, size_in_bytes

MOST_REPEATED: Final = 8
"""A value that is computed wherever it is used takes at most this many calls, and reads."""
OPERATIONS_PER_BYTE: Final = 8
"""How many operations may be repeated to save moving one byte."""
FREE_OPERATIONS: Final = 1 << 24
"""How many operations take less time than the start of a kernel."""


def is_cheaper_again(
    item: Item, look: Look, uses: Mapping[Var, Uses], is_stored: Callable[[Var], bool]
) -> bool:
    """Return whether a value is better computed again wherever it is used, by the bytes that are
    moved and the operations that are repeated. `is_stored` tells of what it is made of whether
    that is in memory in any case."""
    used, ty = uses[item.var], type_of(item.var)
    if item.role is not Role.ELEMENT or used.outside or isinstance(ty, TupleType):
        return False
    if look.calls > MOST_REPEATED or look.reads > MOST_REPEATED:
        return False
    if look.reads <= 1 and not look.work:
        return True  # it only moves elements, as a view does
    if used.contracted and (look.functions or look.work > 2):
        return False
    size, count = size_in_bytes(ty), max(1, used.count)
    made_of = [leaf for leaf in look.own if not is_stored(leaf)]
    if any(uses[v].count == 1 and size <= size_in_bytes(type_of(v)) for v in made_of):
        return False  # in its place would be stored what it alone uses, which is no smaller
    most = size * look.reads
    read = sum(min(most, size_in_bytes(type_of(leaf))) for leaf in look.own)
    stored = sum(size_in_bytes(type_of(v)) for v in made_of)
    saved = (count + 1) * size - (count - 1) * read - stored
    spread = max(1, used.largest // max(1, elements(ty)))
    again = (count * spread - 1) * elements(ty) * look.work
    return saved >= 0 and again <= saved * OPERATIONS_PER_BYTE + FREE_OPERATIONS
