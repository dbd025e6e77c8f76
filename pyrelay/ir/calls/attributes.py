"""Static arguments of operator calls, brought into the one form that passes see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from ...diagnostics.misspelt import nearest
from ..dims import Dim
from ..op import Missing, Op, Param
from ..types import DType


@final
class WrongAttribute(TypeError):  # noqa: N818  becomes a diagnostic at the call
    """An attribute that an operator does not have, that a call lacks, or that has a wrong value."""

    def __init__(
        self, name: str, message: str, near: str | None = None, *, is_unknown: bool = False
    ) -> None:
        super().__init__(message)
        self.name: Final = name
        self.near: Final = near
        self.is_unknown: Final = is_unknown


def bind_attrs(op: Op, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return all attributes of a call, in the order of the signature, defaults filled in and each
    in its normal form. Raises WrongAttribute."""
    check_names(op, attrs, op.attributes)
    return {p.name: bind_attr(op, p, attrs) for p in op.attributes}


def check_names(op: Op, attrs: Mapping[str, Any], params: Sequence[Param]) -> None:
    """Check that a call has attributes that are among `params` and all that the operator needs.
    Raises WrongAttribute."""
    known = [p.name for p in params]
    for name in attrs:
        if name not in known:
            message = f"`{op.name}` has no attribute `{name}`"
            raise WrongAttribute(name, message, nearest(name, known), is_unknown=True)
    for param in op.attributes:
        if param.default is Missing.REQUIRED and param.name not in attrs:
            message = f"`{op.name}` needs its attribute `{param.name}`"
            raise WrongAttribute(param.name, message)


def bind_attr(op: Op, param: Param, attrs: Mapping[str, Any]) -> Any:
    """Return one attribute of a call in its normal form. Raises WrongAttribute."""
    value = attrs.get(param.name, param.default)
    if value is Missing.MODE:
        return False
    try:
        return value if param.convert is None else param.convert(value)
    except (TypeError, ValueError) as error:
        what = f"`{param.name}` of `{op.name}` cannot be {attribute_text(value)}"
        raise WrongAttribute(param.name, f"{what}: {error}") from None


def attribute_text(value: Any) -> str:
    """Return the value of an attribute as a message shows it."""
    match value:
        case tuple():
            inside = ", ".join(map(attribute_text, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case Dim() | DType():
            return str(value)
        case None | bool() | int() | float() | str():
            return repr(value)
        case _:
            return "this"


def same(left: object, right: object) -> bool:
    """Return whether two attributes are equal and of one type, which `1 == True == 1.0` is not."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    return type(left) is type(right) and left == right
