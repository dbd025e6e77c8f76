"""Checks that a module has the invariants of the stage it has reached.

The passes call nothing here; their manager does, after each of them, and tests do. What fails is a
mistake in the compiler, never in a user's program, so it is a `VerifyError`.
"""

from .conversions import verify_conversions as verify_conversions
from .scene import VerifyError as VerifyError
from .stages import INVARIANTS as INVARIANTS
from .stages import Stage as Stage
from .stages import includes as includes
from .stages import verify as verify
