"""Passes and the context they run in.

A pass maps a module to a module. What else it depends on is in its own fields, its options, and in
the `Context`; so it returns equal modules for equal modules, options and contexts.

Calls of *opaque* operators stay as they are written. An operator with an implementation from
outside may return other values than its own body, in the last bits at least. Passes that put
something else in the place of a call, or its value, leave such calls alone, so that all executors
run the same implementations. A pure call that nothing uses, or that was made before, still goes: an
implementation has the effects that its operator declares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, final

from ..dataclass import dataclass
from ..ir.module import Module
from ..ir.op import Op
from ..ir.verify import Stage

Opaque: TypeAlias = Callable[[Op], bool]
"""Whether calls of an operator stay as they are."""

Evaluate: TypeAlias = Callable[[Module, str], Any]
"""Returns the value of a function without parameters: a number, or a torch tensor."""


def nothing_opaque(_: Op) -> bool:
    """Return False: calls of every operator may be replaced."""
    return False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The facts besides the module that passes depend on.

    `entry` is the function that is run. Calls of operators that are `opaque` may be dispatched to
    an implementation from outside; operators that are `overridden` have an implementation that is
    for them alone. `evaluate` folds constants; without it operators on constants stay.
    """

    entry: str
    opaque: Opaque = nothing_opaque
    overridden: Opaque = nothing_opaque
    evaluate: Evaluate | None = None


class Pass(ABC):
    """A transformation of modules: a frozen dataclass whose fields are its options.

    Two passes of one class with equal options are equal. The first line of the docstring describes
    the pass on the command line and in the documentation.
    """

    name: ClassVar[str]
    """The name on the command line, in dumps and in logs."""
    needs: ClassVar[Stage]
    """The stage that a module must have reached."""
    gives: ClassVar[Stage | None] = None
    """The stage of the module after the pass; None if the pass preserves the stage."""
    is_idempotent: ClassVar[bool] = False
    """Whether a second run on the module that a first run returned changes nothing."""

    @abstractmethod
    def run(self, module: Module, context: Context, /) -> Module:
        """Return the transformed module; the module itself if nothing changes."""

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring, without its full stop."""
        return (cls.__doc__ or "").partition("\n")[0].rstrip(".")
