"""The C text of regions, kept on disk: it takes longer to write than to read.

A text is kept under what it depends on: the region, which its identity determines, the layouts of
the operands of its kernels, and the processor, which is part of the identity. What is kept is data
(`text/json.py`); the library is built from it, or found, as that of a text that was just written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ...disk_cache import DiskCache
from ...ir.module import ModuleKey
from ...kernels.backend import KernelFunction
from ...kernels.calling import Layout, Number, Read, Scratch, Size, Stride, Written
from ...kernels.tape import Tape
from ...lazy import LazyModule
from ...text.json import kept_value, to_json
from ..kernel import Kept, Kernel, Route
from ..regions import Integer, Made, Offset, Piece, RegionText

if TYPE_CHECKING:
    from .. import math
    from ..text import region
else:
    math = LazyModule("pyrelay.lower_c.math")
    region = LazyModule("pyrelay.lower_c.text.region")

TEXTS: Final = DiskCache("regions", limit=128 << 20)
"""Texts of regions, by what they depend on."""

_TEXT: Final[ModuleKey[RegionText]] = ModuleKey(
    "text",
    (
        *(RegionText, Integer, Offset, Made, Piece, Kernel, Kept, Route),
        *(Number, Read, Scratch, Size, Stride, Written),
    ),
)


def text_of(
    tape: Tape,
    kernels: Mapping[str, KernelFunction],
    layouts: Mapping[int, Layout],
    identity: str | None,
) -> RegionText:
    """Return a region in C for the processor, for the layouts of the operands of its kernels;
    `identity` determines the region, if that is known."""
    key = None if identity is None else json.dumps([identity, repr(layouts)])
    found = None if key is None else _found(key)
    if found is not None:
        return found
    made = region.region_text(tape, kernels, layouts, math.host_target())
    if key is not None:
        TEXTS.keep(key, to_json(made, (_TEXT,)).encode())
    return made


def _found(key: str) -> RegionText | None:
    content = TEXTS.find(key)
    return None if content is None else kept_value(content.decode(), RegionText, (_TEXT,))
