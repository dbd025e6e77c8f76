"""Values as expressions: what `relay.specialise` fixes, as code of the program."""

from __future__ import annotations

from typing import Any, Final, final

import torch

from ...diagnostics.catalogue.specialise import NotFixed
from ...diagnostics.diagnostic import CheckError
from ...ir.dims import Dim
from ...ir.expr import Call, Constant, Constructor, Expr, TensorData, Tuple, Var
from ...ir.module import Module
from ...ir.own_sizes import has_own_sizes
from ...ir.traverse import Steps, run
from ...ir.types import (
    AdtType,
    SizeType,
    StrType,
    TensorType,
    TupleType,
    Type,
    known_dtype,
    substitution,
)
from ...passes.simplify.constants import MAX_BYTES
from ..border.places import Parameter
from ..values.representation import UserData, representation


@final
class Fixed:
    """The fixed arguments of one function: `bindings` makes their data, each value once, and
    `tensors` are those that stay arguments, by the parameter that they become."""

    def __init__(self, module: Module, data: UserData, function: str) -> None:
        self.bindings: Final[list[tuple[Var, Expr]]] = []
        self.tensors: Final[dict[Var, torch.Tensor]] = {}
        self._module: Final = module
        self._data: Final = data
        self._function: Final = function
        self._known: Final[dict[tuple[int, Type], tuple[Any, Expr]]] = {}

    def expression(self, value: Any, parameter: Parameter) -> Expr:
        """Return the host value of a parameter as an atom. Raises CheckError for a value that no
        expression has, such as a Python function."""
        return run(self._expression(value, parameter.type, parameter))

    def _expression(self, value: Any, ty: Type, parameter: Parameter) -> Steps[Expr]:
        key = id(value), ty
        if key in self._known:
            return self._known[key][1]
        match ty:
            case TensorType() | SizeType() | StrType():
                found = self._leaf(value, ty, parameter)
            case TupleType(fields):
                parts: list[Expr] = []
                for part, part_type in zip(value, fields, strict=True):
                    parts.append((yield self._expression(part, part_type, parameter)))
                found = self._bound(Tuple(tuple(parts), span=parameter.span), "fields")
            case AdtType():
                found = yield self._data_value(value, ty, parameter)
            case _:
                why = "holds a value that is no number, string, tensor, tuple or data"
                raise CheckError(NotFixed(parameter.span, self._function, parameter.name, why))
        self._known[key] = value, found  # the value stays, and so does its identity
        return found

    def _data_value(self, value: Any, ty: AdtType, parameter: Parameter) -> Steps[Expr]:
        adt = self._module.adts[ty.name]
        look = representation(self._data.representations, ty.name)
        if has_own_sizes(ty):
            (inside,) = adt.constructors[0].fields
            return (yield self._expression(value, inside, parameter))
        constructor = adt.constructors[look.tag(value)]
        change = substitution(adt.type_params, ty.args)
        parts: list[Expr] = []
        for part, part_type in zip(look.fields(value), constructor.fields, strict=True):
            parts.append((yield self._expression(part, change(part_type), parameter)))
        callee = Constructor(adt.name, constructor.name, span=parameter.span)
        made = Call(callee, tuple(parts), span=parameter.span)
        return self._bound(made, constructor.name.lower())

    def _bound(self, node: Expr, hint: str) -> Expr:
        var = Var(hint, span=node.span)
        self.bindings.append((var, node))
        return var

    def _leaf(self, value: Any, ty: Type, parameter: Parameter) -> Expr:
        span = parameter.span
        if isinstance(value, str):
            return Constant(value, ty, span=span)
        if isinstance(ty, SizeType):
            return Constant(int(value), span=span)
        if not isinstance(value, torch.Tensor):
            return Constant(value, ty, span=span)
        if value.requires_grad or value.numel() * value.element_size() > MAX_BYTES:
            return self._argument(value, ty, parameter)
        if not value.shape:
            return Constant(value.item(), ty, span=span)
        dtype = known_dtype(ty)
        flat = value.detach().contiguous().cpu().view(torch.uint8)
        data = TensorData(dtype, tuple(value.shape), bytes(flat.flatten().tolist()))
        return Constant(data, _concrete(value, ty), span=span)

    def _argument(self, value: torch.Tensor, ty: Type, parameter: Parameter) -> Expr:
        """Return the parameter for a tensor that is passed at each call."""
        var = Var(parameter.name, _concrete(value, ty), span=parameter.span)
        self.tensors[var] = value
        return var


def _concrete(value: torch.Tensor, ty: Type) -> TensorType:
    return TensorType(tuple(Dim.of(n) for n in value.shape), known_dtype(ty))
