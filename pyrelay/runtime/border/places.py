"""Places of values that are checked and converted: the parameters of an entry, and parts of their
values."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias, final

from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.expr import Function
from ...ir.types import Type, open_shapes
from ...translate.program.signature import Signature
from ...translate.types.number_places import Numbers

Trail: TypeAlias = "tuple[Trail | Parameter, str | int]"
"""How a part is reached: from where, and by the name of a field or the index of an element."""

_SHOWN: Final = 8
"""How many steps of a long path are shown at its start, and at its end."""


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an entry: its name, checked type and the place of its annotation."""

    name: str
    type: Type
    span: Span
    numbers: Numbers = None
    """Where in the argument numbers are Python's own, as the content of a reference then is."""
    is_hidden: bool = False
    """Whether it is a part of a model that no argument names."""
    is_model: bool = False
    """Whether it is a model, or a list of models: cells that are the program's own."""
    declared: Type | None = None
    """The type as it is declared, where it takes tensors of any rank."""

    @property
    def annotation(self) -> Parameter:
        """The parameter whose annotation has the type: this one."""
        return self


@final
class Part:
    """A part of an argument; its name is only made when it is shown."""

    __slots__ = ("numbers", "parameter", "trail", "type")

    declared: Final = None

    def __init__(
        self, parameter: Parameter, trail: Trail | Parameter, ty: Type, numbers: Numbers = None
    ) -> None:
        self.parameter: Final = parameter
        self.trail: Final = trail
        self.type: Final = ty
        self.numbers: Final = numbers

    @property
    def name(self) -> str:
        """How the part is reached from the parameter, such as `tree.left.value`."""
        steps: list[str] = []
        current: Trail | Parameter = self.trail
        while not isinstance(current, Parameter):
            current, label = current
            steps.append(f"[{label}]" if isinstance(label, int) else f".{label}")
        steps.append(current.name)
        steps.reverse()
        if len(steps) > 2 * _SHOWN:
            steps[_SHOWN:-_SHOWN] = [f" ...({len(steps) - 2 * _SHOWN} more)... "]
        return "".join(steps)

    @property
    def span(self) -> Span:
        """The place of the annotation of the parameter."""
        return self.parameter.span

    @property
    def is_hidden(self) -> bool:
        """Whether it is a part of a model that no argument names."""
        return self.parameter.is_hidden

    @property
    def annotation(self) -> Parameter | None:
        """The parameter whose annotation has the type of the part; None for that of a field."""
        current: Trail | Parameter = self.trail
        while not isinstance(current, Parameter):
            current, label = current
            if isinstance(label, str):
                return None
        return current


Place: TypeAlias = Parameter | Part
"""A parameter, or a part of its value."""


def parameters_of(function: Function, signature: Signature) -> tuple[Parameter, ...]:
    """Return the parameters of the entry of a program; the last of them are those of a
    signature."""
    hidden = len(function.params) - len(signature.values)
    found: list[Parameter] = []
    for var in function.params[:hidden]:
        assert var.ty is not None
        found.append(Parameter(var.name, var.ty, var.span, is_hidden=True))
    for var, each in zip(function.params[hidden:], signature.values, strict=True):
        assert var.ty is not None
        declared = each.ty if open_shapes(each.ty) else None
        is_model = each.model is not None
        made = Parameter(var.name, var.ty, var.span, each.numbers, is_model=is_model)
        found.append(replace(made, declared=declared))
    return tuple(found)
