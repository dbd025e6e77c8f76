"""The text of the C functions that generated code uses.

Generated C calls functions by names such as `relay_exp_f32x16`: an operation, the element type of
its operands, and the number of lanes; without the last it is a function of one number. `preamble`
finds these names, and those of vector types such as `f32x16`, in a text and returns C that
defines them, after the functions they are made of in turn.

A function is defined once for many types, in C with placeholders:

    $F   its vector type        $I   signed integers of the same size and number
    $S   one element in C       $U   unsigned ones
    $M   its masks              $L   the number of lanes
    $exp           the function `exp` of the same elements and lanes
    ${exp.f64}     that of other elements, with the same lanes
    ${type.f64}    a vector of other elements, with the same lanes

Numbers with a decimal point are of the type of the elements. Words in capitals are constants that
have other digits for each type (`constants`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from .constants import CONSTANTS
from .elements import ELEMENTS, Element
from .targets import Target

_ELEMENTS: Final = "|".join(ELEMENTS)
_CALLED: Final = re.compile(rf"\brelay_([a-z0-9_]+?)_({_ELEMENTS})(?:x(\d+))?\b")
_VECTOR: Final = re.compile(rf"\b({_ELEMENTS}|mask)x(\d+)\b")
_PLACEHOLDER: Final = re.compile(r"\$(?:\{(\w+)\.(\w+)\}|(\w+))")
_CONSTANT: Final = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
_DECIMAL: Final = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|0x[0-9a-f.]+p[+-]?\d+)(?![\w.])")

HEADER: Final = """\
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <math.h>
#include <stdlib.h>

#define RELAY static inline __attribute__((always_inline, unused))
#define RELAY_ONCE static __attribute__((noinline, unused))

/* The lanes of two vectors that some places name, those of the second behind those of the first. */
#ifdef __clang__
#define MIXED(a, b, places, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIXED(a, b, places, ...) __builtin_shuffle(a, b, (places){__VA_ARGS__})
#endif
"""

_MOST_PLACES: Final = 32
"""A function of real numbers that a text calls at more places is compiled once and called: most of
the time of a compiler goes to what is written out in place."""


@final
@dataclass(frozen=True, slots=True)
class MathFunction:
    """A function at an element type and a number of lanes, for a target. `lanes` is 0 for a
    function of one number."""

    op: str
    element: Element
    lanes: int
    target: Target

    @property
    def symbol(self) -> str:
        """The name of the function in C."""
        shape = f"x{self.lanes}" if self.lanes else ""
        return f"relay_{self.op}_{self.element.name}{shape}"

    @property
    def bytes(self) -> int:
        """The size of the vectors."""
        return self.element.bytes * self.lanes

    @property
    def fits(self) -> bool:
        """Whether a vector fits in a register of the target."""
        return self.bytes <= self.target.register_bytes


Body: TypeAlias = str | Callable[[MathFunction], str]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A function for some element types: its text, or a function that writes it.

    `ulp` bounds the error of the results, in units in the last place; None where the function is
    exact or has no numbers as results.
    """

    op: str
    elements: tuple[str, ...]
    body: Body
    ulp: float | None = None


Table: TypeAlias = Mapping[tuple[str, str], Definition]


def table_of(*definitions: Definition) -> Table:
    """Return definitions by operation and element type; of two the later counts."""
    return {(d.op, e): d for d in definitions for e in d.elements}


def mask_element(lanes: int, target: Target) -> str:
    """Return the element type of masks, and of vectors of places: the widest that fits."""
    return "i64" if lanes * 8 <= target.register_bytes else "i32"


