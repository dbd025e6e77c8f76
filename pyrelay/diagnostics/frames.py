"""The frames of a traceback that are a user's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from traceback import FrameSummary

OURS: Final = str(Path(__file__).parents[1])
"""Where the files of the package are."""
_LIBRARY: Final = str(Path(os.__file__).parent)


def of_users(frames: Sequence[FrameSummary]) -> list[FrameSummary]:
    """Return the frames that are not the package's, nor the library's that it called."""
    found: list[FrameSummary] = []
    inside = False
    for frame in frames:
        ours = frame.filename.startswith((OURS, "<frozen"))
        inside = ours or (inside and frame.filename.startswith((_LIBRARY, "<string>")))
        if not inside:
            found.append(frame)
    return found
