"""Cells in scripts: what `relay.ref(v)` gives, and what a program's cells are to its caller.

A reference is the script's side of a cell that programs read and write. What is in the cell has the
form that programs use; `value` gives and takes what a script uses. Until a program has taken the
cell its type is not known, and it holds what the script has put there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from reprlib import recursive_repr
from typing import Any, Final, final

import torch

from ... import annotations
from ...diagnostics.source import NOWHERE
from ...ir.types import RefType
from ...translate.types.number_places import Numbers, parts_of
from ..calls.arguments import Binder, Parameter, Place
from ..interop.autograd import with_tensors
from .representation import NO_DATA
from .schema import Schema
from .structure import parts, tensors
from .values import Cell


@final
class Reference(annotations.Ref):  # pyright: ignore[reportMissingTypeArgument]
    """A mutable cell: `value` is what it holds."""

    def __init__(self, cell: Cell) -> None:
        self.cell: Final = cell
        self._content: Parameter | None = None
        self._device = torch.device("cpu")
        self._schema = Schema({}, NO_DATA)
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
        """What the cell holds."""
        if self._content is None:
            return self.cell.value
        from .results import outward  # a result may be a reference, too

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
            value = Binder("ref", self._device, self._schema).bind(self._content, value)
        self.cell.value = value

    def enter(self, parameter: Place, ty: RefType, binder: Binder) -> Cell:
        """Return the cell to a program that takes it as this parameter. Raises RunError."""
        if self.cell in binder.entered:  # it holds itself
            return self.cell
        binder.entered.add(self.cell)
        (inside,) = parts_of(parameter.numbers, 1)
        content = Parameter(parameter.name, ty.value, parameter.span, inside)
        self.cell.value = binder.bind(content, self.value)
        self._content, self._device = content, binder.device
        if binder.schema is not None:
            self._schema = binder.schema
        return self.cell

    @recursive_repr("ref(...)")
    def __repr__(self) -> str:
        return f"ref({self.value!r})"


def ref(value: Any) -> Reference:
    """Return a new cell that holds a value. A tensor is kept without its history."""
    return Reference(Cell(_detached(value)))


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def references(values: Sequence[Any]) -> Iterator[Reference]:
    """Return the references among values, those inside tuples and other references too."""
    pending = list(values)
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, Reference) and id(value) not in seen:
            seen.add(id(value))
            yield value
            pending.append(value.cell.value)
        elif isinstance(value, Cell):
            pending.append(value.reference)
        else:
            pending += value if isinstance(value, list) else parts(value)


def separate(values: Sequence[Any], host: Sequence[Any]) -> None:
    """Move the cells of a call that has ended to storage of their own: what the program put into
    them may be an argument, which is the caller's to change."""
    given = [t for v in host for t in tensors(v)]
    storages = {t.untyped_storage().data_ptr() for t in given} - {0}
    for reference in references(values):
        found = tensors(reference.cell.value)
        shared = [t.untyped_storage().data_ptr() in storages for t in found]
        if any(shared):
            fresh = [t.clone() if s else t for t, s in zip(found, shared, strict=True)]
            reference.cell.value = with_tensors(reference.cell.value, fresh)
