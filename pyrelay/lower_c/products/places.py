"""The first of equal numbers, by a table of hashes (Knuth, The Art of Computer Programming 3, 6.4).

A number's search begins at its hash (multiplicative, by the golden ratio) and goes on to the next
slot. There are twice as many slots as numbers, so a search meets an empty one soon.
"""

from __future__ import annotations

from typing import Final

from ...ir.expr import Call, type_of
from ...ir.types import DType, TensorType, int64
from ...kernels.calling import Argument, Read, Scratch, Size, Written
from ..math import element_of

_BODY: Final = """\
    const uint64_t size = 2 * (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t hash = (uint64_t)numbers[i] * 0x9E3779B97F4A7C15u >> 32;
        uint64_t at = hash * size >> 32;
        while (slots[at] && numbers[slots[at] - 1] != numbers[i])
            at = at + 1 == size ? 0 : at + 1;
        if (!slots[at]) slots[at] = i + 1;
        first[i] = slots[at] - 1;
    }
"""


def places_text(name: str, call: Call) -> tuple[str, str, str, tuple[Argument, ...]]:
    """Return the name, the head, the text and the arguments of the function that a call of
    `first_places` is."""
    numbers = type_of(call.args[0])
    assert isinstance(numbers, TensorType)
    assert isinstance(numbers.dtype, DType)
    element, (count,) = element_of(numbers.dtype).c, numbers.shape
    parameters = (
        *("relay_run *run", f"const {element} *numbers", "int64_t *first"),
        *("int64_t *slots", "int64_t count"),
    )
    head = f"void {name}({', '.join(parameters)})"
    arguments = (
        *(Read(0, numbers.dtype), Written(0, int64, numbers.shape)),
        *(Scratch(0, int64, (2 * count,), starts_zero=True), Size(count)),
    )
    return name, head, f"KERNEL {head} {{\n{_BODY}}}\n", arguments
