"""Bringing host values back to the caller: fresh storage, and the form that was annotated.

Integers and bools that the program kept as Python numbers become 0-d tensors where the annotation
is `Int` or `Bool`; `int`, `float` and `bool` give Python numbers. A result that shares storage
with an argument is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import torch

from ...ir.types import (
    UNIT,
    AdtType,
    DType,
    FnType,
    RefType,
    SizeType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    int64,
)
from ...lower_torch.constants import torch_dtype
from ...operators.host.conversions import IntegerOverflow
from ...translate.types.number_places import Numbers, parts_of
from .reference import Reference
from .schema import Leaf, Schema, finished, transform
from .stream import Stream
from .structure import distinct_tensors, map_tensors


@final
@dataclass(frozen=True, slots=True)
class Owner:
    """What ran a call: its device, and the tensors (by identity) that belong to the program."""

    device: torch.device
    constants: frozenset[int]


Converter: TypeAlias = Callable[[Any, Sequence[Any], Owner], Any]
"""From a host value, the arguments of the call and what ran it to what the caller gets."""


Exports: TypeAlias = Mapping[str, Callable[[Any], Any]]
"""For each data type of exported models: what makes a callable of such a value."""


def converter(
    ty: Type,
    numbers: Numbers,
    exports: Exports,
    schema: Schema,
    *,
    joined: bool = False,
) -> Converter:
    """Return the conversion of results of a type; `numbers` says where they are Python's own. Of a
    call that is part of torch's graph floats stay tensors, which gradients can reach."""
    if ty == UNIT:
        return lambda _, __, ___: None
    is_number = isinstance(ty, TensorType | SizeType) and not (joined and numbers is float)
    if is_number and isinstance(numbers, type):
        return lambda value, _, __: _python_number(value, numbers)
    plan = schema.plan(ty, numbers)

    def convert(value: Any, arguments: Sequence[Any], owner: Owner) -> Any:
        held = set(map(id, distinct_tensors(arguments)))
        call = _Call(held, arguments, owner, exports, schema, joined)
        return finished(value, plan, lambda v, leaf: _convert(v, leaf, call))

    return convert


def outward(value: Any, ty: Type, numbers: Numbers, device: torch.device, schema: Schema) -> Any:
    """Return a script a host value that is its own already: what a cell holds."""
    call = _Call(set(), (), Owner(device, frozenset()), {}, schema)
    return transform(value, schema.plan(ty, numbers), lambda v, leaf: _convert(v, leaf, call))


def _python_number(value: Any, python: type) -> Any:
    return python(value.item() if isinstance(value, torch.Tensor) else value)


@dataclass(frozen=True)
class _Call:
    """The call whose result is converted: its arguments, their tensors by identity, what ran it."""

    held: set[int]
    arguments: Sequence[Any]
    owner: Owner
    exports: Exports
    schema: Schema
    joined: bool = False

    def fresh(self, value: torch.Tensor) -> torch.Tensor:
        """Return a result in storage of its own."""
        if id(value) in self.held or id(value) in self.owner.constants:
            return value.clone()
        if not value._is_view() and not self._streams:  # noqa: SLF001  torch has no public name
            return value
        storage = value.untyped_storage().data_ptr()
        shares = storage in self._storages or any(storage in s.storages for s in self._streams)
        return value.clone() if shares and storage else value

    @cached_property
    def _streams(self) -> Sequence[Stream]:
        return [a for a in self.arguments if isinstance(a, Stream)]

    @cached_property
    def _storages(self) -> frozenset[int]:
        """Where the tensors of the arguments are stored."""
        given = distinct_tensors(self.arguments)
        return frozenset(t.untyped_storage().data_ptr() for t in given)


def _as_tensor(value: Any, dtype: DType, device: torch.device) -> torch.Tensor:
    try:
        return torch.scalar_tensor(value, dtype=torch_dtype(dtype), device=device)
    except (OverflowError, ValueError, RuntimeError) as error:
        raise IntegerOverflow(str(error)) from None


def _convert(value: Any, leaf: Leaf, call: _Call) -> Any:
    match leaf.type:
        case TensorType(()) | SizeType() if leaf.python and not (
            call.joined and leaf.python is float
        ):
            return _python_number(value, leaf.python)
        case TensorType(_, dtype):
            if isinstance(value, torch.Tensor):
                return call.fresh(value)
            assert isinstance(dtype, DType)
            return _as_tensor(value, dtype, call.owner.device)
        case SizeType():
            return _as_tensor(int(value), int64, call.owner.device)
        case FnType() as ty:
            return _function(value, ty, leaf.numbers, call)
        case RefType():
            (inside,) = parts_of(leaf.numbers, 1)
            return Reference.of(value, leaf.type, inside, call.owner.device, call.schema)
        case TypeVar():
            return map_tensors(value, call.fresh)
        case AdtType(name) if name in call.exports:
            return call.exports[name](value)
        case TupleType():  # unit, which alone of tuples is a leaf
            return None
        case _:
            return value


def _as_it_is(value: Any, _: Leaf) -> Any:
    return value


def _function(value: Any, ty: FnType, numbers: Numbers, around: _Call) -> Any:
    """A function result, such as the pullback of a vjp: call it with tensors."""

    plans = [around.schema.plan(p) for p in ty.params]
    made = parts_of(numbers, len(ty.params) + 1)[-1]

    def call(*args: Any) -> Any:
        with torch.no_grad():
            given = (transform(a, p, _as_it_is) for a, p in zip(args, plans, strict=False))
            result = value(*given, *args[len(plans) :])
        finish = converter(ty.result, made, around.exports, around.schema)
        return finish(result, args, around.owner)

    return call
