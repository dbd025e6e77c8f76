"""Host values in scripts: results in fresh storage and the annotated form, and references.

Integers and bools that the program kept as Python numbers become 0-d tensors where the annotation
is `Int` or `Bool`; `int`, `float` and `bool` are Python numbers. A result that shares storage
with an argument is copied.

A reference is the script's side of a cell that programs read and write. The content of the cell has
the form that programs use; `value` converts. Until a program has taken the cell its type is not
known, and it has what the script has put there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from reprlib import recursive_repr
from typing import Any, Final, TypeAlias, final

import torch

from ... import annotations
from ...dataclass import dataclass
from ...diagnostics.source import NOWHERE
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
    subtypes,
)
from ...lower_torch.constants import torch_dtype
from ...operators.host.conversions import IntegerOverflow
from ...translate.types.number_places import Numbers, parts_of
from ..values.structure import (
    distinct,
    distinct_tensors,
    map_tensors,
    parts,
    tensor_ids,
    tensors,
    with_tensors,
)
from ..values.values import Cell
from .arguments import bound
from .autograd import unrecorded
from .binder import Binder, Entering
from .leaf_map import finished, map_leaves
from .places import Parameter, Place
from .remembered import Known
from .schema import NO_SCHEMA, Leaf, Schema
from .stream import Stream


@final
@dataclass(frozen=True, slots=True)
class Owner:
    """The run of a call: its device, the tensors by their identities that belong to the program,
    and those in arguments that are data."""

    device: torch.device
    constants: Mapping[int, torch.Tensor]
    inside: tuple[Known, ...] = ()

    def has_any(self, ids: set[int]) -> bool:
        """Return whether a result with one of these identities is not the caller's to change."""
        if not self.constants.keys().isdisjoint(ids):
            return True
        return any(not ids.isdisjoint(known.ids) for known in self.inside)


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
    # A function or a cell beside data may share what is in the data.
    has_data = any(isinstance(t, AdtType) for t in subtypes(ty))
    shares = has_data and not schema.has_only_data(ty)

    def convert(value: Any, arguments: Sequence[Any], owner: Owner) -> Any:
        call = _Call(tensor_ids(arguments), arguments, owner, exports, schema, joined, shares)
        return finished(value, plan, lambda v, leaf: _convert(v, leaf, call))

    return convert


def outward(value: Any, ty: Type, numbers: Numbers, device: torch.device, schema: Schema) -> Any:
    """Return a script a host value that is its own already: the content of a cell."""
    call = _Call(set(), (), Owner(device, {}), {}, schema)
    return map_leaves(value, schema.plan(ty, numbers), lambda v, leaf: _convert(v, leaf, call))


def _python_number(value: Any, python: type) -> Any:
    return python(value.item() if isinstance(value, torch.Tensor) else value)


@dataclass(frozen=True)
class _Call:
    """The call whose result is converted: its arguments, their tensors by identity, what ran it,
    and whether its tensors may share storage with each other's functions and cells."""

    given: set[int]
    arguments: Sequence[Any]
    owner: Owner
    exports: Exports
    schema: Schema
    joined: bool = False
    shares: bool = False

    def fresh(self, value: torch.Tensor) -> torch.Tensor:
        """Return a result in storage of its own."""
        if self.shares or id(value) in self.given or self.owner.has_any({id(value)}):
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
        """Where the tensors of the arguments, and those of the program, are stored."""
        inside = [self.owner.constants.values(), *(known.tensors for known in self.owner.inside)]
        found = (*distinct_tensors(self.arguments), *chain.from_iterable(inside))
        return frozenset(t.untyped_storage().data_ptr() for t in found)


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
    """Return a function result, such as the pullback of a vjp, as a function to call with
    tensors."""

    plans = [around.schema.plan(p) for p in ty.params]
    made = parts_of(numbers, len(ty.params) + 1)[-1]

    def call(*args: Any) -> Any:
        pairs = zip(args, plans, strict=False)
        given = (map_leaves(a, p, _as_it_is, is_given=True) for a, p in pairs)
        result = unrecorded(lambda: value(*given, *args[len(plans) :]))
        finish = converter(ty.result, made, around.exports, around.schema)
        return finish(result, args, around.owner)

    return call


@final
class Reference(annotations.Ref, Entering):  # pyright: ignore[reportMissingTypeArgument]
    """A mutable cell with a `value`."""

    def __init__(self, cell: Cell) -> None:
        self.cell: Final = cell
        self._content: Parameter | None = None
        self._device = torch.device("cpu")
        self._schema = NO_SCHEMA
        cell.reference = self

    @staticmethod
    def of(
        cell: Cell, ty: RefType, numbers: Numbers, device: torch.device, schema: Schema
    ) -> Reference:
        """Return the reference to a cell of a program, the same one each time."""
        found = cell.reference
        if not isinstance(found, Reference):
            found = Reference(cell)
            found._content = Parameter("value", ty.value, NOWHERE, numbers)
            found._device, found._schema = device, schema
        return found

    @property
    def value(self) -> Any:
        """The content of the cell."""
        if self._content is None:
            return self.cell.value
        return outward(
            self.cell.value,
            self._content.type,
            self._content.numbers,
            self._device,
            self._schema,
        )

    @value.setter
    def value(self, value: Any) -> None:
        value = _detached(value)
        if self._content is not None:
            value = bound(Binder("ref", self._device, self._schema), self._content, value)
        self.cell.value = value

    def enter(self, place: Place, ty: RefType, binder: Binder) -> Cell:
        """Return the cell to a program that takes it as this parameter. Raises RunError."""
        if self.cell in binder.entered:  # it contains itself
            return self.cell
        binder.entered.add(self.cell)
        (inside,) = parts_of(place.numbers, 1)
        content = Parameter(place.name, ty.value, place.span, inside)
        self.cell.value = bound(binder, content, self.value)
        self._content, self._device = content, binder.device
        if binder.schema is not NO_SCHEMA:
            self._schema = binder.schema
        return self.cell

    @recursive_repr("ref(...)")
    def __repr__(self) -> str:
        return f"ref({self.value!r})"


def ref(value: Any) -> Reference:
    """Return a new cell with a value. A tensor is kept without its history."""
    return Reference(Cell(_detached(value)))


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _references(values: Sequence[Any]) -> list[Reference]:
    """Return the references among values, those inside tuples and other references too."""
    found: list[Reference] = []

    def inside(value: Any) -> Sequence[Any]:
        reference = value.reference if isinstance(value, Cell) else value
        if not isinstance(reference, Reference):
            return parts(value)
        found.append(reference)
        return (reference.cell.value,)

    for _ in distinct(values, inside):
        pass
    return list(dict.fromkeys(found))


def separate(values: Sequence[Any], host: Sequence[Any]) -> None:
    """Move the cells of a call that has ended to storage of their own: what the program put into
    them may be an argument, which is the caller's to change."""
    references = _references(values)
    if not references:  # the cells are those of models, which hand back what is in them
        return
    given = [t for v in host for t in tensors(v)]
    storages = {t.untyped_storage().data_ptr() for t in given} - {0}
    for reference in references:
        found = tensors(reference.cell.value)
        shared = [t.untyped_storage().data_ptr() in storages for t in found]
        if any(shared):
            fresh = [t.clone() if s else t for t, s in zip(found, shared, strict=True)]
            reference.cell.value = with_tensors(reference.cell.value, fresh)
