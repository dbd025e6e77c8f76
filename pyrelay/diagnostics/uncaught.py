"""How a mistake ends a script: the user's own calls that led to it, and its rendering.

Python prints the frames of everything on the way, and those of a compiler say nothing about a
mistake in the program that it compiles. IPython asks the error itself (`_render_traceback_`).
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .diagnostic import RelayError
from .frames import OURS, of_users

if TYPE_CHECKING:
    from traceback import TracebackException
    from types import TracebackType

_INSIDE: Final = tuple(
    str(Path(OURS, part))
    for part in (
        "analysis",
        "infer",
        "ir",
        "kernels",
        "lower_torch",
        "lower_triton",
        "operators",
        "passes",
        "text",
    )
)
"""Where exceptions of Python's own are mistakes of the package, not of the user."""


def hide_own_frames() -> None:
    """Print uncaught mistakes without the package's own frames; all other exceptions as before.

    A mistake is an error of this package, a file that it cannot read or write, or an exception of
    Python's own about the arguments of a call.

    `traceback.print_exception(error)` still shows every frame.
    """
    before = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        is_file = isinstance(error, OSError) and _is_inside(at)
        if isinstance(error, RelayError) or is_file or _is_reported(error, at):
            _print(error, at)
        else:
            before(kind, error, at)

    sys.excepthook = shown


def _is_inside(at: TracebackType | None) -> bool:
    """Return whether an exception went through the package."""
    while at is not None:
        if at.tb_frame.f_code.co_filename.startswith(OURS):
            return True
        at = at.tb_next
    return False


def _is_reported(error: BaseException, at: TracebackType | None) -> bool:
    """Return whether the package itself raises an exception of Python's, to say in a sentence what
    is wrong with a call. What goes wrong in the package is shown whole."""
    if not isinstance(error, AttributeError | LookupError | TypeError | ValueError) or at is None:
        return False
    while at.tb_next is not None:
        at = at.tb_next
    file = at.tb_frame.f_code.co_filename
    is_inside = file.startswith(_INSIDE) and not file.endswith("builders.py")
    if not file.startswith(OURS) or is_inside or " " not in str(error):
        return False
    return linecache.getline(file, at.tb_lineno).lstrip().startswith("raise ")


def _print(error: BaseException, at: TracebackType | None) -> None:
    from traceback import TracebackException  # only what fails needs it

    whole = TracebackException(type(error), error, at)
    each: TracebackException | None = whole
    while each is not None:
        each.stack[:] = of_users(each.stack)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    sys.stderr.write("".join(whole.format()))
