"""The two languages that a text may be in: our own form, and Relay's, version 0.0.5.

The header of a text selects one: `#[version = "0.0.5"]` is Relay's, `#[pyrelay = "1"]` or none our
own. They share one grammar up to their words; what else differs is a field of `Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, final

from ..dataclass import dataclass
from ..ir.types import (
    DTYPES,
    TEXT_DTYPES,
    DType,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from .lexis import SUFFIXES, VERSION


@final
@dataclass(frozen=True, slots=True)
class Dialect:
    """The vocabulary of a language.

    Attributes:
        header: The name and version in its header line.
        words: The file with its part of the grammar.
        suffixes: The dtypes of numbers, by suffix.
        dtypes: The dtypes by name.
        weak_numbers: Whether a number without suffix takes the dtype it meets; else an integer is
            int32 (int64 where it does not fit) and a fraction needs a suffix.
        escapes: Whether a backslash in a string begins an escape.
        bare_constructors: Whether a constructor without fields is a value by its name alone.
        recursive_lets: Whether a function bound by `let` may call itself.
        flat_constructors: Whether the names of constructors are unique in a module.
    """

    header: tuple[str, str]
    words: str
    suffixes: Mapping[str, DType]
    dtypes: Mapping[str, DType]
    weak_numbers: bool
    escapes: bool
    bare_constructors: bool
    recursive_lets: bool
    flat_constructors: bool


OWN: Final = Dialect(
    header=("pyrelay", VERSION),
    words="words.lark",
    suffixes=SUFFIXES,
    dtypes=TEXT_DTYPES,
    weak_numbers=True,
    escapes=True,
    bare_constructors=False,
    recursive_lets=False,
    flat_constructors=False,
)

RELAY: Final = Dialect(
    header=("version", "0.0.5"),
    words="relay.lark",
    suffixes={
        "f": float32,
        "f16": float16,
        "f32": float32,
        "f64": float64,
        "i": int32,
        "i8": int8,
        "i16": int16,
        "i32": int32,
        "i64": int64,
        "u8": uint8,
    },
    dtypes={**TEXT_DTYPES, "float": float32, "int": int32, "uint1": DTYPES["bool"]},
    weak_numbers=False,
    escapes=False,
    bare_constructors=True,
    recursive_lets=True,
    flat_constructors=True,
)

_HEADER: Final = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*#\[\s*version\b", re.DOTALL)


def dialect_of(text: str) -> Dialect:
    """Return the dialect that the header of a text selects."""
    return RELAY if _HEADER.match(text) else OWN