def definitions_of(text: str, table: Table, target: Target) -> str:
    """Return the C that defines what a text uses of a table.

    Raises KeyError if there is no such function for these elements.
    """
    vectors: dict[tuple[str, int], None] = dict.fromkeys(_vectors(text))
    functions: dict[MathFunction, str] = {}
    places = Counter(_called(text, target))
    pending = [(i, False) for i in reversed(places)]
    while pending:
        instance, is_ready = pending.pop()
        if instance in functions:
            continue
        written = _written(instance, table)
        if places[instance] > _MOST_PLACES and table[instance.op, instance.element.name].ulp:
            written = written.replace("RELAY ", "RELAY_ONCE ", 1)
        vectors |= dict.fromkeys(_vectors(written))
        needed = [i for i in _called(written, target) if i != instance and i not in functions]
        if is_ready or not needed:
            functions[instance] = written
            continue
        pending.append((instance, True))
        pending += [(i, False) for i in reversed(needed)]
    types = dict.fromkeys(_typedef(name, lanes, target) for name, lanes in vectors)
    return "\n".join((HEADER, *types, "", *functions.values()))


def _called(text: str, target: Target) -> Iterator[MathFunction]:
    for op, element, lanes in _CALLED.findall(text):
        yield MathFunction(op, ELEMENTS[element], int(lanes or 0), target)


def _vectors(text: str) -> Iterator[tuple[str, int]]:
    for name, lanes in _VECTOR.findall(_CALLED.sub("", text)):
        yield name, int(lanes)


def _typedef(name: str, lanes: int, target: Target) -> str:
    element = ELEMENTS[mask_element(lanes, target) if name == "mask" else name]
    size = element.bytes * lanes
    return f"typedef {element.c} {name}x{lanes} __attribute__((vector_size({size}), may_alias));"


def _written(instance: MathFunction, table: Table) -> str:
    """Return the text of a function."""
    definition = table.get((instance.op, instance.element.name))
    if definition is None:
        raise KeyError(f"there is no C function {instance.symbol}")
    body = definition.body if isinstance(definition.body, str) else definition.body(instance)
    if not instance.lanes:
        return _of_numbers(instance, body)
    lines = body.strip("\n").split("\n")
    head = 1 if lines[0].startswith("/*") else 0
    while head and not lines[head - 1].endswith("*/"):
        head += 1
    lines[head] = f"RELAY {lines[head]}"
    return _filled("\n".join(lines), instance) + "\n"


def _of_numbers(instance: MathFunction, body: str) -> str:
    """Return a function of numbers: that of vectors, on vectors of one number."""
    element, vector = instance.element, f"{instance.element.name}x{16 // instance.element.bytes}"
    head = next(line for line in body.splitlines() if f"${instance.op}(" in line)
    names = re.findall(r"\$F (\w+)", head)
    given = ", ".join(f"{n} - ({vector}){{}}" for n in names)
    parameters = ", ".join(f"{element.c} {n}" for n in names)
    call = f"relay_{instance.op}_{vector}({given})[0]"
    return f"RELAY {element.c} {instance.symbol}({parameters}) {{\n    return {call};\n}}\n"


def _filled(body: str, instance: MathFunction) -> str:
    """Return the text of a definition with its placeholders filled in."""
    element, lanes = instance.element, instance.lanes
    bits, shape = element.bytes * 8, f"x{lanes}"
    words = {
        "F": f"{element.name}{shape}",
        "I": f"i{bits}{shape}",
        "U": f"u{bits}{shape}",
        "M": f"mask{shape}",
        "S": element.c,
        "L": str(lanes),
    }

    def word(found: re.Match[str]) -> str:
        op, other, plain = found.groups()
        if plain is not None:
            return words.get(plain, f"relay_{plain}_{element.name}{shape}")
        return f"{other}{shape}" if op == "type" else f"relay_{op}_{other}{shape}"

    constants = CONSTANTS.get(element.name, {})
    text = _CONSTANT.sub(lambda found: constants.get(found[0], found[0]), body)
    text = _PLACEHOLDER.sub(word, text)
    return _DECIMAL.sub(r"\1f", text) if element.name == "f32" else text
