"""A plugin for pytest: the program of every test is printed as Python and compiled again.

python -m pytest -p tests.python_again tests/models
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.expr import Call, type_of
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.types import dim_names
from pyrelay.ir.verify import Stage
from pyrelay.passes.manager import Ran
from pyrelay.runtime.compile.program import Program
from pyrelay.text.printer import to_text
from pyrelay.to_python.file import File
from pyrelay.to_python.sayable import sayable
from tests.python_text import assert_reads_back

_RAN = Program._ran

LONGEST = 60_000
"""The text of longer programs takes too long to compile twice in every test."""

_seen: set[str] = set()
_compiling: list[str] = []
"""What is being compiled again, whose programs are not printed once more."""
_folder = Path(tempfile.mkdtemp(prefix="printed"))


class _Given:
    """An operator under a name, as `@relay.operator` gives it."""

    def __init__(self, op: Op) -> None:
        self.__relay__ = op


def _check(typed: Module, entry: str) -> None:
    text = to_text(typed)
    if _compiling or not typed.functions or not _is_closed(typed):
        return
    if len(text) > LONGEST or text in _seen:
        return
    _seen.add(text)
    _compiling.append(entry)
    file = File(sayable(to_anf(typed)))
    names = file.functions
    given = {name: _Given(op) for op, name in file.given.items()}
    try:
        name = names[entry or next(iter(names))]
        printed = assert_reads_back(typed, name, _folder, given, equal=not _finds_sizes(typed))
    except CheckError as error:
        raise AssertionError(f"{text}\nis printed as Python that is refused:\n{error}") from error
    finally:
        _compiling.pop()
    assert printed


def _is_closed(typed: Module) -> bool:
    """Return whether functions quantify all sizes of their parameters; a damaged file's may not."""
    return all(
        dim_names(type_of(p)) <= {t.name for t in f.type_params}
        for f in typed.functions.values()
        for p in f.params
    )


def _finds_sizes(typed: Module) -> bool:
    """Return whether a type mentions a size that only the running program knows: inference may
    compare such a size with another at one of several places."""
    return any(
        not dim_names(type_of(e)) <= {t.name for t in f.type_params}
        for f in typed.functions.values()
        for e in post_order(f.body)
        if isinstance(e, Call)
    )


def _ran(self: Program, ran: Ran) -> None:
    _RAN(self, ran)
    if ran.step.gives is Stage.TYPED:
        _check(ran.after, self.entry)


Program._ran = _ran
