"""The prelude's data types that annotations have a notation for."""

from __future__ import annotations

from typing import Final

from ..diagnostics.source import NOWHERE
from ..ir.module import AdtDef, ConstructorDef
from ..ir.types import TypeVar

_A: Final = TypeVar("A")

SOME: Final = "Some"
NONE: Final = "None"
OPTION: Final = AdtDef(
    "prelude.Option", (_A,), (ConstructorDef(SOME, (_A,)), ConstructorDef(NONE, ())), NOWHERE
)
"""`T | None`."""
