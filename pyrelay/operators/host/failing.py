"""Operators that stop a program: assertions, `raise`, and the missing element."""

from __future__ import annotations

from typing import Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import Effect, Host, NoGradient, Op, RuleCall, Sample, attribute, operand
from ...ir.rules import with_rank
from ...ir.types import UNIT, UNKNOWN, Type, bool_, show
from ..shared.failures import EmptyList


def _check_type(call: RuleCall) -> Type:
    condition = with_rank(call, 0, 0)
    if call.known_dtype(condition.dtype) != bool_:
        call.clash(f"a condition is a Bool, not {show(condition)}", 0)
    return UNIT


def _check(condition: Any, message: str) -> tuple[()]:
    if not condition:
        raise AssertionFailed(message)
    return ()


check: Final = Op(
    name="check",
    doc="Stops the program with a message unless the condition holds; `assert`.",
    params=(operand("condition"), attribute("message", "the assertion does not hold", kinds.text)),
    type_rule=_check_type,
    effect=Effect.FAIL,
    lowering=Host(_check),
    grad=NoGradient("gives nothing"),
    samples=lambda: (Sample((True,)),),
)


class DepthExceeded(RuntimeError):  # noqa: N818  it is no mistake of the compiler
    """More calls wait for each other than may; `function` is the one that would wait next."""

    def __init__(self, function: str, limit: int) -> None:
        super().__init__(f"{limit} calls wait for each other")
        self.function: Final = function
        self.limit: Final = limit


class AssertionFailed(AssertionError):  # noqa: N818  it is no mistake of the compiler
    """Raised by `check`: an assertion of the program does not hold."""


class ProgramFailed(RuntimeError):  # noqa: N818  it is no mistake of the compiler
    """Raised by `fail`: the program stopped itself."""


def _fail(message: str) -> Any:
    raise ProgramFailed(message)


fail: Final = Op(
    name="fail",
    doc="Stops the program with a message; `raise`. It may stand for a value of any type.",
    params=(attribute("message", convert=kinds.text),),
    type_rule=lambda call: UNKNOWN,
    effect=Effect.FAIL,
    lowering=Host(_fail),
    grad=NoGradient("gives nothing"),
    samples=lambda: (Sample((), {"message": "no way on"}),),
)


def _no_element(index: Any, length: Any) -> Any:
    count = int(length)
    if count == 0:
        raise EmptyList("the list is empty")
    raise IndexError(f"index {int(index)} of a list of length {count}")


no_element: Final = Op(
    name="no_element",
    doc="Stops the program: a list has no element at an index. It may stand for any value.",
    params=(operand("index"), operand("length")),
    type_rule=lambda call: UNKNOWN,
    effect=Effect.FAIL,
    lowering=Host(_no_element),
    grad=NoGradient("gives nothing"),
    samples=lambda: (Sample((3, 2)), Sample((0, 0))),
)


class StructuresDiffer(RuntimeError):  # noqa: N818  becomes a diagnostic where one is needed
    """The elements of a batch have data of different structure where one is needed."""


def _no_structure() -> Any:
    raise StructuresDiffer("the elements of a batch have data of different structure")


no_structure: Final = Op(
    name="no_structure",
    doc="Stops the program: the elements of a batch have data of different structure. It may stand "
    "for any value.",
    params=(),
    type_rule=lambda call: UNKNOWN,
    effect=Effect.FAIL,
    lowering=Host(_no_structure),
    grad=NoGradient("gives nothing"),
    samples=lambda: (Sample(()),),
)
