"""`show FILE:NAME --stage STAGE`: one function's program as a stage of the compiler leaves it."""

from __future__ import annotations

import sys

from .load import function


def show(target: str, stage: str) -> int:
    """Print the program of `FILE:NAME` at a stage."""
    sys.stdout.write(function(target).show(stage).rstrip("\n") + "\n")
    return 0
