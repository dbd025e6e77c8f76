"""Strings, which live on the host: formatting, joining, comparing, printing, failing with one."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, Final, final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.nested import map_nested
from ...ir.op import (
    Clash,
    Effect,
    Host,
    NoGradient,
    Op,
    RuleCall,
    Sample,
    ShapeBehaviour,
    Stuck,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.types import (
    BOOL,
    INT,
    STR,
    UNIT,
    UNKNOWN,
    DType,
    DTypeKind,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    show,
)
from ..primitive.arithmetic import add
from ..primitive.compare import equal, not_equal
from .failing import AssertionFailed, ProgramFailed
from .sizes import dim_size

_TEXT: Final = NoGradient("a string")


def plain(value: Any) -> Any:
    """Return a value as Python shows it: a tensor of rank 0 as a number."""
    return map_nested(value, _plain)


def _plain(value: Any) -> Any:
    return value.item() if getattr(value, "shape", None) == () else value


@final
class _StandIn:
    """A stand-in for a tensor in formatting: it has no format of its own."""


def showable(call: RuleCall) -> Type:
    """Return the type of the operand that is shown as text. Raises Clash where it has no text."""
    ty = call.solver.resolve(call.types[0])
    pending = [ty]
    while pending:
        part = call.solver.resolve(pending.pop())
        match part:
            case TupleType(fields):
                pending += fields
            case TypeHole() if not (call.solver.settling and call.solver.guessing):
                raise Stuck(part)
            case TypeHole() | TensorType() | SizeType() | StrType():
                pass
            case _:
                raise Clash(
                    f"{show(part)} has no text",
                    help="show numbers, tensors, strings, and tuples of these",
                )
    return ty


def _example(ty: Type) -> Any:
    """Return some value that formats as those of a type do."""
    match ty:
        case StrType():
            return ""
        case TupleType(fields):
            return tuple(_example(f) for f in fields)
        case TensorType((), dtype):
            kind = dtype.kind if isinstance(dtype, DType) else dtype.weak
            return {DTypeKind.BOOL: True, DTypeKind.FLOAT: 1.0}.get(kind or DTypeKind.INT, 1)
        case SizeType():
            return 1
        case _:
            return _StandIn()


def _format_type(call: RuleCall) -> Type:
    ty = showable(call)
    places = _places(call, call.attrs["template"])
    wanted = len(places) + sum(len(_places(call, spec or "")) for _, _, spec, _ in places)
    if isinstance(ty, TupleType) and len(ty.fields) != wanted:
        call.clash(f"`format` has a template for {wanted} values, not {len(ty.fields)}", 0)
    is_nested = any("{" in (spec or "") for _, _, spec, _ in places)
    if isinstance(ty, TupleType) and not is_nested:
        for part, (_, _, spec, conversion) in zip(ty.fields, places, strict=True):
            _check_format(call.solver.resolve(part), spec or "", conversion)
    return STR


def _places(call: RuleCall, template: str) -> list[tuple[str, str | None, str | None, str | None]]:
    """Return the places of a template for values, which stand in order. Raises Clash."""
    try:
        found = [p for p in string.Formatter().parse(template) if p[1] is not None]
    except ValueError as error:
        call.clash(f"`format` cannot read its template {template!r}: {error}")
    if any(name for _, name, _, _ in found):
        call.clash("`format` fills the places `{}` of its template in order")
    return found


def _check_format(ty: Type, spec: str, conversion: str | None) -> None:
    """Demand that values of a type have a format. Raises Clash."""
    mark = f"!{conversion}" if conversion else ""
    try:
        f"{{{mark}:{spec}}}".format(_example(ty))
    except (TypeError, ValueError):
        is_number = isinstance(ty, TensorType) and ty.rank == 0
        way = "leave the format out, or make one number of it first"
        if is_number and spec.endswith("d"):
            way = f"make it an integer, `int(x)`, or write `{spec[:-1]}.0f`"
        raise Clash(f"{show(ty)} has no format `{spec}`", help=way) from None


def _format(values: Sequence[Any], template: str) -> str:
    return template.format(*(plain(v) for v in values))


format_: Final = Op(
    name="format",
    doc="Values in the places that a template has for them, as Python's `str.format`.",
    params=(operand("values"), attribute("template", convert=kinds.text)),
    type_rule=_format_type,
    effect=Effect.FAIL,
    shape=ShapeBehaviour.VARIADIC,
    lowering=Host(_format),
    grad=_TEXT,
    samples=lambda: (
        Sample(((TensorSpec(()), 3),), {"template": "{:.3f} of {}"}),
        Sample(((TensorSpec((2,)),),), {"template": "{}"}),
        Sample(((),), {"template": "{{}}"}),
    ),
)


def _print_type(call: RuleCall) -> Type:
    showable(call)
    return UNIT


def _print(values: Sequence[Any], sep: str, end: str, flush: bool) -> tuple[()]:
    # As one text: what an encoding cannot write must not end a program in the middle of a line.
    text = sep.join(str(plain(v)) for v in values) + end
    try:
        print(text, end="", flush=flush)  # noqa: T201
    except UnicodeEncodeError as error:
        shown = text.encode(error.encoding, "backslashreplace").decode(error.encoding)
        print(shown, end="", flush=flush)  # noqa: T201
    return ()


print_: Final = Op(
    name="print",
    doc="Writes values to standard output, as Python's print.",
    params=(
        operand("values"),
        attribute("sep", " ", kinds.text),
        attribute("end", "\n", kinds.text),
        attribute("flush", False, kinds.flag),
    ),
    type_rule=_print_type,
    effect=Effect.IO,
    shape=ShapeBehaviour.VARIADIC,
    lowering=Host(_print),
    grad=NoGradient("gives nothing"),
    samples=lambda: (Sample(((TensorSpec((2,)), 3),)), Sample(((),), {"sep": ", ", "end": ""})),
)


def _both_text(call: RuleCall) -> None:
    """Demand two strings. Raises Clash."""
    for index in range(2):
        ty = call.solver.resolve(call.types[index])
        if not isinstance(ty, TypeHole | StrType):
            verb = "joins" if call.op is concat else "compares"
            call.clash(
                f"this {verb} a string and {show(ty)}",
                0,
                1,
                help="make it a string first: `str(x)`",
            )
        call.solver.unify(ty, STR)


def _concat_type(call: RuleCall) -> Type:
    _both_text(call)
    return STR


def _same_type(call: RuleCall) -> Type:
    _both_text(call)
    return BOOL


concat: Final = Op(
    name="concat_text",
    doc="Two strings joined.",
    params=(operand("left"), operand("right")),
    type_rule=_concat_type,
    lowering=Host(lambda left, right: left + right),
    grad=_TEXT,
    samples=lambda: (Sample(("a", "b")), Sample(("", ""))),
)


same_text: Final = Op(
    name="same_text",
    doc="Whether two strings are equal.",
    params=(operand("left"), operand("right")),
    type_rule=_same_type,
    lowering=Host(lambda left, right: left == right),
    grad=_TEXT,
    samples=lambda: (Sample(("a", "b")), Sample(("a", "a"))),
)


other_text: Final = Op(
    name="other_text",
    doc="Whether two strings differ.",
    params=(operand("left"), operand("right")),
    type_rule=_same_type,
    lowering=Host(lambda left, right: left != right),
    grad=_TEXT,
    samples=lambda: (Sample(("a", "b")), Sample(("a", "a"))),
)


def _length_type(call: RuleCall) -> Type:
    call.solver.unify(call.types[0], STR)
    return INT


contains_text: Final = Op(
    name="contains_text",
    doc="Whether a string is a part of another.",
    params=(operand("part"), operand("text")),
    type_rule=_same_type,
    lowering=Host(lambda part, text: part in text),
    grad=_TEXT,
    samples=lambda: (Sample(("a", "abc")), Sample(("c", "ab"))),
)

text_length: Final = Op(
    name="text_length",
    doc="The number of characters of a string.",
    params=(operand("text"),),
    type_rule=_length_type,
    lowering=Host(lambda text: len(text)),
    grad=_TEXT,
    samples=lambda: (Sample(("",)), Sample(("four",))),
)


ON_TEXT: Final = {add: concat, equal: same_text, not_equal: other_text, dim_size: text_length}
"""The meanings of operators of numbers and tensors on strings."""


def _stop_type(call: RuleCall) -> Type:
    call.solver.unify(call.types[0], STR)
    return UNKNOWN


def _stop(message: str, assertion: bool) -> Any:
    raise AssertionFailed(message) if assertion else ProgramFailed(message)


stop: Final = Op(
    name="stop",
    doc="Stops the program with a message that it has made, as `fail` does with a fixed one.",
    params=(operand("message"), attribute("assertion", False, kinds.flag)),
    type_rule=_stop_type,
    effect=Effect.FAIL,
    lowering=Host(_stop),
    grad=NoGradient("gives nothing"),
    samples=lambda: (Sample(("no way on",)),),
)
