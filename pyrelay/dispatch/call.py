"""One call of an operator, boxed: of one form for all operators, as fallbacks get it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, final

from ..dataclass import dataclass
from ..diagnostics.catalogue.dispatch import NothingToRedispatch
from ..diagnostics.diagnostic import CheckError
from ..diagnostics.source import Span
from ..ir.op import Op
from ..ir.types import Type, show
from .keys import Key


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OperatorCall:
    """A call of an operator, while an implementation of it runs.

    `operands` are the values, in the order of the operator's signature, None for one that is left
    out; `attributes` has all static arguments by name, shapes as ints and dtypes as torch's.
    `device` is torch's device of the call, and `keys` are those that it was dispatched by, in the
    order in which they were asked. `result_type` is the type that the result must have, `span` the
    place in the user's program.
    """

    operator: Op
    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]
    device: Any
    keys: tuple[Key, ...]
    result_type: Type
    span: Span
    next: Callable[[tuple[Any, ...]], Any]

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.operator.name

    def redispatch(self, *operands: Any) -> Any:
        """Return the result of the next implementation, after all of them of the operator itself:
        at these operands, or, without any, at those of the call. Raises TypeError for another
        number."""
        wanted = len(self.operands)
        if operands and len(operands) != wanted:
            raise TypeError(f"`{self.name}` has {wanted} operands, not {len(operands)}")
        return self.next(operands or self.operands)

    def __repr__(self) -> str:
        return f"<call of {self.name} giving {show(self.result_type)}>"


RUNNING: Final[ContextVar[OperatorCall | None]] = ContextVar("pyrelay_call", default=None)


def redispatch(*operands: Any) -> Any:
    """Return the result of the next implementation, in the implementation that runs here: at these
    operands, or, without any, at those that it got. Raises CheckError where none runs."""
    call = RUNNING.get()
    if call is None:
        raise CheckError(NothingToRedispatch())
    return call.redispatch(*operands)
